// Streams as queues: what is queued runs when something waits, across streams in a random order.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/simt/runtime/runtime.h"

namespace simt {
namespace {

bool is_done(const OperationRef& operation) { return operation == nullptr || operation->done; }

}  // namespace

cudaError_t Runtime::enqueue(CUstream_st& stream, Work work, OperationRef* out) {
  if (out != nullptr) *out = nullptr;
  if (stream.capture != nullptr) {
    Capture& capture = *stream.capture;
    if (capture.invalid) return cudaErrorStreamCaptureInvalidated;
    capture.nodes.push_back({std::move(work), stream.capture_after});
    stream.capture_after = {capture.nodes.size() - 1};
    return cudaSuccess;
  }
  auto operation = std::make_shared<Operation>();
  operation->work = std::move(work);
  operation->device = stream.device;
  if (stream.legacy) {
    // The legacy stream waits for all blocking streams of its device, and they for it.
    for (const auto& capture : captures)
      if (capture->origin->device == stream.device && (capture->origin->flags & cudaStreamNonBlocking) == 0) {
        invalidate(*capture);
        return cudaErrorStreamCaptureImplicit;
      }
    for (const auto& [handle, other] : streams)
      if (other->device == stream.device && (other->flags & cudaStreamNonBlocking) == 0 && !is_done(other->last))
        operation->after.push_back(other->last);
  } else if ((stream.flags & cudaStreamNonBlocking) == 0) {
    const auto& legacy = devices[static_cast<std::size_t>(stream.device)].legacy;
    if (!is_done(legacy->last)) operation->after.push_back(legacy->last);
  }
  stream.pending.push_back(operation);
  stream.last = operation;
  if (out != nullptr) *out = operation;
  return cudaSuccess;
}

/// Runs one operation that nothing holds back; false when there is none.
bool Runtime::run_one() {
  std::vector<CUstream_st*> runnable;
  const auto consider = [&](CUstream_st& stream) {
    if (stream.pending.empty()) return;
    const auto& after = stream.pending.front()->after;
    if (std::all_of(after.begin(), after.end(), is_done)) runnable.push_back(&stream);
  };
  for (const auto& [handle, stream] : streams) consider(*stream);
  for (const auto& device : devices) consider(*device.legacy);
  if (runnable.empty()) return false;
  CUstream_st& stream = *runnable[random.below(runnable.size())];
  const OperationRef operation = stream.pending.front();
  run_work(*operation);
  operation->done = true;
  operation->done_at = done_count++;
  operation->after.clear();
  operation->work = {};
  stream.pending.pop_front();
  if (stream.destroyed && stream.pending.empty()) streams.erase(&stream);
  return true;
}

void Runtime::run_work(Operation& operation) {
  if (!operation.work.run) return;
  // After a failed kernel nothing runs on its device.
  if (devices[static_cast<std::size_t>(operation.device)].broken != cudaSuccess) return;
  if (operation.work.device < 0) {
    memory.close();
  } else {
    memory.open(operation.work.device);
  }
  operation.work.run();
}

void Runtime::run_until(const std::function<bool()>& done) {
  while (!done()) {
    if (run_one()) continue;
    std::fprintf(stderr, "simt: operations wait for each other in a circle\n");
    std::abort();
  }
  memory.close();
}

void Runtime::run_some(std::uint64_t operations) {
  for (; operations > 0 && run_one(); --operations) {
  }
  memory.close();
}

void Runtime::finish(const OperationRef& operation) {
  run_until([&] { return is_done(operation); });
}

void Runtime::finish_stream(CUstream_st& stream) { finish(stream.last); }

void Runtime::finish_device(int device) {
  run_until([&] {
    if (!is_done(devices[static_cast<std::size_t>(device)].legacy->last)) return false;
    return std::all_of(streams.begin(), streams.end(), [&](const auto& entry) {
      return entry.second->device != device || is_done(entry.second->last);
    });
  });
}

}  // namespace simt
