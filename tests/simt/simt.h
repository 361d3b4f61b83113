// What a test may tell and ask the simulator of CUDA (tests/simt/README.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace simt {

struct Options {
  std::uint64_t seed = 1;              ///< order of everything that CUDA leaves open, and noise
  int devices = 2;                     ///< 0: cudaErrorNoDevice, as on a machine without one
  std::size_t memory_bytes = 1 << 30;  ///< of each device
  int multiprocessors = 4;             ///< of each device
  unsigned resident_blocks = 0;        ///< blocks of a kernel that run at a time; 0: drawn for each launch, 32 at most
  /// Switches between threads after which a launch has failed if no thread ended and no barrier opened meanwhile.
  std::uint64_t idle_steps = 100'000'000;
  /// Fails a launch at the first race; kernels must come from quern_simt_library(... WATCHED).
  bool watch_races = false;
  bool print_failures = true;  ///< of kernels, on stderr
};

/// Starts anew: no streams, memory, errors, counts. Handles and pointers from before are invalid.
void reset(const Options& options = {});

/// What was called since the reset; calls that failed for their arguments are not counted.
struct Counters {
  std::uint64_t allocations = 0;  ///< of device memory, with those on streams
  std::uint64_t frees = 0;
  std::uint64_t host_allocations = 0;  ///< pinned
  std::uint64_t host_frees = 0;
  std::uint64_t allocated_bytes = 0;  ///< of device memory, at present
  std::uint64_t peak_bytes = 0;
  std::uint64_t synchronizations = 0;  ///< calls that wait, copies that wait by themselves included
  std::uint64_t queries = 0;
  std::uint64_t launches = 0;  ///< kernels, and CUB's algorithms as one each; captured ones when they are captured
  std::uint64_t graph_launches = 0;
  std::uint64_t sets = 0;
  std::array<std::uint64_t, 4> copies{};  ///< by cudaMemcpyKind
  std::array<std::uint64_t, 4> copied_bytes{};
};
const Counters& counters();

/// Makes the n-th allocation from now fail, device or pinned memory; 0: none.
void fail_allocation(std::uint64_t n);

/// A bit that flips while kernels run, as a hardware fault.
struct BitFlip {
  enum class Where : std::uint8_t {
    memory,    ///< the byte `at` of device memory
    uploaded,  ///< what the host has copied to the device last
    shared,    ///< shared memory of a block, of that what the block has written
    exchanged  ///< a value that a lane brings to a collective operation of its warp, as from a register
  };
  Where where = Where::memory;
  std::uint64_t moment = 0;     ///< not before so many moments() have passed
  std::size_t launch = 0;       ///< nor before so many launches have begun
  unsigned char* at = nullptr;  ///< open while kernels of its device run
  std::uint64_t choice = 0;     ///< of the byte or value, and of its bit
};
/// Flips these and no others; moments begin anew.
void plan_flips(std::vector<BitFlip> flips);
/// Launches, collective operations of warps and barriers of blocks that have run since; and of each launch, how many
/// moments had passed when it began to run.
std::uint64_t moments();
const std::vector<std::uint64_t>& launch_moments();

/// Why a kernel failed (kernel, block, thread), empty when none did. The device's further calls return errors.
std::string failure();

/// Streams, events and graphs that were created and not destroyed.
std::size_t live_handles();

}  // namespace simt
