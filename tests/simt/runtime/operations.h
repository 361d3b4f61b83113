// What was queued and has not run: operations on streams, and what must be done before each.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace simt {

/// What to do, and with which devices' memory.
struct Work {
  int device = -1;            ///< whose memory is open meanwhile; -1: none
  std::function<void()> run;  ///< empty for a mark
};

struct Operation {
  Work work;
  int device = 0;  ///< of the stream
  std::vector<std::shared_ptr<Operation>> after;
  bool done = false;
  std::uint64_t done_at = 0;  ///< operations that were done before
};
using OperationRef = std::shared_ptr<Operation>;

/// Streams that record a graph together.
struct Capture {
  struct Node {
    Work work;
    std::vector<std::size_t> after;
  };
  std::vector<Node> nodes;
  cudaStream_t origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  bool invalid = false;
};

}  // namespace simt

struct CUstream_st {
  int device = 0;
  unsigned flags = 0;
  bool legacy = false;
  bool destroyed = false;  ///< lives on until its operations are done
  std::deque<simt::OperationRef> pending;
  simt::OperationRef last;
  std::shared_ptr<simt::Capture> capture;
  std::vector<std::size_t> capture_after;  ///< nodes that its next one waits for
};

struct CUevent_st {
  int device = 0;
  unsigned flags = 0;
  simt::OperationRef recorded;
  std::shared_ptr<simt::Capture> capture;  ///< if it was recorded in one
  std::vector<std::size_t> capture_after;
};

struct CUgraphNode_st {};
struct CUgraph_st {
  std::vector<simt::Capture::Node> nodes;
};
struct CUgraphExec_st {
  std::vector<simt::Capture::Node> nodes;
  simt::OperationRef last_launch;  ///< a graph does not run twice at a time
};
