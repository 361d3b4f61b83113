// Entry points of the kernels that make the rows of groups that are not linear: see codecs/stencil/edges/edge_rows.h.
// Integers of 32 bits; results are defined modulo 2^32 for any values, and all instruction sets give the same.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::kernels {

/// The rows of two opposite points, and what their difference is multiplied by before pairs are compared.
struct EdgePair {
  const std::int32_t* first = nullptr;
  const std::int32_t* second = nullptr;
  std::uint32_t factor = 0;
};

/// Sources are rows that lie `begin` elements before those wanted; of these `count` are made, results in whole blocks of
/// kStencilBlock.
struct EdgeKernels {
  /// out[x] = floor((first + second) / 2) of the pair whose |first - second| * factor is least, of equals the first;
  /// of one pair at least.
  void (*calmest_mean)(const EdgePair* pairs, std::size_t pair_count, std::size_t begin, std::size_t count,
                       std::int32_t* out);
  /// out[x] = floor((taps[1] + taps[2] - taps[0] - taps[3]) / 16), but its magnitude at most
  /// floor(|taps[2] - taps[1]| / 4).
  void (*curvature)(const std::int32_t* const* taps, std::size_t begin, std::size_t count, std::int32_t* out);
};

}  // namespace quern::kernels
