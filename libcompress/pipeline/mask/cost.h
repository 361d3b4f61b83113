// Integer estimate of what a codec pays for a segment: quantized values, Lorenzo residuals, bit lengths.
// Used only to decide whether masking a repeated value pays; the same on every machine.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include <quern/bound.h>
#include <quern/memory.h>

#include "libcompress/pipeline/mask/mask.h"
#include "libcompress/pipeline/mask/words.h"

namespace quern::mask {

/// Turns elements into small integers of which one unit is one step of the bound.
template <class W>
class Quantizer {
 public:
  using Word = typename W::Word;

  explicit Quantizer(const EnforcedBound& bound) {
    by_value_ = bound.kind == BoundKind::abs && bound.value > 0;
    double step = 1.0;
    if (by_value_) {
      step = W::kFloat ? 2.0 * bound.value : 2.0 * std::floor(bound.value) + 1.0;
    } else if (bound.kind == BoundKind::pwrel && W::kFloat) {
      // Consecutive floats differ by 2^-mantissa of their size, so a relative step is a step of bit patterns.
      step = std::max(1.0, 2.0 * bound.value * static_cast<double>(UINT64_C(1) << W::kMantissaBits));
    }
    inverse_ = 1.0 / step;
    if (!(inverse_ <= 0x1p1000)) inverse_ = 0x1p1000;
  }

  /// Clamped to +-2^27, so that sums of four fit.
  std::int32_t operator()(Word bits) const {
    constexpr double kLimit = 0x1p27;
    const double value = by_value_ || !W::kFloat ? to_double<W>(bits) : static_cast<double>(key(bits));
    const double scaled = std::min(std::max(value * inverse_, -kLimit), kLimit);
    return static_cast<std::int32_t>(scaled + (scaled < 0 ? -0.5 : 0.5));
  }

 private:
  /// Bit patterns of floats as integers in the order of the values.
  static std::int64_t key(Word bits) {
    const auto magnitude = static_cast<std::int64_t>(bits & W::kMagnitude);
    return (bits & W::kSign) != 0 ? -magnitude : magnitude;
  }

  bool by_value_ = false;
  double inverse_ = 1.0;
};

/// Bits for a residual: length and sign, nothing for zero. Rounding in the conversion is the same everywhere.
inline std::uint32_t residual_bits(std::int32_t r) {
  const auto magnitude = static_cast<float>(r < 0 ? -r : r);
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(magnitude) >> 23;
  return exponent == 0 ? 0 : exponent - 125;
}

/// Rows of a segment that estimates look at, numbered through all planes: bands of eight, one band in four; all rows of
/// a segment with few.
class SampledRows {
 public:
  explicit SampledRows(const Extents& extents) : rows_(extents[0] * extents[1]), every_(rows_ <= kFewRows ? 1 : 4) {}

  std::uint64_t rows() const { return rows_; }
  bool has(std::uint64_t row) const { return (row / kBand) % every_ == 0; }
  std::uint64_t sampled() const {
    std::uint64_t n = 0;
    for (std::uint64_t r = 0; r < rows_; r += kBand) n += has(r) ? std::min(kBand, rows_ - r) : 0;
    return n;
  }

 private:
  static constexpr std::uint64_t kBand = 8;
  static constexpr std::uint64_t kFewRows = 64;
  std::uint64_t rows_;
  std::uint64_t every_;
};

/// Cost in bits of a segment of finite values, scaled up from the sampled rows: for pieces of 32 cells of a row the
/// cheaper of 1-D and 2-D Lorenzo.
template <class W>
class CostEstimate {
 public:
  using Word = typename W::Word;

  CostEstimate(const EnforcedBound& bound, const Extents& extents)
      : quantize_(bound), sample_(extents), cols_(extents[2]), now_(cols_ + 1), above_(cols_ + 1) {}

  /// `cells` are contiguous in C order.
  std::uint64_t operator()(const Word* cells) {
    std::uint64_t bits = 0;
    std::uint64_t ready = UINT64_MAX;  // the row that now_ holds
    for (std::uint64_t r = 0; r < sample_.rows(); ++r) {
      if (!sample_.has(r)) continue;
      if (r > 0 && ready != r - 1) quantize_row(cells + (r - 1) * cols_);
      std::swap(now_, above_);
      quantize_row(cells + r * cols_);
      if (r == 0) std::fill(above_.begin(), above_.end(), 0);
      bits += row_bits(now_.data() + 1, above_.data() + 1);
      ready = r;
    }
    return bits * sample_.rows() / std::max<std::uint64_t>(sample_.sampled(), 1);
  }

 private:
  static constexpr std::uint64_t kPiece = 32;

  void quantize_row(const Word* p) {
    std::int32_t* q = now_.data() + 1;
    for (std::uint64_t x = 0; x < cols_; ++x) q[x] = quantize_(p[x]);
  }

  std::uint64_t row_bits(const std::int32_t* q, const std::int32_t* above) const {
    std::uint64_t total = 0;
    for (std::uint64_t x0 = 0; x0 < cols_; x0 += kPiece) {
      const std::uint64_t n = std::min(kPiece, cols_ - x0);
      const std::int32_t* a = q + x0;
      const std::int32_t* b = above + x0;
      std::uint32_t one = 0, two = 0;
      for (std::uint64_t x = 0; x < n; ++x) {
        const std::int32_t d = a[x] - *(a + x - 1);
        one += residual_bits(d);
        two += residual_bits(d - (b[x] - *(b + x - 1)));
      }
      total += std::min(one, two);
    }
    return total;
  }

  Quantizer<W> quantize_;
  SampledRows sample_;
  std::uint64_t cols_;
  Vector<std::int32_t> now_;
  Vector<std::int32_t> above_;
};

}  // namespace quern::mask
