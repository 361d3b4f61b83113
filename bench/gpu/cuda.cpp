// Errors and attributes.
#include "bench/gpu/cuda.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>

namespace quern::bench {
namespace {

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  return cudaDeviceGetAttribute(&value, which, device) == cudaSuccess ? value : 0;
}

}  // namespace

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

Machine describe_machine() {
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  Machine machine;
  std::copy(std::begin(properties.name), std::end(properties.name), std::begin(machine.name));
  machine.major = properties.major;
  machine.minor = properties.minor;
  machine.multiprocessors = properties.multiProcessorCount;
  machine.clock_khz = attribute(cudaDevAttrClockRate, device);
  machine.memory_clock_khz = attribute(cudaDevAttrMemoryClockRate, device);
  machine.memory_bus_bits = properties.memoryBusWidth;
  machine.l2_bytes = static_cast<std::uint64_t>(properties.l2CacheSize);
  machine.memory_bytes = properties.totalGlobalMem;
  check(cudaDriverGetVersion(&machine.driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&machine.runtime), "cudaRuntimeGetVersion");
  return machine;
}

}  // namespace quern::bench
