// Finds races in one launch: accesses of two threads to a byte, one of them a write, that nothing orders. What orders
// is what CUDA promises: barriers, __syncwarp, releases that an acquire has seen, fences with atomics; other
// collectives of a warp do not. Vector clocks, as in FastTrack (Flanagan and Freund, PLDI 2009).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "simt/running_thread.h"

namespace simt {

class RaceWatch {
 public:
  /// Threads are numbered as their blocks begin: block's number * threads + thread.
  using ThreadId = std::uint32_t;
  /// Place of a thread among those that are resident: slot * threads + thread.
  using Row = std::uint32_t;

  /// The access that races with the one that was just made.
  struct Conflict {
    ThreadId thread = 0;
    bool write = false;
    std::size_t byte = 0;  ///< of the new access
  };

  /// Most threads of a launch: each has a clock of every other.
  static constexpr std::uint64_t kMaxThreads = 8192;

  RaceWatch(unsigned blocks, unsigned threads_per_block, unsigned slots);

  void begin_block(unsigned slot, unsigned number, const unsigned char* shared, std::size_t shared_bytes);
  /// What each of these threads did comes before what any of them does from now on.
  void join(const std::vector<Row>& rows);
  /// A plain access or an atomic one, of the thread in that row.
  std::optional<Conflict> access(Row row, const void* at, std::size_t bytes, bool write, bool atomic);
  /// What an atomic access or a fence orders.
  void order(Row row, const void* at, MemoryEvent event);

 private:
  using Clocks = std::vector<std::uint32_t>;
  struct Epoch {
    ThreadId thread = 0;
    std::uint32_t clock : 31 = 0;  ///< 0: none
    std::uint32_t atomic : 1 = 0;
  };
  /// Who touched a byte last: every reader since the last write.
  struct Cell {
    Epoch write;
    Epoch read;
    std::unique_ptr<std::vector<Epoch>> more_reads;
  };
  static constexpr std::size_t kPageCells = 256;
  using Page = std::array<Cell, kPageCells>;
  struct Thread {
    ThreadId id = 0;
    Clocks clocks;
    Clocks at_fence;  ///< its clocks at its last fence: what relaxed stores give away
    Clocks pending;   ///< what relaxed loads have seen: the next fence takes it in
  };

  Cell& cell(std::uintptr_t at);
  bool is_before(const Epoch& epoch, const Thread& thread) const { return epoch.clock <= thread.clocks[epoch.thread]; }
  bool races(const Epoch& before, const Thread& thread, bool atomic) const {
    return before.clock != 0 && !(before.atomic != 0 && atomic) && !is_before(before, thread);
  }
  void note_read(Cell& cell, const Epoch& epoch, const Thread& thread);

  unsigned threads_per_block_;
  std::size_t all_threads_;
  std::vector<Thread> threads_;  ///< by row
  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages_;
  std::uintptr_t last_page_number_ = 0;
  Page* last_page_ = nullptr;
  std::unordered_map<std::uintptr_t, Clocks> released_;  ///< by address: what an acquire there takes in
};

}  // namespace simt
