// Holding decoded elements against the chunk they came from, on the CPU: has a hardware fault (a bit that flipped
// in a register or in memory) changed them? The chunk is decoded once more, and nothing is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/lorenzo/cpu/decode.h"
#include "kernels/lorenzo/cpu/tile_io.h"

namespace quern::kernels {

/// Whether the elements of a run are what its codes decode to. `sign(e)` is the sign of element e.
template <class Isa, class Q, class Sign>
bool run_decodes_to(const Q& q, const typename Q::Word* codes, const typename Q::Bits* elements, std::uint64_t count,
                    const Sign& sign) {
  using Bits = typename Q::Bits;
  Bits differ = 0;
  const auto compare = [&](std::size_t e) __attribute__((always_inline)) {
    Bits bits;
    std::memcpy(&bits, elements + e, sizeof bits);
    differ |= static_cast<Bits>(q.decode(codes[e], sign(e)) ^ bits);
  };
  if (count == kLanes) {
    for (std::size_t e = 0; e < kLanes; ++e) compare(e);
  } else {
    for (std::size_t e = 0; e < count; ++e) compare(e);
  }
  return differ == 0;
}

/// Runs of a tile that hold an exception, a bit each.
[[gnu::always_inline]] inline std::uint32_t runs_with_exceptions(const ExceptionPart& exceptions, TileShape shape) {
  std::uint32_t runs = 0;
  for (std::size_t r = 0; r < kRows; ++r) {
    const std::uint32_t lanes = exceptions.lanes[r];
    runs |= shape == TileShape::line ? lanes : (lanes != 0 ? 1u << r : 0u);
  }
  return runs;
}

/// As run_decodes_to for a run that holds exceptions; `before[r]` of them come before row r.
template <class Isa, class Q>
bool mixed_run_decodes_to(const Q& q, const typename Q::Word* codes, const typename Q::Bits* elements,
                          std::uint64_t count, TileShape shape, std::size_t run, const TileParts& parts,
                          const std::size_t (&before)[kRows]) {
  for (std::size_t e = 0; e < count; ++e) {
    const RowLane at = position_of(shape, run, e);
    const std::uint32_t lanes = parts.exceptions.lanes[at.row];
    typename Q::Bits bits, kept = q.decode(codes[e], (parts.signs[at.lane] >> at.row & 1) != 0);
    std::memcpy(&bits, elements + e, sizeof bits);
    if ((lanes >> at.lane & 1) != 0) {
      const std::size_t number = before[at.row] + count_bits(lanes & ((1u << at.lane) - 1));
      std::memcpy(&kept, parts.exceptions.values + number * sizeof kept, sizeof kept);
    }
    if (kept != bits) return false;
  }
  return true;
}

/// Whether the elements of a tile are what its codes, signs and exceptions decode to.
template <class Isa, class Q>
bool tile_decodes_to(const Q& q, const typename CpuLanes<Isa>::template vec<typename Q::Word>* codes,
                     const TileHead& head, const TileParts& parts, const typename Q::Bits* chunk, const ChunkBox& box,
                     TileShape shape, const TilePlace& place,
                     typename CpuLanes<Isa>::template vec<typename Q::Word>* spare) {
  const auto* runs = codes;
  if (shape == TileShape::line) {
    transpose_tile<Isa, typename Q::Word>(codes, spare);
    runs = spare;
  }
  std::uint32_t mixed = 0;
  std::size_t before[kRows] = {};
  if (head.exceptions) {
    mixed = runs_with_exceptions(parts.exceptions, shape);
    for (std::size_t r = 1; r < kRows; ++r) before[r] = before[r - 1] + count_bits(parts.exceptions.lanes[r - 1]);
  }
  for (std::size_t i = 0; i < kRows; ++i) {
    const Run run = run_of(place, box, shape, i);
    const auto* const elements = chunk + run.offset;
    const auto sign = [&](std::size_t e) __attribute__((always_inline)) {
      if constexpr (!Q::kHasSign) return false;
      const RowLane at = position_of(shape, i, e);
      return (parts.signs[at.lane] >> at.row & 1) != 0;
    };
    const bool same = (mixed >> i & 1) != 0
                          ? mixed_run_decodes_to<Isa>(q, runs[i].v, elements, run.count, shape, i, parts, before)
                          : run_decodes_to<Isa>(q, runs[i].v, elements, run.count, sign);
    if (!same) return false;
  }
  return true;
}

/// The first tile of a chunk that does not decode to these elements; kNoTile: all do.
template <class Isa, class Q, class Exact, TileShape S>
std::size_t find_decode_fault_in_chunk(const ChunkRules& rules, const std::uint8_t* in, std::size_t bytes,
                                       const void* elements, const ChunkBox& box, void* scratch) {
  auto& s = *static_cast<DecodeScratch<Isa, typename Q::Word>*>(scratch);
  const Q q = make_quantizer<Q>(rules.params);
  const auto* const values = static_cast<const typename Q::Bits*>(elements);
  return walk_tiles<Isa, S>(in, bytes, box, [&](const TileHead& head, ByteRange payload, const TilePlace& place) {
    TileParts parts;
    if (!open_tile<Isa, Q, S>(head, payload, box, place, s, parts)) return false;
    if (head.exact) return tile_decodes_to<Isa>(Exact{}, s.codes, head, parts, values, box, S, place, s.residuals);
    return tile_decodes_to<Isa>(q, s.codes, head, parts, values, box, S, place, s.residuals);
  });
}

}  // namespace quern::kernels
