// Which elements count, and which must come back bit for bit.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "libcompress/metrics/element.h"

namespace quern::metrics {

/// Fill values as the caller gave them, with the questions one asks of an element. Does not own the list.
template <class E>
class Validity {
 public:
  using Bits = typename E::Bits;
  explicit Validity(std::span<const std::uint64_t> fill_bits) : fill_bits_(fill_bits) {}

  bool has_fills() const { return !fill_bits_.empty(); }

  bool is_valid(Bits x) const {
    if constexpr (E::kFloat)
      if (!std::isfinite(E::value(x))) return false;
    return !is_fill(x);
  }

  /// Must come back bit for bit.
  bool is_special(Bits x) const {
    if constexpr (E::kFloat)
      if (x == E::kSign) return true;
    return !is_valid(x);
  }

  /// A special that changed, or a +0 that came back as -0.
  bool is_lost_special(Bits x, Bits y) const {
    if (x == y) return false;
    if constexpr (E::kFloat)
      if (x == 0 && y == E::kSign) return true;
    return is_special(x);
  }

 private:
  bool is_fill(Bits x) const {
    for (const std::uint64_t wide : fill_bits_) {
      const Bits fill = static_cast<Bits>(wide);
      if constexpr (E::kFloat) {
        if (E::value(fill) == E::value(x)) return true;
      } else {
        if (fill == x) return true;
      }
    }
    return false;
  }

  std::span<const std::uint64_t> fill_bits_;
};

}  // namespace quern::metrics
