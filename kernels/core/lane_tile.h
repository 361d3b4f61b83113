// One tile as a warp codes it, over an execution model X with collective operations (see kernels/README.md): the twin
// of kernels/cpu, byte for byte. What is the same in all lanes is a plain value, what differs is an X::vec.
//
// A warp builds its tile's planes in a LaneBuffer; the exceptions stay where they are in the array until the payload's
// place in the chunk is known.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/core/bitplanes.h"
#include "kernels/core/chunk_task.h"
#include "kernels/core/predict.h"
#include "kernels/core/tile_code.h"

namespace quern::kernels {

/// Share of a tile's elements that may be exceptions before it is stored exactly instead: 1/4.
inline constexpr std::uint32_t kLaneExceptionShare = 4;

/// Memory of one tile, shared by its lanes. `area` serves as staging for the transposition of line tiles first.
template <class Word>
struct LaneBuffer {
  static constexpr unsigned kMaxPlanes = 8 * sizeof(Word);
  static constexpr unsigned kPitch = kLanes + 1;  ///< columns of a row in staging: no two lanes meet in a bank
  Word area[kLanes * kPitch];                     ///< dense planes, then the bytes of sparse planes
  std::uint8_t level2[2 * kMaxPlanes];
  std::uint8_t level1[16 * kMaxPlanes];

  [[gnu::always_inline]] constexpr std::uint8_t* bytes() { return reinterpret_cast<std::uint8_t*>(area); }
};

/// What exists of a tile, and where it lies in the chunk.
struct LanePlace {
  std::uint64_t offset = 0;  ///< of the tile's first element
  std::uint64_t stride_z = 0;
  std::uint64_t stride_y = 0;
  std::uint32_t extents[3] = {0, 0, 0};
  bool full = false;

  [[gnu::always_inline]] constexpr std::uint32_t elems() const { return extents[0] * extents[1] * extents[2]; }
};

template <TileShape S>
[[gnu::always_inline]] constexpr LanePlace lane_place(const ChunkBox& box, std::uint32_t tile) {
  constexpr auto kSize = tile_extents(S);
  const auto counts = tile_counts(box, S);
  const std::uint64_t index[3] = {tile / (counts[1] * counts[2]), tile / counts[2] % counts[1], tile % counts[2]};
  LanePlace place;
  place.stride_z = box.strides[0];
  place.stride_y = box.strides[1];
  place.offset = index[0] * kSize[0] * box.strides[0] + index[1] * kSize[1] * box.strides[1] + index[2] * kSize[2];
  place.full = true;
  for (std::size_t a = 0; a < 3; ++a) {
    const std::uint64_t left = box.extents[a] - index[a] * kSize[a];
    place.extents[a] = left < kSize[a] ? static_cast<std::uint32_t>(left) : kSize[a];
    place.full = place.full && place.extents[a] == kSize[a];
  }
  return place;
}

/// Run i (32 neighbours in the array): where it begins, and how many of its elements exist.
template <TileShape S>
[[gnu::always_inline]] constexpr std::uint64_t run_offset(const LanePlace& place, std::size_t i) {
  if constexpr (S == TileShape::line) return place.offset + 32 * i;
  constexpr unsigned kPlane = rows_per_plane(S);
  return place.offset + (i / kPlane) * place.stride_z + (i % kPlane) * place.stride_y;
}
template <TileShape S>
[[gnu::always_inline]] constexpr std::uint32_t run_count(const LanePlace& place, std::size_t i) {
  if constexpr (S == TileShape::line) {
    const auto first = static_cast<std::uint32_t>(32 * i);
    const std::uint32_t left = place.extents[2] > first ? place.extents[2] - first : 0;
    return left < kLanes ? left : kLanes;
  }
  constexpr unsigned kPlane = rows_per_plane(S);
  return i / kPlane < place.extents[0] && i % kPlane < place.extents[1] ? place.extents[2] : 0;
}

/// Bit r of lane l: whether (row r, lane l) exists.
template <class X, TileShape S>
constexpr void existing_rows(const LanePlace& place, typename X::template vec<std::uint32_t>& column) {
  if constexpr (S == TileShape::line) {
    X::lanes([&](auto lane) {
      const std::uint32_t n = run_count<S>(place, lane);
      X::set(column, lane, n == kRows ? 0xffffffffu : (1u << n) - 1);
    });
  } else {
    std::uint32_t rows = 0;
    for (std::size_t r = 0; r < kRows; ++r) rows |= (run_count<S>(place, r) != 0 ? 1u : 0u) << r;
    X::lanes([&](auto lane) { X::set(column, lane, lane < place.extents[2] ? rows : 0u); });
  }
}

/// Bit r of lane l and bit l of lane r change places.
template <class X>
constexpr void transpose_lane_bits(typename X::template vec<std::uint32_t>& a) {
  typename X::template vec<std::uint32_t> out;
  X::lanes([&](auto lane) { X::set(out, lane, 0u); });
  for (unsigned r = 0; r < kRows; ++r) {
    typename X::template vec<bool> bit;
    X::lanes([&](auto lane) { X::set(bit, lane, (X::get(a, lane) >> r & 1) != 0); });
    const std::uint32_t mask = X::ballot(bit);
    X::lanes([&](auto lane) {
      if (lane == r) X::set(out, lane, mask);
    });
  }
  a = out;
}

/// Transposes run-major rows to the rows of a line tile and back.
template <class X, class Word, class Rows>
constexpr void transpose_rows(Rows& q, Word* staging) {
  constexpr unsigned kPitch = LaneBuffer<Word>::kPitch;
  X::sync();
  X::rows([&](auto row) {
    const std::size_t r = row;
    X::lanes([&](auto lane) { staging[r * kPitch + lane] = X::get(q[r], lane); });
  });
  X::sync();
  X::rows([&](auto row) {
    const std::size_t r = row;
    X::lanes([&](auto lane) { X::set(q[r], lane, staging[lane * kPitch + r]); });
  });
  X::sync();
}

/// What the quantizer left besides codes, as bits: bit r of lane l is (row r, lane l).
template <class X>
struct LaneMarks {
  typename X::template vec<std::uint32_t> refused;
  typename X::template vec<std::uint32_t> minus;
  std::uint32_t refused_count = 0;
};

/// Codes of refused elements repeat the code before in the order of the array; those before all others take the first.
template <class X, TileShape S, class Rows, class Word>
constexpr void fill_refused(const LanePlace& place, const LaneMarks<X>& marks, Rows& q, Word) {
  Word carry = 0;
  bool found = false;
  X::rows([&](auto row) {
    const std::size_t r = row;
    typename X::template vec<bool> good;
    X::lanes([&](auto lane) {
      X::set(good, lane, lane < run_count<S>(place, r) && (X::get(marks.refused, lane) >> r & 1) == 0);
    });
    const std::uint32_t mask = X::ballot(good);
    if (!found && mask != 0) {
      carry = X::broadcast(q[r], static_cast<unsigned>(std::countr_zero(mask)));
      found = true;
    }
  });
  X::rows([&](auto row) {
    const std::size_t r = row;
    const std::uint32_t count = run_count<S>(place, r);
    typename X::template vec<bool> bad;
    X::lanes([&](auto lane) { X::set(bad, lane, (X::get(marks.refused, lane) >> r & 1) != 0); });
    const std::uint32_t mask = X::ballot(bad);
    if (mask != 0) {
      typename X::template vec<std::uint32_t> from;
      typename X::template vec<Word> before;
      X::lanes([&](auto lane) {
        const std::uint32_t good = ~mask & static_cast<std::uint32_t>((UINT64_C(2) << lane) - 1);
        X::set(from, lane, good == 0 ? kLanes : static_cast<std::uint32_t>(31 - std::countl_zero(good)));
      });
      typename X::template vec<std::uint32_t> wrapped;
      X::map(
          wrapped, [](std::uint32_t f) { return f % kLanes; }, from);
      X::gather(before, q[r], wrapped);
      X::lanes([&](auto lane) {
        if (lane < count) X::set(q[r], lane, X::get(from, lane) == kLanes ? carry : X::get(before, lane));
      });
    }
    if (count != 0) carry = X::broadcast(q[r], count - 1);
  });
}

/// Reads a tile through a quantizer: codes into q by row and lane, marks likewise.
template <class X, TileShape S, class Q, class Rows>
constexpr void read_lanes(const Q& quantizer, const typename Q::Bits* chunk, const LanePlace& place, Rows& q,
                          LaneMarks<X>& marks, LaneBuffer<typename Q::Word>& buffer) {
  using Word = typename Q::Word;
  X::lanes([&](auto lane) {
    X::set(marks.refused, lane, 0u);
    X::set(marks.minus, lane, 0u);
  });
  X::rows([&](auto row) {
    const std::size_t r = row;
    X::lanes([&](auto lane) {
      Word code = 0;
      if (lane < run_count<S>(place, r)) {
        const auto bits = chunk[run_offset<S>(place, r) + lane];
        const bool good = quantizer.encode(bits, code);
        X::set(marks.refused, lane, X::get(marks.refused, lane) | (good ? 0u : 1u) << r);
        if constexpr (Q::kHasSign)
          X::set(marks.minus, lane, X::get(marks.minus, lane) | (Q::sign(bits) ? 1u : 0u) << r);
      }
      X::set(q[r], lane, code);
    });
  });
  marks.refused_count = 0;
  if (const std::uint32_t suspects = X::reduce_or(marks.refused); suspects != 0) {
    X::lanes([&](auto lane) {
      for (std::uint32_t rest = X::get(marks.refused, lane); rest != 0; rest &= rest - 1) {
        const auto r = static_cast<std::size_t>(std::countr_zero(rest));
        if (quantizer.accepts_exactly(chunk[run_offset<S>(place, r) + lane]))
          X::set(marks.refused, lane, X::get(marks.refused, lane) & ~(1u << r));
      }
    });
    typename X::template vec<std::uint32_t> count;
    X::map(
        count, [](std::uint32_t m) { return count_bits(m); }, marks.refused);
    marks.refused_count = X::reduce_add(count);
    if (marks.refused_count != 0) fill_refused<X, S>(place, marks, q, Word{0});
  }
  if constexpr (S == TileShape::line) {
    transpose_rows<X, Word>(q, buffer.area);
    if (marks.refused_count != 0) transpose_lane_bits<X>(marks.refused);
    if constexpr (Q::kHasSign) transpose_lane_bits<X>(marks.minus);
  }
}

}  // namespace quern::kernels
