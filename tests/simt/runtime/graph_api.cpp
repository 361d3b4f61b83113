// Graphs: what streams were told while they captured, run again on request.
#include <algorithm>

#include "tests/simt/runtime/runtime.h"

namespace {

using simt::Capture;
using simt::OperationRef;
using simt::Runtime;

thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

/// Whether some node is not waited for, directly or not, by `after`.
bool has_loose_ends(const Capture& capture, const std::vector<std::size_t>& after) {
  std::vector<bool> reached(capture.nodes.size());
  std::vector<std::size_t> queue = after;
  while (!queue.empty()) {
    const std::size_t node = queue.back();
    queue.pop_back();
    if (reached[node]) continue;
    reached[node] = true;
    queue.insert(queue.end(), capture.nodes[node].after.begin(), capture.nodes[node].after.end());
  }
  return std::find(reached.begin(), reached.end(), false) != reached.end();
}

/// The streams and events of a capture that ended forget it.
void dissolve(Runtime& state, const std::shared_ptr<Capture>& capture) {
  for (const auto& [handle, stream] : state.streams)
    if (stream->capture == capture) {
      stream->capture = nullptr;
      stream->capture_after.clear();
    }
  for (const auto& [handle, event] : state.events)
    if (event->capture == capture) event->capture = nullptr;
  std::erase(state.captures, capture);
}

/// The nodes in one of the orders that their dependencies allow.
std::vector<std::size_t> random_order(const std::vector<Capture::Node>& nodes, simt::Random& random) {
  std::vector<std::size_t> order;
  std::vector<bool> placed(nodes.size());
  while (order.size() < nodes.size()) {
    std::vector<std::size_t> free;
    for (std::size_t n = 0; n < nodes.size(); ++n)
      if (!placed[n] &&
          std::all_of(nodes[n].after.begin(), nodes[n].after.end(), [&](std::size_t a) { return placed[a]; }))
        free.push_back(n);
    order.push_back(free[random.below(free.size())]);
    placed[order.back()] = true;
  }
  return order;
}

template <class Map, class Handle>
cudaError_t destroy(Map& map, Handle handle) {
  return map.erase(handle) != 0 ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace

namespace simt {

void Runtime::invalidate(Capture& capture) {
  capture.invalid = true;
  capture.nodes.clear();
}

cudaError_t Runtime::refuse_in_capture() {
  if (thread_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  bool refused = false;
  for (const auto& capture : captures) {
    const bool own = capture->thread == std::this_thread::get_id();
    if (capture->mode == cudaStreamCaptureModeRelaxed) continue;
    if (!own && (capture->mode == cudaStreamCaptureModeThreadLocal || thread_mode == cudaStreamCaptureModeThreadLocal))
      continue;
    invalidate(*capture);
    refused = true;
  }
  return refused ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

}  // namespace simt

extern "C" {

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, thread_mode);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return simt::call([&](Runtime& state) {
    CUstream_st* const found = state.find_stream(stream);
    if (found == nullptr) return cudaErrorInvalidResourceHandle;
    if (found->legacy) return cudaErrorStreamCaptureUnsupported;
    if (found->capture != nullptr) return cudaErrorIllegalState;
    auto capture = std::make_shared<Capture>();
    capture->origin = found;
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    found->capture = capture;
    found->capture_after.clear();
    state.captures.push_back(std::move(capture));
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* pGraph) {
  return simt::call([&](Runtime& state) {
    *pGraph = nullptr;
    CUstream_st* const found = state.find_stream(stream);
    if (found == nullptr) return cudaErrorInvalidResourceHandle;
    const std::shared_ptr<Capture> capture = found->capture;
    if (capture == nullptr) return cudaErrorIllegalState;
    if (capture->origin != found) {
      state.invalidate(*capture);
      return cudaErrorStreamCaptureUnmatched;
    }
    if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id())
      return cudaErrorStreamCaptureWrongThread;
    const bool loose = !capture->invalid && has_loose_ends(*capture, found->capture_after);
    dissolve(state, capture);
    if (capture->invalid) return cudaErrorStreamCaptureInvalidated;
    if (loose) return cudaErrorStreamCaptureUnjoined;
    auto graph = std::make_unique<CUgraph_st>();
    graph->nodes = std::move(capture->nodes);
    *pGraph = graph.get();
    state.graphs[graph.get()] = std::move(graph);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* pCaptureStatus) {
  return simt::call([&](Runtime& state) {
    const CUstream_st* const found = state.find_stream(stream);
    if (found == nullptr) return cudaErrorInvalidResourceHandle;
    *pCaptureStatus = found->capture == nullptr ? cudaStreamCaptureStatusNone
                      : found->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                                : cudaStreamCaptureStatusActive;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* numNodes) {
  return simt::call([&](Runtime& state) {
    const auto found = state.graphs.find(graph);
    if (found == state.graphs.end()) return cudaErrorInvalidValue;
    if (nodes != nullptr) return cudaErrorNotSupported;  // only how many there are
    *numNodes = found->second->nodes.size();
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* pGraphExec, cudaGraph_t graph, unsigned long long flags) {
  return simt::call([&](Runtime& state) {
    const auto found = state.graphs.find(graph);
    if (found == state.graphs.end()) return cudaErrorInvalidValue;
    if (flags != 0) return cudaErrorNotSupported;
    auto made = std::make_unique<CUgraphExec_st>();
    made->nodes = found->second->nodes;
    *pGraphExec = made.get();
    state.graph_execs[made.get()] = std::move(made);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream) {
  return simt::call([&](Runtime& state) {
    const auto found = state.graph_execs.find(graphExec);
    if (found == state.graph_execs.end()) return cudaErrorInvalidValue;
    CUstream_st* target = nullptr;
    if (const cudaError_t error = state.own_stream(stream, target); error != cudaSuccess) return error;
    if (target->capture != nullptr) return cudaErrorNotSupported;  // graphs in graphs
    CUgraphExec_st& exec = *found->second;
    OperationRef begin;
    const cudaError_t error = state.enqueue(*target, {}, &begin);
    if (error != cudaSuccess) return error;
    if (exec.last_launch != nullptr && !exec.last_launch->done) begin->after.push_back(exec.last_launch);
    exec.last_launch = begin;
    for (const std::size_t node : random_order(exec.nodes, state.random))
      state.enqueue(*target, exec.nodes[node].work, &exec.last_launch);
    ++state.counters.graph_launches;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec) {
  return simt::call([&](Runtime& state) { return destroy(state.graph_execs, graphExec); });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return simt::call([&](Runtime& state) { return destroy(state.graphs, graph); });
}
}
