// Constants of a step, its stored form, and whole groups as tasks of one chunk each.
#include "codecs/tensor/replay.h"

#include <bit>
#include <cstring>

#include "codecs/tensor/bounded/special_runs.h"
#include "libcompress/core/run_tasks.h"
#include "libcompress/format/frame/checksum.h"

namespace quern::codec::tensor {
namespace {

using kernels::AdamConstants;
using kernels::AdamDecay;
using kernels::AdamOrder;
using kernels::AdamRule;

constexpr std::size_t kPieceElems = std::size_t{1} << 12;  // gets aligned copies on the stack

/// A number as an unevaluated sum of two.
struct Twofold {
  double high = 0;
  double low = 0;
};

/// Error-free product of binary64 numbers near 1 (T. J. Dekker, Numer. Math. 18, 1971), without fma.
Twofold exact_product(double a, double b) {
  const auto split = [](double x) {
    const double t = x * 0x1.0000002p27;
    const double high = t - (t - x);
    return Twofold{high, x - high};
  };
  const double p = a * b;
  const Twofold x = split(a);
  const Twofold y = split(b);
  return {p, ((x.high * y.high - p) + x.high * y.low + x.low * y.high) + x.low * y.low};
}

Twofold product(const Twofold& a, const Twofold& b) {
  const Twofold p = exact_product(a.high, b.high);
  const double low = p.low + (a.high * b.low + a.low * b.high);
  const double high = p.high + low;
  return {high, low - (high - p.high)};
}

/// 1 - beta^step
double one_less_power(double beta, std::uint64_t step) {
  Twofold power{1, 0};
  Twofold square{beta, 0};
  for (; step != 0; step >>= 1) {
    if ((step & 1) != 0) power = product(power, square);
    square = product(square, square);
    // Far below what 1 - x can show; keeps products from underflow.
    if (square.high < 0x1p-200) square = {0, 0};
  }
  return (1 - power.high) - power.low;
}

std::array<float*, 10> fields_of(AdamConstants& c) {
  return {&c.clip,        &c.beta1,       &c.one_less_beta1, &c.beta2, &c.one_less_beta2,
          &c.correction1, &c.correction2, &c.rate,           &c.decay, &c.epsilon};
}

constexpr std::size_t kHashes = 3;

struct ReplaySide {
  AdamRule rule;
  std::array<Checksum128, kHashes> hashes{};
};

Result<ReplaySide> read_side(std::span<const std::uint8_t> bytes) {
  ByteReader reader(bytes);
  ReplaySide side;
  const std::uint8_t order = reader.u8();
  const std::uint8_t decay = reader.u8();
  for (float* const field : fields_of(side.rule.constants)) *field = std::bit_cast<float>(reader.u32());
  for (Checksum128& hash : side.hashes) {
    hash.low = reader.u64();
    hash.high = reader.u64();
  }
  reader.expect_end();
  if (!reader.ok()) return status_of(reader.fault());
  if (order < 1 || order > 2 || decay > 2) return Status(StatusCode::corrupt, "tensor: replay of an unknown rule");
  side.rule.order = static_cast<AdamOrder>(order);
  side.rule.decay = static_cast<AdamDecay>(decay);
  return side;
}

Status check_group(const TensorDescription& description, const OptimizerState& base, const ReplayGradient& gradient,
                   std::array<std::size_t, 3> others) {
  if (description.type != ElementType::f32)
    return Status(StatusCode::unsupported, "tensor: replay takes binary32 states only");
  if (gradient.type != ElementType::bf16 && gradient.type != ElementType::f32)
    return Status(StatusCode::unsupported, "tensor: replay takes gradients in bfloat16 or binary32");
  bool fits = gradient.values.size() == description.elems() * element_bytes(gradient.type);
  for (const std::size_t bytes : {base.weight.size(), base.exp_avg.size(), base.exp_avg_sq.size()})
    fits = fits && bytes == description.bytes();
  for (const std::size_t bytes : others) fits = fits && bytes == description.bytes();
  if (!fits) return Status(StatusCode::invalid_argument, "tensor: parts of a replay have different sizes");
  return {};
}

/// A step over elements first .. first + count - 1, count <= kPieceElems, through aligned copies.
struct StepPiece {
  alignas(64) std::array<float, kPieceElems> weight;
  alignas(64) std::array<float, kPieceElems> exp_avg;
  alignas(64) std::array<float, kPieceElems> exp_avg_sq;
  alignas(64) std::array<float, kPieceElems> gradient;  // or as many halves

  void run(const AdamRule& rule, const OptimizerState& base, const ReplayGradient& from, std::size_t first,
           std::size_t count) {
    std::memcpy(weight.data(), base.weight.data() + 4 * first, 4 * count);
    std::memcpy(exp_avg.data(), base.exp_avg.data() + 4 * first, 4 * count);
    std::memcpy(exp_avg_sq.data(), base.exp_avg_sq.data() + 4 * first, 4 * count);
    const auto& kernels = kernels::adam_kernels(kernels::best_isa());
    if (from.type == ElementType::f32) {
      std::memcpy(gradient.data(), from.values.data() + 4 * first, 4 * count);
      kernels.step_f32(rule, gradient.data(), count, weight.data(), exp_avg.data(), exp_avg_sq.data());
    } else {
      alignas(64) std::array<std::uint16_t, kPieceElems> halves;
      std::memcpy(halves.data(), from.values.data() + 2 * first, 2 * count);
      kernels.step_bf16(rule, halves.data(), count, weight.data(), exp_avg.data(), exp_avg_sq.data());
    }
  }
};

/// Calls use(piece, first, count) for all pieces after their step.
template <class Use>
Status step_all(const TensorDescription& description, const AdamRule& rule, const OptimizerState& base,
                const ReplayGradient& gradient, TaskRunner& runner, const Use& use) {
  const auto chunks = static_cast<std::size_t>(description.chunks());
  return run_tasks(runner, chunks, [&](std::size_t c) -> Status {
    StepPiece piece;
    const std::size_t begin = static_cast<std::size_t>(description.chunk_begin(c)) / 4;
    const std::size_t end = begin + description.chunk_bytes(c) / 4;
    for (std::size_t first = begin; first < end; first += kPieceElems) {
      const std::size_t count = std::min(kPieceElems, end - first);
      piece.run(rule, base, gradient, first, count);
      QUERN_RETURN_IF_ERROR(use(piece, first, count));
    }
    return {};
  });
}

}  // namespace

AdamRule make_adam_rule(const AdamSettings& settings) {
  const auto narrow = [](double x) { return static_cast<float>(x); };
  const bool fused = settings.order == AdamOrder::fused;
  const double correction1 = settings.correct_bias ? one_less_power(settings.beta1, settings.step) : 1;
  const double correction2 = settings.correct_bias ? one_less_power(settings.beta2, settings.step) : 1;
  AdamRule rule;
  rule.order = settings.order;
  rule.decay = settings.decay == 0 ? AdamDecay::none : settings.decay_kind;
  AdamConstants& c = rule.constants;
  c.clip = settings.clip;
  c.beta1 = narrow(settings.beta1);
  c.one_less_beta1 = narrow(1 - settings.beta1);
  c.beta2 = narrow(settings.beta2);
  c.one_less_beta2 = narrow(1 - settings.beta2);
  c.correction1 = fused ? narrow(correction1) : 1;
  c.correction2 = fused ? narrow(correction2) : narrow(__builtin_sqrt(correction2));
  c.rate = fused ? narrow(-settings.rate) : narrow(-(settings.rate / correction1));
  const bool keeps = !fused && rule.decay == AdamDecay::decoupled;
  c.decay = keeps ? narrow(1 - settings.rate * settings.decay) : narrow(settings.decay);
  c.epsilon = narrow(settings.epsilon);
  return rule;
}

Result<AdamRule> replay_rule(std::span<const std::uint8_t> side) {
  QUERN_ASSIGN_OR_RETURN(const ReplaySide read, read_side(side));
  return read.rule;
}

Result<Vector<std::uint8_t>> plan_replay(const TensorDescription& description, const AdamRule& rule,
                                         const OptimizerState& base, const ReplayGradient& gradient,
                                         const OptimizerState& result, TaskRunner& runner) {
  QUERN_RETURN_IF_ERROR(check_group(description, base, gradient,
                                    {result.weight.size(), result.exp_avg.size(), result.exp_avg_sq.size()}));
  QUERN_RETURN_IF_ERROR(step_all(
      description, rule, base, gradient, runner, [&](const StepPiece& piece, std::size_t first, std::size_t count) {
        const auto same = [&](const float* made, std::span<const std::uint8_t> wanted) {
          return std::memcmp(made, wanted.data() + 4 * first, 4 * count) == 0;
        };
        if (same(piece.weight.data(), result.weight) && same(piece.exp_avg.data(), result.exp_avg) &&
            same(piece.exp_avg_sq.data(), result.exp_avg_sq))
          return Status();
        return Status(StatusCode::unsupported, "tensor: the step does not lead from the base to this state");
      }));
  Vector<std::uint8_t> side;
  side.push_back(static_cast<std::uint8_t>(rule.order));
  side.push_back(static_cast<std::uint8_t>(rule.decay));
  AdamConstants constants = rule.constants;
  for (const float* const field : fields_of(constants)) append_number(std::bit_cast<std::uint32_t>(*field), 4, side);
  for (const auto tensor : {result.weight, result.exp_avg, result.exp_avg_sq}) {
    const Checksum128 hash = checksum128(tensor);
    append_number(hash.low, 8, side);
    append_number(hash.high, 8, side);
  }
  return side;
}

Status replay_group(const TensorDescription& description, std::span<const std::uint8_t> side,
                    const OptimizerState& base, const ReplayGradient& gradient, const MutableOptimizerState& out,
                    TaskRunner& runner) {
  QUERN_ASSIGN_OR_RETURN(const ReplaySide wanted, read_side(side));
  QUERN_RETURN_IF_ERROR(
      check_group(description, base, gradient, {out.weight.size(), out.exp_avg.size(), out.exp_avg_sq.size()}));
  QUERN_RETURN_IF_ERROR(step_all(description, wanted.rule, base, gradient, runner,
                                 [&](const StepPiece& piece, std::size_t first, std::size_t count) {
                                   std::memcpy(out.weight.data() + 4 * first, piece.weight.data(), 4 * count);
                                   std::memcpy(out.exp_avg.data() + 4 * first, piece.exp_avg.data(), 4 * count);
                                   std::memcpy(out.exp_avg_sq.data() + 4 * first, piece.exp_avg_sq.data(), 4 * count);
                                   return Status();
                                 }));
  std::size_t which = 0;
  for (const std::span<const std::uint8_t> tensor : {out.weight, out.exp_avg, out.exp_avg_sq})
    if (!(checksum128(tensor) == wanted.hashes[which++]))
      return Status(StatusCode::checksum_mismatch,
                    "tensor: a replay leads to another state than the one it was made of");
  return {};
}

}  // namespace quern::codec::tensor
