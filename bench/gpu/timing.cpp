// Repetitions.
#include "bench/gpu/timing.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

namespace quern::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kWarmUps = 2;
constexpr std::uint64_t kMostRepeats = 1000;
/// Of work so long that all repetitions asked for would take ten times the seconds asked for.
constexpr std::uint64_t kFewestRepeats = 3;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

Spread spread_of(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  const double median = values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {median, values.front(), values.back()};
}

/// Work captured once.
class Graph {
 public:
  Graph(const Work& work, cudaStream_t stream) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    const cudaError_t queued = work(stream);
    check(cudaStreamEndCapture(stream, &graph_), "cudaStreamEndCapture");
    check(queued, "captured work");
    check(cudaGraphInstantiate(&run_, graph_, 0), "cudaGraphInstantiate");
  }
  ~Graph() {
    if (run_ != nullptr) static_cast<void>(cudaGraphExecDestroy(run_));
    if (graph_ != nullptr) static_cast<void>(cudaGraphDestroy(graph_));
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  cudaError_t launch(cudaStream_t stream) const { return cudaGraphLaunch(run_, stream); }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t run_ = nullptr;
};

}  // namespace

Stopwatch::Stopwatch(std::uint64_t least_repeats, double seconds, std::uint64_t l2_bytes)
    : least_repeats_(std::max<std::uint64_t>(1, least_repeats)), seconds_(seconds), eviction_(2 * l2_bytes) {}

Timing Stopwatch::time(const Work& work, Cache cache, Queueing queueing) {
  std::optional<Graph> graph;
  if (queueing == Queueing::graph) graph.emplace(work, stream_);
  std::vector<double> device, host;
  const Clock::time_point start = Clock::now();
  for (std::uint64_t run = 0; run < kWarmUps + kMostRepeats; ++run) {
    const double seconds = 1e-3 * milliseconds_since(start);
    if (device.size() >= least_repeats_ && seconds >= seconds_) break;
    if (device.size() >= std::min(kFewestRepeats, least_repeats_) && seconds >= 10 * seconds_) break;
    if (cache == Cache::cold) {
      check(cudaMemsetAsync(eviction_.data(), static_cast<int>(run & 0xff), eviction_.bytes(), stream_), "eviction");
      stream_.wait();
    }
    const Clock::time_point queued = Clock::now();
    check(cudaEventRecord(begin_, stream_), "cudaEventRecord");
    check(graph ? graph->launch(stream_) : work(stream_), "timed work");
    check(cudaEventRecord(end_, stream_), "cudaEventRecord");
    stream_.wait();
    const double waited = milliseconds_since(queued);
    float elapsed = 0;
    check(cudaEventElapsedTime(&elapsed, begin_, end_), "cudaEventElapsedTime");
    if (run < kWarmUps) continue;
    device.push_back(static_cast<double>(elapsed));
    host.push_back(waited);
  }
  const std::uint64_t repeats = device.size();
  return {repeats, spread_of(device), spread_of(host)};
}

}  // namespace quern::bench
