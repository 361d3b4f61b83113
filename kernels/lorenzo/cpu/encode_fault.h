// Holding a stored chunk against the elements it was made of, on the CPU: has a hardware fault (a bit that flipped
// in a register or in memory) changed it? The elements are quantized and predicted once more, under the stored predictor
// alone, and compared with what the stored planes say. Prediction is undone without loss, so equal residuals and an
// equal seed give a decoder these codes; no sum is needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/lorenzo/cpu/decode.h"
#include "kernels/lorenzo/cpu/encode.h"
#include "kernels/lorenzo/cpu/tile_io.h"

namespace quern::kernels {

template <class Isa, class W, class Bits>
struct CheckScratch {
  EncodeScratch<Isa, W, Bits> again;  ///< from the elements
  DecodeScratch<Isa, W> stored;       ///< from the chunk
};

/// Whether planes hold the residuals of these codes.
template <class Isa, class W, TileShape S, class Scratch>
bool planes_hold(ByteRange& in, const TileHead& head, const typename CpuLanes<Isa>::template vec<W>* codes, W seed,
                 const std::uint32_t* exists, Scratch& stored, typename CpuLanes<Isa>::template vec<W>* residuals,
                 typename CpuLanes<Isa>::template vec<W>* again) {
  if (!get_planes<Isa, W>(in, head, stored, residuals)) return false;
  predict<CpuLanes<Isa>, W, S>(head.predictor, codes, seed, again);
  typename CpuLanes<Isa>::template vec<W> differ = {};
  if (exists != nullptr) {
    for (std::size_t r = 0; r < kRows; ++r)
      for (std::size_t l = 0; l < kLanes; ++l) again[r].v[l] &= static_cast<W>(W{0} - ((exists[r] >> l) & 1));
  }
  for (std::size_t r = 0; r < kRows; ++r)
    for (std::size_t l = 0; l < kLanes; ++l) differ.v[l] |= residuals[r].v[l] ^ again[r].v[l];
  W any = 0;
  for (std::size_t l = 0; l < kLanes; ++l) any |= differ.v[l];
  return any == 0;
}

/// Whether the rest of a payload holds the codes in s.again.codes.
template <class Isa, class W, TileShape S, class Scratch>
bool payload_holds_codes(ByteRange in, const TileHead& head, const std::uint32_t* exists, Scratch& s) {
  const W seed = s.again.codes[0].v[0];
  if (static_cast<W>(head.seed) != seed) return false;
  if constexpr (sizeof(W) == 8) {
    if (!head.wide) {
      W outside = 0;
      for (std::size_t r = 0; r < kRows; ++r) {
        for (std::size_t l = 0; l < kLanes; ++l) {
          const W distance = s.again.codes[r].v[l] - seed;
          const auto low = static_cast<std::uint32_t>(distance);
          const W present = exists == nullptr ? W{1} : static_cast<W>((exists[r] >> l) & 1);
          outside |=
              (distance ^ static_cast<W>(static_cast<std::int64_t>(static_cast<std::int32_t>(low)))) & (W{0} - present);
          s.again.narrow_codes[r].v[l] = low;
        }
      }
      return outside == 0 &&
             planes_hold<Isa, std::uint32_t, S>(in, head, s.again.narrow_codes, 0u, exists, s.stored,
                                                s.stored.narrow_residuals, s.again.narrow_residuals[0]) &&
             in.left() == 0;
    }
  }
  return planes_hold<Isa, W, S>(in, head, s.again.codes, seed, exists, s.stored, s.stored.residuals,
                                s.again.residuals[0]) &&
         in.left() == 0;
}

/// Whether a tile's signs are those of the elements.
template <class Isa, class Q>
bool signs_are(const std::uint32_t (&stored)[kLanes], const typename Q::Bits* chunk, const ChunkBox& box,
               TileShape shape, const TilePlace& place) {
  std::uint32_t signs[kLanes];
  read_signs<Isa, Q>(chunk, box, shape, place, signs);
  std::uint32_t exists[kRows];
  existing_lanes(place, box, shape, exists);
  std::uint32_t differ = 0;
  for (std::size_t l = 0; l < kLanes; ++l) {
    std::uint32_t column = 0;
    for (std::size_t r = 0; r < kRows; ++r) column |= ((exists[r] >> l) & 1) << r;
    differ |= (signs[l] ^ stored[l]) & column;
  }
  return differ == 0;
}

/// Whether a tile's exceptions are those of the elements, bit for bit.
template <class Isa, class Bits>
bool exceptions_are(const TileHead& head, const ExceptionPart& stored, const Exceptions<Bits>& again) {
  if (head.exceptions != (again.count != 0)) return false;
  return again.count == 0 || (std::memcmp(stored.lanes, again.lanes, sizeof again.lanes) == 0 &&
                              std::memcmp(stored.values, again.values, again.count * sizeof(Bits)) == 0);
}

/// Whether one stored tile holds its elements.
template <class Isa, class Q, TileShape S, class Stored, class Scratch>
bool tile_holds(const Q& q, const TileHead& head, ByteRange in, const typename Q::Bits* chunk, const ChunkBox& box,
                const TilePlace& place, Scratch& s) {
  std::uint32_t lanes[kRows];
  const std::uint32_t* exists = nullptr;
  if (!place.full) {
    existing_lanes(place, box, S, lanes);
    exists = lanes;
  }
  TileParts parts;
  if (!open_parts<Isa, Stored, S>(head, in, box, place, s.stored, parts)) return false;
  read_tile<Isa, Q>(q, chunk, box, S, place, s.again.codes, s.again.spare, s.again.exceptions);
  if (!exceptions_are<Isa>(head, parts.exceptions, s.again.exceptions)) return false;
  if constexpr (Q::kHasSign) {
    if (!signs_are<Isa, Q>(parts.signs, chunk, box, S, place)) return false;
  }
  return payload_holds_codes<Isa, typename Q::Word, S>(in, head, exists, s);
}

/// The first tile of a chunk that does not hold what the encoder makes of these elements; kNoTile: all do.
template <class Isa, class Q, class Exact, TileShape S>
std::size_t find_encode_fault_in_chunk(const ChunkRules& rules, const std::uint8_t* in, std::size_t bytes,
                                       const void* elements, const ChunkBox& box, void* scratch) {
  using Bits = typename Q::Bits;
  auto& s = *static_cast<CheckScratch<Isa, typename Q::Word, Bits>*>(scratch);
  const Q q = make_quantizer<Q>(rules.params);
  const auto* const values = static_cast<const Bits*>(elements);
  return walk_tiles<Isa, S>(in, bytes, box, [&](const TileHead& head, ByteRange payload, const TilePlace& place) {
    if (head.exact) return tile_holds<Isa, Exact, S, Q>(Exact{}, head, payload, values, box, place, s);
    return tile_holds<Isa, Q, S, Q>(q, head, payload, values, box, place, s);
  });
}

}  // namespace quern::kernels
