// Halving and doubling of chunks.
#include "cli/h5/chunk_shape.h"

#include <algorithm>

namespace quern::cli {
namespace {

constexpr std::uint64_t kMostBytes = UINT64_C(4) << 20;
constexpr std::uint64_t kLeastBytes = UINT64_C(1) << 20;

}  // namespace

std::uint64_t h5_bytes_of_chunk(const Extents& chunk, std::uint64_t element_bytes) {
  std::uint64_t out = element_bytes;
  for (const hsize_t e : chunk) out *= e;
  return out;
}

Extents h5_new_chunk(const Extents& extents, std::uint64_t element_bytes) {
  Extents chunk(extents.size());
  std::transform(extents.begin(), extents.end(), chunk.begin(), [](hsize_t e) { return std::max<hsize_t>(e, 1); });
  for (std::size_t a = 0; a < chunk.size() && h5_bytes_of_chunk(chunk, element_bytes) > kMostBytes;) {
    if (chunk[a] == 1) {
      ++a;
    } else {
      chunk[a] = (chunk[a] + 1) / 2;
    }
  }
  return chunk;
}

Extents h5_merged_chunk(const Extents& extents, const Extents& chunk, std::uint64_t element_bytes) {
  Extents out = chunk;
  while (h5_bytes_of_chunk(out, element_bytes) < kLeastBytes) {
    // The shortest axis that has more to give; of equal ones the fastest.
    std::size_t best = out.size();
    for (std::size_t a = 0; a < out.size(); ++a)
      if (out[a] < extents[a] && (best == out.size() || out[a] <= out[best])) best = a;
    if (best == out.size()) break;
    const std::uint64_t grown =
        h5_bytes_of_chunk(out, element_bytes) / out[best] * std::min(2 * out[best], extents[best]);
    if (grown > kMostBytes) break;
    out[best] = std::min(2 * out[best], extents[best]);
  }
  return out;
}

}  // namespace quern::cli
