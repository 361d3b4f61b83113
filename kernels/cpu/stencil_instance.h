// Stencil kernels of one instruction set; included by one source file for each, compiled with that set's flags.
#pragma once

#include <bit>
#include <cstring>

#include "kernels/cpu/stencil.h"

namespace quern::kernels {

template <class Isa>
struct StencilInstance {
  using Doubles = double __attribute__((vector_size(64)));
  using Words = std::uint32_t __attribute__((vector_size(64)));
  using Longs = std::uint64_t __attribute__((vector_size(64)));

  // Vectors pass by reference: how they are returned differs between instruction sets.
  template <class Vector>
  [[gnu::always_inline]] static void load(const void* from, Vector& v) {
    std::memcpy(&v, from, sizeof(v));
  }

  /// Integers below 2^51 in binary64 to integers: adding 1.5 * 2^52 puts them into the low bits.
  [[gnu::always_inline]] static void store_integers(const Doubles& v, std::int64_t* out) {
    constexpr double kMagic = 0x1.8p52;
    const Doubles shifted = v + kMagic;
    Longs integers;
    load(&shifted, integers);
    integers -= std::bit_cast<std::uint64_t>(kMagic);  // wraps on bytes no encoder writes
    std::memcpy(out, &integers, sizeof(integers));
  }

  static void tap_sums(const double* const* sources, const double* weights, std::size_t taps, std::size_t count,
                       std::int64_t* out) {
    for (std::size_t x = 0; x < count; x += kStencilBlock) {
      Doubles low = {};
      Doubles high = {};
      for (std::size_t t = 0; t < taps; ++t) {
        Doubles first;
        Doubles second;
        load(sources[t] + x, first);
        load(sources[t] + x + 8, second);
        low += weights[t] * first;
        high += weights[t] * second;
      }
      store_integers(low, out + x);
      store_integers(high, out + x + 8);
    }
  }

  static void context_sums(const std::uint32_t* const* sources, const std::uint32_t* weights, std::size_t taps,
                           std::uint32_t constant, std::size_t count, std::uint32_t* out) {
    for (std::size_t x = 0; x < count; x += kStencilBlock) {
      Words sum = Words{} + constant;
      for (std::size_t t = 0; t < taps; ++t) {
        Words source;
        load(sources[t] + x, source);
        sum += weights[t] * source;
      }
      std::memcpy(out + x, &sum, sizeof(sum));
    }
  }

  static void sample_rows(const double* const* sources, std::size_t taps, const std::int64_t* targets, double unit,
                          const double* solution, double* rows, double* left) {
    for (std::size_t half = 0; half < kStencilBlock; half += 8) {
      Doubles near;
      load(sources[0] + half, near);
      near *= unit;
      std::memcpy(rows + half, &near, sizeof(near));
      Doubles target;
      for (std::size_t i = 0; i < 8; ++i) target[i] = static_cast<double>(targets[half + i]);
      target = target * unit - near;
      std::memcpy(rows + taps * kSampleBlock + half, &target, sizeof(target));
      target -= solution[0] * near;
      for (std::size_t t = 1; t < taps; ++t) {
        Doubles difference;
        load(sources[t] + half, difference);
        difference = difference * unit - near;
        std::memcpy(rows + t * kSampleBlock + half, &difference, sizeof(difference));
        target -= solution[t] * difference;
      }
      std::memcpy(left + half, &target, sizeof(target));
    }
  }

  [[gnu::always_inline]] static double whole(const Doubles& sum) {
    return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
  }

  static void normal_sums(const double* rows, const double* sample_weights, std::size_t width, double* sums) {
    alignas(64) double weighted[kSampleBlock];
    for (std::size_t k = 0; k < width; ++k) {
      for (std::size_t s = 0; s < kSampleBlock; ++s) weighted[s] = sample_weights[s] * rows[k * kSampleBlock + s];
      // Two columns at a time: they share what they load of row k. The last pair of an odd count is one column twice.
      for (std::size_t l = 0; l <= k; l += 2) {
        const double* const first = rows + l * kSampleBlock;
        const double* const second = rows + (l < k ? l + 1 : l) * kSampleBlock;
        Doubles first_sum = {};
        Doubles second_sum = {};
        for (std::size_t s = 0; s < kSampleBlock; s += 8) {
          Doubles left;
          Doubles right;
          load(weighted + s, left);
          load(first + s, right);
          first_sum += left * right;
          load(second + s, right);
          second_sum += left * right;
        }
        sums[k * width + l] += whole(first_sum);
        if (l < k) sums[k * width + l + 1] += whole(second_sum);
      }
    }
  }

  static constexpr StencilKernels kKernels{&tap_sums, &context_sums, &sample_rows, &normal_sums};
};

}  // namespace quern::kernels
