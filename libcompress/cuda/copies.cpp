// Copies between a device's memory and the host's, without the kernels.
#include <quern/device.h>

#include "libcompress/cuda/cuda_memory.h"

namespace quern {
namespace {

Status copy_and_wait(int ordinal, const void* from, void* to, std::uint64_t bytes, cudaMemcpyKind kind) {
  if (bytes == 0) return {};
  QUERN_RETURN_IF_ERROR(cuda::check_ordinal(ordinal));
  const cuda::CurrentDevice current(ordinal);
  QUERN_RETURN_IF_ERROR(current.status());
  return cuda::to_status(cudaMemcpy(to, from, static_cast<std::size_t>(bytes), kind));
}

}  // namespace

Status copy_from_device(int ordinal, const void* device, void* host, std::uint64_t bytes) {
  return copy_and_wait(ordinal, device, host, bytes, cudaMemcpyDeviceToHost);
}
Status copy_to_device(int ordinal, const void* host, void* device, std::uint64_t bytes) {
  return copy_and_wait(ordinal, host, device, bytes, cudaMemcpyHostToDevice);
}

}  // namespace quern
