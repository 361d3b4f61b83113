// Kernels for byte planes of one instruction set; included by one source file for each, compiled with that set's flags.
// Loops that the compiler vectorizes; the coder of planes is in rans_lanes_instance.h.
#pragma once

#include <bit>
#include <cstring>

#include "kernels/tensor/cpu/planes.h"
#include "kernels/tensor/cpu/rans_lanes_instance.h"

namespace quern::kernels {

template <class Isa>
struct PlaneInstance {
  template <class W>
  [[gnu::always_inline]] static W load(const std::uint8_t* from, std::size_t i) {
    W word;
    std::memcpy(&word, from + i * sizeof(W), sizeof(W));
    return swap(word);
  }
  template <class W>
  [[gnu::always_inline]] static void store(std::uint8_t* to, std::size_t i, W word) {
    word = swap(word);
    std::memcpy(to + i * sizeof(W), &word, sizeof(W));
  }
  template <class W>
  [[gnu::always_inline]] static W swap(W word) {
    if constexpr (std::endian::native == std::endian::little || sizeof(W) == 1) {
      return word;
    } else {
      W swapped = 0;
      for (std::size_t i = 0; i < sizeof(W); ++i) swapped = static_cast<W>(swapped << 8 | (word >> (8 * i) & 0xff));
      return swapped;
    }
  }
  /// Calls f with a word of `width` bytes, all ones or not.
  template <class F>
  [[gnu::always_inline]] static void with_word(unsigned width, const F& f) {
    switch (width) {
      case 1: f(std::uint8_t{}); break;
      case 2: f(std::uint16_t{}); break;
      case 4: f(std::uint32_t{}); break;
      default: f(std::uint64_t{}); break;
    }
  }

  template <class W, bool Rotate>
  static void split_words(const std::uint8_t* elements, std::size_t count, std::uint8_t* const* planes) {
    // Planes of a block at a time: a loop with one store is what compilers vectorize best.
    constexpr std::size_t kBlock = 1024;
    alignas(64) W words[kBlock];
    for (std::size_t begin = 0; begin < count; begin += kBlock) {
      const std::size_t n = count - begin < kBlock ? count - begin : kBlock;
      for (std::size_t i = 0; i < n; ++i) {
        const W word = load<W>(elements, begin + i);
        words[i] = Rotate ? static_cast<W>(word << 1 | word >> (8 * sizeof(W) - 1)) : word;
      }
      for (std::size_t k = 0; k < sizeof(W); ++k) {
        std::uint8_t* const __restrict plane = planes[k] + begin;
        for (std::size_t i = 0; i < n; ++i) plane[i] = static_cast<std::uint8_t>(words[i] >> (8 * k));
      }
    }
  }
  static void split(const std::uint8_t* elements, std::size_t count, unsigned width, bool rotate,
                    std::uint8_t* const* planes) {
    with_word(width, [&](auto word) {
      if (rotate) {
        split_words<decltype(word), true>(elements, count, planes);
      } else {
        split_words<decltype(word), false>(elements, count, planes);
      }
    });
  }

  template <class W, bool Rotate>
  static void join_words(const std::uint8_t* const* planes, std::size_t count, std::uint8_t* __restrict elements) {
    const std::uint8_t* plane[sizeof(W)];
    for (std::size_t k = 0; k < sizeof(W); ++k) plane[k] = planes[k];
    for (std::size_t i = 0; i < count; ++i) {
      W word = plane[0][i];
      if constexpr (sizeof(W) > 1) {
        word = static_cast<W>(word | static_cast<W>(plane[1][i]) << 8);
      }
      if constexpr (sizeof(W) > 2) {
        word |= static_cast<W>(plane[2][i]) << 16;
        word |= static_cast<W>(plane[3][i]) << 24;
      }
      if constexpr (sizeof(W) > 4) {
        word |= static_cast<W>(plane[4][i]) << 32;
        word |= static_cast<W>(plane[5][i]) << 40;
        word |= static_cast<W>(plane[6][i]) << 48;
        word |= static_cast<W>(plane[7][i]) << 56;
      }
      store<W>(elements, i, Rotate ? static_cast<W>(word >> 1 | word << (8 * sizeof(W) - 1)) : word);
    }
  }
  static void join(const std::uint8_t* const* planes, std::size_t count, unsigned width, bool rotate,
                   std::uint8_t* elements) {
    with_word(width, [&](auto word) {
      if (rotate) {
        join_words<decltype(word), true>(planes, count, elements);
      } else {
        join_words<decltype(word), false>(planes, count, elements);
      }
    });
  }

  /// What a reference of 4-byte floats counts for. Tiny, infinite and NaN ones stay as they are: no product is
  /// denormal, whatever the processor's mode.
  [[gnu::always_inline]] static std::uint32_t scaled(std::uint32_t reference, float scale) {
    const std::uint32_t exponent = reference >> 23 & 0xff;
    const auto product = std::bit_cast<std::uint32_t>(std::bit_cast<float>(reference) * scale);
    return exponent - 16 < 255 - 16 ? product : reference;
  }
  template <class W, bool Scaled>
  static void subtract_words(const std::uint8_t* elements, const std::uint8_t* reference, std::size_t count,
                             float scale, std::uint8_t* __restrict out) {
    for (std::size_t i = 0; i < count; ++i) {
      W known = load<W>(reference, i);
      if constexpr (Scaled) known = scaled(known, scale);
      store<W>(out, i, zigzag<W>(static_cast<W>(load<W>(elements, i) - known)));
    }
  }
  static void subtract(const std::uint8_t* elements, const std::uint8_t* reference, std::size_t count, unsigned width,
                       Reference rule, std::uint8_t* out) {
    if (width == 4 && rule.scale != 1.0f)
      return subtract_words<std::uint32_t, true>(elements, reference, count, rule.scale, out);
    with_word(width, [&](auto word) { subtract_words<decltype(word), false>(elements, reference, count, 1.0f, out); });
  }

  template <class W, bool Scaled>
  static void add_words(std::uint8_t* elements, const std::uint8_t* __restrict reference, std::size_t count,
                        float scale) {
    for (std::size_t i = 0; i < count; ++i) {
      W known = load<W>(reference, i);
      if constexpr (Scaled) known = scaled(known, scale);
      store<W>(elements, i, static_cast<W>(unzigzag<W>(load<W>(elements, i)) + known));
    }
  }
  static void add(std::uint8_t* elements, const std::uint8_t* reference, std::size_t count, unsigned width,
                  Reference rule) {
    if (width == 4 && rule.scale != 1.0f) return add_words<std::uint32_t, true>(elements, reference, count, rule.scale);
    with_word(width, [&](auto word) { add_words<decltype(word), false>(elements, reference, count, 1.0f); });
  }

  static void classify(const std::uint8_t* elements, std::size_t count, unsigned width, unsigned shift,
                       const std::uint8_t* thresholds, std::size_t threshold_count, std::uint8_t* out) {
    constexpr std::size_t kBlock = 1024;
    std::uint8_t known[kBlock];
    for (std::size_t begin = 0; begin < count; begin += kBlock) {
      const std::size_t n = count - begin < kBlock ? count - begin : kBlock;
      with_word(width, [&](auto word) {
        for (std::size_t i = 0; i < n; ++i)
          known[i] = static_cast<std::uint8_t>(load<decltype(word)>(elements, begin + i) >> shift);
      });
      std::uint8_t* const __restrict to = out + begin;
      for (std::size_t i = 0; i < n; ++i) to[i] = 0;
      for (std::size_t t = 0; t < threshold_count; ++t) {
        const std::uint8_t threshold = thresholds[t];
        for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<std::uint8_t>(to[i] + (known[i] >= threshold));
      }
    }
  }

  /// Bits of a mask from eight bytes at once, and back.
  [[gnu::always_inline]] static std::uint64_t extract(std::uint64_t word, std::uint64_t mask) {
#if defined(__BMI2__)
    return _pext_u64(word, mask);
#else
    std::uint64_t bits = 0;
    for (unsigned to = 0; mask != 0; ++to, mask &= mask - 1) bits |= (word >> lowest_bit(mask) & 1) << to;
    return bits;
#endif
  }
  [[gnu::always_inline]] static std::uint64_t deposit(std::uint64_t bits, std::uint64_t mask) {
#if defined(__BMI2__)
    return _pdep_u64(bits, mask);
#else
    std::uint64_t word = 0;
    for (; mask != 0; bits >>= 1, mask &= mask - 1) word |= (bits & 1) << lowest_bit(mask);
    return word;
#endif
  }
  static constexpr std::uint64_t kEach = 0x0101010101010101u;  ///< a byte in eight places

  static std::uint8_t* pack(const std::uint8_t* symbols, std::size_t count, std::uint8_t mask, std::uint8_t* out) {
    const unsigned bits = popcount<std::uint32_t>(mask);
    for (std::size_t i = 0; i + 8 <= count; i += 8, out += bits)
      store<std::uint64_t>(out, 0, extract(load<std::uint64_t>(symbols + i, 0), kEach * mask));
    const std::size_t rest = count % 8;
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < rest; ++i) word |= std::uint64_t{symbols[count - rest + i]} << (8 * i);
    if (rest > 0) store<std::uint64_t>(out, 0, extract(word, kEach * mask));
    return out + packed_bytes(rest, bits);
  }
  static void unpack(const std::uint8_t* in, std::size_t count, std::uint8_t mask, std::uint8_t fixed,
                     std::uint8_t* symbols) {
    const unsigned bits = popcount<std::uint32_t>(mask);
    const std::uint8_t* const end = in + packed_bytes(count, bits);
    std::size_t i = 0;
    for (; i + 8 <= count && end - in >= 8; i += 8, in += bits)
      store<std::uint64_t>(symbols + i, 0, deposit(load<std::uint64_t>(in, 0), kEach * mask) | kEach * fixed);
    for (; i < count; i += 8) {
      const std::size_t n = count - i < 8 ? count - i : 8;
      std::uint64_t word = 0;
      for (std::size_t k = 0; k < packed_bytes(n, bits); ++k) word |= std::uint64_t{*in++} << (8 * k);
      word = deposit(word, kEach * mask) | kEach * fixed;
      for (std::size_t k = 0; k < n; ++k) symbols[i + k] = static_cast<std::uint8_t>(word >> (8 * k));
    }
  }
  static std::uint8_t varying_bits(const std::uint8_t* symbols, std::size_t count) {
    std::uint8_t varying = 0;
    for (std::size_t i = 0; i < count; ++i) varying = static_cast<std::uint8_t>(varying | (symbols[i] ^ symbols[0]));
    return varying;
  }

  static void group_sums(const std::uint8_t* symbols, std::size_t groups, std::uint16_t* sums) {
    for (std::size_t g = 0; g < groups; ++g) sums[g] = RansLanes<Isa>::group_sum(symbols + g * kRansLanes);
  }

  static constexpr PlaneKernels kKernels{&split,
                                         &join,
                                         &subtract,
                                         &add,
                                         &classify,
                                         &pack,
                                         &unpack,
                                         &varying_bits,
                                         &group_sums,
                                         &RansLanes<Isa>::encode,
                                         &RansLanes<Isa>::decode};
};

}  // namespace quern::kernels
