// Copies between any addresses by the threads of a group, in words where that is possible.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/common/unroll.h"

namespace quern::kernels {

/// Copies `bytes` bytes; called by all `threads` threads of a group with their numbers. Words are stored where the
/// target is aligned and read as the aligned words that hold them; of those none is read that reaches past the last
/// byte.
__device__ __forceinline__ void copy_bytes(std::uint8_t* to, const std::uint8_t* from, std::uint64_t bytes,
                                           unsigned thread, unsigned threads) {
  const auto ahead = static_cast<std::uint64_t>(0 - reinterpret_cast<std::uintptr_t>(to)) & 3;
  const std::uint64_t first = ahead < bytes ? ahead : bytes;
  const std::uint64_t words = (bytes - first) / 4;
  const std::uint8_t* const source = from + first;
  const auto odd = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(source)) & 3;
  const auto* const aligned = reinterpret_cast<const std::uint32_t*>(source - odd);
  auto* const target = reinterpret_cast<std::uint32_t*>(to + first);
  // Where the source is odd, a word takes parts of two, and the second must lie before the end.
  const std::uint64_t held = (bytes - first + odd) / 4;
  const std::uint64_t in_words = odd == 0 || held == 0 ? words : (held - 1 < words ? held - 1 : words);
  constexpr unsigned kTogether = 4;  // words that a thread reads before it waits for one
  const unsigned next = odd == 0 ? 0 : 1;
  std::uint64_t i = thread;
  for (; i + (kTogether - 1) * std::uint64_t{threads} < in_words; i += kTogether * std::uint64_t{threads}) {
    std::uint32_t low[kTogether], high[kTogether];
    unroll<kTogether>([&](auto k) {
      low[k] = aligned[i + k * threads];
      high[k] = aligned[i + k * threads + next];
    });
    unroll<kTogether>([&](auto k) { target[i + k * threads] = __funnelshift_r(low[k], high[k], 8 * odd); });
  }
  for (; i < in_words; i += threads) target[i] = __funnelshift_r(aligned[i], aligned[i + next], 8 * odd);
  for (std::uint64_t b = first + 4 * in_words + thread; b < bytes; b += threads) to[b] = from[b];
  if (thread < first) to[thread] = from[thread];
}

}  // namespace quern::kernels
