// Between arrays and tiles on the CPU: reading elements through a quantizer into codes, writing codes back as elements.
// Knows tile shapes, ragged edges and exceptions; knows nothing of bit planes.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/common/cpu/cpu_lanes.h"
#include "kernels/lorenzo/chunk_task.h"
#include "kernels/lorenzo/tile.h"

namespace quern::kernels {

/// Which elements of a tile exist, and where they lie. `origin` counts elements from the chunk's first.
struct TilePlace {
  std::array<std::uint64_t, 3> begin{};    ///< within the chunk
  std::array<std::uint64_t, 3> extents{};  ///< of what exists of the tile
  bool full = false;
};

[[gnu::always_inline]] inline TilePlace place_tile(const ChunkBox& box, TileShape shape,
                                                   std::array<std::uint64_t, 3> index) {
  const auto size = tile_extents(shape);
  TilePlace place;
  place.full = true;
  for (std::size_t a = 0; a < 3; ++a) {
    place.begin[a] = index[a] * size[a];
    place.extents[a] = std::min<std::uint64_t>(size[a], box.extents[a] - place.begin[a]);
    place.full = place.full && place.extents[a] == size[a];
  }
  return place;
}

/// Offset of the first element of a run of up to 32 elements contiguous in the array, and how many of them exist.
/// Run i is row i of a box tile, and elements 32i.. (lane i) of a line tile.
struct Run {
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
};

[[gnu::always_inline]] inline Run run_of(const TilePlace& place, const ChunkBox& box, TileShape shape, std::size_t i) {
  if (shape == TileShape::line) {
    const std::uint64_t first = 32 * i;
    const std::uint64_t count = first >= place.extents[2] ? 0 : std::min<std::uint64_t>(32, place.extents[2] - first);
    return {place.begin[2] + first, count};
  }
  const unsigned per_plane = rows_per_plane(shape);
  const std::uint64_t z = i / per_plane;
  const std::uint64_t y = i % per_plane;
  if (z >= place.extents[0] || y >= place.extents[1]) return {};
  return {(place.begin[0] + z) * box.strides[0] + (place.begin[1] + y) * box.strides[1] + place.begin[2],
          place.extents[2]};
}

/// 32 x 32 matrix transposition of tile vectors (run-major to row-major of line tiles and back).
template <class Isa, class T>
void transpose_tile(const typename CpuLanes<Isa>::template vec<T>* in, typename CpuLanes<Isa>::template vec<T>* out) {
  constexpr std::size_t kBlock = 8;
  for (std::size_t i = 0; i < kRows; i += kBlock)
    for (std::size_t j = 0; j < kLanes; j += kBlock)
      for (std::size_t r = 0; r < kBlock; ++r)
        for (std::size_t l = 0; l < kBlock; ++l) out[j + l].v[i + r] = in[i + r].v[j + l];
}

/// Tile position (row, lane) of element `e` of run `i`.
struct RowLane {
  std::size_t row, lane;
};
[[gnu::always_inline]] constexpr RowLane position_of(TileShape shape, std::size_t run, std::size_t e) {
  return shape == TileShape::line ? RowLane{e, run} : RowLane{run, e};
}

/// Lanes of each row that exist, as bit masks.
[[gnu::always_inline]] inline void existing_lanes(const TilePlace& place, const ChunkBox& box, TileShape shape,
                                                  std::uint32_t (&mask)[kRows]) {
  for (std::size_t r = 0; r < kRows; ++r) mask[r] = 0;
  for (std::size_t i = 0; i < kRows; ++i) {
    const std::uint64_t n = run_of(place, box, shape, i).count;
    if (shape == TileShape::line) {
      for (std::size_t e = 0; e < n; ++e) mask[e] |= 1u << i;
    } else {
      mask[i] = n == 32 ? 0xffffffffu : (1u << n) - 1;
    }
  }
}

/// Elements kept bit for bit: positions by row, values in row-major order.
template <class Bits>
struct Exceptions {
  std::uint32_t lanes[kRows];
  Bits values[kTileElems];
  std::size_t count = 0;
};

/// Quantizes one run; false when some element was refused by the fast check. Elements beyond `count` get code 0.
template <class Isa, class Q>
bool quantize_run(const Q& q, const typename Q::Bits* in, std::uint64_t count, typename Q::Word* codes) {
  using Bits = typename Q::Bits;
  using Word = typename Q::Word;
  if (count == kLanes) {
    Word refused = 0;
    for (std::size_t l = 0; l < kLanes; ++l) {
      Bits bits;
      std::memcpy(&bits, in + l, sizeof bits);
      Word code;
      const bool ok = q.encode(bits, code);
      codes[l] = code;
      refused |= ok ? Word{0} : Word{1};
    }
    return refused == 0;
  }
  bool all = true;
  for (std::size_t l = 0; l < kLanes; ++l) {
    codes[l] = 0;
    if (l < count) {
      Bits bits;
      std::memcpy(&bits, in + l, sizeof bits);
      all = q.encode(bits, codes[l]) && all;
    }
  }
  return all;
}

/// Second look at a run that was refused: elements that the exact check refuses too become exceptions, their codes
/// repeat the code before (in the run, else of the run before), so that they cost nothing in the planes.
template <class Isa, class Q>
void find_exceptions(const Q& q, const typename Q::Bits* in, std::uint64_t count, std::size_t run, TileShape shape,
                     typename Q::Word* codes, typename Q::Word& before, Exceptions<typename Q::Bits>& exceptions,
                     typename Q::Bits (&elements)[kRows][kLanes]) {
  for (std::size_t e = 0; e < count; ++e) {
    typename Q::Bits bits;
    std::memcpy(&bits, in + e, sizeof bits);
    typename Q::Word code;
    if (q.encode(bits, code) || q.accepts_exactly(bits)) {
      before = codes[e];
      continue;
    }
    codes[e] = before;
    const RowLane at = position_of(shape, run, e);
    exceptions.lanes[at.row] |= 1u << at.lane;
    elements[at.row][at.lane] = bits;
    ++exceptions.count;
  }
}

/// Code of the first element that is no exception; 0 when all are. Serves as the seed's stand-in.
template <class Isa, class Q>
typename Q::Word first_accepted(const Q& q, const typename Q::Bits* chunk, const ChunkBox& box, TileShape shape,
                                const TilePlace& place) {
  for (std::size_t i = 0; i < kRows; ++i) {
    const Run run = run_of(place, box, shape, i);
    for (std::size_t e = 0; e < run.count; ++e) {
      typename Q::Bits bits;
      std::memcpy(&bits, chunk + run.offset + e, sizeof bits);
      typename Q::Word code;
      if (q.encode(bits, code) || q.accepts_exactly(bits)) return code;
    }
  }
  return 0;
}

/// Reads a tile. Codes come in tile order (row, lane); exceptions are listed. Returns the number of existing elements.
template <class Isa, class Q>
std::size_t read_tile(const Q& q, const typename Q::Bits* chunk, const ChunkBox& box, TileShape shape,
                      const TilePlace& place, typename CpuLanes<Isa>::template vec<typename Q::Word>* codes,
                      typename CpuLanes<Isa>::template vec<typename Q::Word>* spare,
                      Exceptions<typename Q::Bits>& exceptions) {
  using Word = typename Q::Word;
  auto* runs = shape == TileShape::line ? spare : codes;
  std::size_t elems = 0;
  std::uint32_t refused = 0;
  for (std::size_t i = 0; i < kRows; ++i) {
    const Run run = run_of(place, box, shape, i);
    elems += run.count;
    if (!quantize_run<Isa>(q, chunk + run.offset, run.count, runs[i].v)) refused |= 1u << i;
  }
  exceptions.count = 0;
  if (refused != 0) {
    typename Q::Bits elements[kRows][kLanes] = {};
    std::fill(std::begin(exceptions.lanes), std::end(exceptions.lanes), 0u);
    Word before = 0;
    bool have_before = false;
    for (std::size_t i = 0; i < kRows; ++i) {
      const Run run = run_of(place, box, shape, i);
      if (run.count == 0) continue;
      if ((refused >> i & 1) != 0) {
        if (!have_before) before = first_accepted<Isa>(q, chunk, box, shape, place);
        find_exceptions<Isa>(q, chunk + run.offset, run.count, i, shape, runs[i].v, before, exceptions, elements);
      }
      before = runs[i].v[run.count - 1];
      have_before = true;
    }
    std::size_t n = 0;
    for (std::size_t r = 0; r < kRows; ++r)
      for (std::uint32_t lanes = exceptions.lanes[r]; lanes != 0; lanes &= lanes - 1)
        exceptions.values[n++] = elements[r][static_cast<std::size_t>(std::countr_zero(lanes))];
  }
  if (shape == TileShape::line) transpose_tile<Isa, Word>(spare, codes);
  return elems;
}

/// Sign words of a tile: bit r of word l is the sign of row r, lane l. Elements that do not exist give 0.
template <class Isa, class Q>
void read_signs(const typename Q::Bits* chunk, const ChunkBox& box, TileShape shape, const TilePlace& place,
                std::uint32_t (&signs)[kLanes]) {
  for (std::uint32_t& word : signs) word = 0;
  for (std::size_t i = 0; i < kRows; ++i) {
    const Run run = run_of(place, box, shape, i);
    for (std::size_t e = 0; e < run.count; ++e) {
      typename Q::Bits bits;
      std::memcpy(&bits, chunk + run.offset + e, sizeof bits);
      const RowLane at = position_of(shape, i, e);
      if (Q::sign(bits)) signs[at.lane] |= 1u << at.row;
    }
  }
}

/// Writes a tile's codes as elements.
template <class Isa, class Q>
void write_tile(const Q& q, const typename CpuLanes<Isa>::template vec<typename Q::Word>* codes,
                const std::uint32_t* signs, typename Q::Bits* chunk, const ChunkBox& box, TileShape shape,
                const TilePlace& place, typename CpuLanes<Isa>::template vec<typename Q::Word>* spare) {
  const auto* runs = codes;
  if (shape == TileShape::line) {
    transpose_tile<Isa, typename Q::Word>(codes, spare);
    runs = spare;
  }
  for (std::size_t i = 0; i < kRows; ++i) {
    const Run run = run_of(place, box, shape, i);
    typename Q::Bits* out = chunk + run.offset;
    if constexpr (Q::kHasSign) {
      for (std::size_t e = 0; e < run.count; ++e) {
        const RowLane at = position_of(shape, i, e);
        const auto bits = q.decode(runs[i].v[e], (signs[at.lane] >> at.row & 1) != 0);
        std::memcpy(out + e, &bits, sizeof bits);
      }
    } else if (run.count == kLanes) {
      for (std::size_t e = 0; e < kLanes; ++e) {
        const auto bits = q.decode(runs[i].v[e], false);
        std::memcpy(out + e, &bits, sizeof bits);
      }
    } else {
      for (std::size_t e = 0; e < run.count; ++e) {
        const auto bits = q.decode(runs[i].v[e], false);
        std::memcpy(out + e, &bits, sizeof bits);
      }
    }
  }
}

/// Overlays one exception.
template <class Isa, class Bits>
void write_element(Bits* chunk, const ChunkBox& box, TileShape shape, const TilePlace& place, std::size_t row,
                   std::size_t lane, Bits value) {
  const RowLane run_element = shape == TileShape::line ? RowLane{lane, row} : RowLane{row, lane};
  const Run run = run_of(place, box, shape, run_element.row);
  std::memcpy(chunk + run.offset + run_element.lane, &value, sizeof value);
}

}  // namespace quern::kernels
