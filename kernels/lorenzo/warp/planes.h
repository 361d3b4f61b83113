// Bit planes of a tile, for a warp, over an execution model X: residuals in registers become planes without their zero
// bytes in memory that the lanes share, as they are stored. Twin of the plane code in cpu/; plane_decode.h is the
// way back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/lorenzo/bitplanes.h"
#include "kernels/lorenzo/tile_code.h"
#include "kernels/lorenzo/warp/tile.h"

namespace quern::kernels {

inline constexpr unsigned kPlanesPerHalf = 32;

/// Memory of one tile in the encoder, all of it words, which may be read as such where they hold bytes. `area` holds
/// cells. Planes and their bytes begin at the buffer's start, and there is so much room before the cells that those of
/// the first half never reach the second half's.
template <class Word>
struct LaneBuffer {
  static constexpr unsigned kMaxPlanes = 8 * sizeof(Word);
  static constexpr unsigned kFrontWords = sizeof(Word) == 8 ? 288 : 112;
  std::uint32_t front[kFrontWords];
  LaneArea<Word> area;
  std::uint32_t refused[kRows];  ///< lanes of each row's exceptions, if there are any
  std::uint32_t minus[kLanes];   ///< words of the signs part, if there is one

  [[gnu::always_inline]] constexpr std::uint32_t* cells() { return area.cells; }
  [[gnu::always_inline]] constexpr std::uint8_t* bytes() { return reinterpret_cast<std::uint8_t*>(this); }
};
/// A plane takes at most 2 + 16 + 128 bytes; those of the first half, with level 2 and level 1 of all, stay below the
/// cells of the second. A copy may look at the word behind the last.
static_assert(sizeof(LaneBuffer<std::uint32_t>) - 256 >= 32 * (2 + 16 + kPlaneBytes));
static_assert(sizeof(LaneBuffer<std::uint64_t>) - 256 >= 64 * (2 + 16 + kPlaneBytes));
static_assert(4 * (LaneBuffer<std::uint64_t>::kFrontWords + kHalfCells) >= 64 * (2 + 16) + 32 * kPlaneBytes);

/// What a lane's word of a plane adds to the sparse form.
template <class X>
struct SparseWord {
  using V32 = typename X::template vec<std::uint32_t>;
  V32 rank;               ///< bytes of the lanes before that are not 0
  V32 level1;             ///< in even lanes: level-1 byte of this lane and the next
  std::uint32_t top = 0;  ///< bit 2j: level-1 byte j is not 0
  std::uint32_t bytes = 0;

  /// The even bits of a word, moved together.
  [[gnu::always_inline]] static constexpr std::uint32_t pairs_to_level2(std::uint32_t v) {
    v = (v | v >> 1) & 0x33333333u;
    v = (v | v >> 2) & 0x0f0f0f0fu;
    v = (v | v >> 4) & 0x00ff00ffu;
    return (v | v >> 8) & 0x0000ffffu;
  }
  /// Bytes of the sparse form.
  [[gnu::always_inline]] constexpr std::uint32_t size() const { return 2 + popcount(top) + bytes; }
};

template <class X>
constexpr void measure_sparse(const typename X::template vec<std::uint32_t>& plane, SparseWord<X>& s) {
  typename X::template vec<std::uint32_t> nibble, count, next;
  typename X::template vec<bool> listed;
  X::lanes([&](auto lane) {
    const std::uint32_t v = X::get(plane, lane);
    const std::uint32_t flags = (((v & 0x7f7f7f7fu) + 0x7f7f7f7fu) | v) & 0x80808080u;
    X::set(nibble, lane, ((flags >> 7) * 0x10204080u) >> 28);  // one bit a byte
    X::set(count, lane, popcount(flags));
  });
  s.rank = count;
  X::inclusive_scan(s.rank);
  s.bytes = X::broadcast(s.rank, kLanes - 1);
  X::shift_down(next, nibble);
  X::lanes([&](auto lane) {
    X::set(s.rank, lane, X::get(s.rank, lane) - X::get(count, lane));
    const std::uint32_t pair = X::get(nibble, lane) | X::get(next, lane) << 4;
    X::set(s.level1, lane, pair);
    X::set(listed, lane, lane % 2 == 0 && pair != 0);
  });
  s.top = X::ballot(listed);
}

/// Writes the sparse form of one plane: its level 2, level 1 and plane bytes, to where Put stores a byte.
template <class X, class Put2, class Put1, class PutByte>
constexpr void put_sparse_word(const typename X::template vec<std::uint32_t>& plane, const SparseWord<X>& s,
                               Put2&& level2, Put1&& level1, PutByte&& bytes) {
  X::lanes([&](auto lane) {
    const std::uint32_t word = X::get(plane, lane);
    std::uint32_t at = X::get(s.rank, lane);
    unroll<4>([&](auto k) {
      const auto byte = static_cast<std::uint8_t>(word >> (8 * k));
      if (byte != 0) bytes(at++, lane, byte);
    });
    if ((s.top >> lane & 1) != 0)
      level1(popcount(s.top & bits_below(lane)), lane, static_cast<std::uint8_t>(X::get(s.level1, lane)));
    if (lane < 2)
      level2(static_cast<std::uint32_t>(lane), lane,
             static_cast<std::uint8_t>(SparseWord<X>::pairs_to_level2(s.top) >> (8 * lane)));
  });
}

/// What the planes of a tile take in a buffer, as they are stored: dense planes, then level 2, level 1 and bytes of the
/// sparse ones.
struct LanePlanes {
  std::uint32_t planes = 0;
  std::uint32_t dense = 0;
  std::uint32_t level1 = 0;  ///< bytes
  std::uint32_t bytes = 0;   ///< of all that
};

/// Planes of a half that are dense before a sparse one comes.
template <class X, class V>
constexpr std::uint32_t count_dense_lanes(const V (&bits)[kGroups], std::uint32_t planes) {
  const auto is_dense = [&](std::uint32_t p) {
    typename X::template vec<std::uint32_t> count;
    typename X::template vec<bool> used;
    X::lanes([&](auto lane) {
      std::uint32_t sum = 0;
      unroll<kGroups>([&](auto g) { sum += X::get(bits[g], lane) >> p & 1; });
      X::set(count, lane, sum);
      X::set(used, lane, sum != 0);
    });
    const std::uint32_t lanes = X::ballot(used);
    return 2 + popcount((lanes | lanes >> 1) & 0x55555555u) + X::reduce_add(count) >= kPlaneBytes;
  };
  std::uint32_t dense = 0;
  while (dense < planes && is_dense(dense)) ++dense;
  return dense;
}

/// Level-1 bytes of the planes of one half.
template <class X, class V>
constexpr std::uint32_t count_level1(const V (&bits)[kGroups]) {
  typename X::template vec<std::uint32_t> own, next, count;
  X::lanes([&](auto lane) {
    X::set(own, lane, X::get(bits[0], lane) | X::get(bits[1], lane) | X::get(bits[2], lane) | X::get(bits[3], lane));
  });
  X::shift_down(next, own);
  X::lanes([&](auto lane) {
    const std::uint32_t pair = X::get(own, lane) | X::get(next, lane);
    X::set(count, lane, lane % 2 == 0 ? static_cast<std::uint32_t>(popcount(pair)) : 0u);
  });
  return X::reduce_add(count);
}

/// 8 planes' flags of one lane, byte k of which says for each plane whether byte k of its word is not 0, put together
/// by planes: byte q holds plane q's four flags in its low half, plane q + 4's in its high half.
[[gnu::always_inline]] constexpr std::uint32_t flags_by_plane(std::uint32_t v) {
  // The bits of an index are k1 k0 p2 p1 p0; two exchanges make them p1 p0 p2 k1 k0.
  const std::uint32_t a = ((v >> 14) ^ v) & 0x0000ccccu;
  v ^= a ^ a << 14;
  const std::uint32_t b = ((v >> 7) ^ v) & 0x00aa00aau;
  return v ^ b ^ b << 7;
}

/// Where the next bytes of the sparse planes go: offsets, since a device compiler loses sight of what a pointer that
/// moves points to.
struct SparseEnds {
  std::uint32_t level2 = 0;  ///< of plane 0, were it sparse; may be below 0, modulo 2^32
  std::uint32_t level1 = 0;
  std::uint32_t bytes = 0;
};

/// Writes level 2 and level 1 of 8 planes, the first of which is `first`; planes before `begin` and from `end` on have
/// no level 2.
template <class X>
constexpr void put_levels(const typename X::template vec<std::uint32_t>& flags, std::uint32_t first,
                          std::uint32_t begin, std::uint32_t end, std::uint8_t* out, SparseEnds& to) {
  using V32 = typename X::template vec<std::uint32_t>;
  // Level-1 byte j is four flags of lane 2j and four of lane 2j + 1. Lane j makes those of planes 0 to 3, lane 16 + j
  // those of planes 4 to 7.
  V32 from, even, odd, listed;
  X::lanes([&](auto lane) { X::set(from, lane, 2 * (static_cast<std::uint32_t>(lane) & 15)); });
  X::shuffle(even, flags, from);
  X::lanes([&](auto lane) { X::set(from, lane, X::get(from, lane) + 1); });
  X::shuffle(odd, flags, from);
  X::lanes([&](auto lane) {
    const unsigned shift = lane < 16 ? 0 : 4;
    X::set(listed, lane, (X::get(even, lane) >> shift & 0x0f0f0f0fu) | (X::get(odd, lane) >> shift & 0x0f0f0f0fu) << 4);
  });
  std::uint32_t tops[4];
  unroll<4>([&](auto q) {
    typename X::template vec<bool> used;
    X::lanes([&](auto lane) { X::set(used, lane, (X::get(listed, lane) & 0xffu << (8 * q)) != 0); });
    tops[q] = X::ballot(used);
  });
  V32 total;
  X::lanes([&](auto lane) {
    const std::uint32_t half = lane < 16 ? 0x0000ffffu : 0xffff0000u;
    std::uint32_t sum = 0;
    unroll<4>([&](auto q) { sum += popcount(tops[q] & half); });
    X::set(total, lane, sum);
  });
  const std::uint32_t low = X::broadcast(total, 0);
  X::lanes([&](auto lane) {
    const std::uint32_t half = lane < 16 ? 0x0000ffffu : 0xffff0000u;
    std::uint32_t start = lane < 16 ? 0 : low;
    unroll<4>([&](auto q) {
      const auto byte = static_cast<std::uint8_t>(X::get(listed, lane) >> (8 * q));
      const std::uint32_t own = tops[q] & half;
      if (byte != 0) X::store(out + (to.level1 + start + popcount(own & bits_below(lane))), lane, byte);
      start += popcount(own);
    });
    // Level 2: byte l % 2 of plane l / 2.
    const std::uint32_t j = static_cast<std::uint32_t>(lane) / 2;
    const std::uint32_t p = first + j;
    const std::uint32_t top = (j & 2) != 0 ? ((j & 1) != 0 ? tops[3] : tops[2]) : ((j & 1) != 0 ? tops[1] : tops[0]);
    if (j < 8 && p >= begin && p < end)
      X::store(out + (to.level2 + 2 * first + static_cast<std::uint32_t>(lane)), lane,
               static_cast<std::uint8_t>(top >> (4 * (j & 4) + 8 * (static_cast<std::uint32_t>(lane) & 1))));
  });
  to.level1 += low + X::broadcast(total, kLanes - 1);
}

/// Writes the bytes of 8 planes' words that are flagged.
template <class X, class V>
constexpr void put_plane_bytes(const V& flags, const V (&words)[8], std::uint8_t* out, SparseEnds& to) {
  // Counts of bytes, four planes side by side in a word: none of them passes 128.
  V ranks[2], counts[2];
  X::lanes([&](auto lane) {
    const std::uint32_t v = X::get(flags, lane);
    const std::uint32_t pairs = v - (v >> 1 & 0x55555555u);
    const std::uint32_t fours = (pairs & 0x33333333u) + (pairs >> 2 & 0x33333333u);
    X::set(counts[0], lane, fours & 0x0f0f0f0fu);
    X::set(counts[1], lane, fours >> 4 & 0x0f0f0f0fu);
  });
  unroll<2>([&](auto h) {
    ranks[h] = counts[h];
    X::inclusive_scan(ranks[h]);
    const std::uint32_t totals = X::broadcast(ranks[h], kLanes - 1);
    X::lanes([&](auto lane) { X::set(ranks[h], lane, X::get(ranks[h], lane) - X::get(counts[h], lane)); });
    unroll<4>([&](auto q) {
      X::lanes([&](auto lane) {
        const std::uint32_t word = X::get(words[4 * h + q], lane);
        auto at = X::append_at(out, to.bytes + (X::get(ranks[h], lane) >> (8 * q) & 0xff));
        unroll<4>(
            [&](auto k) { X::append_if(X::get(flags, lane) & 1u << (8 * q + 4 * h + k), at, lane, word >> (8 * k)); });
      });
      to.bytes += totals >> (8 * q) & 0xff;
    });
  });
}

/// Packs the planes of residuals into the buffer. Up to 32 planes: `rows` are the residuals. More: they are the low
/// halves, and the buffer's cells hold both halves. `bits` are those of find_group_bits for each half.
template <class X, class Word, class V>
constexpr LanePlanes pack_planes(LaneBuffer<Word>& buffer, std::uint32_t planes, V (&rows)[kRows],
                                 V (&bits)[sizeof(Word) / 4][kGroups]) {
  constexpr unsigned kHalves = sizeof(Word) / 4;
  LanePlanes packed;
  packed.planes = planes;
  packed.dense = count_dense_lanes<X>(bits[0], planes < kPlanesPerHalf ? planes : kPlanesPerHalf);
  if (kHalves == 2 && packed.dense == kPlanesPerHalf)
    packed.dense += count_dense_lanes<X>(bits[kHalves - 1], planes - kPlanesPerHalf);
  unroll<kHalves>([&](auto half) {
    constexpr std::uint32_t kBefore = kPlanesPerHalf * static_cast<std::uint32_t>(decltype(half)::value);
    const std::uint32_t dense = packed.dense > kBefore ? packed.dense - kBefore : 0;
    const std::uint32_t sparse = dense < kPlanesPerHalf ? 0xffffffffu << dense : 0u;
    X::lanes([&](auto lane) {
      unroll<kGroups>([&](auto g) { X::set(bits[half][g], lane, X::get(bits[half][g], lane) & sparse); });
    });
    packed.level1 += count_level1<X>(bits[half]);
  });
  const std::uint32_t level2 = static_cast<std::uint32_t>(kPlaneBytes) * packed.dense;
  const std::uint32_t level1 = level2 + 2 * (planes - packed.dense);
  SparseEnds to;
  to.level2 = level2 - 2 * packed.dense;
  to.level1 = level1;
  to.bytes = to.level1 + packed.level1;
  X::sync();
  rolled(0, kHalves == 1 ? 1 : (planes + kPlanesPerHalf - 1) / kPlanesPerHalf, [&](unsigned half) {
    if (kHalves == 2 && half == 1) {
      load_rows<X>(buffer.cells() + kHalfCells, rows);
      X::sync();
      unroll<kGroups>([&](auto g) { bits[0][g] = bits[kHalves - 1][g]; });
    }
    const std::uint32_t left = planes - kPlanesPerHalf * half;
    rolled(0, ((left < kPlanesPerHalf ? left : kPlanesPerHalf) + 7) / 8, [&](unsigned b) {
      const std::uint32_t first = kPlanesPerHalf * half + 8 * b;
      V words[8], flags;
      X::lanes([&](auto lane) {
        std::uint32_t a[8];
        unroll<8>([&](auto j) {
          a[j] = X::gather_bytes(X::get(rows[j], lane), X::get(rows[j + 8], lane), X::get(rows[j + 16], lane),
                                 X::get(rows[j + 24], lane), b);
        });
        transpose_bits_8x8_by_choice(a);
        unroll<8>([&](auto j) { X::set(words[j], lane, a[j]); });
        X::set(flags, lane,
               flags_by_plane(X::gather_bytes(X::get(bits[0][0], lane), X::get(bits[0][1], lane),
                                              X::get(bits[0][2], lane), X::get(bits[0][3], lane), b)));
      });
      if (first < packed.dense) {
        X::lanes([&](auto lane) {
          auto* const at = reinterpret_cast<std::uint32_t*>(buffer.bytes() + kPlaneBytes * first) + lane;
          unroll<8>([&](auto j) {
            if (first + j < packed.dense) X::store(at + kLanes * j, lane, X::get(words[j], lane));
          });
        });
        if (first + 8 <= packed.dense) return;
      }
      put_levels<X>(flags, first, packed.dense, planes, buffer.bytes(), to);
      put_plane_bytes<X>(flags, words, buffer.bytes(), to);
    });
  });
  X::sync();
  packed.bytes = to.bytes;
  return packed;
}

}  // namespace quern::kernels
