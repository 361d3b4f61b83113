// Samples laid out, candidates and layouts chosen, parameters read.
#include "codecs/lorenzo/device_plan.cuh"

#include "codecs/lorenzo/lane_choose.h"
#include "codecs/lorenzo/lorenzo.h"
#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/reduce.cuh"
#include "kernels/common/cuda/shared_memory.cuh"
#include "kernels/common/cuda/warp_lanes.cuh"
#include "libcompress/device/arrival.cuh"

namespace quern::codec::lorenzo {
namespace {

using cuda::DeviceStream;
using cuda::StreamPlaces;
using cuda::StreamPlan;
using kernels::ChunkRules;
using kernels::kLanes;
using kernels::WarpLanes;

constexpr unsigned kThreads = 128;
constexpr unsigned kStepThreads = 512;

unsigned blocks_for(std::uint64_t threads) { return static_cast<unsigned>((threads + kThreads - 1) / kThreads); }

/// A thread a tile.
__global__ void __launch_bounds__(kThreads)
    lay_out_trials(const __grid_constant__ StreamPlaces places, const __grid_constant__ DeviceTrials trials) {
  const std::uint64_t place = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::uint64_t set = place / kSampleTiles;
  if (set >= std::uint64_t{places.count} * trials.count) return;
  const std::uint64_t i = place % kSampleTiles;
  const DeviceStream& stream = places.streams[set / trials.count];
  const DeviceTrial& trial = trials.at[set % trials.count];
  if (i == 0) trials.rules[set] = make_rules(places.dtype, places.plans[set / trials.count].enforced, trial.layout);
  kernels::CudaChunk tile;
  if (stream.status == StatusCode::ok && i < trial.tiles.size()) {
    const SampleTiles::Tile sample = trial.tiles[i];
    tile.values = stream.window + sample.first * dtype_bytes(places.dtype);
    tile.box = sample.box;
    tile.slot = static_cast<std::uint32_t>(place);
  }
  trials.tiles[place] = tile;
}

using StepShared = kernels::ReduceShared<StepSample, kStepThreads>;

/// Adds the elements of a tile that a lane reads.
__device__ __forceinline__ void add_tile(const StepLook& look, const kernels::CudaChunk& tile, StepSample& sample) {
  const auto* const first = static_cast<const std::uint32_t*>(tile.values);
  for (std::uint64_t z = 0; z < tile.box.extents[0]; ++z)
    for (std::uint64_t y = 0; y < tile.box.extents[1]; ++y) {
      const std::uint32_t* const row = first + (z * tile.box.strides[0] + y * tile.box.strides[1]);
      for (std::uint64_t x = WarpLanes::lane(); x < tile.box.extents[2]; x += kLanes) look.add(row[x], sample);
    }
}

/// Called by a CTA, a warp a tile: the step of a trial's rules.
__device__ __forceinline__ void choose_step_of(const DeviceTrials& trials, std::uint64_t set) {
  ChunkRules& rules = trials.rules[set];
  if (!wants_step(rules)) return;
  const StepLook look(rules.params);
  StepSample sample;
  for (std::uint64_t tile = threadIdx.x / kLanes; tile < trials.at[set % trials.count].tiles.size();
       tile += kStepThreads / kLanes)
    add_tile(look, trials.tiles[set * kSampleTiles + tile], sample);
  kernels::reduce_cta<kStepThreads>(sample, kernels::shared_memory<StepShared>(),
                                    [](StepSample& a, const StepSample& b) { add_sample(a, b); });
  if (threadIdx.x == 0) choose_step(sample, rules.params);
}

/// choose_candidates_lanes, named from a template: nvcc takes a constexpr template that a plain function names for host
/// code.
template <class X = WarpLanes>
__device__ __forceinline__ void choose_for(const std::uint32_t* costs, std::uint32_t tiles, ChunkRules& rules) {
  std::uint32_t place = 0;
  const std::uint32_t count = choose_candidates_lanes<X>(costs, tiles, rules.tile, [&](kernels::Predictor predictor) {
    if (X::lane() == 0) rules.candidates[place] = predictor;
    ++place;
  });
  if (X::lane() == 0) rules.candidate_count = count;
}

/// A warp for each trial of each stream.
__global__ void __launch_bounds__(kThreads)
    choose_trials(const __grid_constant__ StreamPlaces places, const __grid_constant__ DeviceTrials trials) {
  const std::uint64_t set = (std::uint64_t{blockIdx.x} * kThreads + threadIdx.x) / kLanes;
  if (set >= std::uint64_t{places.count} * trials.count) return;
  if (places.streams[set / trials.count].status != StatusCode::ok) return;
  const auto tiles = static_cast<std::uint32_t>(trials.at[set % trials.count].tiles.size());
  choose_for(trials.costs + set * kSampleTiles * kernels::kPredictors, tiles, trials.rules[set]);
}

/// What the tiles of a set take, and their elements.
__device__ __forceinline__ LayoutCost cost_of(const DeviceTrials& trials, std::uint64_t set) {
  std::uint32_t own_bytes = 0;
  std::uint32_t own_elems = 0;
  for (unsigned i = WarpLanes::lane(); i < kSampleTiles; i += kLanes) {
    const auto& e = trials.tiles[set * kSampleTiles + i].box.extents;
    const auto elems = static_cast<std::uint32_t>(e[0] * e[1] * e[2]);
    own_elems += elems;
    own_bytes += elems != 0 ? trials.bytes[set * kSampleTiles + i] : 0;
  }
  return {WarpLanes::reduce_add(own_bytes), WarpLanes::reduce_add(own_elems)};
}

template <class T>
__device__ __forceinline__ void copy_by_warp(const T& from, void* to) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(std::uint32_t) == 0);
  const auto* const words = reinterpret_cast<const std::uint32_t*>(&from);
  for (unsigned i = WarpLanes::lane(); i < sizeof(T) / sizeof(std::uint32_t); i += kLanes)
    static_cast<std::uint32_t*>(to)[i] = words[i];
}

/// Called by a warp: the trial that a stream is encoded with.
__device__ __forceinline__ void pick_layout(const StreamPlaces& places, const DeviceTrials& trials,
                                            std::uint64_t item) {
  const std::uint64_t first = item * trials.count;
  std::uint32_t best = 0;
  if (trials.count > 1) {
    LayoutCost best_cost = cost_of(trials, first);
    for (std::uint32_t t = 1; t < trials.count; ++t) {
      const LayoutCost cost = cost_of(trials, first + t);
      if (!is_cheaper(cost, best_cost)) continue;
      best = t;
      best_cost = cost;
    }
  }
  const DeviceTrial& trial = trials.at[best];
  const ChunkRules& rules = trials.rules[first + best];
  DeviceStream& stream = places.streams[item];
  copy_by_warp(rules, stream.codec_state);
  for (std::size_t i = sizeof(ChunkRules) + WarpLanes::lane(); i < cuda::kCodecStateBytes; i += kLanes)
    stream.codec_state[i] = 0;
  copy_by_warp(trial.segments, &stream.layout);
  if (WarpLanes::lane() != 0) return;
  StreamPlan& plan = places.plans[item];
  ByteWriter params({plan.params, cuda::kMostParamsBytes});
  put_params(params, rules, trial.layout);
  plan.params_bytes = static_cast<std::uint32_t>(params.size());
  plan.codec_id = kCodecId;
  plan.codec_version = kCodecVersion;
}

/// A CTA for each trial of each stream. The last one of a stream picks the layout.
__global__ void __launch_bounds__(kStepThreads)
    settle_plans(const __grid_constant__ StreamPlaces places, const __grid_constant__ DeviceTrials trials) {
  const std::uint64_t item = blockIdx.x / trials.count;
  DeviceStream& stream = places.streams[item];
  if (stream.status != StatusCode::ok) return;
  choose_step_of(trials, blockIdx.x);
  __syncthreads();
  if (threadIdx.x < kLanes && cuda::is_last_arrival(stream, trials.count)) pick_layout(places, trials, item);
}

/// What is read, and what it says of the grid.
__device__ __forceinline__ StatusCode open_stream(const StreamPlaces& places, const StreamPlan& plan,
                                                  DeviceStream& stream) {
  if (plan.codec_version != kCodecVersion) return StatusCode::unsupported_version;
  ByteReader in({plan.params, plan.params_bytes});
  ChunkRules rules;
  Layout layout;
  if (get_params(in, places.dtype, places.shape, rules, layout) != ParamsFault::none) return StatusCode::corrupt;
  const ChunkGrid grid = make_grid(places.shape, layout, places.dtype);
  for (unsigned a = 0; a < 3; ++a)
    if (grid.extents[a] != stream.layout.grid().extents[a] || grid.chunk[a] != stream.layout.grid().chunk[a])
      return StatusCode::corrupt;
  *reinterpret_cast<ChunkRules*>(stream.codec_state) = rules;
  return StatusCode::ok;
}

/// A thread for each stream.
__global__ void __launch_bounds__(kLanes) open_streams(const __grid_constant__ StreamPlaces places) {
  const std::uint32_t item = blockIdx.x * kLanes + threadIdx.x;
  if (item >= places.count) return;
  DeviceStream& stream = places.streams[item];
  const StreamPlan& plan = places.plans[item];
  if (stream.status != StatusCode::ok) return;
  if (plan.codec_id == kCodecId) {
    stream.status = open_stream(places, plan, stream);
  } else {
    *reinterpret_cast<ChunkRules*>(stream.codec_state) = ChunkRules{};  // of chunks that are all plain
  }
}

}  // namespace

cudaError_t lay_out_trials_async(const StreamPlaces& places, const DeviceTrials& trials, cudaStream_t queue) {
  const std::uint64_t tiles = std::uint64_t{places.count} * trials.count * kSampleTiles;
  return kernels::launch(&lay_out_trials, {blocks_for(tiles), kThreads}, queue, places, trials);
}

cudaError_t choose_candidates_async(const StreamPlaces& places, const DeviceTrials& trials, cudaStream_t queue) {
  const std::uint64_t sets = std::uint64_t{places.count} * trials.count;
  return kernels::launch(&choose_trials, {blocks_for(sets * kLanes), kThreads}, queue, places, trials);
}

cudaError_t settle_plans_async(const StreamPlaces& places, const DeviceTrials& trials, cudaStream_t queue) {
  return kernels::launch(&settle_plans, {places.count * trials.count, kStepThreads, sizeof(StepShared)}, queue, places,
                         trials);
}

cudaError_t open_streams_async(const StreamPlaces& places, cudaStream_t queue) {
  return kernels::launch(&open_streams, {(places.count + kLanes - 1) / kLanes, kLanes}, queue, places);
}

}  // namespace quern::codec::lorenzo
