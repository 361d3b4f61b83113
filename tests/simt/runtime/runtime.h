// The whole state of the simulated runtime, and what its calls have in common. One lock guards all of it.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/simt/runtime/memory.h"
#include "tests/simt/runtime/operations.h"
#include "tests/simt/runtime/random.h"
#include "tests/simt/simt.h"

namespace simt {

inline constexpr std::size_t kUnaskedSharedBytes = 48 * 1024;
inline constexpr std::size_t kMaxSharedBytes = 227 * 1024;

struct Device {
  cudaError_t broken = cudaSuccess;  ///< after a kernel failed, for good
  std::unique_ptr<CUstream_st> legacy;
  std::map<const void*, std::size_t> shared_limits;  ///< of kernels that asked for more than 48 KiB
};

class Runtime {
 public:
  Options options;
  Counters counters;
  Random random;
  Memory memory;
  std::vector<Device> devices;
  std::map<cudaStream_t, std::unique_ptr<CUstream_st>> streams;
  std::map<cudaEvent_t, std::unique_ptr<CUevent_st>> events;
  std::map<cudaGraph_t, std::unique_ptr<CUgraph_st>> graphs;
  std::map<cudaGraphExec_t, std::unique_ptr<CUgraphExec_st>> graph_execs;
  std::vector<std::shared_ptr<Capture>> captures;  ///< those that have not ended
  std::uint64_t failing_allocation = 0;            ///< counts down
  std::uint64_t done_count = 0;
  std::string failure;

  void reset(const Options& options);

  // Handles. Null when it is none of ours.
  CUstream_st* find_stream(cudaStream_t stream);
  /// The same for calls that take only streams of the current device; sets the error otherwise.
  cudaError_t own_stream(cudaStream_t stream, CUstream_st*& out);

  // Queues (operations.cpp).
  /// Queues work, or adds it to the graph that the stream captures. `out`: the operation, null when captured.
  cudaError_t enqueue(CUstream_st& stream, Work work, OperationRef* out = nullptr);
  void run_until(const std::function<bool()>& done);
  void run_some(std::uint64_t operations);
  void finish(const OperationRef& operation);
  void finish_stream(CUstream_st& stream);
  void finish_device(int device);

  // Captures (graph_api.cpp).
  /// Error of a call that may not be made while something captures; such a call spoils the captures.
  cudaError_t refuse_in_capture();
  void invalidate(Capture& capture);

 private:
  bool run_one();
  void run_work(Operation& operation);
};

Runtime& runtime();
std::mutex& runtime_mutex();

/// Current device of the calling thread.
int current_device();
void set_current_device(int device);
/// Sets the calling thread's last error unless it is a success.
cudaError_t remember(cudaError_t error);
/// Whether the calling thread runs a function that cudaLaunchHostFunc queued.
bool& in_host_function();

/// Frames every call of the interface.
template <class F>
cudaError_t call(F&& f) {
  if (in_host_function()) return remember(cudaErrorNotPermitted);
  const std::lock_guard lock(runtime_mutex());
  Runtime& state = runtime();
  if (state.devices.empty()) return remember(cudaErrorNoDevice);
  const cudaError_t broken = state.devices[static_cast<std::size_t>(current_device())].broken;
  if (broken != cudaSuccess) return remember(broken);
  cudaError_t error = std::forward<F>(f)(state);
  if (error == cudaSuccess) error = state.devices[static_cast<std::size_t>(current_device())].broken;
  return remember(error);
}

}  // namespace simt
