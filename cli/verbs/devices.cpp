// The CUDA driver, loaded if it is there.
#include "cli/verbs/devices.h"

#include <dlfcn.h>

#include <memory>

#include <fmt/format.h>

namespace quern::cli {
namespace {

// The driver's C interface as far as it is needed; its numbers are fixed for good.
constexpr int kSuccess = 0;
constexpr int kComputeCapabilityMajor = 75;
constexpr int kComputeCapabilityMinor = 76;

struct Driver {
  int (*init)(unsigned) = nullptr;
  int (*device_count)(int*) = nullptr;
  int (*device_name)(char*, int, int) = nullptr;
  int (*device_memory)(std::size_t*, int) = nullptr;
  int (*device_attribute)(int*, int, int) = nullptr;
};

template <class Function>
bool load(void* library, const char* name, Function& out) {
  out = reinterpret_cast<Function>(dlsym(library, name));
  return out != nullptr;
}

}  // namespace

CudaDevices find_cuda_devices() {
  CudaDevices out;
  const std::unique_ptr<void, int (*)(void*)> library(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), dlclose);
  if (!library) {
    out.why_none = "no NVIDIA driver is installed (libcuda.so.1 was not found)";
    return out;
  }
  Driver driver;
  if (!load(library.get(), "cuInit", driver.init) || !load(library.get(), "cuDeviceGetCount", driver.device_count) ||
      !load(library.get(), "cuDeviceGetName", driver.device_name) ||
      !load(library.get(), "cuDeviceTotalMem_v2", driver.device_memory) ||
      !load(library.get(), "cuDeviceGetAttribute", driver.device_attribute)) {
    out.why_none = "the NVIDIA driver library lacks functions it should have";
    return out;
  }
  int count = 0;
  int error = driver.init(0);
  if (error == kSuccess) error = driver.device_count(&count);
  if (error != kSuccess) {
    out.why_none = fmt::format("the NVIDIA driver reports error {}; is a GPU visible to this process?", error);
    return out;
  }
  for (int i = 0; i < count; ++i) {
    char name[256] = {};
    std::size_t memory = 0;
    CudaDevice device;
    if (driver.device_name(name, sizeof name - 1, i) == kSuccess) device.name = name;
    if (driver.device_memory(&memory, i) == kSuccess) device.memory_bytes = memory;
    (void)driver.device_attribute(&device.major, kComputeCapabilityMajor, i);
    (void)driver.device_attribute(&device.minor, kComputeCapabilityMinor, i);
    out.devices.push_back(std::move(device));
  }
  if (out.devices.empty()) out.why_none = "the NVIDIA driver knows no GPU";
  return out;
}

}  // namespace quern::cli
