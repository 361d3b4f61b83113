// Tables, bounds and headers: a thread or a warp for each stream.
#include "libcompress/cuda/stream/stream_start.cuh"

#include "kernels/common/cuda/copy_bytes.cuh"
#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/shared_memory.cuh"
#include "kernels/common/cuda/warp_hash.cuh"
#include "libcompress/core/element_of.h"
#include "libcompress/format/grid/stored_grid.h"
#include "libcompress/pipeline/encode/bound_resolution.h"
#include "libcompress/pipeline/mask/mask_rules.h"

namespace quern::cuda {
namespace {

using kernels::kLanes;
using kernels::WarpLanes;

unsigned blocks_for(std::uint32_t streams) { return (streams + kLanes - 1) / kLanes; }

/// Stream i from what the call was told; called by one thread.
__device__ __forceinline__ void start_stream(const DeviceArrays& arrays, const StreamPlaces& places, std::uint32_t i,
                                             DeviceStream& stream) {
  stream.window = static_cast<std::uint8_t*>(arrays.arrays != nullptr ? arrays.arrays[i] : arrays.array);
  stream.bytes = static_cast<std::uint8_t*>(arrays.streams != nullptr ? arrays.streams[i] : arrays.stream);
  stream.capacity = arrays.stream_sizes != nullptr ? arrays.stream_sizes[i] : arrays.stream_bytes;
  stream.window_begin = 0;
  stream.first_segment = 0;
  stream.segments = 0;
  stream.header_checksum = 0;
  stream.first_offset = 0;
  stream.end = 0;
  stream.index_bytes = 0;
  stream.stored_only = false;
  stream.arrived = 0;
  const bool missing =
      (stream.window == nullptr && places.shape.elems() != 0) || (stream.bytes == nullptr && stream.capacity != 0);
  stream.status = missing ? StatusCode::invalid_argument : StatusCode::ok;
}

__device__ __forceinline__ std::optional<ExactRange> exact_range_of(DType dtype, const kernels::RangeKeys& keys) {
  if (keys.valid == 0) return std::nullopt;
  return kernels::with_element(element_of(dtype), [&](auto element) -> std::optional<ExactRange> {
    using Element = decltype(element);
    return range_of_keys<Element>(kernels::min_key<Element>(keys), kernels::max_key<Element>(keys));
  });
}

__global__ void __launch_bounds__(kLanes)
    start_streams(const __grid_constant__ DeviceArrays arrays, const __grid_constant__ StreamRequest request,
                  const kernels::RangeKeys* ranges, const __grid_constant__ StreamPlaces places) {
  const std::uint32_t i = blockIdx.x * kLanes + threadIdx.x;
  if (i >= places.count) return;
  start_stream(arrays, places, i, places.streams[i]);
  std::optional<ExactRange> range;
  if (request.has_range) {
    range = ExactRange{request.range, difference_down(request.range.max, request.range.min)};
  } else if (ranges != nullptr) {
    range = exact_range_of(places.dtype, ranges[i]);
  }
  ResolvedBound bound = resolve_bound(request.bound, range);
  if (request.has_range) bound.range = request.range;
  StreamPlan& plan = places.plans[i];
  plan.enforced = bound.enforced;
  plan.has_range = bound.range.has_value();
  plan.range_min = bound.range ? bound.range->min : 0;
  plan.range_max = bound.range ? bound.range->max : 0;
  plan.mask = request.mask;
  kernels::with_element_words(request.mask.element, [&](auto words) {
    plan.mask.repeated = mask::repeated_rules<decltype(words)>(request.mask.repeated.enabled, bound.enforced);
  });
}

__global__ void __launch_bounds__(kLanes)
    plan_stored(const __grid_constant__ SegmentLayout layout, const __grid_constant__ StreamPlaces places) {
  const std::uint32_t i = blockIdx.x * kLanes + threadIdx.x;
  if (i >= places.count) return;
  places.streams[i].layout = layout;
  StreamPlan& plan = places.plans[i];
  plan.codec_id = kStoredCodecId;
  plan.codec_version = 1;
  plan.params_bytes = 0;
}

/// In shared memory, for much of it is reached by index.
struct HeaderShared {
  HeaderView header;
  std::uint64_t bytes;
  StatusCode status;
};

__device__ __forceinline__ void fill_header(const StreamRequest& request, const StreamPlaces& places,
                                            const StreamPlan& plan, const ChunkGrid& grid, HeaderView& header) {
  header = HeaderView{};
  header.dtype = places.dtype;
  header.shape = places.shape;
  header.requested = request.bound;
  header.enforced = plan.enforced;
  if (plan.has_range) header.range = ValueRange{plan.range_min, plan.range_max};
  header.codec_id = plan.codec_id;
  header.codec_version = plan.codec_version;
  header.writer = request.writer;
  header.grid = grid;
  if (plan.mask.views.count > 0) header.must_understand |= kMaskViews;
  if (plan.mask.by_levels) header.must_understand |= kMaskLevels;
  header.fills = {request.fills, request.fill_bytes};
  header.params = {plan.params, plan.params_bytes};
  header.metadata = {{request.metadata, request.metadata_stored}, request.metadata_bytes, request.metadata_is_packed};
}

/// Once the layout is known.
__device__ __forceinline__ void settle_masks(const StreamRequest& request, const StreamPlaces& places,
                                             const ChunkGrid& grid, StreamPlan& plan) {
  const bool coded = plan.codec_id != kStoredCodecId;
  const bool may_mask = mask::may_have_mask(places.dtype, request.fill_bytes, request.mask.repeated.enabled);
  plan.mask.by_levels = plan.mask.by_levels && coded && may_mask;
  plan.mask.views.count = 0;
  if (coded && may_mask) plan.mask.views.set(places.shape.extents(), grid.extents);
}

/// A warp for each stream.
__global__ void __launch_bounds__(kLanes)
    write_headers(const __grid_constant__ StreamRequest request, const __grid_constant__ StreamPlaces places) {
  auto& shared = kernels::shared_memory<HeaderShared>();
  DeviceStream& stream = places.streams[blockIdx.x];
  if (stream.status != StatusCode::ok) return;
  if (WarpLanes::lane() == 0) {
    settle_masks(request, places, stream.layout.grid(), places.plans[blockIdx.x]);
    fill_header(request, places, places.plans[blockIdx.x], stream.layout.grid(), shared.header);
    ByteWriter out({stream.bytes, static_cast<std::size_t>(stream.capacity)});
    put_header_body(out, shared.header);
    shared.bytes = out.size();
    const bool fits = out.fits() && out.room() - out.size() >= kHeaderChecksumBytes;
    shared.status = fits ? StatusCode::ok : StatusCode::destination_too_small;
  }
  __syncwarp();
  const StatusCode status = shared.status;
  std::uint64_t checksum = 0;
  if (status == StatusCode::ok) checksum = kernels::warp_xxh3({stream.bytes, shared.bytes});
  __syncwarp();  // hashing reads whole words, what is written next with them
  if (WarpLanes::lane() != 0) return;
  stream.status = status;
  if (status != StatusCode::ok) return;
  ByteWriter({stream.bytes + shared.bytes, kHeaderChecksumBytes}).u64(checksum);
  stream.header_checksum = checksum;
  stream.first_offset = shared.bytes + kHeaderChecksumBytes;
  stream.segments = stream.layout.segments();
}

/// Whether an array of that type and shape is what the stream holds.
__device__ __forceinline__ bool is_for(const HeaderView& header, const StreamPlaces& places) {
  if (header.dtype != places.dtype || header.shape.rank() != places.shape.rank()) return false;
  for (std::size_t a = 0; a < places.shape.rank(); ++a)
    if (header.shape[a] != places.shape[a]) return false;
  return true;
}

/// Tables have room for the layouts that encoders choose.
__device__ __forceinline__ bool is_plain(const ChunkGrid& grid, DType dtype) {
  const ChunkGrid plain = stored_grid(grid.extents[2], dtype);
  bool same = true;
  for (unsigned a = 0; a < 3; ++a)
    same = same && grid.extents[a] == plain.extents[a] && grid.chunk[a] == plain.chunk[a];
  return same;
}

/// What one lane finds in a header whose checksum holds.
__device__ __forceinline__ StatusCode take_header(const HeaderView& header, const StreamPlaces& places,
                                                  DeviceStream& stream, StreamPlan& plan) {
  if (!is_for(header, places)) return StatusCode::invalid_argument;
  // No codec with kernels has levels.
  if (header.has_level_tables()) return StatusCode::unsupported;
  // Nor has one references, parts or features of its own: as where the host opens a codec.
  if ((header.must_understand & (kReferences | kParts | kCodecFeatures)) != 0) return StatusCode::corrupt;
  plan.codec_id = header.codec_id;
  plan.codec_version = header.codec_version;
  stream.stored_only = header.codec_id == kStoredCodecId;
  stream.mask_levels = header.may_have_mask_levels();
  if (stream.stored_only && header.codec_version != 1) return StatusCode::unsupported_version;
  if (stream.stored_only ? !header.params.empty() : header.params.size() > kMostParamsBytes) return StatusCode::corrupt;
  plan.params_bytes = static_cast<std::uint32_t>(header.params.size());
  for (std::size_t i = 0; i < header.params.size(); ++i) plan.params[i] = header.params[i];
  if (stream.stored_only && !is_plain(header.grid, header.dtype)) return StatusCode::unsupported;
  stream.layout = SegmentLayout(header.grid, header.dtype);
  stream.segments = stream.layout.segments();
  return StatusCode::ok;
}

/// The beginning of a stream where it is read byte by byte. The rest of longer headers stays where it is.
struct ReadHeaderShared {
  static constexpr unsigned kBytes = 1024;
  HeaderShared header;
  std::uint8_t bytes[kBytes];
};

/// A warp for each stream. One block has a multiprocessor's registers: told of no number, compilers spill some.
__global__ void __launch_bounds__(kLanes, 1)
    read_headers(const __grid_constant__ DeviceArrays arrays, std::uint16_t codec_id,
                 const __grid_constant__ StreamPlaces places) {
  auto& [shared, near] = kernels::shared_memory<ReadHeaderShared>();
  DeviceStream& stream = places.streams[blockIdx.x];
  if (WarpLanes::lane() == 0) start_stream(arrays, places, blockIdx.x, stream);
  __syncwarp();
  if (stream.status != StatusCode::ok) return;
  const std::uint64_t capacity = stream.capacity;
  const auto copied = static_cast<unsigned>(capacity < ReadHeaderShared::kBytes ? capacity : ReadHeaderShared::kBytes);
  kernels::copy_bytes(near, stream.bytes, copied, WarpLanes::lane(), kLanes);
  __syncwarp();
  if (WarpLanes::lane() == 0) {
    const std::size_t have = capacity < kHeaderPrefixBytes ? static_cast<std::size_t>(capacity) : kHeaderPrefixBytes;
    shared.bytes = 0;
    shared.status = code_of(header_size({near, have}, shared.bytes).what);
    if (have < kHeaderPrefixBytes && shared.status != StatusCode::bad_magic) shared.status = StatusCode::truncated;
    if (shared.status == StatusCode::ok && shared.bytes > capacity) shared.status = StatusCode::truncated;
  }
  __syncwarp();
  StatusCode status = shared.status;
  if (status == StatusCode::ok) {
    const std::uint8_t* const bytes = shared.bytes <= copied ? near : stream.bytes;
    const std::span<const std::uint8_t> body(bytes, static_cast<std::size_t>(shared.bytes - kHeaderChecksumBytes));
    const std::uint64_t checksum = kernels::warp_xxh3({stream.bytes, body.size()});
    if (WarpLanes::lane() == 0) {
      if (ByteReader({bytes + body.size(), kHeaderChecksumBytes}).u64() != checksum)
        status = StatusCode::checksum_mismatch;
      if (status == StatusCode::ok) status = code_of(view_header_body(body, shared.header).what);
      const bool other = shared.header.codec_id != codec_id && shared.header.codec_id != kStoredCodecId;
      if (status == StatusCode::ok && other) status = StatusCode::unsupported;
      if (status == StatusCode::ok) status = take_header(shared.header, places, stream, places.plans[blockIdx.x]);
      stream.header_checksum = checksum;
      stream.first_offset = shared.bytes;
    }
  }
  __syncwarp();  // every lane has seen the status that there was
  if (WarpLanes::lane() == 0) stream.status = status;
}

}  // namespace

cudaError_t start_streams_async(const DeviceArrays& arrays, const StreamRequest& request,
                                const kernels::RangeKeys* ranges, const StreamPlaces& places, cudaStream_t queue) {
  return kernels::launch(&start_streams, {blocks_for(places.count), kLanes}, queue, arrays, request, ranges, places);
}

cudaError_t plan_stored_async(const SegmentLayout& layout, const StreamPlaces& places, cudaStream_t queue) {
  return kernels::launch(&plan_stored, {blocks_for(places.count), kLanes}, queue, layout, places);
}

cudaError_t write_headers_async(const StreamRequest& request, const StreamPlaces& places, cudaStream_t queue) {
  return kernels::launch(&write_headers, {places.count, kLanes, sizeof(HeaderShared)}, queue, request, places);
}

cudaError_t read_headers_async(const DeviceArrays& arrays, std::uint16_t codec_id, const StreamPlaces& places,
                               cudaStream_t queue) {
  return kernels::launch(&read_headers, {places.count, kLanes, sizeof(ReadHeaderShared)}, queue, arrays, codec_id,
                         places);
}

}  // namespace quern::cuda
