// Does one element keep its bound? The exact check, a quick one that clears most elements, and what is reported
// of one that fails.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/metrics/element.h"
#include "kernels/metrics/exact.h"
#include "kernels/metrics/validity.h"

namespace quern::verifier {

enum class BoundRule : std::uint8_t {
  lossless,  ///< every bit
  absolute,  ///< |x - x'| <= value; a value of 0 means lossless
  relative,  ///< |x - x'| <= value * |x|, value < 1; floating-point types only
};

struct Bound {
  BoundRule rule = BoundRule::lossless;
  double value = 0.0;
};

/// Whether a verifier of that element type takes the bound.
constexpr bool is_bound_for(kernels::Element element, const Bound& bound) {
  if (bound.rule == BoundRule::lossless) return true;
  if (!(bound.value >= 0) || !is_finite(bound.value)) return false;
  return bound.rule == BoundRule::absolute ||
         (bound.rule == BoundRule::relative && bound.value < 1 && kernels::is_float(element));
}

enum class Verdict : std::uint8_t { kept, over_bound, special_lost };

/// What is told of an element that misses its bound.
struct Finding {
  double original = 0.0;
  double reconstructed = 0.0;
  double error = 0.0;  ///< infinity where it is not a number
  std::uint64_t ulps = 0;
};

/// The largest number of the type that is not above `value`, which is not negative.
template <class Real>
constexpr Real round_down(double value) {
  if constexpr (std::is_same_v<Real, double>) {
    return value;
  } else {
    if (value >= static_cast<double>(std::numeric_limits<float>::max())) return std::numeric_limits<float>::max();
    const auto nearest = static_cast<float>(value);
    return static_cast<double>(nearest) > value ? std::bit_cast<float>(std::bit_cast<std::uint32_t>(nearest) - 1)
                                                : nearest;
  }
}

/// A bound's value rounded down to what elements are compared in.
template <class E>
constexpr auto limit_of(double value) {
  if constexpr (E::kFloat)
    return round_down<typename E::Working>(value);
  else
    return integer_limit<typename E::Distance>(value);
}

template <class E>
class BoundVerifier {
 public:
  using Bits = typename E::Bits;
  using Limit = decltype(limit_of<E>(0.0));

  constexpr BoundVerifier(const Bound& bound, const Validity<E>& validity)
      : rule_(bound.value == 0 && bound.rule == BoundRule::absolute ? BoundRule::lossless : bound.rule),
        value_(bound.value),
        limit_(rule_ == BoundRule::lossless ? Limit{} : limit_of<E>(bound.value)),
        validity_(validity) {}

  constexpr BoundRule rule() const { return rule_; }
  constexpr double value() const { return value_; }
  constexpr Limit limit() const { return limit_; }
  constexpr const Validity<E>& validity() const { return validity_; }

  constexpr Verdict verdict(Bits x, Bits y) const {
    if (x == y) return Verdict::kept;
    if (validity_.is_lost_special(x, y)) return Verdict::special_lost;
    return within(x, y) ? Verdict::kept : Verdict::over_bound;
  }

  /// True only when verdict() would keep the element.
  constexpr bool clears(Bits x, Bits y) const { return x == y || (clears_if_no_fill(x, y) && !validity_.is_fill(x)); }

  /// True only when verdict() would keep the element, were it no fill value; in the working type of the element, for
  /// machines where binary64 is slow.
  constexpr bool clears_if_no_fill(Bits x, Bits y) const {
    if (rule_ == BoundRule::lossless) return x == y;
    if constexpr (E::kFloat) {
      if (x == E::kSign || y == E::kSign) return false;
      return rule_ == BoundRule::relative ? clears_relative(E::working(x), E::working(y))
                                          : clears_absolute(E::working(x), E::working(y));
    } else {
      return E::distance(x, y) <= limit_;
    }
  }

 private:
  constexpr bool within(Bits x, Bits y) const {
    if (rule_ == BoundRule::lossless) return false;
    if constexpr (E::kFloat) {
      if (static_cast<Bits>(y & ~E::kSign) >= E::kInfinity) return false;
      return rule_ == BoundRule::relative ? within_relative(E::value(x), E::value(y), value_)
                                          : within_absolute(E::value(x), E::value(y), value_);
    } else {
      return E::distance(x, y) <= limit_;
    }
  }

  /// A rounded difference below a bound is below it over the reals too; NaN and infinity fail the comparison.
  template <class Real>
  constexpr bool clears_absolute(Real x, Real y) const {
    const Real difference = x - y;
    return difference < limit_ && -difference < limit_;
  }

  /// The margin covers the roundings of difference and product, which are relative as long as the product is normal.
  template <class Real>
  constexpr bool clears_relative(Real x, Real y) const {
    constexpr bool kDouble = std::is_same_v<Real, double>;
    constexpr Real kMargin = static_cast<Real>(kDouble ? 1 - 0x1p-48 : 1 - 0x1p-20);
    constexpr Real kNormal = static_cast<Real>(kDouble ? 0x1p-1000 : 0x1p-100);
    const Real difference = x - y;
    const Real product = limit_ * (x < 0 ? -x : x);
    const Real allowed = product * kMargin;
    return product > kNormal && difference < allowed && -difference < allowed;
  }

  BoundRule rule_;
  double value_;
  Limit limit_;
  Validity<E> validity_;
};

template <class E>
constexpr Finding describe(typename E::Bits original, typename E::Bits reconstructed) {
  Finding finding{E::value(original), E::value(reconstructed), 0.0, 0};
  finding.error = magnitude(difference<E>(original, reconstructed));
  if constexpr (E::kFloat) {
    finding.ulps = ulp_distance<E>(original, reconstructed);
    if (finding.error != finding.error) finding.error = kInfinity;
  }
  return finding;
}

}  // namespace quern::verifier
