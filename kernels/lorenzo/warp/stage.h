// Stored bytes for the lanes of a warp, over an execution model X: brought to memory that the lanes share and read
// there as words, or read where they are, byte by byte.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/lorenzo/warp/decode_area.h"
#include "kernels/lorenzo/warp/tile.h"

namespace quern::kernels {

/// What is left of a payload.
struct LaneBytes {
  const std::uint8_t* at = nullptr;
  std::uint32_t left = 0;

  [[gnu::always_inline]] constexpr void skip(std::uint32_t n) {
    at += n;
    left -= n;
  }
};

[[gnu::always_inline]] constexpr std::uint32_t load_u32(const std::uint8_t* p) {
  return p[0] | static_cast<std::uint32_t>(p[1]) << 8 | static_cast<std::uint32_t>(p[2]) << 16 |
         static_cast<std::uint32_t>(p[3]) << 24;
}

/// Bytes that were staged. Any word that holds one of them may be read, and two words behind the last.
struct StagedBytes {
  const std::uint32_t* words = nullptr;
  std::uint32_t first = 0;  ///< place of the first one

  template <class X>
  [[gnu::always_inline]] constexpr std::uint32_t byte(std::uint32_t i, std::size_t lane) const {
    return X::load(reinterpret_cast<const std::uint8_t*>(words) + i, lane);
  }
  /// The bytes at places i .. i+3.
  template <class X>
  [[gnu::always_inline]] constexpr std::uint32_t word(std::uint32_t i, std::size_t lane) const {
    const std::uint32_t* const at = words + i / 4;
    return X::funnel_right(X::load(at, lane), X::load(at + 1, lane), 8 * i);
  }
  /// Those at i .. i+7, of which the first `count` are asked for.
  template <class X>
  [[gnu::always_inline]] constexpr std::uint64_t eight(std::uint32_t i, std::uint32_t /*count*/,
                                                       std::size_t lane) const {
    const std::uint32_t* const at = words + i / 4;
    const std::uint32_t middle = X::load(at + 1, lane);
    const std::uint32_t low = X::funnel_right(X::load(at, lane), middle, 8 * i);
    return low | static_cast<std::uint64_t>(X::funnel_right(middle, X::load(at + 2, lane), 8 * i)) << 32;
  }
  /// n (1 or 2) numbers of 16 bits from place i on.
  template <class X>
  [[gnu::always_inline]] constexpr std::uint32_t halves(std::uint32_t i, std::uint32_t n, std::size_t lane) const {
    const std::uint32_t both = word<X>(i, lane);
    return n == 1 ? both & 0xffffu : both;
  }
};

/// The same of bytes where they are stored; none but those asked for is read.
struct StoredBytes {
  const std::uint8_t* at = nullptr;
  std::uint32_t first = 0;

  template <class X>
  [[gnu::always_inline]] constexpr std::uint32_t byte(std::uint32_t i, std::size_t /*lane*/) const {
    return at[i];
  }
  template <class X>
  [[gnu::always_inline]] constexpr std::uint32_t word(std::uint32_t i, std::size_t /*lane*/) const {
    return load_u32(at + i);
  }
  template <class X>
  [[gnu::always_inline]] constexpr std::uint64_t eight(std::uint32_t i, std::uint32_t count,
                                                       std::size_t /*lane*/) const {
    std::uint64_t v = 0;
    unroll<8>([&](auto k) {
      if (k < count) v |= static_cast<std::uint64_t>(at[i + k]) << (8 * k);
    });
    return v;
  }
  template <class X>
  [[gnu::always_inline]] constexpr std::uint32_t halves(std::uint32_t i, std::uint32_t n, std::size_t /*lane*/) const {
    std::uint32_t v = at[i] | static_cast<std::uint32_t>(at[i + 1]) << 8;
    if (n == 2) v |= static_cast<std::uint32_t>(at[i + 2]) << 16 | static_cast<std::uint32_t>(at[i + 3]) << 24;
    return v;
  }
};

/// Stages bytes in `words`, at most kMaxStagedBytes. Blocks of 16 bytes keep their alignment, and only those are read
/// at once that lie in `bytes` as a whole.
template <class X>
constexpr StagedBytes stage_bytes(const std::uint8_t* bytes, std::uint32_t count, std::uint32_t* words) {
  constexpr unsigned kAtOnce = 3;
  const auto first = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(bytes) & 15);
  const std::uint32_t end = first + count;
  const std::uint32_t begin_block = first == 0 ? 0 : 1;
  const std::uint32_t end_block = end / 16;
  const std::uint32_t blocks = end_block > begin_block ? end_block - begin_block : 0;
  rolled(0, (blocks + kAtOnce * kLanes - 1) / (kAtOnce * kLanes), [&](unsigned round) {
    typename X::template vec<LaneQuad> quads[kAtOnce];
    const auto each = [&](auto&& f) {
      X::lanes([&](auto lane) {
        unroll<kAtOnce>([&](auto k) {
          const std::uint32_t block =
              begin_block + kLanes * (kAtOnce * round + static_cast<unsigned>(k)) + static_cast<unsigned>(lane);
          if (block < end_block) f(block, lane, quads[k]);
        });
      });
    };
    each([&](std::uint32_t block, auto lane, auto& quad) {
      X::set(quad, lane, X::load(reinterpret_cast<const LaneQuad*>(bytes + (16 * block - first)), lane));
    });
    each([&](std::uint32_t block, auto lane, auto& quad) {
      X::store(reinterpret_cast<LaneQuad*>(words + 4 * block), lane, X::get(quad, lane));
    });
  });
  // Half of the lanes take what is before the blocks, half what is behind.
  X::lanes([&](auto lane) {
    const auto l = static_cast<std::uint32_t>(lane);
    const bool behind = l >= 16;
    const std::uint32_t i = behind ? 16 * end_block + l - 16 : l;
    const bool mine = behind ? end_block >= begin_block : begin_block == 1;
    if (mine && i >= first && i < end) X::store(reinterpret_cast<std::uint8_t*>(words) + i, lane, bytes[i - first]);
  });
  X::sync();
  return {words, first};
}

}  // namespace quern::kernels
