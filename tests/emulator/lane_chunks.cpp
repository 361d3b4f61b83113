// Encodes and decodes a chunk tile by tile, in a random order of tiles, as warps finish.
#include "tests/emulator/lane_chunks.h"

#include <utility>

#include "kernels/lorenzo/tile_job.h"
#include "kernels/lorenzo/warp/decode.h"
#include "kernels/lorenzo/warp/decode_tile.h"
#include "kernels/lorenzo/warp/heads.h"

namespace quern::testing {
namespace {

/// Tiles in a random order, as warps finish.
std::vector<std::uint32_t> tile_order(std::size_t tiles) {
  std::vector<std::uint32_t> order(tiles);
  for (std::size_t t = 0; t < tiles; ++t) order[t] = static_cast<std::uint32_t>(t);
  for (std::size_t t = tiles; t > 1; --t) std::swap(order[t - 1], order[EmulatorState::instance().random() % t]);
  return order;
}

std::uint32_t chunk_tiles(const kernels::ChunkRules& rules, const kernels::ChunkBox& box) {
  const auto n = kernels::tile_counts(box, rules.tile);
  return static_cast<std::uint32_t>(n[0] * n[1] * n[2]);
}

/// Watches buffers again.
template <class Buffer>
void watch_buffers(const std::vector<Buffer>& buffers) {
  EmulatorState::instance().watch(buffers.data(), buffers.size() * sizeof(Buffer));
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

}  // namespace

std::vector<std::uint8_t> encode_chunk_on_lanes(const kernels::ChunkRules& rules, const void* in,
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

kernels::LaneTileInfo encode_tile_on_lanes(const kernels::ChunkRules& rules, const void* in,
                                           const kernels::ChunkBox& box) {
  return with_lane_code(rules, [&]<kernels::TileShape S, class Bits>() {
    auto buffers = noisy_buffers<kernels::LaneBuffer<kernels::CodeWord<Bits>>>(1);
    kernels::LaneTileInfo info;
    kernels::encode_lanes<LaneEmulator, S>(rules, static_cast<const Bits*>(in), kernels::lane_place<S>(box, 0),
                                           buffers[0], info);
    return info;
  });
}

bool decode_chunk_on_lanes(const kernels::ChunkRules& rules, std::span<const std::uint8_t> in, void* out,
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
