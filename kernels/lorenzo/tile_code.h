// The stored form of a chunk of tiles, byte by byte (docs/format.md, chapter "Codec lorenzo"), and the choices every
// encoder must make alike: cost of a predictor, number of dense planes.
//
//   chunk    = form u8, then form 0: heads of all tiles, payloads of all tiles; form 1: one seed, every tile constant
//   head     = a [b c size] [seed]
//     a      bit 7: seed equals that of the tile before (0 before the first)
//            bits 0-6: 0 constant tile, else 1 + planes
//     b      bits 0-3 predictor, bit 4 exact, bit 5 exceptions, bit 6 wide, bit 7 signs
//     c      number of dense planes
//     size   payload bytes, LEB128
//     seed   LEB128 of zigzag(seed - seed before) in 64 bits
//   payload  = [signs] [exceptions] dense planes, 128 bytes each, then of all sparse planes:
//              level 2 (u16 each), level 1 bytes, plane bytes
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/common/leb128.h"
#include "kernels/lorenzo/tile.h"

namespace quern::kernels {

inline constexpr std::size_t kPlaneBytes = 128;
inline constexpr std::size_t kMaxTilesPerChunk = 16;
/// Tiles of the largest chunk of elements that wide (docs/format-lorenzo.md, section 2).
constexpr unsigned max_chunk_tiles(std::size_t element_size) {
  return element_size == 8 ? 4 : element_size == 1 ? kMaxTilesPerChunk : 8;
}
inline constexpr std::uint8_t kFormTiles = 0;
inline constexpr std::uint8_t kFormConstant = 1;

/// Signs part of a payload: one byte of kind, then for sparse level 2, level 1 and plane bytes, for dense 128 bytes.
enum class SignPart : std::uint8_t { all_minus = 1, sparse = 2, sparse_complement = 3, dense = 4 };

struct TileHead {
  std::uint64_t seed = 0;     ///< code of element 0, sign-extended to 64 bits
  std::uint32_t payload = 0;  ///< bytes
  std::uint8_t planes = 0;    ///< residual bits that occur; 0 with no payload: constant tile
  std::uint8_t dense = 0;
  Predictor predictor = Predictor::none;
  bool exact = false;
  bool exceptions = false;
  bool wide = false;  ///< 64-bit words: residuals are differences modulo 2^64, not 2^32
  bool signs = false;

  [[gnu::always_inline]] constexpr bool constant() const { return planes == 0 && payload == 0 && !exact && !wide; }
};

/// Bytes that one head takes at most.
inline constexpr std::size_t kMaxHeadBytes = 1 + 1 + 1 + 3 + 10;

[[gnu::always_inline]] constexpr std::uint64_t zigzag64(std::uint64_t d) { return (d << 1) ^ (0 - (d >> 63)); }
[[gnu::always_inline]] constexpr std::uint64_t unzigzag64(std::uint64_t z) { return (z >> 1) ^ (0 - (z & 1)); }

/// Byte b of a head.
[[gnu::always_inline]] constexpr unsigned head_flags(const TileHead& head) {
  return static_cast<unsigned>(head.predictor) | (head.exact ? 0x10u : 0u) | (head.exceptions ? 0x20u : 0u) |
         (head.wide ? 0x40u : 0u) | (head.signs ? 0x80u : 0u);
}

/// Writes a head; `seed_before` is the seed of the tile before.
[[gnu::always_inline]] constexpr std::uint8_t* put_head(std::uint8_t* out, const TileHead& head,
                                                        std::uint64_t seed_before) {
  const bool same = head.seed == seed_before;
  const unsigned planes = head.constant() ? 0u : head.planes + 1u;
  *out++ = static_cast<std::uint8_t>(planes | (same ? 0x80u : 0u));
  if (!head.constant()) {
    *out++ = static_cast<std::uint8_t>(head_flags(head));
    *out++ = head.dense;
    out = put_leb128(out, head.payload);
  }
  if (!same) out = put_leb128(out, zigzag64(head.seed - seed_before));
  return out;
}

/// Reads and checks a head: false when it is cut short or breaks a rule that does not depend on the element type.
[[gnu::always_inline]] constexpr bool get_head(const std::uint8_t*& in, const std::uint8_t* end, TileHead& head,
                                               std::uint64_t seed_before) {
  head = TileHead{};
  if (in == end) return false;
  const unsigned a = *in++;
  if ((a & 0x7f) != 0) {
    if (end - in < 2) return false;
    const unsigned b = *in++;
    head.dense = *in++;
    head.planes = static_cast<std::uint8_t>((a & 0x7f) - 1);
    if (head.planes > 64 || head.dense > head.planes || (b & 15) >= kPredictors) return false;
    head.predictor = static_cast<Predictor>(b & 15);
    head.exact = (b & 0x10) != 0;
    head.exceptions = (b & 0x20) != 0;
    head.wide = (b & 0x40) != 0;
    head.signs = (b & 0x80) != 0;
    if (head.planes > 32 && !head.wide) return false;
    std::uint64_t payload = 0;
    if (!get_leb128(in, end, payload) || payload > 0xffff) return false;
    head.payload = static_cast<std::uint32_t>(payload);
    if (head.constant()) return false;
  }
  head.seed = seed_before;
  if ((a & 0x80) == 0) {
    std::uint64_t delta = 0;
    if (!get_leb128(in, end, delta) || delta == 0) return false;
    head.seed = seed_before + unzigzag64(delta);
  }
  return true;
}

/// Bits set; plain arithmetic that vectorizes on every instruction set.
[[gnu::always_inline]] constexpr std::uint32_t count_bits(std::uint32_t v) {
  v = v - ((v >> 1) & 0x55555555u);
  v = (v & 0x33333333u) + ((v >> 2) & 0x33333333u);
  v = (v + (v >> 4)) & 0x0f0f0f0fu;
  return (v * 0x01010101u) >> 24;
}

/// Bitmap of the bytes of a plane that are not zero: bit i is byte i. Its bytes are level 1, the bytes of level 1 that
/// are not zero are level 2.
struct PlaneMap {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

/// One bit a byte of v: set when the byte is not zero.
[[gnu::always_inline]] constexpr std::uint32_t nonzero_bytes(std::uint64_t v) {
  const std::uint64_t flags =
      (((v & UINT64_C(0x7f7f7f7f7f7f7f7f)) + UINT64_C(0x7f7f7f7f7f7f7f7f)) | v) & UINT64_C(0x8080808080808080);
  // Gathers bit 7 of every byte into the top byte.
  return static_cast<std::uint32_t>(((flags >> 7) * UINT64_C(0x0102040810204080)) >> 56);
}

[[gnu::always_inline]] constexpr std::uint32_t level2(const PlaneMap& map) {
  return nonzero_bytes(map.low) | nonzero_bytes(map.high) << 8;
}

[[gnu::always_inline]] constexpr std::uint32_t count_bits64(std::uint64_t v) {
  return count_bits(static_cast<std::uint32_t>(v)) + count_bits(static_cast<std::uint32_t>(v >> 32));
}

/// Bytes of a plane in sparse form.
[[gnu::always_inline]] constexpr std::uint32_t sparse_bytes(const PlaneMap& map) {
  return 2 + count_bits(level2(map)) + count_bits64(map.low) + count_bits64(map.high);
}

/// A plane is dense when its sparse form is no smaller; dense planes are the lowest ones without a gap.
[[gnu::always_inline]] constexpr unsigned count_dense_planes(const PlaneMap* maps, unsigned planes) {
  unsigned d = 0;
  while (d < planes && sparse_bytes(maps[d]) >= kPlaneBytes) ++d;
  return d;
}

}  // namespace quern::kernels
