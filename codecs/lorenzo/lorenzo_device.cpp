// From streams to the launches of the lorenzo kernels.
#include "codecs/lorenzo/lorenzo_device.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "codecs/lorenzo/device_faults.cuh"
#include "codecs/lorenzo/device_plan.cuh"
#include "codecs/lorenzo/lorenzo.h"
#include "codecs/lorenzo/plan.h"
#include "codecs/lorenzo/settings.h"
#include "kernels/lorenzo/cuda/entry_points.h"
#include "kernels/lorenzo/tile_code.h"
#include "kernels/mask/cuda/entry_points.h"
#include "libcompress/core/element_of.h"
#include "libcompress/device/workspace.h"

namespace quern::codec::lorenzo {
namespace {

using kernels::ChunkRules;
using kernels::Element;
using kernels::LorenzoChunks;
using kernels::QuantizerKind;

static_assert(sizeof(ChunkRules) <= cuda::kCodecStateBytes);

constexpr std::uint32_t kAllShapes = 7;

/// Warps that look for special values in sample tiles.
constexpr std::uint32_t kCleaningWarps = 512;

class LorenzoPlanner final : public cuda::ArrayPlanner {
 public:
  LorenzoPlanner(DType dtype, const Vector<Layout>& layouts, const Shape& shape, std::uint64_t sample,
                 bool checks_faults)
      : dtype_(dtype), checks_faults_(checks_faults) {
    for (const Layout& layout : layouts) {
      const ChunkGrid grid = make_grid(shape, layout, dtype);
      segments_.push_back(SegmentLayout(grid, dtype));
      trials_.push_back({layout, segments_.back(), SampleTiles(grid, layout.tile, sample)});
      shapes_ |= 1u << static_cast<unsigned>(layout.tile);
    }
  }

  std::span<const SegmentLayout> layouts() const override { return segments_; }
  std::span<const std::uint8_t> constants() const override {
    return {reinterpret_cast<const std::uint8_t*>(trials_.data()), trials_.size() * sizeof(DeviceTrial)};
  }
  std::uint64_t workspace_bytes(std::uint32_t count) const override { return Room(*this, count).workspace.bytes(); }
  std::uint32_t variants() const override { return shapes_; }
  bool checks_faults() const override { return checks_faults_; }

  cudaError_t plan(const cuda::StreamPlaces& places, const std::uint8_t* constants, std::uint8_t* workspace,
                   cudaStream_t queue) const override {
    const Room room(*this, places.count);
    DeviceTrials trials;
    trials.at = reinterpret_cast<const DeviceTrial*>(constants);
    trials.count = count();
    trials.rules = room.rules.at(workspace);
    trials.tiles = room.tiles.at(workspace);
    trials.costs = room.costs.at(workspace);
    trials.bytes = room.bytes.at(workspace);
    kernels::SampleBoxes boxes;
    boxes.at = trials.tiles;
    boxes.count = static_cast<std::uint32_t>(room.places);
    boxes.each = count() * kSampleTiles;
    boxes.rules = &places.plans->mask;
    boxes.rules_stride = sizeof(cuda::StreamPlan);
    boxes.room = room.copies.at(workspace);
    boxes.room_bytes = copy_bytes();
    const auto element = element_of(dtype_);
    const LorenzoChunks tiles = tiles_of(places, trials);
    cudaError_t error = lay_out_trials_async(places, trials, queue);
    if (error == cudaSuccess)
      error = kernels::clean_boxes_async(element, boxes, workers(), room.cleaning.at(workspace), queue);
    if (error == cudaSuccess) error = kernels::lorenzo_estimate_async(tiles, trials.costs, queue);
    if (error == cudaSuccess) error = choose_candidates_async(places, trials, queue);
    if (error == cudaSuccess && count() > 1) error = kernels::lorenzo_measure_async(tiles, trials.bytes, queue);
    if (error == cudaSuccess) error = settle_plans_async(places, trials, queue);
    return error;
  }

 private:
  /// The workspace of a call.
  struct Room {
    Room(const LorenzoPlanner& planner, std::uint32_t streams)
        : places(std::uint64_t{streams} * planner.count() * kSampleTiles),
          rules(workspace.add<ChunkRules>(std::uint64_t{streams} * planner.count())),
          tiles(workspace.add<kernels::CudaChunk>(places)),
          costs(workspace.add<std::uint32_t>(places * kernels::kPredictors)),
          bytes(workspace.add<std::uint32_t>(places)),
          copies(workspace.add<std::uint8_t>(places * planner.copy_bytes())),
          cleaning(workspace.add<std::uint8_t>(workers().workspace_bytes())) {}

    cuda::Workspace workspace;
    std::uint64_t places;
    cuda::Part<ChunkRules> rules;
    cuda::Part<kernels::CudaChunk> tiles;
    cuda::Part<std::uint32_t> costs;
    cuda::Part<std::uint32_t> bytes;
    cuda::Part<std::uint8_t> copies;
    cuda::Part<std::uint8_t> cleaning;
  };

  static kernels::MaskWorkers workers() {
    kernels::MaskWorkers workers;
    for (const auto shape : {kernels::TileShape::line, kernels::TileShape::plane, kernels::TileShape::block}) {
      const auto e = kernels::tile_extents(shape);
      const auto own = kernels::MaskWorkers::cleaning({e[0], e[1], e[2]}, kCleaningWarps);
      if (own.bytes_per_warp > workers.bytes_per_warp) workers = own;
    }
    return workers;
  }

  std::uint32_t count() const { return static_cast<std::uint32_t>(trials_.size()); }
  std::uint64_t copy_bytes() const { return kernels::kTileElems * dtype_bytes(dtype_); }

  LorenzoChunks tiles_of(const cuda::StreamPlaces& places, const DeviceTrials& trials) const {
    LorenzoChunks tiles;
    tiles.element = element_of(dtype_);
    tiles.shapes = shapes_;
    tiles.tiles = 1;
    tiles.items = places.count * count();
    tiles.chunks = kSampleTiles;
    tiles.rules = reinterpret_cast<const std::uint8_t*>(trials.rules);
    tiles.rules_stride = sizeof(ChunkRules);
    tiles.at = trials.tiles;
    return tiles;
  }

  DType dtype_;
  bool checks_faults_;
  Vector<SegmentLayout> segments_;
  Vector<DeviceTrial> trials_;
  std::uint32_t shapes_ = 0;  ///< bit S: some layout has tile shape S
};

class LorenzoChunkKernels final : public cuda::ChunkKernels {
 public:
  bool serves(std::span<const std::uint8_t> state) const override {
    return state.size() == sizeof(ChunkRules) && kernels::lorenzo_cuda_serves(rules_of(state));
  }
  const CodecInfo& info() const override { return lorenzo_codec().info(); }

  Result<std::unique_ptr<cuda::ArrayPlanner>> planner(DType dtype, const Shape& shape, const Settings& settings,
                                                      std::uint64_t sample) const override {
    QUERN_ASSIGN_OR_RETURN(const ParsedSettings parsed, parse_settings(settings, shape));
    try {
      const Vector<Layout> layouts = parsed.layout ? Vector<Layout>{*parsed.layout} : all_layouts(shape);
      return std::unique_ptr<cuda::ArrayPlanner>(
          new LorenzoPlanner(dtype, layouts, shape, sample, parsed.checks_faults));
    } catch (const std::bad_alloc&) {
      return Status(StatusCode::out_of_memory, "lorenzo: out of memory while planning");
    }
  }
  Vector<SegmentLayout> usual_layouts(DType dtype, const Shape& shape) const override {
    Vector<SegmentLayout> out;
    for (const Layout& layout : all_layouts(shape))
      out.push_back(SegmentLayout(make_grid(shape, layout, dtype), dtype));
    return out;
  }
  cudaError_t open(const cuda::StreamPlaces& places, cudaStream_t queue) const override {
    return open_streams_async(places, queue);
  }

  std::uint64_t parts_bytes(DType dtype, BoundKind bound, std::uint64_t places) const override {
    const Element element = element_of(dtype);
    const auto quantizer = bound == BoundKind::lossless ? QuantizerKind::exact
                           : bound == BoundKind::pwrel  ? QuantizerKind::pointwise
                                                        : QuantizerKind::absolute;
    return kernels::lorenzo_has_parts(element, quantizer) ? kernels::lorenzo_parts_bytes(element, places) : 0;
  }
  cudaError_t encode(const cuda::ChunkPlaces& places, const cuda::EncodedSlots& slots, const kernels::ScanRequest& scan,
                     cudaStream_t queue) const override {
    return kernels::lorenzo_encode_async(chunks_of(places), slots_of(places, slots), scan, slots.sizes, queue);
  }
  cudaError_t join(const cuda::ChunkPlaces& places, const cuda::EncodedSlots& slots,
                   cudaStream_t queue) const override {
    return kernels::lorenzo_join_async(chunks_of(places), slots_of(places, slots), queue);
  }
  std::uint64_t decode_workspace_bytes(DType dtype, std::uint32_t count, std::uint32_t chunks,
                                       std::uint32_t coded) const override {
    LorenzoChunks places;
    places.tiles = kernels::max_chunk_tiles(dtype_bytes(dtype));
    places.items = count;
    places.chunks = chunks;
    places.coded = coded;
    return kernels::lorenzo_decode_workspace_bytes(places);
  }
  cudaError_t decode(const cuda::ChunkPlaces& places, const kernels::StoredChunk* stored, std::uint8_t* workspace,
                     std::uint32_t* damaged, cudaStream_t queue) const override {
    return kernels::lorenzo_decode_async(chunks_of(places), stored, workspace, damaged, queue);
  }
  cudaError_t find_faults(const cuda::FaultPlaces& places, cudaStream_t queue) const override {
    return find_faults_async(places, queue);
  }

 private:
  static ChunkRules rules_of(std::span<const std::uint8_t> state) {
    ChunkRules rules;
    std::memcpy(&rules, state.data(), sizeof rules);
    return rules;
  }

  static kernels::LorenzoSlots slots_of(const cuda::ChunkPlaces& places, const cuda::EncodedSlots& slots) {
    kernels::LorenzoSlots out{slots.slots, slots.slot_bytes, {}};
    if (slots.parts == nullptr) return out;
    if (!places.state.empty() && !kernels::lorenzo_has_parts(rules_of(places.state))) return out;
    out.parts =
        kernels::lorenzo_parts(slots.parts, element_of(places.dtype), std::uint64_t{places.count} * places.chunks);
    out.parts.targets = slots.targets;
    return out;
  }

  static LorenzoChunks chunks_of(const cuda::ChunkPlaces& places) {
    LorenzoChunks chunks;
    chunks.element = element_of(places.dtype);
    chunks.shapes = places.variants != 0 ? places.variants : kAllShapes;
    if (!places.state.empty()) chunks.shapes = 1u << static_cast<unsigned>(rules_of(places.state).tile);
    chunks.tiles = kernels::max_chunk_tiles(dtype_bytes(places.dtype));
    chunks.items = places.count;
    chunks.chunks = places.chunks;
    chunks.coded = places.coded;
    chunks.list = places.list;
    chunks.listed = places.listed;
    chunks.rules = reinterpret_cast<const std::uint8_t*>(places.streams) + offsetof(cuda::DeviceStream, codec_state);
    chunks.rules_stride = sizeof(cuda::DeviceStream);
    chunks.at = places.at;
    return chunks;
  }
};

}  // namespace

const cuda::DeviceCodec& lorenzo_device_codec() {
  static const LorenzoChunkKernels kernels;
  static const cuda::DeviceCodec codec{kCodecId, lorenzo_codec().info().name, &kernels};
  return codec;
}

}  // namespace quern::codec::lorenzo
