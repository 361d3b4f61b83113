// The end of one stream: the check of its trailer, and what is told of it.
#pragma once

#include <cstdint>

#include <quern/device_arrays.h>

#include "kernels/common/cuda/warp_hash.cuh"
#include "libcompress/device/device_stream.h"
#include "libcompress/format/frame/trailer_frame.h"

namespace quern::cuda {

/// Called by one thread: what became of stream i.
__device__ __forceinline__ void tell(const DeviceArrays& arrays, std::uint32_t i, StatusCode status,
                                     std::uint64_t bytes, DeviceOutcome* outcomes) {
  const std::uint64_t told = status == StatusCode::ok ? bytes : 0;
  outcomes[i].status = static_cast<std::int32_t>(status);
  outcomes[i].reserved = 0;
  outcomes[i].bytes = told;
  if (arrays.sizes != nullptr) arrays.sizes[i] = told;
  if (arrays.statuses != nullptr) arrays.statuses[i] = static_cast<std::int32_t>(status);
}

/// Check of a trailer, by a warp: of all that comes before it.
__device__ __forceinline__ std::uint64_t trailer_check(const DeviceStream& stream, const std::uint8_t* trailer,
                                                       std::uint64_t index_bytes) {
  return kernels::warp_xxh3({trailer, index_bytes + kFooterBytes - kFooterUncheckedBytes, stream.header_checksum,
                             stream.layout.segments(), true});
}

}  // namespace quern::cuda
