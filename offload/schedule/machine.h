// What a step of an offloaded optimizer runs on, and what it has to do: the input of a schedule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include <quern/memory.h>

namespace quern::offload {

/// Bytes a second in each direction, at the same time.
struct PathRates {
  double read = 0;
  double write = 0;
};

/// Resources; each does one thing at a time. A rate of 0: there is no such resource.
struct Machine {
  double cpu = 0;               ///< values a second that the CPU updates
  double gpu = 0;               ///< values a second that the GPU updates
  double to_gpu = 0;            ///< bytes a second of the copy engine towards the GPU
  double from_gpu = 0;          ///< bytes a second of the copy engine from the GPU
  Vector<PathRates> paths;      ///< folders; none: the state stays in memory
  std::size_t buffers = 4;      ///< subgroups in host memory at once, at least 1; without paths it does not matter
  std::size_t gpu_buffers = 2;  ///< subgroups on the GPU at once, at least 1

  bool has_gpu() const { return gpu > 0 && to_gpu > 0 && from_gpu > 0; }
};

inline constexpr std::size_t kInMemory = std::numeric_limits<std::size_t>::max();

/// One subgroup of a step.
struct Job {
  std::uint64_t values = 0;
  std::uint64_t bytes = 0;       ///< of its weights and moments, as they are stored
  std::uint64_t copy_bytes = 0;  ///< of weights that a GPU gets after an update on the CPU
  std::size_t path = kInMemory;  ///< where it lies
};

/// One subgroup in a schedule.
struct Placed {
  std::size_t job = 0;
  bool on_gpu = false;
  std::size_t path = kInMemory;  ///< where it is written; kInMemory: nowhere
};

/// Subgroups in the order in which resources prefer them: where several wait for one, the earliest here goes first.
using Schedule = Vector<Placed>;

}  // namespace quern::offload
