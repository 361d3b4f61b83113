// Decoding a chunk with a warp for each tile: one lane reads all heads, then every warp decodes its tile. Over an
// execution model X; twin of cpu/lorenzo_decode.h. The bytes are hostile: every count is compared with what is left
// before it is used.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/core/lane_encode.h"
#include "kernels/core/lane_tile.h"

namespace quern::kernels {

/// Heads of a chunk's tiles and where their payloads begin.
struct LaneHeads {
  TileHead heads[kMaxTilesPerChunk];
  std::uint32_t begins[kMaxTilesPerChunk];
};

/// Reads the heads; false when the chunk is not made of exactly these parts. `bytes` is below 2^32.
[[gnu::always_inline]] constexpr bool read_heads(const std::uint8_t* in, std::uint32_t bytes, std::uint32_t tiles,
                                                 LaneHeads& out) {
  if (bytes < 1 || tiles > kMaxTilesPerChunk) return false;
  const std::uint8_t* at = in + 1;
  const std::uint8_t* const end = in + bytes;
  if (in[0] == kFormConstant) {
    std::uint64_t z = 0;
    if (!get_leb128(at, end, z) || at != end) return false;
    for (std::uint32_t t = 0; t < tiles; ++t) {
      out.heads[t] = TileHead{};
      out.heads[t].seed = unzigzag64(z);
      out.begins[t] = bytes;
    }
    return true;
  }
  if (in[0] != kFormTiles) return false;
  std::uint64_t seed = 0;
  for (std::uint32_t t = 0; t < tiles; ++t) {
    if (!get_head(at, end, out.heads[t], seed)) return false;
    seed = out.heads[t].seed;
  }
  std::uint64_t begin = static_cast<std::uint64_t>(at - in);
  for (std::uint32_t t = 0; t < tiles; ++t) {
    out.begins[t] = static_cast<std::uint32_t>(begin);
    begin += out.heads[t].payload;
    if (begin > bytes) return false;
  }
  return begin == bytes;
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

/// Masks of the exceptions part, a row's lanes in each lane; skips the values. False when it is not well formed.
template <class X, TileShape S>
constexpr bool get_lane_exceptions(LaneBytes& in, std::uint32_t element_size, const LanePlace& place,
                                   typename X::template vec<std::uint32_t>& masks, const std::uint8_t*& values) {
  if (in.left < 4) return false;
  const std::uint32_t rows = load_u32(in.at);
  in.skip(4);
  const std::uint32_t listed = count_bits(rows);
  if (rows == 0 || in.left < 4 * listed) return false;
  typename X::template vec<std::uint32_t> exists, count;
  existing_rows<X, S>(place, exists);
  transpose_lane_bits<X>(exists);
  typename X::template vec<bool> bad;
  X::lanes([&](auto lane) {
    const auto l = static_cast<std::uint32_t>(lane);
    const bool mine = (rows >> l & 1) != 0;
    const std::uint32_t mask = mine ? load_u32(in.at + 4 * count_bits(rows & ((1u << l) - 1))) : 0u;
    X::set(masks, lane, mask);
    X::set(count, lane, count_bits(mask));
    X::set(bad, lane, (mine && mask == 0) || (mask & ~X::get(exists, lane)) != 0);
  });
  if (X::any(bad)) return false;
  in.skip(4 * listed);
  const std::uint32_t bytes = X::reduce_add(count) * element_size;
  if (in.left < bytes) return false;
  values = in.at;
  in.skip(bytes);
  return true;
}

/// Positions in the sparse part: level 2, level 1 and plane bytes run side by side.
struct SparseCursor {
  const std::uint8_t* level2 = nullptr;
  const std::uint8_t* level1 = nullptr;
  LaneBytes bytes;
};

/// Finds where level 1 and the plane bytes of `count` sparse planes begin; false when level 2 promises more than there
/// is.
template <class X>
constexpr bool open_sparse(LaneBytes in, std::uint32_t count, SparseCursor& cursor) {
  if (in.left < 2 * count) return false;
  typename X::template vec<std::uint32_t> sums;
  X::lanes([&](auto lane) {
    std::uint32_t sum = 0;
    for (auto i = static_cast<std::uint32_t>(lane); i < 2 * count; i += kLanes) sum += count_bits(in.at[i]);
    X::set(sums, lane, sum);
  });
  const std::uint32_t level1 = X::reduce_add(sums);
  if (in.left - 2 * count < level1) return false;
  cursor.level2 = in.at;
  cursor.level1 = in.at + 2 * count;
  cursor.bytes = in;
  cursor.bytes.skip(2 * count + level1);
  return true;
}

/// Restores the next sparse plane.
template <class X>
constexpr bool get_sparse_lanes(SparseCursor& cursor, typename X::template vec<std::uint32_t>& plane) {
  const std::uint32_t top = cursor.level2[0] | static_cast<std::uint32_t>(cursor.level2[1]) << 8;
  typename X::template vec<std::uint32_t> nibble, rank;
  typename X::template vec<bool> bad;
  X::lanes([&](auto lane) {
    const auto l = static_cast<std::uint32_t>(lane);
    const bool listed = (top >> (l / 2) & 1) != 0;
    const std::uint32_t byte = listed ? cursor.level1[count_bits(top & ((1u << (l / 2)) - 1))] : 0u;
    const std::uint32_t own = byte >> (4 * (l & 1)) & 15;
    X::set(bad, lane, listed && byte == 0);
    X::set(nibble, lane, own);
    X::set(rank, lane, count_bits(own));
  });
  const std::uint32_t total = X::reduce_add(rank);
  if (X::any(bad) || cursor.bytes.left < total) return false;
  X::exclusive_scan(rank);
  X::lanes([&](auto lane) {
    const std::uint32_t own = X::get(nibble, lane);
    std::uint32_t at = X::get(rank, lane);
    std::uint32_t word = 0;
    for (unsigned k = 0; k < 4; ++k)
      if ((own >> k & 1) != 0) word |= static_cast<std::uint32_t>(cursor.bytes.at[at++]) << (8 * k);
    X::set(plane, lane, word);
  });
  cursor.level2 += 2;
  cursor.level1 += count_bits(top);
  cursor.bytes.skip(total);
  return true;
}

/// Reads all planes of a tile into residuals; false unless they fill the payload exactly.
template <class X, class W, class Rows>
constexpr bool get_lane_planes(LaneBytes in, const TileHead& head, Rows& z) {
  X::rows([&](auto row) {
    const std::size_t r = row;
    X::lanes([&](auto lane) { X::set(z[r], lane, W{0}); });
  });
  const std::uint8_t* const dense = in.at;
  if (in.left < kPlaneBytes * head.dense) return false;
  in.skip(static_cast<std::uint32_t>(kPlaneBytes) * head.dense);
  SparseCursor cursor;
  if (!open_sparse<X>(in, static_cast<std::uint32_t>(head.planes) - head.dense, cursor)) return false;
  bool good = true;
  for (unsigned b = 0; 8 * b < head.planes; ++b) {
    typename X::template vec<std::uint32_t> words[8];
    unroll<8>([&](auto j) {
      const unsigned p = 8 * b + static_cast<unsigned>(j);
      X::lanes([&](auto lane) {
        X::set(words[j], lane, p < head.dense ? load_u32(dense + kPlaneBytes * p + 4 * lane) : 0u);
      });
      if (p >= head.dense && p < head.planes && good) good = get_sparse_lanes<X>(cursor, words[j]);
    });
    if (!good) return false;
    planes_to_byte<X, W>(words, b, false, z);
  }
  return cursor.bytes.left == 0;
}

/// Writes codes as elements.
template <class X, TileShape S, class Q, class Rows>
constexpr void write_lanes(const Q& quantizer, Rows& q, const LanePlace& place, typename Q::Bits* chunk) {
  X::rows([&](auto row) {
    const std::size_t r = row;
    X::lanes([&](auto lane) {
      if (lane < run_count<S>(place, r))
        chunk[run_offset<S>(place, r) + lane] = quantizer.decode(X::get(q[r], lane), false);
    });
  });
}

/// Overlays the exceptions.
template <class X, TileShape S, class Bits>
constexpr void write_lane_exceptions(const typename X::template vec<std::uint32_t>& masks, const std::uint8_t* values,
                                     const LanePlace& place, Bits* chunk) {
  X::sync();
  for (unsigned r = 0; r < kRows; ++r) {
    const std::uint32_t mask = X::broadcast(masks, r);
    if (mask == 0) continue;
    X::lanes([&](auto lane) {
      const auto l = static_cast<std::uint32_t>(lane);
      if ((mask >> l & 1) == 0) return;
      const std::uint8_t* in = values + sizeof(Bits) * count_bits(mask & ((1u << l) - 1));
      Bits bits = 0;
      for (unsigned k = 0; k < sizeof(Bits); ++k) bits = static_cast<Bits>(bits | static_cast<Bits>(in[k]) << (8 * k));
      chunk[S == TileShape::line ? run_offset<S>(place, l) + r : run_offset<S>(place, r) + l] = bits;
    });
    values += sizeof(Bits) * count_bits(mask);
  }
}

/// Decodes one tile; false on bytes no encoder writes. Quantizers with a sign are not for this path.
template <class X, TileShape S, class Q, class Exact, class Rows>
constexpr bool decode_lanes(const Q& quantizer, const TileHead& head, LaneBytes in, const LanePlace& place, Rows& q,
                            LaneBuffer<typename Q::Word>& buffer, typename Q::Bits* chunk) {
  using W = typename Q::Word;
  using Bits = typename Q::Bits;
  static_assert(!Q::kHasSign && sizeof(W) == 4);
  if (!predictor_fits(head.predictor, S) || head.wide || head.signs) return false;
  typename X::template vec<std::uint32_t> masks;
  const std::uint8_t* values = nullptr;
  if (head.exceptions && !get_lane_exceptions<X, S>(in, sizeof(Bits), place, masks, values)) return false;
  const W seed = static_cast<W>(head.seed);
  if (head.constant()) {
    if (in.left != 0) return false;
    X::rows([&](auto row) {
      const std::size_t r = row;
      X::lanes([&](auto lane) { X::set(q[r], lane, seed); });
    });
  } else {
    if (!get_lane_planes<X, W>(in, head, q)) return false;
    reconstruct<X, W, S>(head.predictor, q, seed, q);
  }
  if constexpr (S == TileShape::line) transpose_rows<X, W>(q, buffer.area);
  if (head.exact) {
    write_lanes<X, S>(Exact{}, q, place, chunk);
  } else {
    write_lanes<X, S>(quantizer, q, place, chunk);
  }
  if (head.exceptions) write_lane_exceptions<X, S>(masks, values, place, chunk);
  return true;
}

}  // namespace quern::kernels
