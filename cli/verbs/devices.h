// CUDA devices of this machine, asked of the driver itself: works in builds without CUDA too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace quern::cli {

struct CudaDevice {
  std::string name;
  std::uint64_t memory_bytes = 0;
  int major = 0;
  int minor = 0;
};

struct CudaDevices {
  std::vector<CudaDevice> devices;
  std::string why_none;  ///< a sentence when there is no device
};

CudaDevices find_cuda_devices();

}  // namespace quern::cli
