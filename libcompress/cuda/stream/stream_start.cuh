// The beginning of streams: tables filled from what a call was told, bounds from ranges, headers written and read.
#pragma once

#include <cuda_runtime.h>

#include <quern/device_arrays.h>

#include "kernels/common/range_keys.h"
#include "libcompress/device/chunk_kernels.h"
#include "libcompress/format/grid/header_fields.h"

namespace quern::cuda {

/// What is asked for all arrays of a call. Pointers are to device memory.
struct StreamRequest {
  ErrorBound bound;
  bool has_range = false;  ///< given
  ValueRange range;
  kernels::LaneMaskRules mask;  ///< without what depends on the bound
  WriterId writer;
  const std::uint8_t* fills = nullptr;  ///< as the header has them
  std::uint32_t fill_bytes = 0;
  const std::uint8_t* metadata = nullptr;
  std::uint32_t metadata_stored = 0;
  std::uint64_t metadata_bytes = 0;
  bool metadata_is_packed = false;
};

/// Queues the kernel that fills the streams with where arrays and bytes lie, and their status with ok (an array or
/// stream without memory fails), and turns request and ranges (null where the bound needs none) into plans: as
/// resolve_bound().
cudaError_t start_streams_async(const DeviceArrays& arrays, const StreamRequest& request,
                                const kernels::RangeKeys* ranges, const StreamPlaces& places, cudaStream_t queue);

/// Queues the kernel that gives arrays that no codec is used for their layout.
cudaError_t plan_stored_async(const SegmentLayout& layout, const StreamPlaces& places, cudaStream_t queue);

/// Given layouts and parameters, queues the kernel that writes the headers.
cudaError_t write_headers_async(const StreamRequest& request, const StreamPlaces& places, cudaStream_t queue);

/// Queues the kernel that fills the streams as start_streams_async does and reads headers, which may be any bytes. It
/// sets the status of streams that are not of this type and shape, or of another codec. What the codec has to read is
/// left in the plans.
cudaError_t read_headers_async(const DeviceArrays& arrays, std::uint16_t codec_id, const StreamPlaces& places,
                               cudaStream_t queue);

}  // namespace quern::cuda
