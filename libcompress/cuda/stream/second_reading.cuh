// A second reading of the streams of a call, whose values are held against the arrays: where it finds streams and puts
// values, and what is told of the call behind it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include <quern/device_arrays.h>

namespace quern::cuda {

/// Device memory; tables of as many entries as the call has arrays.
struct SecondReading {
  std::uint8_t* decoded = nullptr;  ///< values of array i begin i * stride bytes from here
  std::uint64_t stride = 0;
  void** arrays = nullptr;
  std::uint64_t* sizes = nullptr;  ///< of the streams
  std::uint32_t* faults = nullptr;
  bool written = false;  ///< the call wrote the streams, else it read them

  /// The call that reads the streams of `call` a second time.
  DeviceArrays reading(const DeviceArrays& call) const {
    DeviceArrays again = call;
    again.array = nullptr;
    again.arrays = arrays;
    again.stream_sizes = sizes;
    again.sizes = nullptr;
    again.statuses = nullptr;
    return again;
  }
};

/// Queues the kernel that fills the tables once a call has told its outcomes; no stream has a fault yet.
cudaError_t aim_second_reading_async(const DeviceArrays& call, const DeviceOutcome* outcomes,
                                     const SecondReading& reading, cudaStream_t queue);

/// Given the outcomes of the second reading, queues the kernel that tells those of the call once more: hardware_fault
/// where the two readings, or the array and its stream, are not the same.
cudaError_t tell_faults_async(const DeviceArrays& call, const DeviceOutcome* again, const SecondReading& reading,
                              DeviceOutcome* outcomes, cudaStream_t queue);

}  // namespace quern::cuda
