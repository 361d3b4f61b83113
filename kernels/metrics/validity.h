// Which elements count, and which must come back bit for bit.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/metrics/element.h"

namespace quern::verifier {

/// Zeros of both signs are the same, NaN is not even itself.
template <class E>
constexpr bool is_same_value(typename E::Bits a, typename E::Bits b) {
  if constexpr (E::kFloat)
    return E::working(a) == E::working(b);
  else
    return a == b;
}

/// Fill values as the caller gave them, with the questions one asks of an element. Does not own the list.
template <class E>
class Validity {
 public:
  using Bits = typename E::Bits;
  constexpr explicit Validity(std::span<const std::uint64_t> fill_bits) : fill_bits_(fill_bits) {}

  constexpr bool has_fills() const { return !fill_bits_.empty(); }
  constexpr std::span<const std::uint64_t> fill_bits() const { return fill_bits_; }

  constexpr bool is_valid(Bits x) const {
    if constexpr (E::kFloat)
      if (static_cast<Bits>(x & ~E::kSign) >= E::kInfinity) return false;
    return !is_fill(x);
  }

  /// Must come back bit for bit.
  constexpr bool is_special(Bits x) const {
    if constexpr (E::kFloat)
      if (x == E::kSign) return true;
    return !is_valid(x);
  }

  /// A special that changed, or a +0 that came back as -0.
  constexpr bool is_lost_special(Bits x, Bits y) const {
    if (x == y) return false;
    if constexpr (E::kFloat)
      if (x == 0 && y == E::kSign) return true;
    return is_special(x);
  }

  constexpr bool is_fill(Bits x) const {
    for (const std::uint64_t fill : fill_bits_)
      if (is_same_value<E>(x, static_cast<Bits>(fill))) return true;
    return false;
  }

 private:
  std::span<const std::uint64_t> fill_bits_;
};

}  // namespace quern::verifier
