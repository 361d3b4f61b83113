// Chunks, rules and samples.
#include "bench/gpu/chunked_array.h"

#include <algorithm>
#include <cstring>

#include "codecs/lorenzo/choose.h"
#include "codecs/lorenzo/rules.h"
#include "kernels/lorenzo/tile_code.h"

namespace quern::bench {
namespace {

using codec::lorenzo::Layout;
using codec::lorenzo::SampleTiles;
using kernels::TileShape;

/// The pipeline's sample of an array has at most so many elements (a sixteenth of 2^28, as large arrays have).
constexpr std::uint64_t kMostSampleElems = UINT64_C(1) << 24;

Layout layout_of(TileShape tile) {
  if (tile == TileShape::line) return {tile, 0, 0};
  if (tile == TileShape::plane) return {tile, 0, 1};
  return {tile, 1, 2};
}

Shape shape_of(const BenchArray& array) {
  const auto& n = array.extents;
  if (array.tile == TileShape::line) return *Shape::try_make({{array.elems()}});
  if (array.tile == TileShape::plane) return *Shape::try_make({{n[0] * n[1], n[2]}});
  return *Shape::try_make({{n[0], n[1], n[2]}});
}

}  // namespace

ChunkGrid chunk_grid_of(const BenchArray& array) {
  return codec::lorenzo::make_grid(shape_of(array), layout_of(array.tile), static_cast<DType>(array.element));
}

ChunkedArray::ChunkedArray(const BenchArray& array)
    : array_(array),
      grid_(chunk_grid_of(array)),
      rules_(codec::lorenzo::make_rules(static_cast<DType>(array.element), {BoundKind::abs, array.bound},
                                        layout_of(array.tile))),
      device_rules_(1),
      boxes_(boxes_in(const_cast<void*>(array.values))),
      tiles_(sample_tiles()) {
  count_ = static_cast<std::uint32_t>(boxes_.count());
  const SampleTiles tiles(grid_, array.tile, std::min(array.elems(), kMostSampleElems));
  sample_elems_ = tiles.elems();
  device_rules_.put({rules_});
}

std::uint64_t ChunkedArray::slot_bytes() const {
  const std::uint64_t bytes = grid_.chunk[0] * grid_.chunk[1] * grid_.chunk[2] * kernels::element_bytes(array_.element);
  return (bytes + 3) / 4 * 4;
}

std::vector<kernels::CudaChunk> ChunkedArray::boxes_in(void* values) const {
  std::vector<kernels::CudaChunk> boxes;
  const auto counts = grid_.counts();
  boxes.reserve(counts[0] * counts[1] * counts[2]);
  const auto& n = grid_.extents;
  const auto& size = grid_.chunk;
  for (std::uint64_t z = 0; z < n[0]; z += size[0])
    for (std::uint64_t y = 0; y < n[1]; y += size[1])
      for (std::uint64_t x = 0; x < n[2]; x += size[2]) {
        kernels::CudaChunk chunk;
        chunk.values =
            static_cast<std::uint8_t*>(values) + ((z * n[1] + y) * n[2] + x) * kernels::element_bytes(array_.element);
        chunk.box = {{std::min(size[0], n[0] - z), std::min(size[1], n[1] - y), std::min(size[2], n[2] - x)},
                     {n[1] * n[2], n[2]}};
        chunk.slot = static_cast<std::uint32_t>(boxes.size());
        boxes.push_back(chunk);
      }
  return boxes;
}

std::vector<kernels::CudaChunk> ChunkedArray::sample_tiles() const {
  const SampleTiles tiles(grid_, array_.tile, std::min(array_.elems(), kMostSampleElems));
  std::vector<kernels::CudaChunk> places(tiles.size());
  for (std::uint64_t i = 0; i < tiles.size(); ++i) {
    const SampleTiles::Tile tile = tiles[i];
    places[i].values = static_cast<std::uint8_t*>(const_cast<void*>(array_.values)) +
                       tile.first * kernels::element_bytes(array_.element);
    places[i].box = tile.box;
    places[i].slot = static_cast<std::uint32_t>(i);
  }
  return places;
}

kernels::LorenzoChunks ChunkedArray::chunks_at(const DeviceArray<kernels::CudaChunk>& boxes) const {
  kernels::LorenzoChunks chunks;
  chunks.element = array_.element;
  chunks.shapes = 1u << static_cast<unsigned>(array_.tile);
  chunks.tiles = kernels::max_chunk_tiles(kernels::element_bytes(array_.element));
  chunks.items = 1;
  chunks.chunks = static_cast<std::uint32_t>(boxes.count());
  chunks.rules = reinterpret_cast<const std::uint8_t*>(device_rules_.data());
  chunks.rules_stride = sizeof(kernels::ChunkRules);
  chunks.at = boxes.data();
  return chunks;
}

kernels::LorenzoChunks ChunkedArray::sample() const {
  kernels::LorenzoChunks tiles = chunks_at(tiles_);
  tiles.tiles = 1;
  return tiles;
}

void ChunkedArray::choose_predictors(Stream& stream) {
  DeviceArray<std::uint32_t> costs(tiles_.count() * kernels::kPredictors);
  check(kernels::lorenzo_estimate_async(sample(), costs.data(), stream), "lorenzo_estimate_async");
  stream.wait();
  const auto flat = costs.get();
  std::vector<codec::lorenzo::TileCosts> tile_costs(tiles_.count());
  std::memcpy(tile_costs.data(), flat.data(), costs.bytes());
  codec::lorenzo::choose_candidates(tile_costs, rules_);
  device_rules_.put({rules_});
}

}  // namespace quern::bench
