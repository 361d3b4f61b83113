// Fitting kernels of the stencil codec for one instruction set; part of stencil_instance.h.
#pragma once

#include <cstring>

#include "kernels/cpu/stencil_fit.h"

namespace quern::kernels {

template <class Isa>
struct StencilFitInstance {
  using Doubles = double __attribute__((vector_size(64)));
  using Floats = float __attribute__((vector_size(32)));
  using FloatBits = std::int32_t __attribute__((vector_size(32)));
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
  [[gnu::always_inline]] static double whole(const Doubles& sum) {
    return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
  }
  [[gnu::always_inline]] static void magnitude(Doubles& v) {
    Flags bits;
    load(&v, bits);
    bits &= INT64_MAX;
    load(&bits, v);
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

  static void context_samples(const float* block, const std::size_t* from, std::size_t width, const double* expected,
                              std::size_t filled, double* rows, double* weights) {
    constexpr double kLeast = 0.02;
    for (std::size_t s = 0; s < kSampleBlock; s += 8) {
      Doubles e = {};
      for (std::size_t k = 0; k + 1 < width; ++k) {
        Doubles value;
        widen(block + from[k] * kSampleBlock + s, value);
        store(value, rows + k * kSampleBlock + s);
        e += expected[k] * value;
      }
      Doubles target;
      widen(block + from[width - 1] * kSampleBlock + s, target);
      store(target, rows + (width - 1) * kSampleBlock + s);
      e = e > kLeast ? e : Doubles{} + kLeast;
      store(1 / (e * e + e), weights + s);
    }
    for (std::size_t s = filled; s < kSampleBlock; ++s) weights[s] = 0;
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

  static constexpr StencilFitKernels kKernels{&unexplained, &left_cost, &left_weights, &context_samples, &ratio_sums};
};

}  // namespace quern::kernels
