// Decoding one chunk of tiles on the CPU. The bytes are hostile: every count is compared with what is left before it is
// used, and a chunk is good only when all its bytes were consumed.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/common/cpu/cpu_lanes.h"
#include "kernels/lorenzo/bitplanes.h"
#include "kernels/lorenzo/chunk_task.h"
#include "kernels/lorenzo/cpu/lorenzo.h"
#include "kernels/lorenzo/cpu/plane_bytes.h"
#include "kernels/lorenzo/cpu/tile_io.h"
#include "kernels/lorenzo/predict.h"
#include "kernels/lorenzo/tile_code.h"

namespace quern::kernels {

template <class Isa, class W>
struct DecodeScratch {
  using V = typename CpuLanes<Isa>::template vec<W>;
  using V32 = typename CpuLanes<Isa>::template vec<std::uint32_t>;
  V codes[kRows];
  V residuals[kRows];
  V32 narrow_codes[kRows];
  V32 narrow_residuals[kRows];
  V32 planes[64];
  PlaneMap maps[64];
};

/// What is left of a payload.
struct ByteRange {
  const std::uint8_t* at = nullptr;
  const std::uint8_t* end = nullptr;
  [[gnu::always_inline]] std::size_t left() const { return static_cast<std::size_t>(end - at); }
};

/// Bytes from `in` to the byte positions of a word whose bits are set; the others are 0. Reads up to 8 bytes.
[[gnu::always_inline]] inline std::uint64_t spread_bytes(const std::uint8_t* in, std::uint32_t bits) {
#if defined(__BMI2__)
  std::uint64_t v;
  std::memcpy(&v, in, 8);
  return _pdep_u64(v, _pdep_u64(bits, UINT64_C(0x0101010101010101)) * 0xff);
#else
  std::uint64_t v = 0;
  for (unsigned b = 0; b < 8; ++b) {
    const unsigned take = (bits >> b) & 1;
    v |= static_cast<std::uint64_t>(*in & (0u - take)) << (8 * b);
    in += take;
  }
  return v;
#endif
}

/// Reads level 2 and level 1 of `count` planes; false when cut short or when a listed byte is zero.
template <class Isa>
bool get_maps(ByteRange& in, unsigned count, PlaneMap* maps, std::size_t& bytes) {
  if (in.left() < 2 * std::size_t{count}) return false;
  const std::uint8_t* top = in.at;
  in.at += 2 * std::size_t{count};
  bytes = 0;
  for (unsigned p = 0; p < count; ++p) {
    const std::uint32_t bits = top[2 * p] | static_cast<std::uint32_t>(top[2 * p + 1]) << 8;
    const unsigned listed = count_bits(bits);
    if (in.left() < listed) return false;
    std::uint8_t padded[32] = {};
    std::memcpy(padded, in.at, listed);
    in.at += listed;
    const std::uint64_t word[2] = {spread_bytes(padded, bits & 0xff),
                                   spread_bytes(padded + count_bits(bits & 0xff), bits >> 8)};
    if ((nonzero_bytes(word[0]) | nonzero_bytes(word[1]) << 8) != bits) return false;
    maps[p] = {word[0], word[1]};
    bytes += count_bits64(word[0]) + count_bits64(word[1]);
  }
  return true;
}

/// Restores sparse planes. Near the end of the input bytes go through a padded copy, since expand reads ahead.
template <class Isa, class V32>
bool get_sparse(ByteRange& in, unsigned count, PlaneMap* maps, V32* planes) {
  std::size_t bytes = 0;
  if (!get_maps<Isa>(in, count, maps, bytes) || in.left() < bytes) return false;
  for (unsigned p = 0; p < count; ++p) {
    if (in.left() >= kPlaneBytes + kPlaneSlack) {
      in.at = PlaneBytes<Isa>::expand(in.at, maps[p], planes[p].v);
    } else {
      std::uint8_t padded[kPlaneBytes + kPlaneSlack] = {};
      const std::size_t n = count_bits64(maps[p].low) + count_bits64(maps[p].high);
      std::memcpy(padded, in.at, n);
      PlaneBytes<Isa>::expand(padded, maps[p], planes[p].v);
      in.at += n;
    }
  }
  return true;
}

/// Reads all planes of a tile into residuals.
template <class Isa, class W, class Scratch>
bool get_planes(ByteRange& in, const TileHead& head, Scratch& s, typename CpuLanes<Isa>::template vec<W>* z) {
  if (in.left() < kPlaneBytes * head.dense) return false;
  for (unsigned p = 0; p < head.dense; ++p, in.at += kPlaneBytes) std::memcpy(s.planes[p].v, in.at, kPlaneBytes);
  if (!get_sparse<Isa>(in, head.planes - head.dense, s.maps, s.planes + head.dense)) return false;
  const unsigned bytes = (head.planes + 7u) / 8;
  for (unsigned p = head.planes; p < 8 * bytes; ++p) std::memset(s.planes[p].v, 0, kPlaneBytes);
  for (unsigned b = 0; b < bytes; ++b) planes_to_byte<CpuLanes<Isa>, W>(s.planes + 8 * b, b, b == 0, z);
  if (bytes == 0) std::memset(z, 0, kRows * sizeof(*z));
  return true;
}

template <class Isa, class Scratch>
bool get_signs(ByteRange& in, Scratch& s, std::uint32_t (&signs)[kLanes]) {
  if (in.left() < 1) return false;
  const auto part = static_cast<SignPart>(*in.at++);
  switch (part) {
    case SignPart::all_minus:
      for (std::uint32_t& word : signs) word = 0xffffffffu;
      return true;
    case SignPart::sparse:
    case SignPart::sparse_complement: {
      if (!get_sparse<Isa>(in, 1, s.maps, s.planes)) return false;
      const std::uint32_t flip = part == SignPart::sparse ? 0u : 0xffffffffu;
      for (std::size_t l = 0; l < kLanes; ++l) signs[l] = s.planes[0].v[l] ^ flip;
      return true;
    }
    case SignPart::dense:
      if (in.left() < kPlaneBytes) return false;
      std::memcpy(signs, in.at, kPlaneBytes);
      in.at += kPlaneBytes;
      return true;
  }
  return false;
}

/// Where a tile's exceptions stand in its payload.
struct ExceptionPart {
  std::uint32_t lanes[kRows];
  const std::uint8_t* values = nullptr;
};

/// Reads masks and skips the values; refuses positions that do not exist and rows listed without a lane.
template <class Isa>
bool get_exceptions(ByteRange& in, std::size_t element_size, const std::uint32_t* exists, ExceptionPart& part) {
  if (in.left() < 4) return false;
  std::uint32_t rows;
  std::memcpy(&rows, in.at, 4);
  in.at += 4;
  if (rows == 0 || in.left() < 4 * std::size_t{count_bits(rows)}) return false;
  std::size_t count = 0;
  for (std::size_t r = 0; r < kRows; ++r) {
    part.lanes[r] = 0;
    if ((rows >> r & 1) == 0) continue;
    std::memcpy(&part.lanes[r], in.at, 4);
    in.at += 4;
    if (part.lanes[r] == 0 || (exists != nullptr && (part.lanes[r] & ~exists[r]) != 0)) return false;
    count += count_bits(part.lanes[r]);
  }
  if (in.left() < count * element_size) return false;
  part.values = in.at;
  in.at += count * element_size;
  return true;
}

/// Reconstructs the codes of one tile from its payload (behind signs and exceptions).
template <class Isa, class W, TileShape S, class Scratch>
bool decode_codes(ByteRange& in, const TileHead& head, Scratch& s) {
  using X = CpuLanes<Isa>;
  const W seed = static_cast<W>(head.seed);
  if constexpr (sizeof(W) == 8) {
    if (!head.wide) {
      if (!get_planes<Isa, std::uint32_t>(in, head, s, s.narrow_residuals)) return false;
      reconstruct<X, std::uint32_t, S>(head.predictor, s.narrow_residuals, 0u, s.narrow_codes);
      for (std::size_t r = 0; r < kRows; ++r)
        for (std::size_t l = 0; l < kLanes; ++l)
          s.codes[r].v[l] =
              seed + static_cast<W>(static_cast<std::int64_t>(static_cast<std::int32_t>(s.narrow_codes[r].v[l])));
      return true;
    }
  }
  if (!get_planes<Isa, W>(in, head, s, s.residuals)) return false;
  reconstruct<X, W, S>(head.predictor, s.residuals, seed, s.codes);
  return true;
}

/// What a payload holds beside planes.
struct TileParts {
  std::uint32_t signs[kLanes];
  ExceptionPart exceptions;
};

/// Reads what comes before the planes of a payload, and leaves `in` behind it.
template <class Isa, class Q, TileShape S, class Scratch>
bool open_parts(const TileHead& head, ByteRange& in, const ChunkBox& box, const TilePlace& place, Scratch& s,
                TileParts& parts) {
  using Bits = typename Q::Bits;
  using W = typename Q::Word;
  if (!predictor_fits(head.predictor, S) || (head.wide && sizeof(W) < 8)) return false;
  if (head.signs && (!Q::kHasSign || head.exact)) return false;
  std::uint32_t exists[kRows];
  if (!place.full) existing_lanes(place, box, S, exists);
  std::memset(parts.signs, 0, sizeof parts.signs);
  if (head.signs && !get_signs<Isa>(in, s, parts.signs)) return false;
  return !head.exceptions || get_exceptions<Isa>(in, sizeof(Bits), place.full ? nullptr : exists, parts.exceptions);
}

/// Opens one tile: codes to s.codes, the rest to `parts`. Decoding and checking share one copy of it.
template <class Isa, class Q, TileShape S, class Scratch>
[[gnu::noinline]] bool open_tile(const TileHead& head, ByteRange in, const ChunkBox& box, const TilePlace& place,
                                 Scratch& s, TileParts& parts) {
  using W = typename Q::Word;
  if (!open_parts<Isa, Q, S>(head, in, box, place, s, parts)) return false;
  if (head.constant()) {
    for (std::size_t r = 0; r < kRows; ++r)
      for (std::size_t l = 0; l < kLanes; ++l) s.codes[r].v[l] = static_cast<W>(head.seed);
  } else if (!decode_codes<Isa, W, S>(in, head, s)) {
    return false;
  }
  return in.left() == 0;
}

/// Decodes one tile and writes its elements.
template <class Isa, class Q, class Exact, TileShape S, class Scratch>
bool decode_tile(const Q& q, const TileHead& head, ByteRange in, typename Q::Bits* chunk, const ChunkBox& box,
                 const TilePlace& place, Scratch& s) {
  using Bits = typename Q::Bits;
  TileParts parts;
  if (!open_tile<Isa, Q, S>(head, in, box, place, s, parts)) return false;
  if (head.exact) {
    write_tile<Isa, Exact>(Exact{}, s.codes, parts.signs, chunk, box, S, place, s.residuals);
  } else {
    write_tile<Isa, Q>(q, s.codes, parts.signs, chunk, box, S, place, s.residuals);
  }
  if (head.exceptions) {
    const std::uint8_t* value = parts.exceptions.values;
    for (std::size_t r = 0; r < kRows; ++r) {
      for (std::uint32_t rest = parts.exceptions.lanes[r]; rest != 0; rest &= rest - 1, value += sizeof(Bits)) {
        Bits bits;
        std::memcpy(&bits, value, sizeof bits);
        write_element<Isa>(chunk, box, S, place, r, static_cast<std::size_t>(std::countr_zero(rest)), bits);
      }
    }
  }
  return true;
}

/// Calls f(head, payload, place) for the tiles of a chunk, in order, as long as it returns true. Returns the first tile
/// for which it did not, or whose bytes are not what an encoder writes; kNoTile where there is none.
template <class Isa, TileShape S, class F>
std::size_t walk_tiles(const std::uint8_t* in, std::size_t bytes, const ChunkBox& box, F&& f) {
  const std::uint8_t* const end = in + bytes;
  const auto counts = tile_counts(box, S);
  const std::size_t tiles = counts[0] * counts[1] * counts[2];
  if (bytes < 1 || tiles > kMaxTilesPerChunk) return 0;
  const std::uint8_t form = *in++;
  TileHead heads[kMaxTilesPerChunk];
  if (form == kFormConstant) {
    std::uint64_t z = 0;
    if (!get_leb128(in, end, z) || in != end) return 0;
    for (std::size_t t = 0; t < tiles; ++t) heads[t].seed = unzigzag64(z);
  } else if (form == kFormTiles) {
    std::uint64_t seed = 0;
    for (std::size_t t = 0; t < tiles; ++t) {
      if (!get_head(in, end, heads[t], seed)) return t;
      seed = heads[t].seed;
    }
  } else {
    return 0;
  }
  std::size_t tile = 0;
  for (std::uint64_t z = 0; z < counts[0]; ++z) {
    for (std::uint64_t y = 0; y < counts[1]; ++y) {
      for (std::uint64_t x = 0; x < counts[2]; ++x, ++tile) {
        const TileHead& head = heads[tile];
        if (static_cast<std::size_t>(end - in) < head.payload) return tile;
        if (!f(head, ByteRange{in, in + head.payload}, place_tile(box, S, {z, y, x}))) return tile;
        in += head.payload;
      }
    }
  }
  return in == end ? kNoTile : tiles - 1;
}

/// Decodes a chunk; false when its bytes are not what an encoder writes.
template <class Isa, class Q, class Exact, TileShape S>
bool decode_chunk(const ChunkRules& rules, const std::uint8_t* in, std::size_t bytes, void* out, const ChunkBox& box,
                  void* scratch) {
  auto& s = *static_cast<DecodeScratch<Isa, typename Q::Word>*>(scratch);
  const Q q = make_quantizer<Q>(rules.params);
  auto* elements = static_cast<typename Q::Bits*>(out);
  const auto decode = [&](const TileHead& head, ByteRange payload, const TilePlace& place) {
    return decode_tile<Isa, Q, Exact, S>(q, head, payload, elements, box, place, s);
  };
  return walk_tiles<Isa, S>(in, bytes, box, decode) == kNoTile;
}

/// The decoder of one instruction set, behind LorenzoKernels; decode_instance.h defines it.
template <class Isa>
struct LorenzoDecoder {
  static bool decode(const ChunkRules& rules, const std::uint8_t* in, std::size_t bytes, void* out, const ChunkBox& box,
                     void* scratch);
  static std::size_t find_decode_fault(const ChunkRules& rules, const std::uint8_t* in, std::size_t bytes,
                                       const void* elements, const ChunkBox& box, void* scratch);
};

}  // namespace quern::kernels
