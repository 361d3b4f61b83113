#include "tests/simt/runtime/race_watch.h"

#include <algorithm>

namespace simt {
namespace {

/// `into` is empty or as long as `from`.
void take_in(std::vector<std::uint32_t>& into, const std::vector<std::uint32_t>& from) {
  if (from.empty()) return;
  if (into.empty()) into.resize(from.size());
  std::transform(into.begin(), into.end(), from.begin(), into.begin(),
                 [](std::uint32_t a, std::uint32_t b) { return std::max(a, b); });
}

}  // namespace

RaceWatch::RaceWatch(unsigned blocks, unsigned threads_per_block, unsigned slots)
    : threads_per_block_(threads_per_block),
      all_threads_(static_cast<std::size_t>(blocks) * threads_per_block),
      threads_(static_cast<std::size_t>(slots) * threads_per_block) {}

void RaceWatch::begin_block(unsigned slot, unsigned number, const unsigned char* shared, std::size_t shared_bytes) {
  for (unsigned t = 0; t < threads_per_block_; ++t) {
    Thread& thread = threads_[slot * threads_per_block_ + t];
    thread.id = number * threads_per_block_ + t;
    thread.clocks.assign(all_threads_, 0);
    thread.clocks[thread.id] = 1;
    thread.at_fence.clear();
    thread.pending.clear();
  }
  // The block before had the same shared memory.
  for (std::size_t i = 0; i < shared_bytes; ++i) cell(reinterpret_cast<std::uintptr_t>(shared + i)) = {};
}

void RaceWatch::join(const std::vector<Row>& rows) {
  Clocks all;
  for (const Row row : rows) take_in(all, threads_[row].clocks);
  for (const Row row : rows) {
    threads_[row].clocks = all;
    ++threads_[row].clocks[threads_[row].id];
  }
}

RaceWatch::Cell& RaceWatch::cell(std::uintptr_t at) {
  const std::uintptr_t number = at / kPageCells;
  if (last_page_ == nullptr || number != last_page_number_) {
    auto& page = pages_[number];
    if (page == nullptr) page = std::make_unique<Page>();
    last_page_ = page.get();
    last_page_number_ = number;
  }
  return (*last_page_)[at % kPageCells];
}

void RaceWatch::note_read(Cell& cell, const Epoch& epoch, const Thread& thread) {
  // A read that comes before this one can be forgotten: whoever races with it races with this one too.
  if (cell.read.clock == 0 || (is_before(cell.read, thread) && cell.read.atomic >= epoch.atomic)) {
    cell.read = epoch;
    return;
  }
  if (cell.more_reads == nullptr) cell.more_reads = std::make_unique<std::vector<Epoch>>();
  for (Epoch& other : *cell.more_reads)
    if (is_before(other, thread) && other.atomic >= epoch.atomic) {
      other = epoch;
      return;
    }
  cell.more_reads->push_back(epoch);
}

std::optional<RaceWatch::Conflict> RaceWatch::access(Row row, const void* at, std::size_t bytes, bool write,
                                                     bool atomic) {
  Thread& thread = threads_[row];
  Epoch epoch;
  epoch.thread = thread.id;
  epoch.clock = thread.clocks[thread.id] & 0x7fffffffu;
  epoch.atomic = atomic ? 1 : 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    Cell& touched = cell(reinterpret_cast<std::uintptr_t>(at) + i);
    if (races(touched.write, thread, atomic)) return Conflict{touched.write.thread, true, i};
    if (!write) {
      note_read(touched, epoch, thread);
      continue;
    }
    if (races(touched.read, thread, atomic)) return Conflict{touched.read.thread, false, i};
    if (touched.more_reads != nullptr)
      for (const Epoch& read : *touched.more_reads)
        if (races(read, thread, atomic)) return Conflict{read.thread, false, i};
    touched.write = epoch;
    touched.read = {};
    touched.more_reads = nullptr;
  }
  return std::nullopt;
}

void RaceWatch::order(Row row, const void* at, MemoryEvent event) {
  Thread& thread = threads_[row];
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  switch (event) {
    case MemoryEvent::relaxed_load: take_in(thread.pending, released_[address]); break;
    case MemoryEvent::acquiring_load: take_in(thread.clocks, released_[address]); break;
    case MemoryEvent::relaxed_store: released_[address] = thread.at_fence; break;
    case MemoryEvent::releasing_store:
      released_[address] = thread.clocks;
      ++thread.clocks[thread.id];
      break;
    case MemoryEvent::update:
      take_in(thread.pending, released_[address]);
      take_in(released_[address], thread.at_fence);  // goes on with what was released there before
      break;
    case MemoryEvent::fence:
      take_in(thread.clocks, thread.pending);
      thread.at_fence = thread.clocks;
      ++thread.clocks[thread.id];
      break;
  }
}

}  // namespace simt
