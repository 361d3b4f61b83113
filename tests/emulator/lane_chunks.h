// A whole chunk through the code that warps run, on the emulator: what the CUDA kernels do between their launches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/lorenzo/tile_job.h"
#include "kernels/lorenzo/warp/decode.h"
#include "kernels/lorenzo/warp/decode_tile.h"
#include "kernels/lorenzo/warp/encode.h"
#include "kernels/lorenzo/warp/heads.h"
#include "tests/emulator/lane_emulator.h"

namespace quern::testing {

/// Tiles in a random order, as warps finish.
inline std::vector<std::uint32_t> tile_order(std::size_t tiles) {
  std::vector<std::uint32_t> order(tiles);
  for (std::size_t t = 0; t < tiles; ++t) order[t] = static_cast<std::uint32_t>(t);
  for (std::size_t t = tiles; t > 1; --t) std::swap(order[t - 1], order[EmulatorState::instance().random() % t]);
  return order;
}

inline std::uint32_t chunk_tiles(const kernels::ChunkRules& rules, const kernels::ChunkBox& box) {
  const auto n = kernels::tile_counts(box, rules.tile);
  return static_cast<std::uint32_t>(n[0] * n[1] * n[2]);
}

/// Buffers of a chunk's tiles, watched and full of noise.
template <class Buffer>
std::vector<Buffer> noisy_buffers(std::size_t tiles) {
  std::vector<Buffer> buffers(tiles);
  auto* const bytes = reinterpret_cast<std::uint8_t*>(buffers.data());
  EmulatorState& state = EmulatorState::instance();
  for (std::size_t i = 0; i < tiles * sizeof(Buffer); ++i) bytes[i] = static_cast<std::uint8_t>(state.random());
  state.watch(bytes, tiles * sizeof(Buffer));
  return buffers;
}

/// Watches buffers again.
template <class Buffer>
void watch_buffers(const std::vector<Buffer>& buffers) {
  EmulatorState::instance().watch(buffers.data(), buffers.size() * sizeof(Buffer));
}

/// Calls f for a tile shape and an element width.
template <class F>
auto with_lane_code(const kernels::ChunkRules& rules, F&& f) {
  using kernels::TileShape;
  const auto with_shape = [&]<class Bits>() {
    switch (rules.tile) {
      case TileShape::line: return f.template operator()<TileShape::line, Bits>();
      case TileShape::plane: return f.template operator()<TileShape::plane, Bits>();
      case TileShape::block: break;
    }
    return f.template operator()<TileShape::block, Bits>();
  };
  switch (kernels::element_bytes(rules.element)) {
    case 1: return with_shape.template operator()<std::uint8_t>();
    case 2: return with_shape.template operator()<std::uint16_t>();
    case 4: return with_shape.template operator()<std::uint32_t>();
    default: return with_shape.template operator()<std::uint64_t>();
  }
}

/// The bytes of the chunk of `box` at `in`.
inline std::vector<std::uint8_t> encode_chunk_on_lanes(const kernels::ChunkRules& rules, const void* in,
                                                       const kernels::ChunkBox& box) {
  using X = LaneEmulator;
  return with_lane_code(rules, [&]<kernels::TileShape S, class Bits>() {
    const std::uint32_t tiles = chunk_tiles(rules, box);
    const auto* chunk = static_cast<const Bits*>(in);
    auto buffers = noisy_buffers<kernels::LaneBuffer<kernels::CodeWord<Bits>>>(tiles);
    std::vector<kernels::LaneTileInfo> infos(tiles);
    for (const std::uint32_t t : tile_order(tiles))
      kernels::encode_lanes<X, S>(rules, chunk, kernels::lane_place<S>(box, t), buffers[t], infos[t]);
    std::vector<std::uint8_t> out(kernels::max_lorenzo_chunk_bytes(rules.element, tiles));
    kernels::LaneChunkPlan plan;
    kernels::plan_lane_chunk<X>(infos.data(), tiles, plan);
    kernels::put_lane_heads<X>(plan, infos.data(), tiles, out.data());
    for (const std::uint32_t t : tile_order(tiles)) {
      kernels::place_lanes<X, S>(plan, infos[t], t, chunk, kernels::lane_place<S>(box, t), buffers[t], out.data());
    }
    out.resize(plan.bytes);
    return out;
  });
}

/// Decodes a tile by its job as the kernels do, its bytes staged; those that nobody asked for are noise, and all of them
/// are once they were taken.
template <kernels::TileShape S, class Bits>
bool decode_job_on_lanes(const kernels::ChunkRules& rules, const kernels::TileHead& head,
                         const kernels::LaneBytes& payload, const kernels::TileWalk& at, void* out,
                         const kernels::ChunkBox& box) {
  using X = LaneEmulator;
  kernels::TileJob job;
  job.payload = payload.at;
  kernels::describe_job(head, 0, job);
  kernels::place_job(box, out, sizeof(Bits), S, at, job);
  auto rooms = noisy_buffers<kernels::TileRoom>(1);
  kernels::TileRoom& room = rooms[0];
  const std::uint32_t staged = kernels::staged_bytes(job);
  if (staged != 0)
    std::copy(payload.at, payload.at + payload.left,
              reinterpret_cast<std::uint8_t*>(room.bytes) + (staged - payload.left));
  typename X::vec<std::uint32_t> selectors;
  kernels::lane_gap_selectors<X>(selectors);
  bool taken = false;
  const bool good = kernels::decode_tile<X, S, Bits>(
      rules, job, room, selectors,
      [&] {
        X::sync();
        taken = true;
        for (std::uint32_t& word : room.bytes) word = static_cast<std::uint32_t>(EmulatorState::instance().random());
      },
      [](auto* to, auto lane, const auto& pack) { X::store(to, lane, pack); });
  return good && taken;
}

/// Decodes the chunk into `out`; false when its bytes are refused.
inline bool decode_chunk_on_lanes(const kernels::ChunkRules& rules, std::span<const std::uint8_t> in, void* out,
                                  const kernels::ChunkBox& box) {
  using X = LaneEmulator;
  return with_lane_code(rules, [&]<kernels::TileShape S, class Bits>() {
    const std::uint32_t tiles = chunk_tiles(rules, box);
    kernels::LaneHeads heads;
    auto head_bytes = noisy_buffers<kernels::LaneHeadBytes>(1);
    if (!kernels::read_lane_heads<X, kernels::kMaxTilesPerChunk>(in.data(), static_cast<std::uint32_t>(in.size()),
                                                                 tiles, head_bytes[0], heads))
      return false;
    auto areas = noisy_buffers<kernels::LaneDecodeArea<kernels::CodeWord<Bits>>>(tiles);
    bool good = true;
    for (const std::uint32_t t : tile_order(tiles)) {
      if (kernels::is_job(heads.heads[t], S, box)) {
        kernels::TileWalk at;
        for (std::uint32_t i = 0; i < t; ++i) at.next(S, box);
        good = decode_job_on_lanes<S, Bits>(rules, heads.heads[t], heads.payloads[t], at, out, box) && good;
        watch_buffers(areas);
        continue;
      }
      good = kernels::decode_lanes<X, S, Bits>(rules, heads.heads[t], heads.payloads[t], kernels::lane_place<S>(box, t),
                                               areas[t], out) &&
             good;
    }
    return good;
  });
}

}  // namespace quern::testing
