// Adaptive codes for unsigned integers of up to 64 bits: the length in bits by a unary chain of counters, the two bits
// below the leading one by counters of that length, the rest as they are.
#pragma once

#include <array>
#include <cstdint>

#include "codecs/lidar/coding/counter.h"
#include "kernels/common/bits.h"

namespace quern::codec::lidar {

class NumberModel {
 public:
  /// For an encoder `value` is the number.
  template <class Coder>
  std::uint64_t code(Coder& coder, std::uint64_t value = 0) {
    const unsigned length = code_length(coder, kernels::bit_length(value));
    if (length <= 1) return length;
    std::uint64_t result = 1;
    unsigned left = length - 1;
    for (unsigned modelled = 0; left > 0 && modelled < kModelledBits; ++modelled) {
      --left;
      result = result << 1 | code_bit(coder, below_[length][static_cast<std::size_t>(result - 1)],
                                      static_cast<unsigned>(value >> left & 1));
    }
    while (left > 0) {
      const unsigned count = left < 8 ? left : 8;
      left -= count;
      result = result << count | coder.direct(count, static_cast<unsigned>(value >> left & ((1U << count) - 1)));
    }
    return result;
  }
  template <class Coder>
  std::int64_t code_signed(Coder& coder, std::int64_t value = 0) {
    const std::uint64_t folded = kernels::zigzag(static_cast<std::uint64_t>(value));
    return static_cast<std::int64_t>(kernels::unzigzag(code(coder, folded)));
  }

 private:
  static constexpr unsigned kModelledBits = 2;

  template <class Coder>
  unsigned code_length(Coder& coder, unsigned length) {
    unsigned result = 0;
    while (result < 64 && code_bit(coder, longer_[result], length > result ? 1 : 0) != 0) ++result;
    return result;
  }

  std::array<Counter, 64> longer_;
  std::array<std::array<Counter, 3>, 65> below_;
};

}  // namespace quern::codec::lidar
