// Bounds, element by element. Nothing here needs a logarithm but the number that is shown to people.
#include "checkpoint/save/bound_check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "codecs/tensor/bounded/log_bins.h"
#include "kernels/tensor/cpu/bound_check.h"
#include "libcompress/core/run_tasks.h"

namespace quern::checkpoint {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

std::uint32_t bits_at(std::span<const std::uint8_t> bytes, std::size_t i) {
  std::uint32_t bits;
  std::memcpy(&bits, bytes.data() + 4 * i, 4);
  return bits;
}
double number(std::uint32_t bits) { return static_cast<double>(std::bit_cast<float>(bits)); }
bool is_finite_bits(std::uint32_t bits) { return (bits & 0x7fffffffu) < 0x7f800000u; }
bool is_positive_bits(std::uint32_t bits) { return bits - 1 < 0x7f7fffffu; }

/// Whether the greater of two positive numbers is at most 2^reach times the other, in integers.
class Nearness {
 public:
  explicit Nearness(double bound) {
    const std::uint64_t reach = codec::tensor::reach_of(bound);
    constexpr std::uint64_t kOne = std::uint64_t{1} << codec::tensor::kReachBits;
    const std::uint64_t whole = reach / kOne;
    const std::uint64_t part = reach % kOne;
    // 2^-reach in units of 2^-62, certainly not too small.
    constexpr std::uint64_t kPowerError = 1 << 8;
    shrink_ = part == 0 ? (codec::tensor::exp2_fixed(0) >> whole) + 1
                        : ((codec::tensor::exp2_fixed(kOne - part) + kPowerError) >> (whole + 1)) + 1;
  }
  /// A quotient that is not above this, rounded to binary64, is of numbers that are near.
  double certain_ratio() const { return 0x1p62 / static_cast<double>(shrink_) * (1 - 0x1p-49); }
  bool near(std::uint32_t a, std::uint32_t b) const {
    const Digits low(std::min(a, b));
    const Digits high(std::max(a, b));
    const int shift = high.exponent - low.exponent;
    if (shift > 40) return false;  // the widest bound is below 2^12
    return Wide{low.mantissa} << 62 >= (Wide{high.mantissa} * shrink_) << shift;
  }

 private:
  struct Digits {
    explicit Digits(std::uint32_t bits)
        : mantissa(bits < 0x800000u ? bits : (bits & 0x7fffffu) | 0x800000u),
          exponent(std::max(static_cast<int>(bits >> 23), 1)) {}
    std::uint64_t mantissa;
    int exponent;
  };
  std::uint64_t shrink_ = 0;
};

/// What has been seen of a tensor. `worst` is a ratio for logq, a square for updq.
struct Seen {
  bool kept = true;
  double worst = 0;
  double absolute = 0;

  void add(double off, double worst_so) {
    absolute = std::max(absolute, off);
    worst = std::max(worst, worst_so);
  }
};

template <class Visit>
void look(std::span<const std::uint8_t> values, std::span<const std::uint8_t> decoded, Seen& seen, const Visit& visit) {
  for (std::size_t i = 0; i < values.size() / 4; ++i) {
    const std::uint32_t was = bits_at(values, i);
    const std::uint32_t is = bits_at(decoded, i);
    if (was == is) continue;
    if (!is_finite_bits(was) || !is_finite_bits(is)) {
      seen.kept = false;
      continue;
    }
    visit(i, was, is, std::abs(number(is) - number(was)));
  }
}

void look_at_piece(Mode mode, double bound, const Nearness& nearness, std::span<const std::uint8_t> values,
                   std::span<const std::uint8_t> decoded, std::span<const std::uint8_t> companion, Seen& seen) {
  switch (mode) {
    case Mode::ebq:
      look(values, decoded, seen, [&](std::size_t, std::uint32_t was, std::uint32_t, double off) {
        // The difference was rounded: below the bound after that, it was before.
        if (!(off < bound) || (was & 0x7fffffffu) == 0) seen.kept = false;
        seen.add(off, off);
      });
      return;
    case Mode::updq:
      look(values, decoded, seen, [&](std::size_t i, std::uint32_t was, std::uint32_t, double off) {
        const std::uint32_t second = bits_at(companion, i);
        constexpr double kMargin = 1 - 0x1p-48;  // more than what this line rounds
        const bool has_unit = is_positive_bits(second);
        if (!has_unit || was == 0x80000000u || was == 0 || !(off * off <= bound * bound * kMargin * number(second)))
          seen.kept = false;
        seen.add(off, has_unit ? off * off / number(second) : 0);
      });
      return;
    case Mode::logq:
      look(values, decoded, seen, [&](std::size_t, std::uint32_t was, std::uint32_t is, double off) {
        if (!is_positive_bits(was) || !is_positive_bits(is) || !nearness.near(was, is)) seen.kept = false;
        seen.add(off, number(std::max(was, is)) / number(std::min(was, is)));
      });
      return;
    default:
      look(values, decoded, seen, [&](std::size_t, std::uint32_t, std::uint32_t, double off) { seen.add(off, 0); });
  }
}

/// Blocks whose elements certainly keep the bound are done by vectors; others element by element.
void check_piece(Mode mode, double bound, const Nearness& nearness, std::span<const std::uint8_t> values,
                 std::span<const std::uint8_t> decoded, std::span<const std::uint8_t> companion, Seen& seen) {
  const auto& kernels = kernels::bound_check_kernels(kernels::best_isa());
  constexpr double kMargin = 1 - 0x1p-48;  // more than the check of updq rounds
  constexpr std::size_t kBlockBytes = 4 * kernels::kCheckBlock;
  const double square = bound * bound * kMargin;
  const double ratio = mode == Mode::logq ? nearness.certain_ratio() : 0;
  kernels::CheckWorst worst;
  for (std::size_t begin = 0; begin < values.size(); begin += kBlockBytes) {
    const std::size_t bytes = std::min(kBlockBytes, values.size() - begin);
    const auto was = values.subspan(begin, bytes);
    const auto is = decoded.subspan(begin, bytes);
    const auto second = companion.empty() ? companion : companion.subspan(begin, bytes);
    bool certain = false;
    if (mode == Mode::ebq) certain = kernels.steps(bound, was.data(), is.data(), bytes / 4, worst);
    if (mode == Mode::updq) certain = kernels.updates(square, was.data(), is.data(), second.data(), bytes / 4, worst);
    if (mode == Mode::logq) certain = kernels.logs(ratio, was.data(), is.data(), bytes / 4, worst);
    if (!certain) look_at_piece(mode, bound, nearness, was, is, second, seen);
  }
  seen.add(worst.absolute, worst.relative);
}

}  // namespace

bool is_lossy(Mode mode) {
  return mode == Mode::ebq || mode == Mode::updq || mode == Mode::logq || mode == Mode::blk8 || mode == Mode::blk4;
}

BoundCheck check_bound(Mode mode, double bound, std::span<const std::uint8_t> values,
                       std::span<const std::uint8_t> decoded, std::span<const std::uint8_t> companion,
                       TaskRunner& runner) {
  BoundCheck out;
  if (values.size() != decoded.size() || (mode == Mode::updq && companion.size() != values.size())) {
    out.kept = false;
    return out;
  }
  const Nearness nearness(mode == Mode::logq ? bound : 1);
  const std::size_t pieces = (values.size() + kPieceBytes - 1) / kPieceBytes;
  Vector<Seen> seen(pieces);
  const Status looked = run_tasks(runner, pieces, [&](std::size_t p) -> Status {
    const std::size_t begin = p * kPieceBytes;
    const std::size_t bytes = std::min(kPieceBytes, values.size() - begin);
    check_piece(mode, bound, nearness, values.subspan(begin, bytes), decoded.subspan(begin, bytes),
                mode == Mode::updq ? companion.subspan(begin, bytes) : std::span<const std::uint8_t>(), seen[p]);
    return {};
  });
  Seen all;
  all.kept = looked.ok();
  for (const Seen& piece : seen) {
    all.kept = all.kept && piece.kept;
    all.add(piece.absolute, piece.worst);
  }
  out.kept = all.kept;
  out.worst_absolute = all.absolute;
  out.worst = mode == Mode::updq   ? std::sqrt(all.worst)
              : mode == Mode::logq ? (all.worst > 1 ? std::log(all.worst) / 2 : 0)
                                   : all.worst;
  return out;
}

}  // namespace quern::checkpoint
