// Kernels for bounded tensor modes of one instruction set; included by one source file for each, compiled with that
// set's flags. Plain loops over blocks, which compilers vectorize: each has results of one width.
#pragma once

#include <bit>
#include <cstring>

#include "kernels/tensor/cpu/bounds.h"

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

  // Choices are made with masks: compilers take a conditional expression of floats for control flow.
  [[gnu::always_inline]] static std::uint32_t mask_of(bool yes) { return 0u - static_cast<std::uint32_t>(yes); }

  /// A second moment; 1 where it makes no step.
  [[gnu::always_inline]] static float unit_or_one(std::uint32_t second) {
    const std::uint32_t positive = mask_of(is_positive_pattern(second));
    return std::bit_cast<float>((second & positive) | (kFloatOne & ~positive));
  }
  [[gnu::always_inline]] static float root_of(std::uint32_t second) { return __builtin_sqrtf(unit_or_one(second)); }

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

  /// Decoded values; +0 for what is not kept.
  [[gnu::always_inline]] static void put_kept(const float* __restrict made, const std::int32_t* __restrict kept,
                                              std::size_t n, std::uint8_t* __restrict decoded) {
    for (std::size_t i = 0; i < n; ++i)
      put_bits(decoded, i, std::bit_cast<std::uint32_t>(made[i]) & static_cast<std::uint32_t>(kept[i]));
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
        const std::int32_t code = nearest_integer(quotient);
        to[i] = code;
        made[i] = static_cast<float>(code) * step;
        kept[i] = static_cast<std::int32_t>(mask_of(is_positive_pattern(v)) & mask_of(quotient >= -kMost) &
                                            mask_of(quotient <= kMost) & mask_of(bits != kFloatMinusZero));
      }
      for (std::size_t i = 0; i < n; ++i) {
        const float unit_of = unit_or_one(bits_at(units, i));
        // (decoded - value)^2 <= eps^2 * second, certainly: the margin is more than binary64 rounds here.
        const double off = static_cast<double>(made[i]) - static_cast<double>(std::bit_cast<float>(bits_at(from, i)));
        kept[i] &= static_cast<std::int32_t>(mask_of(off * off <= square * static_cast<double>(unit_of)));
      }
      any |= settle(kept, n, to, marks + begin);
      if (decoded == nullptr) return;
      put_kept(made, kept, n, decoded + 4 * begin);
    });
    return any != 0;
  }

  static void update_predictions(const UpdateUnit& unit, std::int32_t share, const std::uint8_t* base,
                                 const std::uint8_t* second, std::size_t count, std::int32_t* __restrict predictions) {
    const float two_eps = unit.two_eps;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t v = bits_at(second, i);
      const std::uint32_t bits = bits_at(base, i);
      const float step = two_eps * root_of(v);
      const std::uint32_t known =
          mask_of(is_finite_pattern(bits)) & mask_of(is_positive_pattern(v)) & mask_of(step > 0);
      // Where nothing is known the quotient may be NaN, and its code anything: 0 takes its place.
      const std::int32_t code = bounded_code(std::bit_cast<float>(bits) / step) & static_cast<std::int32_t>(known);
      predictions[i] = (share * code + 32) >> 6;
    }
  }

  static bool update_marks(const std::uint8_t* second, std::size_t count, std::uint8_t* marks) {
    std::uint32_t any = 0;
    for_blocks(count, [&](std::size_t begin, std::size_t n) {
      std::uint32_t found[kBlock];
      std::uint32_t some = 0;
      const std::uint8_t* const from = second + 4 * begin;
      std::uint8_t* const __restrict to = marks + begin;
      for (std::size_t i = 0; i < n; ++i) {
        found[i] = 1 + mask_of(is_positive_pattern(bits_at(from, i)));
        some |= found[i];
      }
      for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<std::uint8_t>(found[i]);
      any |= some;
    });
    return any != 0;
  }

  static void update_values(const UpdateUnit& unit, const std::int32_t* codes, const std::uint8_t* second,
                            std::size_t count, std::uint8_t* __restrict decoded) {
    const float two_eps = unit.two_eps;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t v = bits_at(second, i);
      const float root = two_eps * root_of(v);
      const auto step = std::bit_cast<float>(std::bit_cast<std::uint32_t>(root) & mask_of(is_positive_pattern(v)));
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
        const std::int32_t code = nearest_integer(quotient);
        to[i] = code;
        made[i] = around[i] + static_cast<float>(code) * step;
        // Not so for NaN.
        kept[i] = static_cast<std::int32_t>(mask_of(quotient >= -kMost) & mask_of(quotient <= kMost));
      }
      std::int32_t near[kBlock];
      for (std::size_t i = 0; i < n; ++i) {
        // The difference is rounded once; being below the bound after that, it was before.
        const double off = static_cast<double>(made[i]) - static_cast<double>(std::bit_cast<float>(bits_at(from, i)));
        near[i] = static_cast<std::int32_t>(mask_of(off < bound) & mask_of(-off < bound));
      }
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t bits = bits_at(from, i);
        const std::uint32_t not_zero = mask_of((bits & 0x7fffffffu) != 0);
        const std::uint32_t same = mask_of(std::bit_cast<std::uint32_t>(made[i]) == bits);
        kept[i] &= (near[i] & static_cast<std::int32_t>(not_zero)) | static_cast<std::int32_t>(same);
      }
      any |= settle(kept, n, to, marks + begin);
      if (decoded == nullptr) return;
      put_kept(made, kept, n, decoded + 4 * begin);
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
    std::uint32_t least = UINT32_MAX;
    std::uint32_t most = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t bits = bits_at(values, i);
      const std::uint32_t positive = mask_of(is_positive_pattern(bits));
      const std::uint32_t low = bits | ~positive;
      const std::uint32_t high = bits & positive;
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
      for (std::size_t i = 0; i < n; ++i) part -= mask_of(is_finite_pattern(bits_at(values + 4 * begin, i)));
      finite += part;
    });
    add_eights(values, count, sums, [](double x, std::uint32_t) { return x; });
    return finite;
  }
  static void finite_squares(const std::uint8_t* values, std::size_t count, double mean, double* sums) {
    add_eights(values, count, sums, [mean](double x, std::uint32_t finite) {
      const double off = x - mean;
      const std::uint64_t wide = finite | std::uint64_t{finite} << 32;
      return std::bit_cast<double>(std::bit_cast<std::uint64_t>(off * off) & wide);
    });
  }
  /// Terms of what is not finite are 0, which changes no sum: none of them is ever -0.
  template <class Term>
  [[gnu::always_inline]] static void add_eights(const std::uint8_t* values, std::size_t count, double* sums,
                                                const Term& term) {
    double part[8] = {};
    for_blocks(count, [&](std::size_t begin, std::size_t n) {
      double terms[kBlock];
      const std::uint8_t* const from = values + 4 * begin;
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t bits = bits_at(from, i);
        const std::uint32_t finite = mask_of(is_finite_pattern(bits));
        terms[i] = term(static_cast<double>(std::bit_cast<float>(bits & finite)), finite);
      }
      for (std::size_t i = n; i % 8 != 0; ++i) terms[i] = 0;
      for (std::size_t i = 0; i < n; i += 8)
        for (std::size_t lane = 0; lane < 8; ++lane) part[lane] = part[lane] + terms[i + lane];
    });
    for (std::size_t lane = 0; lane < 8; ++lane) sums[lane] = part[lane];
  }

  static constexpr TensorBoundKernels kKernels{&update_codes,   &update_predictions, &update_marks,
                                               &update_values,  &step_codes,         &step_values,
                                               &positive_range, &finite_sums,        &finite_squares};
};

}  // namespace quern::kernels
