// Fitting kernels of the stencil codec for one instruction set; part of instance.h.
#pragma once

#include <cstring>

#include "kernels/common/round_to_integer.h"
#include "kernels/stencil/cpu/fit.h"
#include "kernels/stencil/rules.h"

namespace quern::kernels {

template <class Isa>
struct StencilFitInstance {
  using Doubles = double __attribute__((vector_size(64)));
  using Floats = float __attribute__((vector_size(32)));
  using FloatBits = std::int32_t __attribute__((vector_size(32)));
  using Shorts = std::uint16_t __attribute__((vector_size(16)));
  using Flags = std::int64_t __attribute__((vector_size(64)));

  template <class Vector>
  [[gnu::always_inline]] static void load(const void* from, Vector& v) {
    std::memcpy(&v, from, sizeof(v));
  }
  template <class Vector>
  [[gnu::always_inline]] static void store(const Vector& v, void* to) {
    std::memcpy(to, &v, sizeof(v));
  }
  [[gnu::always_inline]] static void widen(const float* from, Doubles& v) {
    Floats narrow;
    load(from, narrow);
    v = __builtin_convertvector(narrow, Doubles);
  }
  /// Eight values as numbers.
  [[gnu::always_inline]] static void load_numbers(const double* from, Doubles& v) { load(from, v); }
  [[gnu::always_inline]] static void load_numbers(const std::int32_t* from, Doubles& v) {
    FloatBits narrow;
    load(from, narrow);
    v = __builtin_convertvector(narrow, Doubles);
  }
  [[gnu::always_inline]] static double whole(const Doubles& sum) {
    using Fours = double __attribute__((vector_size(32)));
    using Pair = double __attribute__((vector_size(16)));
    const Fours fours = __builtin_shufflevector(sum, sum, 0, 1, 2, 3) + __builtin_shufflevector(sum, sum, 4, 5, 6, 7);
    const Pair pair = __builtin_shufflevector(fours, fours, 0, 1) + __builtin_shufflevector(fours, fours, 2, 3);
    return pair[0] + pair[1];
  }
  [[gnu::always_inline]] static void magnitude(Doubles& v) {
    Flags bits;
    load(&v, bits);
    bits &= INT64_MAX;
    load(&bits, v);
  }

  template <class Value>
  static void feature(const Value* const* rows, const double* weights, std::size_t taps, const double* mean,
                      double scale, std::size_t count, double* out) {
    std::size_t s = 0;
    for (; s + 8 <= count; s += 8) {
      Doubles sum = {};
      for (std::size_t t = 0; t < taps; ++t) {
        Doubles value;
        load_numbers(rows[t] + s, value);
        sum += weights[t] * value;
      }
      sum *= scale;
      if (mean != nullptr) {
        Doubles shared;
        load(mean + s, shared);
        sum -= shared;
      }
      store(sum, out + s);
    }
    for (; s < count; ++s) {
      double sum = 0;
      for (std::size_t t = 0; t < taps; ++t) sum += weights[t] * static_cast<double>(rows[t][s]);
      out[s] = sum * scale - (mean == nullptr ? 0 : mean[s]);
    }
  }

  static void differences(const std::int64_t* targets, const double* mean, double scale, std::size_t count,
                          double* out) {
    for (std::size_t s = 0; s < count; ++s) {
      out[s] = number_of(targets[s]) * scale - mean[s];
    }
  }

  template <class Value>
  static void predictions(const Value* values, const std::int32_t* codes, double unit, std::size_t count, double* out) {
    for (std::size_t s = 0; s < count; ++s)
      out[s] = static_cast<double>(values[s]) - static_cast<double>(codes[s]) * unit;
  }

  template <class Value>
  static void add_distances(const SpreadSource<Value>& spread, const double* predicted, double most, std::size_t count,
                            std::uint32_t* sums) {
    const Value* const first = spread.first;
    const Value* const second = spread.second;
    const double second_factor = factor_of_second(spread.kind);
    const double predicted_factor = factor_of_predicted(spread.kind);
    const double scale = spread.scale();
    const std::uint32_t weight = spread.weight;
    for (std::size_t x = 0; x < count; ++x) {
      const double sum = static_cast<double>(first[x]) + second_factor * static_cast<double>(second[x]) +
                         predicted_factor * predicted[x];
      sums[x] += weight * capped_spread(sum, scale, most);
    }
  }

  [[gnu::always_inline]] static void load_magnitudes(const std::uint32_t* from, FloatBits& out) { load(from, out); }
  [[gnu::always_inline]] static void load_magnitudes(const std::uint16_t* from, FloatBits& out) {
    Shorts narrow;
    load(from, narrow);
    out = __builtin_convertvector(narrow, FloatBits);
  }
  template <class Magnitude>
  static void magnitude_sums(const Magnitude* const* rows, std::size_t taps, float scale, std::size_t count,
                             float* out) {
    std::size_t s = 0;
    for (; s + 8 <= count; s += 8) {
      Floats sum = {};
      for (std::size_t t = 0; t < taps; ++t) {
        FloatBits value;
        load_magnitudes(rows[t] + s, value);
        sum += __builtin_convertvector(value, Floats);
      }
      sum *= scale;
      store(sum, out + s);
    }
    for (; s < count; ++s) {
      float sum = 0;
      for (std::size_t t = 0; t < taps; ++t) sum += static_cast<float>(static_cast<std::int32_t>(rows[t][s]));
      out[s] = sum * scale;
    }
  }

  static void unexplained(const double* rows, const double* coefficients, std::size_t count, double* left) {
    constexpr std::size_t kVectors = 4;
    for (std::size_t s = 0; s < kSampleBlock; s += 8 * kVectors) {
      Doubles rest[kVectors];
#pragma GCC unroll 4
      for (std::size_t i = 0; i < kVectors; ++i) load(rows + count * kSampleBlock + s + 8 * i, rest[i]);
      for (std::size_t f = 0; f < count; ++f) {
        const double* const feature = rows + f * kSampleBlock + s;
        const double coefficient = coefficients[f];
        if (coefficient == 0) continue;
#pragma GCC unroll 4
        for (std::size_t i = 0; i < kVectors; ++i) {
          Doubles value;
          load(feature + 8 * i, value);
          rest[i] -= coefficient * value;
        }
      }
#pragma GCC unroll 4
      for (std::size_t i = 0; i < kVectors; ++i) store(rest[i], left + s + 8 * i);
    }
  }

  static std::uint32_t left_cost(const double* left) {
    constexpr double kMost = 0x1p40;
    FloatBits sum = {};
    for (std::size_t s = 0; s < kSampleBlock; s += 8) {
      Doubles d;
      load(left + s, d);
      magnitude(d);
      d = d < kMost ? d : Doubles{} + kMost;
      const Floats square = __builtin_convertvector(1 + 4 * (d * d), Floats);
      FloatBits bits;
      load(&square, bits);
      sum += (bits - 0x3F800000) >> (23 - 11);
    }
    std::uint32_t cost = 0;
    for (std::size_t i = 0; i < 8; ++i) cost += static_cast<std::uint32_t>(sum[i]);
    return cost;
  }

  static double left_weights(const double* left, std::size_t filled, double* weights) {
    for (std::size_t s = 0; s < kSampleBlock; s += 8) {
      Doubles d;
      load(left + s, d);
      magnitude(d);
      store(1 / (1 + 2 * d), weights + s);
    }
    for (std::size_t s = filled; s < kSampleBlock; ++s) weights[s] = 0;
    Doubles sum = {};
    for (std::size_t s = 0; s < kSampleBlock; s += 8) {
      Doubles w;
      load(weights + s, w);
      sum += w;
    }
    return whole(sum);
  }

  static void context_samples(const float* block, std::size_t width, const double* expected, std::size_t filled,
                              double* rows, double* weights) {
    constexpr double kLeast = 0.02;
    for (std::size_t s = 0; s < kSampleBlock; s += 8) {
      Doubles e = {};
      for (std::size_t k = 0; k + 1 < width; ++k) {
        Doubles value;
        widen(block + k * kSampleBlock + s, value);
        store(value, rows + k * kSampleBlock + s);
        e += expected[k] * value;
      }
      Doubles target;
      widen(block + (width - 1) * kSampleBlock + s, target);
      store(target, rows + (width - 1) * kSampleBlock + s);
      e = e > kLeast ? e : Doubles{} + kLeast;
      store(1 / (e * e + e), weights + s);
    }
    for (std::size_t s = filled; s < kSampleBlock; ++s) weights[s] = 0;
  }

  [[gnu::always_inline]] static void widen_magnitudes(const std::uint32_t* from, Doubles& out) {
    using Halves = std::int32_t __attribute__((vector_size(32)));
    Halves narrow;
    load(from, narrow);
    out = __builtin_convertvector(narrow, Doubles);
  }
  static void magnitude_rows(const std::uint32_t* const* sources, std::size_t taps, const std::uint32_t* own,
                             const double* expected, double least, double* rows, double* weights) {
    for (std::size_t s = 0; s < 16; s += 8) {
      Doubles e = Doubles{} + expected[taps];
      for (std::size_t t = 0; t < taps; ++t) {
        Doubles magnitude;
        widen_magnitudes(sources[t] + s, magnitude);
        store(magnitude, rows + t * kSampleBlock + s);
        e += expected[t] * magnitude;
      }
      store(Doubles{} + 1, rows + taps * kSampleBlock + s);
      Doubles wanted;
      widen_magnitudes(own + s, wanted);
      store(wanted, rows + (taps + 1) * kSampleBlock + s);
      e = e > least ? e : Doubles{} + least;
      store(1 / (e * e + e), weights + s);
    }
  }

  static void ratio_sums(const float* rows, std::size_t features, const double* expected, double constant, double least,
                         double* sums) {
    alignas(64) double wanted[kSampleBlock];
    alignas(64) double given[kSampleBlock];
    Doubles wanted_sum = {};
    Doubles given_sum = {};
    for (std::size_t s = 0; s < kSampleBlock; s += 8) {
      Doubles e = Doubles{} + constant;
      for (std::size_t f = 0; f < features; ++f) {
        Doubles value;
        widen(rows + f * kSampleBlock + s, value);
        e += expected[f] * value;
      }
      e = e > least ? e : Doubles{} + least;
      Doubles m;
      Doubles w;
      widen(rows + features * kSampleBlock + s, m);
      widen(rows + (features + 1) * kSampleBlock + s, w);
      w /= e * (e + 0.5);
      m *= w;
      w *= e;
      wanted_sum += m;
      given_sum += w;
      store(m, wanted + s);
      store(w, given + s);
    }
    for (std::size_t f = 0; f < features; ++f) {
      Doubles of_wanted = {};
      Doubles of_given = {};
      for (std::size_t s = 0; s < kSampleBlock; s += 8) {
        Doubles value;
        widen(rows + f * kSampleBlock + s, value);
        Doubles w;
        load(wanted + s, w);
        of_wanted += w * value;
        load(given + s, w);
        of_given += w * value;
      }
      sums[2 * f] += whole(of_wanted);
      sums[2 * f + 1] += whole(of_given);
    }
    sums[2 * features] += whole(wanted_sum);
    sums[2 * features + 1] += whole(given_sum);
  }

  template <class Value>
  static constexpr ValueFitKernels<Value> kValueKernels{&feature<Value>, &predictions<Value>, &add_distances<Value>,
                                                        &magnitude_sums<MagnitudeOf<Value>>};
  static constexpr StencilFitKernels kKernels{kValueKernels<double>,
                                              kValueKernels<std::int32_t>,
                                              &differences,
                                              &unexplained,
                                              &left_cost,
                                              &left_weights,
                                              &context_samples,
                                              &magnitude_rows,
                                              &ratio_sums};
};

}  // namespace quern::kernels
