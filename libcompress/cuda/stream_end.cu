// Trailers and outcomes: a warp or a thread for each stream.
#include "libcompress/cuda/stream_end.cuh"

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/warp_hash.cuh"
#include "kernels/cuda/warp_lanes.cuh"
#include "libcompress/format/trailer_frame.h"

namespace quern::cuda {
namespace {

using kernels::kLanes;
using kernels::WarpLanes;

__device__ __forceinline__ void tell(const DeviceArrays& arrays, std::uint32_t i, StatusCode status,
                                     std::uint64_t bytes, DeviceOutcome* outcomes) {
  const std::uint64_t told = status == StatusCode::ok ? bytes : 0;
  outcomes[i].status = static_cast<std::int32_t>(status);
  outcomes[i].reserved = 0;
  outcomes[i].bytes = told;
  if (arrays.sizes != nullptr) arrays.sizes[i] = told;
  if (arrays.statuses != nullptr) arrays.statuses[i] = static_cast<std::int32_t>(status);
}

/// Check of a trailer: of all that comes before it.
__device__ __forceinline__ std::uint64_t trailer_check(const DeviceStream& stream, const std::uint8_t* trailer,
                                                       std::uint64_t index_bytes) {
  return kernels::warp_xxh3({trailer, index_bytes + kFooterBytes - kFooterUncheckedBytes, stream.header_checksum,
                             stream.layout.segments(), true});
}

/// A warp for each stream.
__global__ void __launch_bounds__(kLanes)
    write_trailers(const __grid_constant__ StreamTables tables, const __grid_constant__ DeviceArrays arrays,
                   DeviceOutcome* outcomes) {
  const DeviceStream& stream = tables.streams[blockIdx.x];
  const std::uint64_t bytes = stream.end + stream.index_bytes + kFooterBytes;
  if (stream.status == StatusCode::ok) {
    std::uint8_t* const trailer = stream.bytes + stream.end;
    std::uint8_t* const footer = trailer + stream.index_bytes;
    if (WarpLanes::lane() == 0) {
      ByteWriter sizes({footer, kFooterBytes});
      put_footer_sizes(sizes, stream.index_bytes, stream.end);
    }
    __syncwarp();
    const std::uint64_t check = trailer_check(stream, trailer, stream.index_bytes);
    if (WarpLanes::lane() == 0) {
      ByteWriter end({footer + kFooterBytes - kFooterUncheckedBytes, kFooterUncheckedBytes});
      put_footer_end(end, check);
    }
  }
  if (WarpLanes::lane() == 0) tell(arrays, blockIdx.x, stream.status, bytes, outcomes);
}

/// Where the trailer of a stream of a known size begins, and its index; the same in all lanes.
__device__ __forceinline__ StatusCode find_trailer(const DeviceStream& stream, Footer& footer, std::uint64_t& begin) {
  const std::span<const std::uint8_t> all(stream.bytes, static_cast<std::size_t>(stream.capacity));
  const std::span<const std::uint8_t> rest = all.subspan(static_cast<std::size_t>(stream.first_offset));
  const Fault fault = read_footer(rest, footer);
  if (!fault.ok()) return code_of(fault.what);
  if (footer.stream_bytes > stream.capacity) return StatusCode::truncated;
  if (footer.stream_bytes < stream.capacity) return StatusCode::trailing_data;
  if (footer.index_bytes > rest.size() - kFooterBytes) return StatusCode::corrupt;
  begin = stream.capacity - kFooterBytes - footer.index_bytes;
  return code_of(check_index_bytes(footer, stream.capacity - begin, stream.layout.segments()).what);
}

/// One lane: the segments' places from the index.
__device__ __forceinline__ StatusCode read_index(const DeviceStream& stream, const Footer& footer, std::uint64_t begin,
                                                 SegmentRecord* records) {
  IndexWalk walk({stream.bytes + begin, static_cast<std::size_t>(footer.index_bytes)}, footer, stream.first_offset);
  std::uint64_t offset = stream.first_offset;
  for (std::uint64_t s = 0; s < stream.segments && walk.fault().ok(); ++s) {
    const std::uint64_t end = walk.next();
    records[s].offset = offset;
    records[s].bytes = end - offset;
    offset = end;
  }
  walk.finish();
  return code_of(walk.fault().what);
}

/// A warp for each stream.
__global__ void __launch_bounds__(kLanes) read_trailers(const __grid_constant__ StreamTables tables) {
  DeviceStream& stream = tables.streams[blockIdx.x];
  if (stream.status != StatusCode::ok) return;
  Footer footer;
  std::uint64_t begin = 0;
  StatusCode status = stream.segments <= tables.segments ? find_trailer(stream, footer, begin) : StatusCode::corrupt;
  if (status == StatusCode::ok &&
      static_cast<std::uint32_t>(trailer_check(stream, stream.bytes + begin, footer.index_bytes)) != footer.check)
    status = StatusCode::checksum_mismatch;
  __syncwarp();
  if (WarpLanes::lane() != 0) return;
  if (status == StatusCode::ok)
    status = read_index(stream, footer, begin, tables.segment_records + std::uint64_t{blockIdx.x} * tables.segments);
  stream.status = status;
}

__global__ void __launch_bounds__(kLanes)
    tell_outcomes(const __grid_constant__ StreamTables tables, const __grid_constant__ DeviceArrays arrays,
                  std::uint64_t bytes, DeviceOutcome* outcomes) {
  const std::uint32_t i = blockIdx.x * kLanes + threadIdx.x;
  if (i < tables.count) tell(arrays, i, tables.streams[i].status, bytes, outcomes);
}

}  // namespace

cudaError_t write_trailers_async(const StreamTables& tables, const DeviceArrays& arrays, DeviceOutcome* outcomes,
                                 cudaStream_t queue) {
  return kernels::launch(&write_trailers, {tables.count, kLanes}, queue, tables, arrays, outcomes);
}

cudaError_t read_trailers_async(const StreamTables& tables, cudaStream_t queue) {
  return kernels::launch(&read_trailers, {tables.count, kLanes}, queue, tables);
}

cudaError_t tell_outcomes_async(const StreamTables& tables, const DeviceArrays& arrays, std::uint64_t bytes,
                                DeviceOutcome* outcomes, cudaStream_t queue) {
  return kernels::launch(&tell_outcomes, {(tables.count + kLanes - 1) / kLanes, kLanes}, queue, tables, arrays, bytes,
                         outcomes);
}

}  // namespace quern::cuda
