// Integer estimate of what a codec pays for a segment: quantized values, Lorenzo residuals, bit lengths.
// Used only to decide whether masking a repeated value pays; the same on every machine.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include <quern/bound.h>

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

  /// Clamped to +-2^27, so that sums of eight fit.
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

/// Cost in bits of a box of finite values: for pieces of 32 cells of a row the cheapest of 1-D, 2-D and 3-D Lorenzo.
template <class W>
class CostEstimate {
 public:
  explicit CostEstimate(const EnforcedBound& bound, const Extents& extents)
      : quantize_(bound), extents_(extents), pitch_(extents[2] + 1), now_(plane_size()), before_(plane_size()) {}

  /// `row(i, y)` gives a pointer to the extents[2] elements of a row.
  template <class Rows>
  std::uint64_t operator()(Rows&& row) {
    std::fill(now_.begin(), now_.end(), 0);
    std::uint64_t bits = 0;
    for (std::uint64_t i = 0; i < extents_[0]; ++i) {
      std::swap(now_, before_);
      for (std::uint64_t y = 0; y < extents_[1]; ++y) {
        const typename W::Word* p = row(i, y);
        std::int32_t* q = now_.data() + (y + 1) * pitch_ + 1;
        for (std::uint64_t x = 0; x < extents_[2]; ++x) q[x] = quantize_(p[x]);
        bits += row_bits(q, before_.data() + (y + 1) * pitch_ + 1);
      }
    }
    return bits;
  }

 private:
  static constexpr std::uint64_t kPiece = 32;
  std::size_t plane_size() const { return (extents_[1] + 1) * pitch_; }

  std::uint64_t row_bits(const std::int32_t* q, const std::int32_t* p) const {
    const std::int32_t* qn = q - pitch_;
    const std::int32_t* pn = p - pitch_;
    std::uint64_t total = 0;
    for (std::uint64_t x0 = 0; x0 < extents_[2]; x0 += kPiece) {
      const std::uint64_t x1 = std::min(x0 + kPiece, extents_[2]);
      std::uint32_t one = 0, two = 0, three = 0;
      for (auto x = static_cast<std::int64_t>(x0); x < static_cast<std::int64_t>(x1); ++x) {
        const std::int32_t d1 = q[x] - q[x - 1];
        const std::int32_t d2 = d1 - (qn[x] - qn[x - 1]);
        const std::int32_t d3 = d2 - ((p[x] - p[x - 1]) - (pn[x] - pn[x - 1]));
        one += residual_bits(d1);
        two += residual_bits(d2);
        three += residual_bits(d3);
      }
      total += std::min({one, two, three});
    }
    return total;
  }

  Quantizer<W> quantize_;
  Extents extents_;
  std::uint64_t pitch_;
  std::vector<std::int32_t> now_;
  std::vector<std::int32_t> before_;
};

}  // namespace quern::mask
