// Whether what a row of narrow values is coded to, or decoded to, is narrow; for one instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/stencil/cpu/row_vectors.h"
#include "kernels/stencil/cpu/rows.h"

namespace quern::kernels {

/// Bits of all values plus the limit, which is a power of two, and of all magnitudes of codes.
template <class Isa>
struct NarrowRows : RowVectors<Isa> {
  using V = RowVectors<Isa>;
  using typename V::Words;
  using V::absolute;
  using V::any_of;
  using V::kWidth;
  using V::store;
  using V::store_words;

  struct Seen {
    Words values{};
    Words magnitudes{};
  };

  /// Stores values and magnitudes of codes at place x of a row of `count`, and looks at them. `Whole`: none of them is
  /// behind the row.
  template <bool Whole>
  [[gnu::always_inline]] static void put(const Words& value, const Words& code, std::uint32_t limit, std::size_t x,
                                         std::size_t count, std::int32_t* values, std::uint16_t* magnitudes,
                                         Seen& seen) {
    constexpr std::size_t kWords = 2 * kWidth;
    Words magnitude;
    absolute(code, magnitude);
    store(values + x, value);
    store_words(magnitude, magnitudes + x);
    Words biased = value + limit;
    if constexpr (!Whole) {  // what is behind the row has no meaning
      Words places;
      for (std::size_t i = 0; i < kWords; ++i) places[i] = static_cast<std::uint32_t>(i);
      const Words left = Words{} + static_cast<std::uint32_t>(x < count ? count - x : 0);
      biased = places < left ? biased : Words{};
      magnitude = places < left ? magnitude : Words{};
    }
    seen.values |= biased;
    seen.magnitudes |= magnitude;
  }
  /// Whether all values are in [-limit, limit), and all magnitudes below kMostMagnitudes.
  static bool all_narrow(const Seen& seen, std::uint32_t limit) {
    return !any_of((seen.values & ~(2 * limit - 1)) | (seen.magnitudes & ~(kMostMagnitudes - 1)));
  }
};

}  // namespace quern::kernels
