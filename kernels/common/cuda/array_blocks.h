// How kernels that look at every element cut arrays: into fixed blocks, a CTA for each, so that which thread sees which
// element depends on the element's index alone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::kernels {

inline constexpr unsigned kArrayThreads = 256;
inline constexpr unsigned kBlockBytes = 65536;
/// CTAs that fill any device; more blocks than these are walked in turn.
inline constexpr unsigned kMaxArrayCtas = 2048;

constexpr std::uint64_t array_blocks(std::uint64_t elems, std::size_t element_size) {
  const std::uint64_t each = kBlockBytes / element_size;
  return elems / each + (elems % each != 0 ? 1 : 0);
}

constexpr unsigned array_ctas(std::uint64_t blocks, unsigned max_ctas) {
  return static_cast<unsigned>(blocks < max_ctas ? blocks : max_ctas);
}

}  // namespace quern::kernels
