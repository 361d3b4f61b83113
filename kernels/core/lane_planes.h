// Bit planes of a tile in memory that its lanes share, for a warp, over an execution model X: residuals become planes
// in place, planes lose their zero bytes in place, and back. Twin of the plane code in cpu/. The bytes that are read
// back are hostile: every count is compared with what is left before it is used.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/bitplanes.h"
#include "kernels/core/bits.h"
#include "kernels/core/lane_tile.h"
#include "kernels/core/tile_code.h"

namespace quern::kernels {

inline constexpr unsigned kPlanesPerHalf = 32;

/// Memory of one tile in the encoder. `area` holds cells, then planes, then dense planes and the bytes of sparse ones.
/// All of it is words, which may be read as such where they hold bytes.
template <class Word>
struct LaneBuffer {
  static constexpr unsigned kMaxPlanes = 8 * sizeof(Word);
  LaneArea<Word> area;
  std::uint32_t level2_words[2 * kMaxPlanes / 4];
  std::uint32_t level1_words[16 * kMaxPlanes / 4];

  [[gnu::always_inline]] constexpr std::uint32_t* cells() { return area.cells; }
  [[gnu::always_inline]] constexpr std::uint8_t* bytes() { return reinterpret_cast<std::uint8_t*>(area.cells); }
  [[gnu::always_inline]] constexpr std::uint8_t* level2() { return reinterpret_cast<std::uint8_t*>(level2_words); }
  [[gnu::always_inline]] constexpr std::uint8_t* level1() { return reinterpret_cast<std::uint8_t*>(level1_words); }
};

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

/// What the planes of a tile take in a buffer.
struct LanePlanes {
  std::uint32_t planes = 0;
  std::uint32_t dense = 0;
  std::uint32_t area = 0;    ///< bytes of dense planes and of sparse ones, without a gap
  std::uint32_t level1 = 0;  ///< bytes

  [[gnu::always_inline]] constexpr std::uint32_t size() const { return area + 2 * (planes - dense) + level1; }
};

/// Residuals in the cells become planes, plane p at word 32 p.
template <class X>
constexpr void cells_to_planes(std::uint32_t* cells, std::uint32_t planes) {
  rolled(0, (planes + kPlanesPerHalf - 1) / kPlanesPerHalf, [&](unsigned half) {
    typename X::template vec<std::uint32_t> z[kRows];
    X::lanes([&](auto lane) {
      unroll<kRows>([&](auto row) {
        X::set(z[row], lane,
               X::load(cells + half * kHalfCells + lane_cell(static_cast<unsigned>(row), static_cast<unsigned>(lane)),
                       lane));
      });
    });
    X::sync();
    const std::uint32_t left = planes - kPlanesPerHalf * half;
    rolled(0, ((left < kPlanesPerHalf ? left : kPlanesPerHalf) + 7) / 8, [&](unsigned b) {
      typename X::template vec<std::uint32_t> words[8];
      byte_to_planes<X, std::uint32_t>(z, b, words);
      std::uint32_t* const out = cells + kLanes * (kPlanesPerHalf * half + 8 * b);
      X::lanes([&](auto lane) {
        unroll<8>([&](auto j) { X::store(out + kLanes * j + lane, lane, X::get(words[j], lane)); });
      });
    });
    X::sync();
  });
}

/// Takes the zero bytes out of the planes in the buffer. What is written never passes what is still to be read, and a
/// dense plane is where it belongs already.
template <class X, class Word>
constexpr LanePlanes pack_planes(LaneBuffer<Word>& buffer, std::uint32_t planes) {
  LanePlanes packed;
  packed.planes = planes;
  rolled(0, planes, [&](unsigned p) {
    typename X::template vec<std::uint32_t> plane;
    X::lanes([&](auto lane) { X::set(plane, lane, X::load(buffer.cells() + kLanes * p + lane, lane)); });
    SparseWord<X> s;
    measure_sparse<X>(plane, s);
    if (packed.dense == p && s.size() >= kPlaneBytes) {
      ++packed.dense;
      packed.area += kPlaneBytes;
      return;
    }
    std::uint8_t* const level2 = buffer.level2() + 2 * (p - packed.dense);
    std::uint8_t* const level1 = buffer.level1() + packed.level1;
    std::uint8_t* const bytes = buffer.bytes() + packed.area;
    X::sync();
    put_sparse_word<X>(
        plane, s, [&](std::uint32_t i, auto lane, std::uint8_t v) { X::store(level2 + i, lane, v); },
        [&](std::uint32_t i, auto lane, std::uint8_t v) { X::store(level1 + i, lane, v); },
        [&](std::uint32_t i, auto lane, std::uint8_t v) { X::store(bytes + i, lane, v); });
    packed.area += s.bytes;
    packed.level1 += popcount(s.top);
  });
  X::sync();
  return packed;
}

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

/// Positions in the sparse part, all from one base: level 2, level 1 and plane bytes run side by side.
struct SparseCursor {
  const std::uint8_t* base = nullptr;
  std::uint32_t level2 = 0;
  std::uint32_t level1 = 0;
  std::uint32_t bytes = 0;
  std::uint32_t end = 0;
};

/// Finds where level 1 and the plane bytes of `count` sparse planes begin, level 2 being `skip` bytes into `in`, which
/// holds that many; false when level 2 promises more than there is.
template <class X>
constexpr bool open_sparse(const LaneBytes& in, std::uint32_t skip, std::uint32_t count, SparseCursor& cursor) {
  if (in.left - skip < 2 * count) return false;
  typename X::template vec<std::uint32_t> sums;
  X::lanes([&](auto lane) {
    std::uint32_t sum = 0;
    // Up to 64 planes have 128 bytes.
    unroll<4>([&](auto k) {
      const auto i = static_cast<std::uint32_t>(lane) + kLanes * static_cast<std::uint32_t>(k);
      if (i < 2 * count) sum += popcount(static_cast<std::uint32_t>(in.at[skip + i]));
    });
    X::set(sums, lane, sum);
  });
  const std::uint32_t level1 = skip + 2 * count;
  const std::uint32_t listed = X::reduce_add(sums);
  cursor = {in.at, skip, level1, level1 + listed, in.left};
  return in.left - level1 >= listed;
}

/// Restores the next sparse plane.
template <class X>
constexpr bool get_sparse_lanes(SparseCursor& cursor, typename X::template vec<std::uint32_t>& plane) {
  const std::uint8_t* const base = cursor.base;
  const std::uint32_t top = base[cursor.level2] | static_cast<std::uint32_t>(base[cursor.level2 + 1]) << 8;
  typename X::template vec<std::uint32_t> nibble, count, rank;
  typename X::template vec<bool> bad;
  X::lanes([&](auto lane) {
    const auto l = static_cast<std::uint32_t>(lane);
    const bool listed = (top >> (l / 2) & 1) != 0;
    const auto before = popcount(top & bits_below(l / 2));
    const std::uint32_t byte = listed ? base[cursor.level1 + before] : 0u;
    const std::uint32_t own = byte >> (4 * (l & 1)) & 15;
    X::set(bad, lane, listed && byte == 0);
    X::set(nibble, lane, own);
    X::set(count, lane, popcount(own));
  });
  rank = count;
  X::inclusive_scan(rank);
  const std::uint32_t total = X::broadcast(rank, kLanes - 1);
  if (X::any(bad) || cursor.end - cursor.bytes < total) return false;
  X::lanes([&](auto lane) {
    const std::uint32_t own = X::get(nibble, lane);
    std::uint32_t at = cursor.bytes + X::get(rank, lane) - X::get(count, lane);
    std::uint32_t word = 0;
    unroll<4>([&](auto k) {
      if ((own >> k & 1) != 0) word |= static_cast<std::uint32_t>(base[at++]) << (8 * k);
    });
    X::set(plane, lane, word);
  });
  cursor.level2 += 2;
  cursor.level1 += popcount(top);
  cursor.bytes += total;
  return true;
}

/// Planes 8b .. 8b+7 are added into byte b of z[32].
template <class X, class V>
constexpr void planes_to_rows(const V (&planes)[8], unsigned b, V (&z)[kRows]) {
  X::lanes([&](auto lane) {
    std::uint32_t a[8];
    unroll<8>([&](auto j) { a[j] = X::get(planes[j], lane); });
    transpose_bits_8x8(a);
    unroll<kRows>([&](auto row) {
      constexpr unsigned kFrom = 8 * (decltype(row)::value / 8);
      X::set(z[row], lane, X::get(z[row], lane) | (a[row % 8] >> kFrom & 0xffu) << (8 * b));
    });
  });
}

/// Reads all planes of a tile into cells of `halves` halves; false unless they fill the payload exactly.
template <class X>
constexpr bool get_lane_planes(const LaneBytes& in, std::uint32_t planes, std::uint32_t dense_planes, unsigned halves,
                               std::uint32_t* cells) {
  const std::uint32_t dense_bytes = static_cast<std::uint32_t>(kPlaneBytes) * dense_planes;
  SparseCursor cursor;
  if (in.left < dense_bytes || !open_sparse<X>(in, dense_bytes, planes - dense_planes, cursor)) return false;
  bool good = true;
  rolled(0, halves, [&](unsigned half) {
    std::uint32_t* const own = cells + half * kHalfCells;
    typename X::template vec<std::uint32_t> z[kRows];
    X::lanes([&](auto lane) { unroll<kRows>([&](auto row) { X::set(z[row], lane, 0u); }); });
    const std::uint32_t begin = kPlanesPerHalf * half;
    const std::uint32_t left = planes > begin ? planes - begin : 0;
    rolled(0, ((left < kPlanesPerHalf ? left : kPlanesPerHalf) + 7) / 8, [&](unsigned b) {
      if (!good) return;
      // Eight planes by way of the cells, so that one copy of the code reads them all; a lane sees its own words only.
      rolled(0, 8, [&](unsigned j) {
        const std::uint32_t p = begin + 8 * b + j;
        typename X::template vec<std::uint32_t> word;
        X::lanes([&](auto lane) {
          X::set(word, lane, p < dense_planes ? load_u32(cursor.base + kPlaneBytes * p + 4 * lane) : 0u);
        });
        if (p >= dense_planes && p < planes && good) good = get_sparse_lanes<X>(cursor, word);
        if (good) X::lanes([&](auto lane) { X::store(own + kLanes * j + lane, lane, X::get(word, lane)); });
      });
      if (!good) return;
      typename X::template vec<std::uint32_t> words[8];
      X::lanes([&](auto lane) {
        unroll<8>([&](auto j) { X::set(words[j], lane, X::load(own + kLanes * j + lane, lane)); });
      });
      planes_to_rows<X>(words, b, z);
    });
    if (!good) return;
    X::sync();
    X::lanes([&](auto lane) {
      unroll<kRows>([&](auto row) {
        X::store(own + lane_cell(static_cast<unsigned>(row), static_cast<unsigned>(lane)), lane, X::get(z[row], lane));
      });
    });
  });
  X::sync();
  return good && cursor.bytes == cursor.end;
}

}  // namespace quern::kernels
