// Integer estimate of what a codec pays for a segment: quantized values, Lorenzo residuals, bit lengths. Used only to
// decide whether masking a repeated value pays; the same on every machine.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/common/quantizers.h"
#include "kernels/mask/words.h"

namespace quern::kernels {

/// How elements become small integers of which one unit is one step of the bound. Made once on the host.
struct CostScale {
  double inverse = 1.0;               ///< of the step
  bool by_value = false;              ///< values are scaled; else bit patterns of floats, and values of integers
  std::uint32_t minus_zero_bits = 0;  ///< what a codec pays for a -0.0, which it keeps bit for bit
};

/// The largest whole number that is not above a number of 0 or more.
constexpr double whole_part(double value) {
  return value < 0x1p53 ? static_cast<double>(static_cast<std::uint64_t>(value)) : value;
}

/// `bound`: of the kind. A bound of 0 is lossless. Floating-point types have a minus zero. Host and device code use it
/// alike.
template <class W>
constexpr CostScale make_cost_scale(QuantizerKind kind, double bound) {
  CostScale scale;
  scale.by_value = kind == QuantizerKind::absolute && bound > 0;
  double step = 1.0;
  if (scale.by_value) {
    step = W::kFloat ? 2.0 * bound : 2.0 * whole_part(bound) + 1.0;
  } else if (kind == QuantizerKind::pointwise && W::kFloat) {
    // Consecutive floats differ by 2^-mantissa of their size, so a relative step is a step of bit patterns.
    const double steps = 2.0 * bound * static_cast<double>(UINT64_C(1) << W::kMantissaBits);
    if (steps > step) step = steps;
  }
  scale.inverse = 1.0 / step;
  if (!(scale.inverse <= 0x1p1000)) scale.inverse = 0x1p1000;
  constexpr std::uint32_t kExceptionBits = 40;
  scale.minus_zero_bits = W::kFloat && kind != QuantizerKind::exact ? kExceptionBits : 0;
  return scale;
}

/// Clamped to +-2^27, so that sums of four fit.
template <class W>
[[gnu::always_inline]] constexpr std::int32_t cost_code(const CostScale& scale, typename W::Word bits) {
  constexpr double kLimit = 0x1p27;
  double value = 0;
  if (scale.by_value || !W::kFloat) {
    value = word_value<W>(bits);
  } else {  // bit patterns of floats as integers in the order of the values
    const auto magnitude = static_cast<std::int64_t>(bits & W::kMagnitude);
    value = static_cast<double>((bits & W::kSign) != 0 ? -magnitude : magnitude);
  }
  const double product = value * scale.inverse;
  const double raised = product < -kLimit ? -kLimit : product;
  const double scaled = kLimit < raised ? kLimit : raised;
  return static_cast<std::int32_t>(scaled + (scaled < 0 ? -0.5 : 0.5));
}

/// Bits for a residual: length and sign, nothing for zero. Rounding in the conversion is the same everywhere.
[[gnu::always_inline]] constexpr std::uint32_t residual_bits(std::int32_t r) {
  const auto magnitude = static_cast<float>(r < 0 ? -r : r);
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(magnitude) >> 23;
  return exponent == 0 ? 0 : exponent - 125;
}

/// Rows of a segment that estimates look at, numbered through all planes: bands of eight, one band in four; all rows of
/// a segment with few.
class SampledRows {
 public:
  static constexpr std::uint64_t kBand = 8;

  constexpr explicit SampledRows(std::uint64_t rows) : rows_(rows), every_(rows <= kFewRows ? 1 : 4) {}

  constexpr std::uint64_t rows() const { return rows_; }
  constexpr bool has(std::uint64_t row) const { return (row / kBand) % every_ == 0; }
  constexpr std::uint64_t sampled() const {
    std::uint64_t n = 0;
    for (std::uint64_t r = 0; r < rows_; r += kBand) n += !has(r) ? 0 : rows_ - r < kBand ? rows_ - r : kBand;
    return n;
  }
  /// Bits of the sampled rows to bits of all.
  constexpr std::uint64_t scaled(std::uint64_t bits) const {
    return bits * rows_ / std::max<std::uint64_t>(sampled(), 1);
  }

 private:
  static constexpr std::uint64_t kFewRows = 64;
  std::uint64_t rows_;
  std::uint64_t every_;
};

/// Cells of a row that one of two predictors is chosen for.
inline constexpr std::uint64_t kCostPiece = 32;

/// Bits for a row of `n` codes below another: for each piece the cheaper of 1-D and 2-D Lorenzo. A code before each row
/// is read, which is 0.
inline std::uint64_t row_cost(const std::int32_t* codes, const std::int32_t* above, std::uint64_t n) {
  std::uint64_t total = 0;
  for (std::uint64_t x0 = 0; x0 < n; x0 += kCostPiece) {
    const std::uint64_t count = n - x0 < kCostPiece ? n - x0 : kCostPiece;
    const std::int32_t* a = codes + x0;
    const std::int32_t* b = above + x0;
    std::uint32_t one = 0, two = 0;
    for (std::uint64_t x = 0; x < count; ++x) {
      const std::int32_t d = a[x] - *(a + x - 1);
      one += residual_bits(d);
      two += residual_bits(d - (b[x] - *(b + x - 1)));
    }
    total += std::min(one, two);
  }
  return total;
}

/// Cost in bits of a segment of finite values, scaled up from the sampled rows. `row(r)` gives the values of a row,
/// rows in rising order; the memory must hold for two rows of codes with one more in front, which are 0.
template <class W, class Row>
std::uint64_t segment_cost(const CostScale& scale, std::uint64_t rows, std::uint64_t cols, std::int32_t* now,
                           std::int32_t* above, Row&& row) {
  const SampledRows sample(rows);
  const auto quantize = [&](std::uint64_t r) {
    const typename W::Word* p = row(r);
    std::int32_t* codes = now + 1;
    for (std::uint64_t x = 0; x < cols; ++x) codes[x] = cost_code<W>(scale, p[x]);
  };
  std::uint64_t bits = 0;
  std::uint64_t ready = UINT64_MAX;  // the row that `now` holds
  for (std::uint64_t r = 0; r < rows; ++r) {
    if (!sample.has(r)) continue;
    if (r > 0 && ready != r - 1) quantize(r - 1);
    std::swap(now, above);
    quantize(r);
    if (r == 0) std::fill(above, above + cols + 1, 0);
    bits += row_cost(now + 1, above + 1, cols);
    ready = r;
  }
  return sample.scaled(bits);
}

}  // namespace quern::kernels
