// Kernels for bounded tensor modes of one instruction set; included by one source file for each, compiled with that
// set's flags. Plain loops over blocks, which compilers vectorize: each has results of one width.
#pragma once

#include <bit>
#include <cstring>

#include "kernels/cpu/tensor_bounds.h"

namespace quern::kernels {

template <class Isa>
struct TensorBoundInstance {
  static constexpr std::size_t kBlock = 512;

  [[gnu::always_inline]] static std::uint32_t bits_at(const std::uint8_t* values, std::size_t i) {
    std::uint32_t bits;
    std::memcpy(&bits, values + 4 * i, 4);
    return bits;
  }
  [[gnu::always_inline]] static void put_bits(std::uint8_t* values, std::size_t i, std::uint32_t bits) {
    std::memcpy(values + 4 * i, &bits, 4);
  }
  /// Calls body(begin, count) for each block.
  template <class Body>
  [[gnu::always_inline]] static void for_blocks(std::size_t count, const Body& body) {
    for (std::size_t begin = 0; begin < count; begin += kBlock)
      body(begin, count - begin < kBlock ? count - begin : kBlock);
  }

  /// The root of a second moment; of 1 where it makes no step.
  [[gnu::always_inline]] static float root_of(std::uint32_t second) {
    return __builtin_sqrtf(std::bit_cast<float>(is_positive_pattern(second) ? second : kFloatOne));
  }

  /// Marks what is not kept, and clears its code.
  [[gnu::always_inline]] static std::uint32_t settle(const std::int32_t* __restrict kept, std::size_t n,
                                                     std::int32_t* __restrict codes, std::uint8_t* __restrict marks) {
    std::int32_t all = -1;
    for (std::size_t i = 0; i < n; ++i) {
      codes[i] &= kept[i];
      all &= kept[i];
    }
    for (std::size_t i = 0; i < n; ++i) marks[i] = static_cast<std::uint8_t>(1 + kept[i]);
    return static_cast<std::uint32_t>(~all);
  }

  static bool update_codes(const UpdateUnit& unit, const std::uint8_t* values, const std::uint8_t* second,
                           std::size_t count, std::int32_t* codes, std::uint8_t* decoded, std::uint8_t* marks) {
    constexpr auto kMost = static_cast<float>(kMaxUpdateCode);
    const float two_eps = unit.two_eps;
    const double square = unit.square;
    std::uint32_t any = 0;
    for_blocks(count, [&](std::size_t begin, std::size_t n) {
      float made[kBlock];
      std::int32_t kept[kBlock];
      const std::uint8_t* const from = values + 4 * begin;
      const std::uint8_t* const units = second + 4 * begin;
      std::int32_t* const __restrict to = codes + begin;
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t bits = bits_at(from, i);
        const std::uint32_t v = bits_at(units, i);
        const float step = two_eps * root_of(v);
        const float quotient = std::bit_cast<float>(bits) / step;
        const std::int32_t code = nearest_code(quotient);
        to[i] = code;
        made[i] = static_cast<float>(code) * step;
        const bool fits = is_positive_pattern(v) & (quotient >= -kMost) & (quotient <= kMost);
        kept[i] = fits & (bits != kFloatMinusZero) ? -1 : 0;
      }
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t v = bits_at(units, i);
        const float unit_of = std::bit_cast<float>(is_positive_pattern(v) ? v : kFloatOne);
        // (decoded - value)^2 <= eps^2 * second, certainly: the margin is more than binary64 rounds here.
        const double off =
            static_cast<double>(made[i]) - static_cast<double>(std::bit_cast<float>(bits_at(from, i)));
        kept[i] &= off * off <= square * static_cast<double>(unit_of) ? -1 : 0;
      }
      any |= settle(kept, n, to, marks + begin);
      if (decoded == nullptr) return;
      for (std::size_t i = 0; i < n; ++i)
        put_bits(decoded + 4 * begin, i,
                 std::bit_cast<std::uint32_t>(made[i]) & static_cast<std::uint32_t>(kept[i]));
    });
    return any != 0;
  }

  static void update_predictions(const UpdateUnit& unit, std::int32_t share, const std::uint8_t* base,
                                 const std::uint8_t* second, std::size_t count,
                                 std::int32_t* __restrict predictions) {
    const float two_eps = unit.two_eps;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t v = bits_at(second, i);
      const std::uint32_t bits = bits_at(base, i);
      const float step = two_eps * root_of(v);
      const std::int32_t code = bounded_code(std::bit_cast<float>(bits) / step);
      const bool known = is_finite_pattern(bits) & is_positive_pattern(v) & (step > 0);
      predictions[i] = ((share * code + 32) >> 6) & (known ? -1 : 0);
    }
  }

  static bool update_marks(const std::uint8_t* second, std::size_t count, std::uint8_t* marks) {
    std::uint32_t any = 0;
    for_blocks(count, [&](std::size_t begin, std::size_t n) {
      std::uint32_t found[kBlock];
      for (std::size_t i = 0; i < n; ++i) {
        found[i] = is_positive_pattern(bits_at(second + 4 * begin, i)) ? 0 : 1;
        any |= found[i];
      }
      for (std::size_t i = 0; i < n; ++i) marks[begin + i] = static_cast<std::uint8_t>(found[i]);
    });
    return any != 0;
  }

  static void update_values(const UpdateUnit& unit, const std::int32_t* codes, const std::uint8_t* second,
                            std::size_t count, std::uint8_t* __restrict decoded) {
    const float two_eps = unit.two_eps;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t v = bits_at(second, i);
      const float step = is_positive_pattern(v) ? two_eps * root_of(v) : 0.0f;
      put_bits(decoded, i, std::bit_cast<std::uint32_t>(static_cast<float>(codes[i]) * step));
    }
  }

  static bool step_codes(const StepUnit& unit, const std::uint8_t* values, const float* predictions, std::size_t count,
                         std::int32_t* codes, std::uint8_t* decoded, std::uint8_t* marks) {
    constexpr auto kMost = static_cast<float>(kMaxStepCode);
    const float step = unit.step;
    const double bound = unit.bound;
    std::uint32_t any = 0;
    const float zeros[kBlock] = {};
    for_blocks(count, [&](std::size_t begin, std::size_t n) {
      float made[kBlock];
      std::int32_t kept[kBlock];
      const std::uint8_t* const from = values + 4 * begin;
      const float* const __restrict around = predictions == nullptr ? zeros : predictions + begin;
      std::int32_t* const __restrict to = codes + begin;
      for (std::size_t i = 0; i < n; ++i) {
        const float value = std::bit_cast<float>(bits_at(from, i));
        const float quotient = (value - around[i]) / step;
        const std::int32_t code = nearest_code(quotient);
        to[i] = code;
        made[i] = around[i] + static_cast<float>(code) * step;
        // Not so for NaN.
        kept[i] = (quotient >= -kMost) & (quotient <= kMost) ? -1 : 0;
      }
      std::int32_t near[kBlock];
      for (std::size_t i = 0; i < n; ++i) {
        // The difference is rounded once; being below the bound after that, it was before.
        const double off =
            static_cast<double>(made[i]) - static_cast<double>(std::bit_cast<float>(bits_at(from, i)));
        near[i] = (off < bound) & (-off < bound) ? -1 : 0;
      }
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t bits = bits_at(from, i);
        const std::int32_t not_zero = std::bit_cast<float>(bits) != 0 ? -1 : 0;
        const std::int32_t same = std::bit_cast<std::uint32_t>(made[i]) == bits ? -1 : 0;
        kept[i] &= (near[i] & not_zero) | same;
      }
      any |= settle(kept, n, to, marks + begin);
      if (decoded == nullptr) return;
      for (std::size_t i = 0; i < n; ++i)
        put_bits(decoded + 4 * begin, i,
                 std::bit_cast<std::uint32_t>(made[i]) & static_cast<std::uint32_t>(kept[i]));
    });
    return any != 0;
  }

  static void step_values(float step, const std::int32_t* codes, const float* predictions, std::size_t count,
                          std::uint8_t* __restrict decoded) {
    if (predictions == nullptr) {
      for (std::size_t i = 0; i < count; ++i)
        put_bits(decoded, i, std::bit_cast<std::uint32_t>(0.0f + static_cast<float>(codes[i]) * step));
      return;
    }
    for (std::size_t i = 0; i < count; ++i)
      put_bits(decoded, i, std::bit_cast<std::uint32_t>(predictions[i] + static_cast<float>(codes[i]) * step));
  }

  static void positive_range(const std::uint8_t* values, std::size_t count, std::uint32_t& lowest,
                             std::uint32_t& highest) {
    // Of what is not positive and finite, the one below wraps to the top and the other to 0.
    std::uint32_t least = UINT32_MAX;
    std::uint32_t most = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t bits = bits_at(values, i);
      const bool positive = is_positive_pattern(bits);
      const std::uint32_t low = positive ? bits : UINT32_MAX;
      const std::uint32_t high = positive ? bits : 0;
      least = low < least ? low : least;
      most = high > most ? high : most;
    }
    lowest = least;
    highest = most;
  }

  static std::uint64_t finite_sums(const std::uint8_t* values, std::size_t count, double* sums) {
    std::uint64_t finite = 0;
    for_blocks(count, [&](std::size_t begin, std::size_t n) {
      std::uint32_t part = 0;
      for (std::size_t i = 0; i < n; ++i) part += is_finite_pattern(bits_at(values + 4 * begin, i)) ? 1 : 0;
      finite += part;
    });
    add_eights(values, count, sums, [](double x, bool) { return x; });
    return finite;
  }
  static void finite_squares(const std::uint8_t* values, std::size_t count, double mean, double* sums) {
    add_eights(values, count, sums, [mean](double x, bool finite) {
      const double off = x - mean;
      return finite ? off * off : 0.0;
    });
  }
  /// Terms of what is not finite are 0, which changes no sum: none of them is ever -0.
  template <class Term>
  [[gnu::always_inline]] static void add_eights(const std::uint8_t* values, std::size_t count, double* sums,
                                                const Term& term) {
    double part[8] = {};
    const auto add = [&](std::size_t i, std::size_t lane) {
      const std::uint32_t bits = bits_at(values, i);
      const bool finite = is_finite_pattern(bits);
      part[lane] = part[lane] + term(static_cast<double>(std::bit_cast<float>(finite ? bits : 0)), finite);
    };
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8)
#pragma GCC unroll 8
      for (std::size_t lane = 0; lane < 8; ++lane) add(i + lane, lane);
    for (std::size_t lane = 0; i < count; ++i, ++lane) add(i, lane);
    for (std::size_t lane = 0; lane < 8; ++lane) sums[lane] = part[lane];
  }

  static constexpr TensorBoundKernels kKernels{&update_codes,  &update_predictions, &update_marks,
                                               &update_values, &step_codes,         &step_values,
                                               &positive_range, &finite_sums,       &finite_squares};
};

}  // namespace quern::kernels
