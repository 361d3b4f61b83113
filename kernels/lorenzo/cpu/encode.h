// Encoding one chunk of tiles on the CPU: quantize, choose a predictor by the bytes it costs, planes, zero-byte
// removal.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/common/cpu/cpu_lanes.h"
#include "kernels/lorenzo/bitplanes.h"
#include "kernels/lorenzo/chunk_task.h"
#include "kernels/lorenzo/cpu/plane_bytes.h"
#include "kernels/lorenzo/cpu/tile_io.h"
#include "kernels/lorenzo/predict.h"
#include "kernels/lorenzo/tile_code.h"

namespace quern::kernels {

/// Share of a tile's elements that may be exceptions before it is stored exactly instead: 1/4.
inline constexpr std::size_t kExceptionShare = 4;

/// Scratch of the encoder for one thread.
template <class Isa, class W, class Bits>
struct EncodeScratch {
  using V = typename CpuLanes<Isa>::template vec<W>;
  using V32 = typename CpuLanes<Isa>::template vec<std::uint32_t>;
  V codes[kRows];
  V spare[kRows];
  V residuals[2][kRows];
  V32 narrow_codes[kRows];
  V32 narrow_residuals[2][kRows];
  V32 planes[64];
  PlaneMap maps[64];
  Exceptions<Bits> exceptions;
};

/// Bytes the planes of these residuals take when every plane is sparse, and the bits that occur.
struct PlaneCost {
  std::uint32_t bytes = 0;
  std::uint64_t bits = 0;
};

template <class Isa, class W>
PlaneCost plane_cost(const typename CpuLanes<Isa>::template vec<W>* z) {
  PlaneCost cost;
  W all = 0;
  std::uint32_t bytes = 0;
  for (std::size_t k = 0; k < kGroups; ++k) {
    typename CpuLanes<Isa>::template vec<W> group;
    for (std::size_t l = 0; l < kLanes; ++l) {
      W any = z[8 * k].v[l];
      for (std::size_t j = 1; j < 8; ++j) any |= z[8 * k + j].v[l];
      group.v[l] = any;
    }
    for (std::size_t l = 0; l < kLanes; ++l) {
      const W any = group.v[l];
      all |= any;
      if constexpr (sizeof(W) == 8) {
        bytes += count_bits64(any);
      } else {
        bytes += count_bits(any);
      }
    }
  }
  cost.bytes = bytes;
  cost.bits = all;
  return cost;
}

/// Tries the candidates; returns the chosen predictor, its cost, and which of the two residual buffers holds it.
template <class Isa, class W, TileShape S>
Predictor choose_predictor(const ChunkRules& rules, const typename CpuLanes<Isa>::template vec<W>* codes, W seed,
                           const std::uint32_t* exists, typename CpuLanes<Isa>::template vec<W> (*residuals)[kRows],
                           std::size_t& chosen, PlaneCost& best) {
  Predictor predictor = rules.candidates[0];
  best.bytes = UINT32_MAX;
  std::size_t trial = 0;
  for (std::size_t c = 0; c < rules.candidate_count; ++c) {
    auto* z = residuals[trial];
    predict<CpuLanes<Isa>, W, S>(rules.candidates[c], codes, seed, z);
    if (exists != nullptr) {
      for (std::size_t r = 0; r < kRows; ++r)
        for (std::size_t l = 0; l < kLanes; ++l) z[r].v[l] &= static_cast<W>(W{0} - ((exists[r] >> l) & 1));
    }
    const PlaneCost cost = plane_cost<Isa, W>(z);
    if (cost.bytes < best.bytes) {
      best = cost;
      predictor = rules.candidates[c];
      chosen = trial;
      trial ^= 1;
    }
    if (best.bytes == 0) break;
  }
  return predictor;
}

/// Writes level 2, level 1 and plane bytes of sparse planes; returns the new end.
template <class Isa, class V32>
std::uint8_t* put_sparse(const V32* planes, const PlaneMap* maps, unsigned count, std::uint8_t* out) {
  for (unsigned p = 0; p < count; ++p) {
    const std::uint32_t top = level2(maps[p]);
    *out++ = static_cast<std::uint8_t>(top);
    *out++ = static_cast<std::uint8_t>(top >> 8);
  }
  for (unsigned p = 0; p < count; ++p) {
    const std::uint32_t top = level2(maps[p]);
    for (unsigned i = 0; i < 16; ++i) {
      *out = static_cast<std::uint8_t>((i < 8 ? maps[p].low : maps[p].high) >> (8 * (i % 8)));
      out += (top >> i) & 1;
    }
  }
  for (unsigned p = 0; p < count; ++p) out = PlaneBytes<Isa>::compact(planes[p].v, maps[p], out);
  return out;
}

/// Writes the planes of the chosen residuals; sets head.planes and head.dense.
template <class Isa, class W, class Scratch>
std::uint8_t* put_planes(const typename CpuLanes<Isa>::template vec<W>* z, std::uint64_t bits, Scratch& s,
                         TileHead& head, std::uint8_t* out) {
  const unsigned planes = static_cast<unsigned>(std::bit_width(bits));
  for (unsigned b = 0; 8 * b < planes; ++b) byte_to_planes<CpuLanes<Isa>, W>(z, b, s.planes + 8 * b);
  for (unsigned p = 0; p < planes; ++p) s.maps[p] = PlaneBytes<Isa>::map(s.planes[p].v);
  const unsigned dense = count_dense_planes(s.maps, planes);
  head.planes = static_cast<std::uint8_t>(planes);
  head.dense = static_cast<std::uint8_t>(dense);
  for (unsigned p = 0; p < dense; ++p, out += kPlaneBytes) std::memcpy(out, s.planes[p].v, kPlaneBytes);
  return put_sparse<Isa>(s.planes + dense, s.maps + dense, planes - dense, out);
}

/// Writes the signs part: nothing when all existing elements are plus.
template <class Isa, class Scratch>
std::uint8_t* put_signs(std::uint32_t (&signs)[kLanes], std::size_t elems, const std::uint32_t* exists, Scratch& s,
                        TileHead& head, std::uint8_t* out) {
  std::uint32_t minus = 0;
  for (const std::uint32_t word : signs) minus += count_bits(word);
  if (minus == 0) return out;
  head.signs = true;
  if (minus == elems) {
    *out++ = static_cast<std::uint8_t>(SignPart::all_minus);
    return out;
  }
  const bool complement = 2 * minus > elems;
  for (std::size_t l = 0; l < kLanes; ++l) {
    std::uint32_t word = signs[l];
    if (complement) {
      std::uint32_t column = 0xffffffffu;
      if (exists != nullptr) {
        column = 0;
        for (std::size_t r = 0; r < kRows; ++r) column |= ((exists[r] >> l) & 1) << r;
      }
      word = ~word & column;
    }
    s.planes[0].v[l] = word;
  }
  const PlaneMap map = PlaneBytes<Isa>::map(s.planes[0].v);
  if (sparse_bytes(map) < kPlaneBytes) {
    *out++ = static_cast<std::uint8_t>(complement ? SignPart::sparse_complement : SignPart::sparse);
    return put_sparse<Isa>(s.planes, &map, 1, out);
  }
  *out++ = static_cast<std::uint8_t>(SignPart::dense);
  std::memcpy(out, signs, kPlaneBytes);
  return out + kPlaneBytes;
}

/// Writes the exceptions part: rows that have some (u32), a lane mask for each (u32), the elements in row-major order.
template <class Isa, class Bits>
std::uint8_t* put_exceptions(const Exceptions<Bits>& exceptions, std::uint8_t* out) {
  std::uint32_t rows = 0;
  for (std::size_t r = 0; r < kRows; ++r) rows |= static_cast<std::uint32_t>(exceptions.lanes[r] != 0) << r;
  std::memcpy(out, &rows, 4);
  out += 4;
  for (std::uint32_t rest = rows; rest != 0; rest &= rest - 1, out += 4)
    std::memcpy(out, &exceptions.lanes[std::countr_zero(rest)], 4);
  std::memcpy(out, exceptions.values, exceptions.count * sizeof(Bits));
  return out + exceptions.count * sizeof(Bits);
}

/// Encodes the codes of one tile (in scratch) into `out`; fills the head.
template <class Isa, class W, TileShape S, class Scratch>
std::uint8_t* encode_codes(const ChunkRules& rules, Scratch& s, const std::uint32_t* exists, TileHead& head,
                           std::uint8_t* out) {
  using SW = std::make_signed_t<W>;
  const W seed = s.codes[0].v[0];
  head.seed = static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<SW>(seed)));
  std::size_t chosen = 0;
  PlaneCost cost;
  if constexpr (sizeof(W) == 8) {
    // Distances from the seed that fit 32 bits take the narrow path.
    W outside = 0;
    for (std::size_t r = 0; r < kRows; ++r) {
      for (std::size_t l = 0; l < kLanes; ++l) {
        const W distance = s.codes[r].v[l] - seed;
        const std::uint32_t low = static_cast<std::uint32_t>(distance);
        const W present = exists == nullptr ? W{1} : static_cast<W>((exists[r] >> l) & 1);
        outside |=
            (distance ^ static_cast<W>(static_cast<std::int64_t>(static_cast<std::int32_t>(low)))) & (W{0} - present);
        s.narrow_codes[r].v[l] = low;
      }
    }
    head.wide = outside != 0;
    if (!head.wide) {
      head.predictor =
          choose_predictor<Isa, std::uint32_t, S>(rules, s.narrow_codes, 0u, exists, s.narrow_residuals, chosen, cost);
      return put_planes<Isa, std::uint32_t>(s.narrow_residuals[chosen], cost.bits, s, head, out);
    }
  }
  head.predictor = choose_predictor<Isa, W, S>(rules, s.codes, seed, exists, s.residuals, chosen, cost);
  return put_planes<Isa, W>(s.residuals[chosen], cost.bits, s, head, out);
}

template <class Isa, class Q, class Exact, TileShape S, class Scratch>
std::uint8_t* encode_tile(const ChunkRules& rules, const Q& q, const typename Q::Bits* chunk, const ChunkBox& box,
                          const TilePlace& place, Scratch& s, TileHead& head, std::uint8_t* out) {
  using W = typename Q::Word;
  std::uint32_t lanes[kRows];
  const std::uint32_t* exists = nullptr;
  if (!place.full) {
    existing_lanes(place, box, S, lanes);
    exists = lanes;
  }
  const std::size_t elems = read_tile<Isa, Q>(q, chunk, box, S, place, s.codes, s.spare, s.exceptions);
  std::uint8_t* const start = out;
  if constexpr (!std::is_same_v<Q, Exact>) {
    if (s.exceptions.count * kExceptionShare > elems) {
      head.exact = true;
      read_tile<Isa, Exact>(Exact{}, chunk, box, S, place, s.codes, s.spare, s.exceptions);
    }
  }
  if constexpr (Q::kHasSign) {
    if (!head.exact) {
      std::uint32_t signs[kLanes];
      read_signs<Isa, Q>(chunk, box, S, place, signs);
      out = put_signs<Isa>(signs, elems, exists, s, head, out);
    }
  }
  if (s.exceptions.count != 0) {
    head.exceptions = true;
    out = put_exceptions<Isa>(s.exceptions, out);
  }
  out = encode_codes<Isa, W, S>(rules, s, exists, head, out);
  head.payload = static_cast<std::uint32_t>(out - start);
  return out;
}

/// Asks for the runs of the tile to come: their strides defeat the processor's own prefetching.
template <class Isa, class Bits>
void prefetch_tile(const Bits* chunk, const ChunkBox& box, TileShape shape, std::array<std::uint64_t, 3> index) {
  const TilePlace place = place_tile(box, shape, index);
  for (std::size_t i = 0; i < kRows; ++i) {
    const Run run = run_of(place, box, shape, i);
    if (run.count == 0) continue;
    __builtin_prefetch(chunk + run.offset);
    __builtin_prefetch(chunk + run.offset + (run.count - 1));
  }
}

/// Encodes a chunk; returns its bytes. `out` holds max_lorenzo_chunk_bytes.
template <class Isa, class Q, class Exact, TileShape S>
std::size_t encode_chunk(const ChunkRules& rules, const void* in, const ChunkBox& box, std::uint8_t* out,
                         void* scratch) {
  auto& s = *static_cast<EncodeScratch<Isa, typename Q::Word, typename Q::Bits>*>(scratch);
  const Q q = make_quantizer<Q>(rules.params);
  const auto* elements = static_cast<const typename Q::Bits*>(in);
  const auto counts = tile_counts(box, S);
  const std::size_t tiles = counts[0] * counts[1] * counts[2];
  std::uint8_t* const payloads = out + 1 + tiles * kMaxHeadBytes;
  std::uint8_t* end = payloads;
  std::uint8_t* heads = out;
  *heads++ = kFormTiles;
  std::uint64_t seed = 0;
  bool constant = true;
  std::size_t tile = 0;
  for (std::uint64_t z = 0; z < counts[0]; ++z) {
    for (std::uint64_t y = 0; y < counts[1]; ++y) {
      for (std::uint64_t x = 0; x < counts[2]; ++x, ++tile) {
        const TilePlace place = place_tile(box, S, {z, y, x});
        if (x + 1 < counts[2]) {
          prefetch_tile<Isa>(elements, box, S, {z, y, x + 1});
        } else if (y + 1 < counts[1]) {
          prefetch_tile<Isa>(elements, box, S, {z, y + 1, 0});
        } else if (z + 1 < counts[0]) {
          prefetch_tile<Isa>(elements, box, S, {z + 1, 0, 0});
        }
        TileHead head;
        end = encode_tile<Isa, Q, Exact, S>(rules, q, elements, box, place, s, head, end);
        constant = constant && head.constant() && (tile == 0 || head.seed == seed);
        heads = put_head(heads, head, seed);
        seed = head.seed;
      }
    }
  }
  if (constant) {
    out[0] = kFormConstant;
    return static_cast<std::size_t>(put_leb128(out + 1, zigzag64(seed)) - out);
  }
  std::memmove(heads, payloads, static_cast<std::size_t>(end - payloads));
  return static_cast<std::size_t>(heads - out) + static_cast<std::size_t>(end - payloads);
}

/// Planes, their maps and a head: an estimate of a tile's bytes from what its planes hold.
[[gnu::always_inline]] inline std::uint32_t estimated_bytes(const PlaneCost& cost) {
  return cost.bytes + cost.bytes / 8 + 2 * static_cast<std::uint32_t>(std::bit_width(cost.bits)) + 6;
}

/// Estimates one tile under every predictor that fits.
template <class Isa, class Q, class Exact, TileShape S>
void estimate_tile(const ChunkRules& rules, const void* in, const ChunkBox& box, std::uint32_t (&bytes)[kPredictors],
                   void* scratch) {
  using W = typename Q::Word;
  auto& s = *static_cast<EncodeScratch<Isa, W, typename Q::Bits>*>(scratch);
  const TilePlace place = place_tile(box, S, {0, 0, 0});
  std::uint32_t lanes[kRows];
  existing_lanes(place, box, S, lanes);
  const auto* elements = static_cast<const typename Q::Bits*>(in);
  const std::size_t elems =
      read_tile<Isa, Q>(make_quantizer<Q>(rules.params), elements, box, S, place, s.codes, s.spare, s.exceptions);
  std::size_t extra = s.exceptions.count * (sizeof(typename Q::Bits) + 1);
  if (s.exceptions.count * kExceptionShare > elems) {
    read_tile<Isa, Exact>(Exact{}, elements, box, S, place, s.codes, s.spare, s.exceptions);
    extra = 0;
  }
  const std::uint32_t* exists = place.full ? nullptr : lanes;
  for (unsigned p = 0; p < kPredictors; ++p) {
    const auto predictor = static_cast<Predictor>(p);
    bytes[p] = UINT32_MAX;
    if (!predictor_fits(predictor, S)) continue;
    ChunkRules one;
    one.candidates[0] = predictor;
    one.candidate_count = 1;
    std::size_t chosen = 0;
    PlaneCost cost;
    choose_predictor<Isa, W, S>(one, s.codes, s.codes[0].v[0], exists, s.residuals, chosen, cost);
    bytes[p] = estimated_bytes(cost) + static_cast<std::uint32_t>(extra);
  }
}

}  // namespace quern::kernels
