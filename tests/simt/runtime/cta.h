// A CTA as the scheduler knows it: its warps, what each of their lanes waits for, and its shared memory.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "simt/running_thread.h"
#include "simt/warp_functions.h"
#include "tests/simt/runtime/fiber.h"

namespace simt {

inline constexpr unsigned kWarpLanes = 32;

/// CUDA's name of an operation.
const char* operation_name(WarpOperation operation);

/// Lanes of a warp that wait at one collective operation.
struct WarpGroup {
  WarpOperation operation = WarpOperation::sync;
  std::uint8_t bytes = 0;
  std::uint32_t mask = 0;     ///< lanes that it takes
  std::uint32_t arrived = 0;  ///< lanes that are there
};

struct Cta;

struct Warp {
  Cta* cta = nullptr;
  std::uint32_t lanes = 0;  ///< that exist
  std::uint32_t exited = 0;
  std::uint32_t ready = 0;  ///< may be chosen to run
  std::uint32_t at_barrier = 0;
  std::size_t position = 0;  ///< among the warps with a ready lane
  std::array<ThreadPlace, kWarpLanes> places;
  std::array<Fiber*, kWarpLanes> fibers{};
  unsigned group_count = 0;
  std::array<WarpGroup, kWarpLanes> groups;
  std::array<WarpArgument, kWarpLanes> arguments;
  std::array<std::uint64_t, kWarpLanes> results{};
};

struct Cta {
  CtaPlace place;
  unsigned slot = 0;  ///< among the resident blocks
  std::vector<Warp> warps;
  unsigned threads_left = 0;
  std::vector<unsigned char> shared_before;  ///< where bits may flip: shared memory as the block found it
  BarrierKind barrier_kind = BarrierKind::plain;
  unsigned barrier_arrived = 0;
  unsigned barrier_flags = 0;            ///< of those that are there
  std::array<int, 2> barrier_results{};  ///< of the last two: lanes may be slow to fetch theirs
  unsigned barrier_number = 0;
};

}  // namespace simt
