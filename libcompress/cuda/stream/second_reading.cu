// A thread for each stream.
#include "libcompress/cuda/stream/second_reading.cuh"

#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/warp_lanes.cuh"
#include "libcompress/cuda/stream/outcome.cuh"

namespace quern::cuda {
namespace {

using kernels::kLanes;

unsigned blocks_for(std::uint32_t streams) { return (streams + kLanes - 1) / kLanes; }

__device__ __forceinline__ bool is_ok(const DeviceOutcome& outcome) {
  return outcome.status == static_cast<std::int32_t>(StatusCode::ok);
}

__global__ void __launch_bounds__(kLanes)
    aim_second_reading(const __grid_constant__ DeviceArrays call, const DeviceOutcome* outcomes,
                       const __grid_constant__ SecondReading reading) {
  const std::uint32_t i = blockIdx.x * kLanes + threadIdx.x;
  if (i >= call.count) return;
  const std::uint64_t room = call.stream_sizes != nullptr ? call.stream_sizes[i] : call.stream_bytes;
  const std::uint64_t told = is_ok(outcomes[i]) && outcomes[i].bytes < room ? outcomes[i].bytes : room;
  reading.arrays[i] = reading.decoded + i * reading.stride;
  reading.sizes[i] = reading.written ? told : room;
  reading.faults[i] = 0;
}

__global__ void __launch_bounds__(kLanes)
    tell_faults(const __grid_constant__ DeviceArrays call, const DeviceOutcome* again,
                const __grid_constant__ SecondReading reading, DeviceOutcome* outcomes) {
  const std::uint32_t i = blockIdx.x * kLanes + threadIdx.x;
  if (i >= call.count) return;
  const auto first = static_cast<StatusCode>(outcomes[i].status);
  const bool read = is_ok(again[i]);
  StatusCode status = first;
  if (first == StatusCode::ok ? !read || reading.faults[i] != 0 : read && !reading.written)
    status = StatusCode::hardware_fault;
  tell(call, i, status, reading.written ? reading.sizes[i] : again[i].bytes, outcomes);
}

}  // namespace

cudaError_t aim_second_reading_async(const DeviceArrays& call, const DeviceOutcome* outcomes,
                                     const SecondReading& reading, cudaStream_t queue) {
  return kernels::launch(&aim_second_reading, {blocks_for(call.count), kLanes}, queue, call, outcomes, reading);
}

cudaError_t tell_faults_async(const DeviceArrays& call, const DeviceOutcome* again, const SecondReading& reading,
                              DeviceOutcome* outcomes, cudaStream_t queue) {
  return kernels::launch(&tell_faults, {blocks_for(call.count), kLanes}, queue, call, again, reading, outcomes);
}

}  // namespace quern::cuda
