// A launch's watch on races: which accesses it is told of, and what it says when one races.
#include <string>

#include "tests/simt/runtime/grid_run.h"
#include "tests/simt/runtime/runtime.h"

namespace simt {
namespace {

/// One plain access in so many lets another thread run first.
constexpr unsigned kAccessesASwitch = 32;

}  // namespace

RaceWatch::Row GridRun::row(const Warp& warp, unsigned lane) const {
  const Cta& cta = *warp.cta;
  const auto warp_number = static_cast<unsigned>(&warp - cta.warps.data());
  return cta.slot * threads_ + warp_number * kWarpLanes + lane;
}

void GridRun::join_lanes(std::uint32_t lanes) {
  if (watch_ == nullptr) return;
  std::vector<RaceWatch::Row> rows;
  for (unsigned lane = 0; lane < kWarpLanes; ++lane)
    if ((lanes >> lane & 1) != 0) rows.push_back(row(*warp_, lane));
  watch_->join(rows);
}

void GridRun::join_block(const Cta& cta) {
  if (watch_ == nullptr) return;
  std::vector<RaceWatch::Row> rows;
  for (const Warp& warp : cta.warps)
    for (unsigned lane = 0; lane < kWarpLanes; ++lane)
      if ((warp.at_barrier >> lane & 1) != 0) rows.push_back(row(warp, lane));
  watch_->join(rows);
}

/// The block's shared memory, or memory of a device or pinned: not a thread's own variables.
bool GridRun::is_shared_by_threads(const void* at) const {
  const auto offset = reinterpret_cast<std::uintptr_t>(at) - reinterpret_cast<std::uintptr_t>(warp_->cta->place.shared);
  return offset < launch_.shared_bytes || runtime().memory.find(at) != nullptr;
}

std::string GridRun::race_message(const void* at, std::size_t bytes, bool write,
                                  const RaceWatch::Conflict& conflict) const {
  const auto* const byte = static_cast<const unsigned char*>(at) + conflict.byte;
  const auto offset = static_cast<std::size_t>(byte - warp_->cta->place.shared);
  const std::string where = offset < launch_.shared_bytes ? "byte " + std::to_string(offset) + " of shared memory"
                                                          : runtime().memory.describe(byte);
  std::string out = describe_running();
  out += write ? " writes " : " reads ";
  out += std::to_string(bytes) + " bytes with " + where + ", which block ";
  out += text(block_index(order_[conflict.thread / threads_])) + " thread ";
  out += text(thread_index(conflict.thread % threads_));
  out += conflict.write ? " wrote" : " read";
  return out + ", and nothing orders the two";
}

void GridRun::watch_access(const void* at, std::size_t bytes, bool write, bool atomic) {
  const auto conflict = watch_->access(row(*warp_, lane_), at, bytes, write, atomic);
  if (conflict) abandon(race_message(at, bytes, write, *conflict));
}

void GridRun::watch_plain_access(const void* at, std::size_t bytes, bool write) {
  GridRun* const run = current();
  if (run == nullptr || run->watch_ == nullptr || !run->is_shared_by_threads(at)) return;
  if (run->random_.chance(kAccessesASwitch)) switch_point();
  run->watch_access(at, bytes, write, false);
}

void GridRun::watch_volatile_access(const void* at, std::size_t bytes, bool write) {
  GridRun* const run = current();
  if (run == nullptr || !run->is_shared_by_threads(at)) return;
  switch_point();
  run->note_memory_event(at, bytes, write ? MemoryEvent::relaxed_store : MemoryEvent::relaxed_load);
}

void GridRun::note_memory_event(const void* at, std::size_t bytes, MemoryEvent event) {
  if (watch_ == nullptr) return;
  if (event != MemoryEvent::fence) {
    const bool write = event != MemoryEvent::relaxed_load && event != MemoryEvent::acquiring_load;
    watch_access(at, bytes, write, true);
  }
  watch_->order(row(*warp_, lane_), at, event);
}

void note_memory_event(const void* at, unsigned bytes, MemoryEvent event) {
  GridRun::current()->note_memory_event(at, bytes, event);
}

}  // namespace simt
