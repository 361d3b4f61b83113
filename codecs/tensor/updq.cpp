// First moments in units of the root of the second: what an element may be off is what its next update may be off, in
// learning rates. The companion is the decoded second moment; where it is not positive there is no unit, and the
// element is kept exactly.
#include "codecs/tensor/lossy_chunk.h"

namespace quern::codec::tensor {
namespace {

constexpr double kMinBound = 0x1p-20;
constexpr double kMaxBound = 4;
constexpr double kStepMargin = 1 - 0x1p-22;   // so that rounding costs no element at the edge of its step
constexpr double kCheckMargin = 1 - 0x1p-48;  // more than what the check itself rounds
constexpr std::uint32_t kOneBits = 0x3f800000u;
constexpr std::uint32_t kMinusZero = 0x80000000u;
constexpr std::int32_t kMaxCode = 1 << 20;

struct UpdqModel {
  float two_eps = 0;
  std::int32_t base_share = 0;  ///< in 1/64
  ResidualModel residuals;
};

/// Distance of codes at an element; 0 where there is none.
[[gnu::always_inline]] inline float step_at(float two_eps, std::uint32_t second_bits) {
  const bool has_step = is_positive_bits(second_bits);
  const float step = two_eps * __builtin_sqrtf(std::bit_cast<float>(has_step ? second_bits : kOneBits));
  return has_step ? step : 0.0f;
}

/// The base's code in this tensor's steps, within +-kMaxCode; 0 where it has none.
[[gnu::always_inline]] inline std::int32_t base_code(std::uint32_t base_bits, float step) {
  if (!is_finite_bits(base_bits)) return 0;
  const float quotient = std::bit_cast<float>(base_bits) / step;
  constexpr auto kMost = static_cast<float>(kMaxCode);
  return nearest_integer(quotient < -kMost ? -kMost : quotient > kMost ? kMost : quotient);
}

/// Codes of a chunk. Elements without a step, or that miss the bound, are not coded.
struct UpdqCodes {
  Vector<std::int32_t> codes;
  SpecialRuns special;              ///< stored
  Vector<std::uint32_t> not_coded;  ///< these, and those without a step
};

void find_codes(float two_eps, double eps, std::span<const std::uint8_t> values, std::span<const std::uint8_t> second,
                UpdqCodes& chunk) {
  const std::size_t elems = values.size() / 4;
  chunk.codes.resize(elems);
  Vector<std::uint8_t> marks(elems);
  std::int32_t* const codes = chunk.codes.data();
  const double square = eps * eps * kCheckMargin;
  constexpr auto kMost = static_cast<float>(kMaxCode);
  for (std::size_t i = 0; i < elems; ++i) {
    const std::uint32_t bits = bits_at(values, i);
    const std::uint32_t second_bits = bits_at(second, i);
    const bool has_step = is_positive_bits(second_bits);
    const float v = std::bit_cast<float>(has_step ? second_bits : kOneBits);
    const float value = std::bit_cast<float>(bits);
    const float step = two_eps * __builtin_sqrtf(v);
    const float quotient = value / step;
    const std::int32_t code = nearest_integer(quotient);
    const float decoded = static_cast<float>(code) * step;
    // (decoded - value)^2 <= eps^2 * second, certainly: the margin is more than binary64 rounds here.
    const double off = static_cast<double>(decoded) - static_cast<double>(value);
    const bool keeps = off * off <= square * static_cast<double>(v);
    const bool coded = has_step & (quotient >= -kMost) & (quotient <= kMost) & (bits != kMinusZero) & keeps;
    codes[i] = coded ? code : 0;
    marks[i] = coded ? 0 : 1;
  }
  for_marked(marks, [&](std::size_t i) {
    const std::uint32_t bits = bits_at(values, i);
    const auto place = static_cast<std::uint32_t>(i);
    if (bits != 0 || is_positive_bits(bits_at(second, i))) chunk.special.add(place, bits);
    chunk.not_coded.push_back(place);
  });
}

/// Predictions from the base; all 0 without one.
void find_predictions(const UpdqModel& model, std::span<const std::uint8_t> base, std::span<const std::uint8_t> second,
                      Vector<std::int32_t>& predictions) {
  const std::size_t elems = second.size() / 4;
  predictions.assign(elems, 0);
  if (model.base_share == 0) return;
  for (std::size_t i = 0; i < elems; ++i) {
    const float step = step_at(model.two_eps, bits_at(second, i));
    if (step > 0) predictions[i] = share(model.base_share, base_code(bits_at(base, i), step));
  }
}

/// Codes become what predictions leave; elements that are not coded leave 0.
void subtract(const UpdqCodes& chunk, std::span<const std::int32_t> predictions, Vector<std::int32_t>& residuals) {
  residuals = chunk.codes;
  for (std::size_t i = 0; i < residuals.size(); ++i) residuals[i] -= predictions[i];
  for (const std::uint32_t place : chunk.not_coded) residuals[place] = 0;
}

/// Least squares of codes by those of the base, in 1/64.
std::int32_t fit_share(std::span<const std::int32_t> codes, float two_eps, std::span<const std::uint8_t> base,
                       std::span<const std::uint8_t> second, double& both, double& square) {
  constexpr std::int32_t kMost = 1 << 10;  // larger ones count as this
  std::int64_t chunk_both = 0;
  std::int64_t chunk_square = 0;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const float step = step_at(two_eps, bits_at(second, i));
    if (!(step > 0)) continue;
    const std::int64_t b = std::clamp(base_code(bits_at(base, i), step), -kMost, kMost);
    chunk_both += b * std::clamp(codes[i], -kMost, kMost);
    chunk_square += b * b;
  }
  both += static_cast<double>(chunk_both);
  square += static_cast<double>(chunk_square);
  if (!(square > 0)) return 0;
  const double x = std::clamp(both / square * 64, -127.0, 127.0);
  return static_cast<std::int32_t>(x + (x < 0 ? -0.5 : 0.5));
}

Status check_companion(const TensorInputs& inputs, bool empty) {
  if (!empty && (inputs.companion.empty() || inputs.companion_type != ElementType::f32))
    return Status(StatusCode::unsupported, "tensor: updq takes the decoded second moment in binary32 as companion");
  return {};
}

Status plan_updq(const TensorInputs& inputs, TaskRunner&, TensorPlan& plan) {
  constexpr std::int32_t kLeastShare = 8;  // of 64: a base that says less is not asked for
  const double eps = plan.request.bound;
  const TensorDescription& description = plan.description;
  QUERN_RETURN_IF_ERROR(check_bounded(description, eps >= kMinBound && eps <= kMaxBound));
  QUERN_RETURN_IF_ERROR(check_companion(inputs, inputs.values.empty()));
  UpdqModel model;
  model.two_eps = static_cast<float>(2 * eps * kStepMargin);
  const Vector<std::uint64_t> fitted = chunks_to_fit(description);
  Vector<UpdqCodes> chunks(fitted.size());
  Vector<Vector<std::int32_t>> residuals(fitted.size());
  double both = 0;
  double square = 0;
  for (std::size_t c = 0; c < fitted.size(); ++c) {
    const auto second = bytes_of(description, fitted[c], inputs.companion);
    find_codes(model.two_eps, eps, bytes_of(description, fitted[c], inputs.values), second, chunks[c]);
    if (!inputs.base.empty())
      model.base_share = fit_share(chunks[c].codes, model.two_eps, bytes_of(description, fitted[c], inputs.base),
                                   second, both, square);
  }
  if (std::abs(model.base_share) < kLeastShare) model.base_share = 0;
  Vector<ResidualSample> samples;
  Vector<std::int32_t> predictions;
  for (std::size_t c = 0; c < fitted.size(); ++c) {
    find_predictions(model, bytes_of(description, fitted[c], inputs.base),
                     bytes_of(description, fitted[c], inputs.companion), predictions);
    subtract(chunks[c], predictions, residuals[c]);
    samples.push_back({piece_of(description, fitted[c]), residuals[c]});
  }
  fit_residuals(samples, plane_width(description), model.residuals);

  append_number(std::bit_cast<std::uint32_t>(model.two_eps), 4, plan.side);
  append_number(static_cast<std::uint8_t>(model.base_share), 1, plan.side);
  BitWriter writer(plan.side);
  put_model(model.residuals, writer);
  return {};
}

Status get_side(const TensorDescription& description, std::span<const std::uint8_t> side, UpdqModel& model) {
  QUERN_RETURN_IF_ERROR(check_bounded(description, true));
  ByteReader reader(side);
  const std::uint32_t two_eps = reader.u32();
  model.two_eps = std::bit_cast<float>(two_eps);
  model.base_share = static_cast<std::int8_t>(reader.u8());
  if (!reader.ok()) return status_of(reader.fault());
  if (!is_positive_bits(two_eps) || model.two_eps > static_cast<float>(2 * kMaxBound))
    return Status(StatusCode::corrupt, "tensor: a step of updq is out of range");
  BitReader bits(reader.bytes(reader.remaining()), kMostGolombWidth);
  return get_model(bits, plane_width(description), model.residuals);
}

Result<std::size_t> encode_updq(const TensorPlan& plan, const TensorInputs& whole, const ChunkInputs& input,
                                std::span<std::uint8_t> out, AlignedBuffer&) {
  UpdqModel model;
  QUERN_RETURN_IF_ERROR(check_companion(whole, false));
  QUERN_RETURN_IF_ERROR(get_side(plan.description, plan.side, model));
  if (model.base_share != 0 && input.base.empty())
    return Status(StatusCode::invalid_argument, "tensor: the plan was made with a base, which is missing");
  UpdqCodes chunk;
  find_codes(model.two_eps, plan.request.bound, input.values, input.companion, chunk);
  Vector<std::int32_t> predictions;
  Vector<std::int32_t> residuals;
  find_predictions(model, input.base, input.companion, predictions);
  subtract(chunk, predictions, residuals);
  Vector<std::uint8_t> coded;
  chunk.special.write(coded);
  encode_residuals(model.residuals, piece_of(plan.description, input.index), residuals, chunk.not_coded, coded);
  return finish_chunk(input.values, coded, out);
}

Result<TensorNeeds> needs_of_updq(const TensorDescription& description, std::span<const std::uint8_t> side) {
  QUERN_RETURN_IF_ERROR(check_bounded(description, true));
  ByteReader reader(side);
  reader.u32();
  TensorNeeds needs;
  needs.companion = true;
  needs.base = reader.u8() != 0;
  if (!reader.ok()) return status_of(reader.fault());
  return needs;
}

Status decode_updq(const TensorDescription& description, std::span<const std::uint8_t> side, const TensorInputs& whole,
                   const ChunkInputs& input, std::span<const std::uint8_t> bytes, std::span<std::uint8_t> out,
                   AlignedBuffer&) {
  QUERN_ASSIGN_OR_RETURN(const bool stored, begin_chunk(bytes, out));
  if (stored) return {};
  UpdqModel model;
  QUERN_RETURN_IF_ERROR(check_companion(whole, false));
  QUERN_RETURN_IF_ERROR(get_side(description, side, model));
  const PlanePiece piece = piece_of(description, input.index);
  ByteReader reader(bytes);
  SpecialRuns special;
  QUERN_RETURN_IF_ERROR(special.read(reader, piece.elems));
  Vector<std::uint32_t> not_coded;
  const auto places = special.places();
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < piece.elems; ++i) {
    const bool is_special = next < places.size() && places[next] == i;
    if (is_special) ++next;
    if (is_special || !(step_at(model.two_eps, bits_at(input.companion, i)) > 0)) not_coded.push_back(i);
  }
  Vector<std::int32_t> residuals(piece.elems);
  QUERN_RETURN_IF_ERROR(
      decode_residuals(model.residuals, piece, reader.bytes(reader.remaining()), not_coded, residuals));
  Vector<std::int32_t> predictions;
  find_predictions(model, input.base, input.companion, predictions);
  for (std::size_t i = 0; i < piece.elems; ++i) {
    const std::uint32_t code = static_cast<std::uint32_t>(residuals[i]) + static_cast<std::uint32_t>(predictions[i]);
    const float step = step_at(model.two_eps, bits_at(input.companion, i));
    put_bits(out, i, std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(code)) * step));
  }
  for (const std::uint32_t i : not_coded) put_bits(out, i, 0);
  for (std::size_t s = 0; s < places.size(); ++s) put_bits(out, places[s], special.bits()[s]);
  return {};
}

}  // namespace

const ModeCoder kUpdqCoder{Mode::updq, plan_updq, encode_updq, needs_of_updq, decode_updq};

}  // namespace quern::codec::tensor
