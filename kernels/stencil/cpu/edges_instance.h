// Kernels of groups that are not linear, for one instruction set; part of instance.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/stencil/cpu/edges.h"
#include "kernels/stencil/cpu/row_vectors.h"

namespace quern::kernels {

template <class Isa>
struct EdgeInstance : RowVectors<Isa> {
  using V = RowVectors<Isa>;
  using typename V::Truths;
  using typename V::Words;
  using V::absolute;
  using V::kWidth;
  using V::load;
  using V::store;

  static constexpr std::size_t kStep = 2 * kWidth;  // columns of a vector

  /// v / 2^bits, rounded down; v has a sign.
  [[gnu::always_inline]] static void shift_words(const Words& v, int bits, Words& out) {
    Truths numbers;
    load(&v, numbers);
    numbers >>= bits;
    load(&numbers, out);
  }
  /// The lesser of two numbers with a sign.
  [[gnu::always_inline]] static void lesser(const Words& a, const Words& b, Words& out) {
    Truths x;
    Truths y;
    load(&a, x);
    load(&b, y);
    const Truths least = x < y ? x : y;
    load(&least, out);
  }

  /// A pair's weighted distance and its sum.
  [[gnu::always_inline]] static void look_at(const EdgePair& pair, std::size_t at, Words& distance, Words& sum) {
    Words first;
    Words second;
    load(pair.first + at, first);
    load(pair.second + at, second);
    absolute(first - second, distance);
    distance *= pair.factor;
    sum = first + second;
  }

  static void calmest_mean(const EdgePair* pairs, std::size_t pair_count, std::size_t begin, std::size_t count,
                           std::int32_t* out) {
    for (std::size_t x = 0; x < count; x += kStep) {
      Words least;
      Words sum;
      look_at(pairs[0], begin + x, least, sum);
      for (std::size_t p = 1; p < pair_count; ++p) {
        Words distance;
        Words both;
        look_at(pairs[p], begin + x, distance, both);
        const Words nearest = distance < least ? distance : least;
        sum = nearest == least ? sum : both;
        least = nearest;
      }
      Words mean;
      shift_words(sum, 1, mean);
      store(out + x, mean);
    }
  }

  static void curvature(const std::int32_t* const* taps, std::size_t begin, std::size_t count, std::int32_t* out) {
    for (std::size_t x = 0; x < count; x += kStep) {
      Words point[4];
      for (std::size_t t = 0; t < 4; ++t) load(taps[t] + begin + x, point[t]);
      Words bend;
      shift_words(point[1] + point[2] - point[0] - point[3], 4, bend);
      Words limit;
      absolute(point[2] - point[1], limit);
      limit >>= 2;
      Words result;
      lesser(bend, limit, result);
      // At least -limit.
      lesser(0u - result, limit, result);
      result = 0u - result;
      store(out + x, result);
    }
  }

  static constexpr EdgeKernels kKernels{&calmest_mean, &curvature};
};

}  // namespace quern::kernels
