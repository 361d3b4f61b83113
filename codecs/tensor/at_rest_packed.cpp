// A chunk is a list of streams, each the number of its bytes (32 bits) and planes (planes/plane_code.h): headers,
// weights, codes of second and of first moments in the slots, the same of the wide blocks beside them, and the words of
// raw blocks. Streams without elements are left out.
#include "codecs/tensor/at_rest_packed.h"

#include <algorithm>
#include <cstring>

#include "codecs/tensor/planes/plane_code.h"
#include "libcompress/format/bytes.h"
#include "libcompress/format/writer.h"

namespace quern::codec::tensor {
namespace {

using kernels::AtRestKind;
using kernels::kAtRestBlock;
using kernels::kAtRestTile;
using kernels::kAtRestTileBlocks;

constexpr std::size_t kMostStreamHead = 64;  ///< what planes that are kept as they are take beside their bytes

Status corrupt(const char* what) { return Status(StatusCode::corrupt, what); }

/// Codes of first moments by magnitude, so that the sum of those before says how large the next will be.
std::uint8_t fold8(std::uint8_t code) { return static_cast<std::uint8_t>(code << 1 ^ (code >> 7) * 0xff); }
std::uint8_t unfold8(std::uint8_t code) { return static_cast<std::uint8_t>(code >> 1 ^ (code & 1) * 0xff); }
/// The same for two codes of 4 bits.
std::uint8_t fold4(std::uint8_t two) {
  const unsigned negative = two >> 3 & 0x11u;
  return static_cast<std::uint8_t>((two << 1 & 0xeeu) ^ negative * 15);
}
std::uint8_t unfold4(std::uint8_t two) {
  const unsigned negative = two & 0x11u;
  return static_cast<std::uint8_t>((two >> 1 & 0x77u) ^ negative * 15);
}

/// Blocks of one kind, one half second and one half first moments: to one stream of each, and back.
void gather_halves(const std::uint8_t* block, std::size_t half, bool pairs, std::uint8_t* second, std::uint8_t* first) {
  std::memcpy(second, block, half);
  const std::uint8_t* const from = block + half;
  if (pairs)
    for (std::size_t i = 0; i < half; ++i) first[i] = fold4(from[i]);
  else
    for (std::size_t i = 0; i < half; ++i) first[i] = fold8(from[i]);
}
void spread_halves(const std::uint8_t* second, const std::uint8_t* first, std::size_t half, bool pairs,
                   std::uint8_t* block) {
  std::memcpy(block, second, half);
  std::uint8_t* const to = block + half;
  if (pairs)
    for (std::size_t i = 0; i < half; ++i) to[i] = unfold4(first[i]);
  else
    for (std::size_t i = 0; i < half; ++i) to[i] = unfold8(first[i]);
}

PlaneWords bytes_stream(std::size_t count) { return {count, 1, false, {}}; }
PlaneWords header_stream(std::size_t count) { return {count, 4, false, {}}; }
PlaneWords float_stream(std::size_t count) { return {count, 4, true, {}}; }

Status put_stream(const PlaneWords& words, const std::uint8_t* from, AlignedBuffer& scratch,
                  Vector<std::uint8_t>& out) {
  if (words.count == 0) return {};
  QUERN_RETURN_IF_ERROR(scratch.resize(encode_scratch_bytes(words)));
  const std::size_t most = static_cast<std::size_t>(words.count) * words.width + kMostStreamHead;
  const std::size_t at = out.size();
  out.resize(at + 4 + most);
  QUERN_ASSIGN_OR_RETURN(const std::size_t bytes,
                         encode_planes(words, from, 0, {out.data() + at + 4, most}, scratch.span()));
  if (bytes == 0) return Status(StatusCode::internal, "moments at rest: planes take more than their bytes");
  for (unsigned b = 0; b < 4; ++b) out[at + b] = static_cast<std::uint8_t>(bytes >> 8 * b);
  out.resize(at + 4 + bytes);
  return {};
}

Status get_stream(const PlaneWords& words, ByteReader& in, AlignedBuffer& scratch, std::uint8_t* to) {
  if (words.count == 0) return {};
  const std::uint32_t bytes = in.u32();
  const auto stream = in.bytes(bytes);
  if (!in.ok()) return corrupt("moments at rest: a chunk is cut short");
  QUERN_RETURN_IF_ERROR(scratch.resize(decode_scratch_bytes(words)));
  return decode_planes(words, stream, to, scratch.span());
}

/// Blocks of each kind that headers name; false for a header that no encoder writes.
struct Kinds {
  std::size_t wide = 0;
  std::size_t raw = 0;
  std::size_t beside_bytes() const { return wide * kernels::kAtRestWideBytes + raw * kernels::kAtRestRawBytes; }
};
bool count_kinds(std::span<const std::uint32_t> headers, Kinds& kinds) {
  for (const std::uint32_t header : headers) {
    const AtRestKind kind = kernels::unpack_at_rest_header(header).kind;
    if (kind > AtRestKind::raw) return false;
    kinds.wide += kind == AtRestKind::wide;
    kinds.raw += kind == AtRestKind::raw;
  }
  return true;
}

}  // namespace

/// The tiles of a chunk and where their arrays lie.
struct AtRestPacker::Tiles {
  std::size_t first = 0, end = 0;
  std::size_t values = 0, blocks = 0;
  std::uint32_t* headers = nullptr;
  std::uint8_t* slots = nullptr;
  std::size_t slot_bytes = 0;
  std::size_t slots_bytes() const { return blocks * slot_bytes; }
};

Result<AtRestPacker::Tiles> AtRestPacker::next_tiles(const AtRestMoments& moments, std::size_t chunk) {
  if (chunk == 0) next_chunk_ = beside_at_ = 0;
  if (chunk != next_chunk_ || chunk >= packed_chunks(moments.values()))
    return Status(StatusCode::internal, "moments at rest: chunk {0} comes where {1} is next",
                  static_cast<std::int64_t>(chunk), static_cast<std::int64_t>(next_chunk_));
  ++next_chunk_;
  constexpr std::size_t kTiles = kPackedValues / kAtRestTile;
  Tiles tiles;
  tiles.first = chunk * kTiles;
  tiles.end = std::min(tiles.first + kTiles, moments.tiles());
  const std::uint64_t begin = chunk * kPackedValues;
  tiles.values = static_cast<std::size_t>(std::min(kPackedValues, moments.values() - begin));
  tiles.blocks = (tiles.values + kAtRestBlock - 1) / kAtRestBlock;
  const kernels::AtRestTile at = moments.tile(tiles.first, 0);
  tiles.headers = at.headers;
  tiles.slots = at.slots;
  tiles.slot_bytes = kernels::at_rest_slot_bytes(moments.form_);
  return tiles;
}

Status AtRestPacker::pack(const AtRestMoments& moments, const float* weights, std::size_t chunk,
                          Vector<std::uint8_t>& out) {
  QUERN_ASSIGN_OR_RETURN(const Tiles tiles, next_tiles(moments, chunk));
  Kinds kinds;
  if (!count_kinds({tiles.headers, tiles.blocks}, kinds))
    return corrupt("moments at rest: a header that no encoder writes");
  out.clear();
  out.reserve(static_cast<std::size_t>(most_packed_bytes(tiles.values, moments.form_)) + kinds.beside_bytes());
  QUERN_RETURN_IF_ERROR(
      put_stream(header_stream(tiles.blocks), reinterpret_cast<const std::uint8_t*>(tiles.headers), scratch_, out));
  QUERN_RETURN_IF_ERROR(put_stream(float_stream(tiles.values),
                                   reinterpret_cast<const std::uint8_t*>(weights + chunk * kPackedValues), scratch_,
                                   out));
  const std::size_t half = tiles.slot_bytes / 2;
  const bool pairs = moments.form_.bits == 4;
  gathered_.resize(std::max(tiles.slots_bytes(), kinds.beside_bytes()));
  std::uint8_t* const second = gathered_.data();
  std::uint8_t* const first = second + tiles.blocks * half;
  for (std::size_t b = 0; b < tiles.blocks; ++b)
    gather_halves(tiles.slots + b * tiles.slot_bytes, half, pairs, second + b * half, first + b * half);
  QUERN_RETURN_IF_ERROR(put_stream(bytes_stream(tiles.blocks * half), second, scratch_, out));
  QUERN_RETURN_IF_ERROR(put_stream(bytes_stream(tiles.blocks * half), first, scratch_, out));
  const std::uint8_t* from = moments.beside_.data() + beside_at_;
  beside_at_ += kinds.beside_bytes();
  if (kinds.beside_bytes() == 0) return {};
  std::uint8_t* wide_second = gathered_.data();
  std::uint8_t* wide_first = wide_second + kinds.wide * kAtRestBlock;
  std::uint8_t* raw = wide_first + kinds.wide * kAtRestBlock;
  for (std::size_t b = 0; b < tiles.blocks; ++b) {
    const AtRestKind kind = kernels::unpack_at_rest_header(tiles.headers[b]).kind;
    const std::size_t bytes = kernels::at_rest_beside_bytes(kind);
    if (kind == AtRestKind::wide) {
      gather_halves(from, kAtRestBlock, false, wide_second, wide_first);
      wide_second += kAtRestBlock, wide_first += kAtRestBlock;
    } else if (kind == AtRestKind::raw) {
      std::memcpy(raw, from, bytes);
      raw += bytes;
    }
    from += bytes;
  }
  const std::size_t wide = kinds.wide * kAtRestBlock;
  QUERN_RETURN_IF_ERROR(put_stream(bytes_stream(wide), gathered_.data(), scratch_, out));
  QUERN_RETURN_IF_ERROR(put_stream(bytes_stream(wide), gathered_.data() + wide, scratch_, out));
  return put_stream(float_stream(kinds.raw * kernels::kAtRestRawBytes / 4), gathered_.data() + 2 * wide, scratch_, out);
}

Status AtRestPacker::unpack(std::span<const std::uint8_t> in, std::size_t chunk, std::uint64_t most_beside,
                            float* weights, AtRestMoments& moments) {
  QUERN_ASSIGN_OR_RETURN(const Tiles tiles, next_tiles(moments, chunk));
  if (chunk == 0) moments.beside_ = {};
  ByteReader reader(in);
  QUERN_RETURN_IF_ERROR(
      get_stream(header_stream(tiles.blocks), reader, scratch_, reinterpret_cast<std::uint8_t*>(tiles.headers)));
  Kinds kinds;
  if (!count_kinds({tiles.headers, tiles.blocks}, kinds) || kinds.beside_bytes() > most_beside - moments.beside_.size())
    return corrupt("moments at rest: headers of a chunk do not fit its range");
  for (std::size_t t = tiles.first; t < tiles.end; ++t) {
    const std::size_t at = (t - tiles.first) * kAtRestTileBlocks;
    Kinds of_tile;
    (void)count_kinds({tiles.headers + at, std::min(kAtRestTileBlocks, tiles.blocks - at)}, of_tile);
    moments.sizes()[t] = static_cast<std::uint32_t>(of_tile.beside_bytes());
  }
  QUERN_RETURN_IF_ERROR(get_stream(float_stream(tiles.values), reader, scratch_,
                                   reinterpret_cast<std::uint8_t*>(weights + chunk * kPackedValues)));
  const std::size_t half = tiles.slot_bytes / 2;
  const bool pairs = moments.form_.bits == 4;
  gathered_.resize(std::max(tiles.slots_bytes(), kinds.beside_bytes()));
  std::uint8_t* const second = gathered_.data();
  std::uint8_t* const first = second + tiles.blocks * half;
  QUERN_RETURN_IF_ERROR(get_stream(bytes_stream(tiles.blocks * half), reader, scratch_, second));
  QUERN_RETURN_IF_ERROR(get_stream(bytes_stream(tiles.blocks * half), reader, scratch_, first));
  for (std::size_t b = 0; b < tiles.blocks; ++b)
    spread_halves(second + b * half, first + b * half, half, pairs, tiles.slots + b * tiles.slot_bytes);
  if (kinds.beside_bytes() != 0) {
    const std::size_t wide = kinds.wide * kAtRestBlock;
    const std::uint8_t* wide_second = gathered_.data();
    const std::uint8_t* wide_first = wide_second + wide;
    const std::uint8_t* raw = wide_first + wide;
    QUERN_RETURN_IF_ERROR(get_stream(bytes_stream(wide), reader, scratch_, gathered_.data()));
    QUERN_RETURN_IF_ERROR(get_stream(bytes_stream(wide), reader, scratch_, gathered_.data() + wide));
    QUERN_RETURN_IF_ERROR(get_stream(float_stream(kinds.raw * kernels::kAtRestRawBytes / 4), reader, scratch_,
                                     gathered_.data() + 2 * wide));
    const std::size_t at = moments.beside_.size();
    // One allocation where it is known how much comes in all.
    if (at == 0) moments.beside_.reserve(static_cast<std::size_t>(most_beside));
    moments.beside_.resize(at + kinds.beside_bytes());
    std::uint8_t* to = moments.beside_.data() + at;
    for (std::size_t b = 0; b < tiles.blocks; ++b) {
      const AtRestKind kind = kernels::unpack_at_rest_header(tiles.headers[b]).kind;
      const std::size_t bytes = kernels::at_rest_beside_bytes(kind);
      if (kind == AtRestKind::wide) {
        spread_halves(wide_second, wide_first, kAtRestBlock, false, to);
        wide_second += kAtRestBlock, wide_first += kAtRestBlock;
      } else if (kind == AtRestKind::raw) {
        std::memcpy(to, raw, bytes);
        raw += bytes;
      }
      to += bytes;
    }
  }
  reader.expect_end();
  return reader.ok() ? Status() : corrupt("moments at rest: bytes are left over behind a chunk");
}

}  // namespace quern::codec::tensor
