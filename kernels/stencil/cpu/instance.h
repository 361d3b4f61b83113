// Stencil kernels of one instruction set; included by one source file for each, compiled with that set's flags.
#pragma once

#include <bit>
#include <cstring>

#include "kernels/common/cpu/round_vectors.h"
#include "kernels/common/cpu/vector_bytes.h"
#include "kernels/common/round_to_integer.h"
#include "kernels/entropy/cpu/residual_instance.h"
#include "kernels/entropy/residual_tokens.h"
#include "kernels/stencil/cpu/decode_instance.h"
#include "kernels/stencil/cpu/edges_instance.h"
#include "kernels/stencil/cpu/fit_instance.h"
#include "kernels/stencil/cpu/rows_instance.h"
#include "kernels/stencil/cpu/stencil.h"
#include "kernels/stencil/rules.h"

namespace quern::kernels {

template <class Isa>
struct StencilInstance {
  static constexpr std::size_t kBytes = QUERN_VECTOR_BYTES;
  static constexpr std::size_t kWidth = kBytes / sizeof(double);
  using Doubles = double __attribute__((vector_size(QUERN_VECTOR_BYTES)));
  using Words = std::uint32_t __attribute__((vector_size(QUERN_VECTOR_BYTES)));
  using Longs = std::uint64_t __attribute__((vector_size(QUERN_VECTOR_BYTES)));

  // Vectors pass by reference: how they are returned differs between instruction sets.
  template <class Vector>
  [[gnu::always_inline]] static void load(const void* from, Vector& v) {
    std::memcpy(&v, from, sizeof(v));
  }

  /// Integers below 2^51 in binary64 to integers.
  [[gnu::always_inline]] static void store_integers(const Doubles& v, std::int64_t* out) {
    Longs integers;
    round_to_integers(v, integers);  // wraps on bytes no encoder writes
    std::memcpy(out, &integers, sizeof(integers));
  }

  /// sums[i] += the sum over taps of weights[t] * vector i of sources[t] from column x on.
  template <class Vector, std::size_t Vectors, class T>
  [[gnu::always_inline]] static void add_weighted(const T* const* sources, const T* weights, std::size_t taps,
                                                  std::size_t x, Vector (&sums)[Vectors]) {
    for (std::size_t t = 0; t < taps; ++t) {
      const T* const from = sources[t] + x;
      const T weight = weights[t];
#pragma GCC unroll 8
      for (std::size_t i = 0; i < Vectors; ++i) {
        Vector source;
        load(from + sizeof(Vector) / sizeof(T) * i, source);
        sums[i] += weight * source;
      }
    }
  }
  /// Calls visit.operator()<N>(column) for N blocks of columns at a time, of `Vectors` each: as many sums as there are
  /// registers for.
  template <std::size_t Vectors, class Visit>
  [[gnu::always_inline]] static void for_blocks(std::size_t count, const Visit& visit) {
    constexpr std::size_t kMost = Vectors > 2 ? 2 : 4;
    std::size_t x = 0;
    for (; x + (kMost - 1) * kStencilBlock < count; x += kMost * kStencilBlock) visit.template operator()<kMost>(x);
    for (; x < count; x += kStencilBlock) visit.template operator()<1>(x);
  }

  static void tap_sums(const double* const* sources, const double* weights, std::size_t taps, std::size_t count,
                       std::int64_t* out) {
    constexpr std::size_t kVectors = kStencilBlock / kWidth;
    for_blocks<kVectors>(
        count, [&]<std::size_t N>(std::size_t x) __attribute__((always_inline)) {
          Doubles sums[N * kVectors] = {};
          add_weighted(sources, weights, taps, x, sums);
#pragma GCC unroll 8
          for (std::size_t i = 0; i < N * kVectors; ++i) store_integers(sums[i], out + x + kWidth * i);
        });
  }

  static void context_sums(const std::uint32_t* const* sources, const std::uint32_t* weights, std::size_t taps,
                           std::uint32_t constant, std::size_t count, std::uint32_t* out) {
    constexpr std::size_t kWords = 2 * kWidth;
    constexpr std::size_t kVectors = kStencilBlock / kWords;
    for_blocks<kVectors>(
        count, [&]<std::size_t N>(std::size_t x) __attribute__((always_inline)) {
          Words sums[N * kVectors];
#pragma GCC unroll 8
          for (Words& sum : sums) sum = Words{} + constant;
          add_weighted(sources, weights, taps, x, sums);
#pragma GCC unroll 8
          for (std::size_t i = 0; i < N * kVectors; ++i) std::memcpy(out + x + kWords * i, &sums[i], sizeof(sums[i]));
        });
  }

  static std::uint64_t range(const std::uint32_t* from, std::size_t count, float* low, float* high) {
    using Floats = float __attribute__((vector_size(QUERN_VECTOR_BYTES)));
    using Truths = std::int32_t __attribute__((vector_size(QUERN_VECTOR_BYTES)));
    constexpr std::size_t kParts = kRangeLanes * sizeof(float) / kBytes;
    constexpr std::size_t kFloats = kBytes / sizeof(float);
    const Floats infinity = Floats{} + __builtin_inff();
    Floats least[kParts];
    Floats greatest[kParts];
    Truths finite[kParts] = {};
    std::memcpy(least, low, sizeof(least));
    std::memcpy(greatest, high, sizeof(greatest));
    const auto take = [&](const void* block) __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (std::size_t i = 0; i < kParts; ++i) {
        Floats v;
        load(static_cast<const float*>(block) + kFloats * i, v);
        const Truths ok = v - v == 0;  // NaN and infinity give NaN
        const Floats down = ok ? v : infinity;
        const Floats up = ok ? v : -infinity;
        least[i] = down < least[i] ? down : least[i];
        greatest[i] = up > greatest[i] ? up : greatest[i];
        finite[i] -= ok;
      }
    };
    std::size_t x = 0;
    for (; x + kRangeLanes <= count; x += kRangeLanes) take(from + x);
    if (x < count) {
      float last[kRangeLanes];
      for (float& v : last) v = __builtin_inff();
      std::memcpy(last, from + x, (count - x) * sizeof(float));
      take(last);
    }
    std::memcpy(low, least, sizeof(least));
    std::memcpy(high, greatest, sizeof(greatest));
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < kParts; ++i)
      for (std::size_t j = 0; j < kFloats; ++j) total += static_cast<std::uint64_t>(finite[i][j]);
    return total;
  }

  static void widen(const std::uint32_t* from, std::size_t step, std::size_t count, double* out) {
    const auto widen_at = [&](std::size_t distance) {
      for (std::size_t x = 0; x < count; ++x) out[x] = static_cast<double>(std::bit_cast<float>(from[x * distance]));
    };
    if (step == 1) return widen_at(1);
    if (step == 2) return widen_at(2);
    widen_at(step);
  }

  static void add_to_mean(const double* from, const double* before, double weight, std::size_t count, double* after) {
#pragma GCC ivdep
    for (std::size_t x = 0; x < count; ++x) after[x] = next_mean(before[x], from[x], weight);
  }

  static void units(const double* originals, std::size_t count, double base, double inverse, std::int64_t* out) {
    for (std::size_t x = 0; x < count; ++x) out[x] = nearest_integer(in_units(originals[x], base, inverse));
  }

  static bool loop_codes(const std::int64_t* left, const std::int64_t* wholes, unsigned fraction_bits,
                         std::uint32_t most, std::size_t count, double* values, std::uint32_t* magnitudes,
                         std::int32_t* codes) {
    constexpr auto kMost = static_cast<std::uint64_t>(kMaxMagnitude);
    constexpr std::uint64_t kBias = std::uint64_t{1} << 62;  // shifted without a sign, as not all sets shift with one
    std::uint64_t beyond = 0;
#pragma GCC ivdep
    for (std::size_t x = 0; x < count; ++x) {
      const std::uint64_t code =
          ((static_cast<std::uint64_t>(left[x]) + kBias) >> fraction_bits) - (kBias >> fraction_bits);
      beyond |= code + kMost > 2 * kMost ? 1u : 0u;
      const auto narrow = static_cast<std::uint32_t>(code);
      codes[x] = static_cast<std::int32_t>(narrow);
      magnitudes[x] = capped_magnitude(narrow, most);
      values[x] = number_of(wholes[x]);
    }
    return beyond == 0;
  }

  template <bool Single>
  [[gnu::always_inline]] static bool all_near_as(const double* originals, const double* values, std::size_t count,
                                                 double unit, double base, double strict) {
    std::int64_t missed = 0;
    for (std::size_t x = 0; x < count; ++x) {
      double back = values[x] * unit + base;
      if constexpr (Single) back = static_cast<double>(static_cast<float>(back));
      const double v = originals[x];
      const double difference = v > back ? v - back : back - v;
      const std::int64_t far = difference < strict ? 0 : 1;
      const std::int64_t zero = v == 0 ? 1 : 0;
      missed |= far | zero;
    }
    return missed == 0;
  }
  static bool all_near(const double* originals, const double* values, std::size_t count, double unit, double base,
                       double strict, bool single) {
    return single ? all_near_as<true>(originals, values, count, unit, base, strict)
                  : all_near_as<false>(originals, values, count, unit, base, strict);
  }

  static void sample_rows(const double* const* sources, std::size_t taps, const std::int64_t* targets, double unit,
                          const double* solution, double* rows, double* left) {
    for (std::size_t part = 0; part < kStencilBlock; part += kWidth) {
      Doubles near;
      load(sources[0] + part, near);
      near *= unit;
      std::memcpy(rows + part, &near, sizeof(near));
      Doubles target;
      for (std::size_t i = 0; i < kWidth; ++i) target[i] = static_cast<double>(targets[part + i]);
      target = target * unit - near;
      std::memcpy(rows + taps * kSampleBlock + part, &target, sizeof(target));
      target -= solution[0] * near;
      for (std::size_t t = 1; t < taps; ++t) {
        Doubles difference;
        load(sources[t] + part, difference);
        difference = difference * unit - near;
        std::memcpy(rows + t * kSampleBlock + part, &difference, sizeof(difference));
        target -= solution[t] * difference;
      }
      std::memcpy(left + part, &target, sizeof(target));
    }
  }

  using Fours = double __attribute__((vector_size(32)));

  /// Four sums of eight partial sums each: the lower and the upper four, then those two apart, then neighbours.
  [[gnu::always_inline]] static void whole(const Fours (&halves)[4][2], Fours& sums) {
    Fours fours[4];
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i) fours[i] = halves[i][0] + halves[i][1];
    const Fours pairs_0_2 = __builtin_shufflevector(fours[0], fours[2], 0, 1, 4, 5) +
                            __builtin_shufflevector(fours[0], fours[2], 2, 3, 6, 7);
    const Fours pairs_1_3 = __builtin_shufflevector(fours[1], fours[3], 0, 1, 4, 5) +
                            __builtin_shufflevector(fours[1], fours[3], 2, 3, 6, 7);
    sums = __builtin_shufflevector(pairs_0_2, pairs_1_3, 0, 4, 2, 6) +
           __builtin_shufflevector(pairs_0_2, pairs_1_3, 1, 5, 3, 7);
  }

  static constexpr std::size_t kColumns = 4;
  static constexpr std::size_t kWeighted = kWidth == 8 ? 4 : 1;  // rows: as many as there are registers for their sums
  /// Adds to the lower triangle the products of `count` weighted rows from row k on with kColumns rows from l on.
  [[gnu::always_inline]] static void add_products(const double* rows, const double (&weighted)[kWeighted][kSampleBlock],
                                                  std::size_t count, std::size_t k, std::size_t l, std::size_t width,
                                                  double* sums) {
    constexpr std::size_t kPartialSums = 8;
    constexpr std::size_t kVectors = kPartialSums / kWidth;
    // Behind the last column that is taken once more.
    const std::size_t last = k + count - 1;
    const auto column = [&](std::size_t i) { return rows + (l + i < last ? l + i : last) * kSampleBlock; };
    const double* const columns[kColumns] = {column(0), column(1), column(2), column(3)};
    Doubles products[kWeighted][kColumns][kVectors];
#pragma GCC unroll 4
    for (std::size_t r = 0; r < kWeighted; ++r)
#pragma GCC unroll 4
      for (std::size_t i = 0; i < kColumns; ++i)
#pragma GCC unroll 2
        for (std::size_t v = 0; v < kVectors; ++v) products[r][i][v] = Doubles{};
    for (std::size_t s = 0; s < kSampleBlock; s += kPartialSums) {
#pragma GCC unroll 2
      for (std::size_t v = 0; v < kVectors; ++v) {
        Doubles left[kWeighted];
#pragma GCC unroll 4
        for (std::size_t r = 0; r < kWeighted; ++r) load(weighted[r] + s + kWidth * v, left[r]);
#pragma GCC unroll 4
        for (std::size_t i = 0; i < kColumns; ++i) {
          Doubles right;
          load(columns[i] + s + kWidth * v, right);
#pragma GCC unroll 4
          for (std::size_t r = 0; r < kWeighted; ++r) products[r][i][v] += left[r] * right;
        }
      }
    }
    for (std::size_t r = 0; r < count; ++r) {
      Fours halves[kColumns][2];
      static_assert(sizeof(halves) == sizeof(products[r]));
      std::memcpy(halves, products[r], sizeof(halves));
      Fours added;
      whole(halves, added);
      double* const to = sums + (k + r) * width + l;
      if (l + kColumns <= k + r + 1) {
        Fours sum;
        load(to, sum);
        sum += added;
        std::memcpy(to, &sum, sizeof(sum));
      } else {
        for (std::size_t i = 0; l + i <= k + r; ++i) to[i] += added[i];
      }
    }
  }

  static void normal_sums(const double* rows, const double* sample_weights, std::size_t width, double* sums) {
    alignas(64) double weighted[kWeighted][kSampleBlock];
    for (std::size_t k = 0; k < width; k += kWeighted) {
      const std::size_t count = width - k < kWeighted ? width - k : kWeighted;
      for (std::size_t r = 0; r < kWeighted; ++r) {
        const double* const row = rows + (k + (r < count ? r : 0)) * kSampleBlock;
        for (std::size_t s = 0; s < kSampleBlock; ++s) weighted[r][s] = sample_weights[s] * row[s];
      }
      for (std::size_t l = 0; l < k + count; l += kColumns) add_products(rows, weighted, count, k, l, width, sums);
    }
  }

  static constexpr StencilKernels kKernels{&tap_sums,
                                           &context_sums,
                                           &range,
                                           &widen,
                                           &add_to_mean,
                                           &units,
                                           &loop_codes,
                                           &all_near,
                                           &sample_rows,
                                           &normal_sums,
                                           StencilFitInstance<Isa>::kKernels,
                                           StencilDecodeInstance<Isa>::kKernels,
                                           StencilRowInstance<Isa>::kKernels,
                                           ResidualInstance<Isa>::kKernels,
                                           EdgeInstance<Isa>::kKernels};
};

}  // namespace quern::kernels
