// Bit planes of a staged tile from the bytes of its residuals, for a warp, over an execution model X: the same bytes as
// planes.h makes, but dense planes and empty ones are not read byte by byte, and one scan serves four planes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/lorenzo/bitplanes.h"
#include "kernels/lorenzo/tile_code.h"
#include "kernels/lorenzo/warp/packed_codes.h"
#include "kernels/lorenzo/warp/planes.h"

namespace quern::kernels {

/// Memory of a warp that holds a tile's payload, before that its residuals: 32 planes of at most 2 + 16 + 128 bytes,
/// and room for what a copy in blocks of 16 bytes reads.
inline constexpr unsigned kPayloadWords = (kPlanesPerHalf * (2 + 16 + kPlaneBytes) + 64) / 4;

/// Plane bytes that are not 0, four planes side by side in a word: none of them passes 128.
template <class V>
struct PlaneCounts {
  V before;                 ///< of the lanes before
  std::uint32_t total = 0;  ///< of all lanes
};

/// Counts those of 8 planes; `any` as in PlaneBytes.
template <class X, class V>
constexpr void count_planes_of(const V& any, PlaneCounts<V> (&out)[2]) {
  V counts[2];
  X::lanes([&](auto lane) {
    const std::uint32_t flags = flags_by_plane(X::get(any, lane));
    const std::uint32_t pairs = flags - (flags >> 1 & 0x55555555u);
    const std::uint32_t fours = (pairs & 0x33333333u) + (pairs >> 2 & 0x33333333u);
    X::set(counts[0], lane, fours & 0x0f0f0f0fu);
    X::set(counts[1], lane, fours >> 4 & 0x0f0f0f0fu);
  });
  unroll<2>([&](auto h) {
    out[h].before = counts[h];
    X::inclusive_scan(out[h].before);
    out[h].total = X::broadcast(out[h].before, kLanes - 1);
    X::lanes([&](auto lane) { X::set(out[h].before, lane, X::get(out[h].before, lane) - X::get(counts[h], lane)); });
  });
}

/// The bits of four bytes in the lowest of them.
[[gnu::always_inline]] constexpr std::uint32_t fold_bytes(std::uint32_t v) {
  v |= v >> 16;
  return (v | v >> 8) & 0xffu;
}

/// Planes up to the highest with a byte that is not 0.
template <unsigned Groups, class V>
constexpr std::uint32_t count_planes(const PlaneCounts<V> (&counts)[Groups][2]) {
  std::uint32_t planes = 0;
  unroll<2 * Groups>([&](auto q) {
    const std::uint32_t total = counts[q / 2][q % 2].total;
    if (total != 0) planes = 4 * static_cast<std::uint32_t>(q) + (bit_length(total) + 7) / 8;
  });
  return planes;
}

/// Planes that are dense before a sparse one comes. A plane is dense when its sparse form is no smaller: with 112 bytes
/// it has at least 14 bytes of level 1, so that it is; with 109 it is not whatever level 1 has.
template <class X, unsigned Groups, class V>
constexpr std::uint32_t count_dense(const PlaneBytes<V> (&groups)[Groups], const PlaneCounts<V> (&counts)[Groups][2]) {
  constexpr std::uint32_t kTops = 0x80808080u;
  std::uint32_t dense = 0;
  bool going = true;
  unroll<2 * Groups>([&](auto q) {
    if (!going) return;
    const std::uint32_t total = counts[q / 2][q % 2].total;
    const std::uint32_t sure = (total + 0x01010101u * (128 - 112)) & kTops;
    if (sure == ((total + 0x01010101u * (128 - 110)) & kTops)) {
      const std::uint32_t n = sure == kTops ? 4 : lowest_bit(~sure & kTops) / 8;
      dense += n;
      going = n == 4;
      return;
    }
    unroll<4>([&](auto k) {
      if (!going) return;
      constexpr unsigned kPlane =
          4 * (static_cast<unsigned>(decltype(q)::value) % 2) + static_cast<unsigned>(decltype(k)::value);
      typename X::template vec<bool> used;
      X::lanes(
          [&](auto lane) { X::set(used, lane, (fold_bytes(X::get(groups[q / 2].any, lane)) >> kPlane & 1) != 0); });
      const std::uint32_t lanes = X::ballot(used);
      const std::uint32_t level1 = popcount((lanes | lanes >> 1) & 0x55555555u);
      going = 2 + level1 + (total >> (8 * k) & 0xff) >= kPlaneBytes;
      dense += going ? 1 : 0;
    });
  });
  return dense;
}

/// Level-1 bytes of the planes from `dense` on.
template <class X, unsigned Groups, class V>
constexpr std::uint32_t count_level1(const PlaneBytes<V> (&groups)[Groups], std::uint32_t dense) {
  const std::uint32_t sparse = dense < kPlanesPerHalf ? 0xffffffffu << dense : 0u;
  V own, next;
  X::lanes([&](auto lane) {
    std::uint32_t planes = 0;
    unroll<Groups>([&](auto g) { planes |= fold_bytes(X::get(groups[g].any, lane)) << (8 * g); });
    X::set(own, lane, planes & sparse);
  });
  X::shift_down(next, own);
  X::lanes([&](auto lane) {
    const auto count = static_cast<std::uint32_t>(popcount(X::get(own, lane) | X::get(next, lane)));
    X::set(own, lane, lane % 2 == 0 ? count : 0u);
  });
  return X::reduce_add(own);
}

/// Writes the planes of one group; `words` are those of its 8 planes, the first of which is `First`.
template <class X, unsigned First, class V>
constexpr void put_group(const V (&words)[8], const V& any, const PlaneCounts<V> (&counts)[2], const LanePlanes& packed,
                         std::uint8_t* out, SparseEnds& to) {
  if (packed.dense > First) {
    X::lanes([&](auto lane) {
      unroll<8>([&](auto j) {
        auto* const at = reinterpret_cast<std::uint32_t*>(out) + kLanes * (First + j) + lane;
        if (First + j < packed.dense) X::store(at, lane, X::get(words[j], lane));
      });
    });
    if (packed.dense >= First + 8) return;
  }
  const std::uint32_t skip = packed.dense > First ? packed.dense - First : 0;
  const std::uint32_t sparse = (0xffu << skip & 0xffu) * 0x01010101u;
  V flags;
  X::lanes([&](auto lane) { X::set(flags, lane, flags_by_plane(X::get(any, lane) & sparse)); });
  put_levels<X>(flags, First, packed.dense, packed.planes, out, to);
  unroll<8>([&](auto j) {
    if (First + j < packed.dense || First + j >= packed.planes) return;
    constexpr unsigned kHalf = static_cast<unsigned>(decltype(j)::value) / 4;
    constexpr unsigned kByte = 8 * (static_cast<unsigned>(decltype(j)::value) % 4);
    X::lanes([&](auto lane) {
      const std::uint32_t own = X::get(flags, lane) >> (kByte + 4 * kHalf);
      const std::uint32_t word = X::get(words[j], lane);
      auto at = X::append_at(out, to.bytes + (X::get(counts[kHalf].before, lane) >> kByte & 0xff));
      unroll<4>([&](auto k) { X::append_if(own & 1u << k, at, lane, word >> (8 * k)); });
    });
    to.bytes += counts[kHalf].total >> kByte & 0xff;
  });
}

/// Writes planes as they are stored; leaves `groups` undefined. What the lanes had in that memory must have been read.
template <class X, unsigned Groups, class V>
constexpr LanePlanes put_planes(PlaneBytes<V> (&groups)[Groups], std::uint8_t* out) {
  PlaneCounts<V> counts[Groups][2];
  unroll<Groups>([&](auto g) { count_planes_of<X>(groups[g].any, counts[g]); });
  LanePlanes packed;
  packed.planes = count_planes(counts);
  packed.dense = count_dense<X>(groups, counts);
  packed.level1 = count_level1<X>(groups, packed.dense);
  const std::uint32_t level2 = static_cast<std::uint32_t>(kPlaneBytes) * packed.dense;
  SparseEnds to;
  to.level2 = level2 - 2 * packed.dense;
  to.level1 = level2 + 2 * (packed.planes - packed.dense);
  to.bytes = to.level1 + packed.level1;
  unroll<Groups>([&](auto g) {
    constexpr unsigned kFirst = 8 * static_cast<unsigned>(decltype(g)::value);
    if (kFirst >= packed.planes) return;
    X::lanes([&](auto lane) {
      std::uint32_t words[8];
      unroll<8>([&](auto j) { words[j] = X::get(groups[g].bytes[j], lane); });
      transpose_bits_8x8_by_choice(words);
      unroll<8>([&](auto j) { X::set(groups[g].bytes[j], lane, words[j]); });
    });
    put_group<X, kFirst>(groups[g].bytes, groups[g].any, counts[g], packed, out, to);
  });
  packed.bytes = to.bytes;
  return packed;
}

}  // namespace quern::kernels
