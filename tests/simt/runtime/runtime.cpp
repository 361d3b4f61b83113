// The state, its reset, errors, and what is left of the control header.
#include "tests/simt/runtime/runtime.h"

#include "tests/simt/runtime/faults.h"

namespace simt {
namespace {

thread_local int this_device = 0;
thread_local cudaError_t last_error = cudaSuccess;
thread_local bool runs_host_function = false;

}  // namespace

Runtime& runtime() {
  static Runtime* const state = [] {
    auto* const made = new Runtime;  // lives as long as the process: code may call until the very end
    made->reset({});
    report_faults();
    return made;
  }();
  return *state;
}

std::mutex& runtime_mutex() {
  static std::mutex mutex;
  return mutex;
}

int current_device() { return this_device; }
void set_current_device(int device) { this_device = device; }
bool& in_host_function() { return runs_host_function; }

cudaError_t remember(cudaError_t error) {
  // That something is not ready is an answer.
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

void Runtime::reset(const Options& wanted) {
  options = wanted;
  counters = {};
  random = Random(wanted.seed);
  captures.clear();
  graph_execs.clear();
  graphs.clear();
  events.clear();
  streams.clear();
  memory.clear();
  devices.clear();
  devices.resize(static_cast<std::size_t>(wanted.devices));
  for (std::size_t d = 0; d < devices.size(); ++d) {
    devices[d].legacy = std::make_unique<CUstream_st>();
    devices[d].legacy->device = static_cast<int>(d);
    devices[d].legacy->legacy = true;
  }
  failing_allocation = 0;
  done_count = 0;
  failure.clear();
}

CUstream_st* Runtime::find_stream(cudaStream_t stream) {
  if (stream == nullptr || stream == cudaStreamLegacy)
    return devices[static_cast<std::size_t>(current_device())].legacy.get();
  const auto found = streams.find(stream);
  return found == streams.end() || found->second->destroyed ? nullptr : found->second.get();
}

cudaError_t Runtime::own_stream(cudaStream_t stream, CUstream_st*& out) {
  out = find_stream(stream);
  return out == nullptr || out->device != current_device() ? cudaErrorInvalidResourceHandle : cudaSuccess;
}

void reset(const Options& options) {
  const std::lock_guard lock(runtime_mutex());
  runtime().reset(options);
  set_current_device(0);
  last_error = cudaSuccess;
}

const Counters& counters() { return runtime().counters; }

void fail_allocation(std::uint64_t n) {
  const std::lock_guard lock(runtime_mutex());
  runtime().failing_allocation = n;
}

std::string failure() {
  const std::lock_guard lock(runtime_mutex());
  return runtime().failure;
}

std::size_t live_handles() {
  const std::lock_guard lock(runtime_mutex());
  const Runtime& state = runtime();
  std::size_t live = state.events.size() + state.graphs.size() + state.graph_execs.size();
  for (const auto& [handle, stream] : state.streams) live += stream->destroyed ? 0 : 1;
  return live;
}

}  // namespace simt

extern "C" {

cudaError_t cudaGetLastError() {
  const cudaError_t error = simt::last_error;
  simt::last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() { return simt::last_error; }
}
