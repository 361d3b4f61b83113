// A uniform quantizer of floating-point numbers that keeps an absolute bound: each value becomes a multiple of twice
// the bound, is checked after its final rounding, and is refused where it misses.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace quern::codec::packing {

/// Codes lie within: products with the step are of numbers that binary64 holds exactly.
inline constexpr std::int64_t kLargestCode = std::int64_t{1} << 51;

template <class T>
class Quantizer {
 public:
  /// `bound` is finite and above 0.
  explicit Quantizer(double bound) : bound_(bound), step_(2 * bound), reciprocal_(1 / step_) {}

  /// False: the bound is so large or so small that its step or the reciprocal is no number; nothing can be coded.
  bool works() const { return std::isfinite(step_) && std::isfinite(reciprocal_) && reciprocal_ > 0; }

  /// Whether `code` stands for x within the bound. NaN, infinities and -0 are refused: they must keep their bits.
  bool quantize(T x, std::int64_t& code) const {
    const double scaled = static_cast<double>(x) * reciprocal_;
    if (!(std::fabs(scaled) < static_cast<double>(kLargestCode))) return false;
    code = std::llrint(scaled);
    T back = 0;
    if (!value(code, back) || (x == 0 && std::signbit(x))) return false;
    // The difference is rounded, which can make it the bound, but never takes it below: less than the bound is safe.
    return std::fabs(static_cast<double>(x) - static_cast<double>(back)) < bound_;
  }

  /// What a code stands for. False when no finite number does; the code may be any number.
  bool value(std::int64_t code, T& out) const {
    if (code > kLargestCode || code < -kLargestCode) return false;
    const double exact = static_cast<double>(code) * step_;
    if (!(std::fabs(exact) <= static_cast<double>(std::numeric_limits<T>::max()))) return false;
    out = static_cast<T>(exact);
    return true;
  }

 private:
  double bound_;
  double step_;
  double reciprocal_;
};

}  // namespace quern::codec::packing
