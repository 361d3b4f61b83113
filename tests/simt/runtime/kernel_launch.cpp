// Queues launches, and runs them when their stream gets there.
#include "simt/kernel_launch.h"

#include "simt/queued_algorithm.h"

#include <cstdio>

#include "tests/simt/runtime/grid_run.h"
#include "tests/simt/runtime/runtime.h"

namespace simt {
namespace {

constexpr std::uint64_t kMaxThreads = 1024;
constexpr std::uint64_t kMaxBlocks = 0x7fffffff;
constexpr unsigned kMaxBlocksYz = 65535;

bool is_legal(const dim3& blocks, const dim3& threads) {
  const std::uint64_t block = static_cast<std::uint64_t>(threads.x) * threads.y * threads.z;
  return block != 0 && threads.x <= kMaxThreads && threads.y <= kMaxThreads && threads.z <= 64 &&
         block <= kMaxThreads && blocks.x != 0 && blocks.y != 0 && blocks.z != 0 && blocks.x <= kMaxBlocks &&
         blocks.y <= kMaxBlocksYz && blocks.z <= kMaxBlocksYz;
}

void run(Runtime& state, const KernelLaunch& launch, int device) {
  GridRun grid(launch, {state.options.resident_blocks, state.options.watch_races, state.options.idle_steps},
               state.random.next());
  const std::string what = grid.run();
  if (what.empty()) return;
  if (state.options.print_failures) std::fprintf(stderr, "simt: %s\n", what.c_str());
  if (state.failure.empty()) state.failure = what;
  state.devices[static_cast<std::size_t>(device)].broken = cudaErrorLaunchFailure;
}

}  // namespace

cudaError_t launch_kernel(const cudaLaunchConfig_t& config, const void* kernel, std::function<void()> body) {
  return call([&](Runtime& state) {
    CUstream_st* stream = nullptr;
    if (const cudaError_t error = state.own_stream(config.stream, stream); error != cudaSuccess) return error;
    if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
    if (config.numAttrs != 0) return cudaErrorNotSupported;
    if (!is_legal(config.gridDim, config.blockDim)) return cudaErrorInvalidConfiguration;
    const auto& limits = state.devices[static_cast<std::size_t>(stream->device)].shared_limits;
    const auto limit = limits.find(kernel);
    if (config.dynamicSmemBytes > (limit == limits.end() ? kUnaskedSharedBytes : limit->second))
      return cudaErrorInvalidValue;
    ++state.counters.launches;
    const int device = stream->device;
    const KernelLaunch launch{kernel, config.gridDim, config.blockDim, config.dynamicSmemBytes, std::move(body)};
    return state.enqueue(*stream, {device, [&state, launch, device] { run(state, launch, device); }});
  });
}

cudaError_t queue_algorithm(cudaStream_t stream, void* temporary, std::size_t temporary_bytes,
                            std::function<void()> body) {
  return call([&](Runtime& state) {
    CUstream_st* found = nullptr;
    if (const cudaError_t error = state.own_stream(stream, found); error != cudaSuccess) return error;
    const Allocation* const memory = state.memory.find(temporary);
    if (memory == nullptr || memory->pinned || memory->device != found->device) return cudaErrorInvalidValue;
    ++state.counters.launches;
    const std::uint64_t noise = state.random.next();
    return state.enqueue(*found, {found->device, [temporary, temporary_bytes, body = std::move(body), noise] {
                                    Random(noise).fill(temporary, temporary_bytes);
                                    body();
                                  }});
  });
}

}  // namespace simt
