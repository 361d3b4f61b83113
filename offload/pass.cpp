// Slots: subgroups are read ahead into those that are free, updated in order, and written behind. Which slot is free:
// one whose subgroup the pass has done with, the earliest first, so that those of the end stay for the next pass.
#include "offload/pass.h"

#include <algorithm>

#include "storage/publish_file.h"

namespace quern::offload {

String Optimizer::path_of(std::size_t group, const StoredSubgroup& stored) const {
  return folders_[stored.folder]->file(subgroup_file_name(group, stored.stamp));
}

/// A slot for the subgroup at position `wanted` while the one at `position` is next to be done; kNone when all are in
/// use. The mutex is held.
std::size_t Optimizer::find_slot(const Pass& pass, std::size_t position, std::size_t wanted) const {
  std::size_t done = kNone;
  std::size_t later = kNone;
  std::size_t earliest = 0;
  std::size_t latest = wanted;
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    if (slots_[s].state == SlotState::empty) return s;
    if (slots_[s].state != SlotState::ready) continue;
    const std::size_t at = pass.position[slots_[s].group];
    if (at == kNone || at < position) {
      const std::size_t rank = at == kNone ? 0 : at + 1;
      if (done == kNone || rank < earliest) done = s, earliest = rank;
    } else if (at > latest) {
      later = s, latest = at;
    }
  }
  if (done != kNone) return done;
  return wanted == position ? later : kNone;
}

/// Runs a job whose only outcome is a status.
template <class Body>
static Status guarded(const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, "out of memory");
  } catch (...) {
    return Status(StatusCode::internal, "an exception of the library or of a callback; please report it");
  }
}

void Optimizer::empty_slot(std::size_t slot, bool frees) {
  Slot& s = slots_[slot];
  if (s.state != SlotState::empty) slot_of_[s.group] = kNone;
  s.state = SlotState::empty;
  s.changed = false;
  s.status = {};
  if (!frees) return;
  s.data = {};
  s.bytes = 0;
}

/// Memory of all slots; what the pass has done with goes while it is above the limit. The mutex is held.
void Optimizer::count_memory(const Pass& pass, std::size_t position) {
  usage_.memory_bytes = 0;
  for (const Slot& slot : slots_) usage_.memory_bytes += slot.bytes;
  usage_.most_memory_bytes = std::max(usage_.most_memory_bytes, usage_.memory_bytes);
  if (!in_files() || options_.memory_limit == 0) return;
  for (std::size_t s = 0; s < slots_.size() && usage_.memory_bytes > limit(); ++s) {
    Slot& slot = slots_[s];
    const std::size_t at = slot.state == SlotState::ready ? pass.position[slot.group] : kNone;
    const bool done =
        slot.state == SlotState::empty || (slot.state == SlotState::ready && (at == kNone || at < position));
    if (!done) continue;
    usage_.memory_bytes -= slot.bytes;
    empty_slot(s, true);
  }
}

void Optimizer::settle(std::size_t slot, SlotState state, const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    slots_[slot].state = status.ok() ? state : SlotState::failed;
    slots_[slot].status = status;
    slots_[slot].bytes = slots_[slot].data.bytes();
    ++changes_;
  }
  changed_.notify_all();
}

/// Hands a job on slot to a worker. A slot whose job could not be kept has failed, so that nobody waits for it.
template <class Job>
void Optimizer::post(Worker& worker, std::size_t slot, const Job& job) {
  const Status posted = guarded([&] {
    worker.post(job);
    return Status();
  });
  if (posted.ok()) return;
  slots_[slot].report = {};
  settle(slot, SlotState::failed, posted);
}

void Optimizer::begin_read(std::size_t slot) {
  const std::size_t group = slots_[slot].group;
  const StoredSubgroup stored = manifest_.groups[group];
  Folder& folder = *folders_[stored.folder];
  post(folder.reader(), slot, [this, slot, group, stored, &folder] {
    Slot& s = slots_[slot];
    s.report = {};
    const double begin = seconds_now();
    const Status status = guarded([&] {
      QUERN_RETURN_IF_ERROR(s.data.fit(groups_[group], options_.form));
      Moved moved;
      QUERN_RETURN_IF_ERROR(folder.read_in_turn(moved, s.report, [&] {
        FileCoder* const coder = stored.packed_bytes != 0 ? &folder.coder(false) : nullptr;
        return read_subgroup(files_, path_of(group, stored), stored, s.data, coder, moved, s.report);
      }));
      add_coded(false, s.data.bytes(), moved);
      return Status();
    });
    record(StepActivity::read, stored.folder, group, begin);
    settle(slot, SlotState::ready, status);
  });
}

void Optimizer::begin_write(Pass& pass, std::size_t slot) {
  const std::size_t group = slots_[slot].group;
  StoredSubgroup& stored = pass.next.groups[group];
  stored.folder = pass.folder[group];
  stored.stamp = pass.next.stamp;
  {
    const std::lock_guard lock(mutex_);
    slots_[slot].state = SlotState::writing;
  }
  Folder& folder = *folders_[stored.folder];
  const bool packs = packs_[stored.folder] || group == pass.tried;
  post(folder.writer(), slot, [this, slot, group, packs, &stored, &folder] {
    Slot& s = slots_[slot];
    s.report = {};
    const double begin = seconds_now();
    const Status status = guarded([&] {
      Moved moved;
      QUERN_RETURN_IF_ERROR(folder.write_in_turn(moved, s.report, [&] {
        FileCoder* const coder = packs ? &folder.coder(true) : nullptr;
        return write_subgroup(files_, path_of(group, stored), s.data, options_.durable, coder, stored, moved, s.report);
      }));
      add_coded(true, s.data.bytes(), moved);
      return Status();
    });
    record(StepActivity::write, stored.folder, group, begin);
    settle(slot, SlotState::ready, status);
  });
}

/// Memory that a subgroup will take when it has been read.
std::uint64_t Optimizer::stored_bytes(std::size_t group) const {
  return plain_bytes(groups_[group].values, options_.form) + manifest_.groups[group].beside_bytes;
}

/// Memory of subgroups, less what coders of files take.
std::uint64_t Optimizer::limit() const {
  if (!packs_any_) return options_.memory_limit;
  const std::uint64_t coders = coder_bytes(folders_.size());
  const std::uint64_t least = std::min(2 * largest_bytes_, options_.memory_limit);
  return std::max(options_.memory_limit - std::min(coders, options_.memory_limit), least);
}

void Optimizer::add_coded(bool writes, std::uint64_t plain_bytes, const Moved& moved) {
  if (moved.coding_seconds == 0) return;
  const std::lock_guard lock(mutex_);
  (writes ? pack_rate_ : unpack_rate_).add(plain_bytes, moved.coding_seconds);
  if (writes) packed_share_.add(moved.bytes, static_cast<double>(plain_bytes));
}

/// A slot for the subgroup that is next, at `position`. Subgroups that keep much beside their slots may have taken what
/// it needs: then what the pass has done with goes, writers are waited for, and what was read ahead goes at last. kNone:
/// wait for readers and writers. The mutex is held.
std::size_t Optimizer::make_room(const Pass& pass, std::size_t position) {
  const std::uint64_t wanted = stored_bytes(pass.order[position]);
  const std::size_t slot = find_slot(pass, position, position);
  if (slot == kNone || !in_files() || options_.memory_limit == 0) return slot;
  std::uint64_t bytes = std::max(wanted, slots_[slot].bytes);
  bool busy = false;
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    if (s != slot) bytes += slots_[s].bytes;
    busy = busy || slots_[s].state == SlotState::loading || slots_[s].state == SlotState::writing;
  }
  const auto give_up = [&](bool read_ahead) {
    for (std::size_t s = 0; s < slots_.size() && bytes > limit(); ++s) {
      if (s == slot || (slots_[s].state != SlotState::empty && slots_[s].state != SlotState::ready)) continue;
      const std::size_t at = slots_[s].state == SlotState::ready ? pass.position[slots_[s].group] : kNone;
      if (!read_ahead && at != kNone && at >= position) continue;
      bytes -= slots_[s].bytes;
      empty_slot(s, true);
    }
  };
  give_up(false);
  if (bytes > limit() && slots_[slot].bytes > wanted) {
    bytes -= slots_[slot].bytes - wanted;
    empty_slot(slot, true);
  }
  if (bytes > limit() && busy) return kNone;
  give_up(true);
  return slot;
}

/// Gives slots to the subgroups from `position` on, as far as there are any.
void Optimizer::read_ahead(const Pass& pass, std::size_t position) {
  for (std::size_t q = position; q < pass.order.size(); ++q) {
    const std::size_t group = pass.order[q];
    std::size_t slot = kNone;
    {
      const std::lock_guard lock(mutex_);
      if (slot_of_[group] != kNone) continue;
      if (q > position) {
        // Memory that slots will take counts before it is taken.
        std::uint64_t bytes = stored_bytes(group);
        for (const Slot& s : slots_) bytes += s.bytes;
        slot = find_slot(pass, position, q);
        if (slot != kNone) bytes -= slots_[slot].bytes;
        if (!pass.reads || (options_.memory_limit != 0 && bytes > limit())) return;
      } else {
        slot = make_room(pass, position);
      }
      if (slot == kNone) return;
      empty_slot(slot, false);
      slot_of_[group] = slot;
      slots_[slot].group = group;
      slots_[slot].state = SlotState::loading;
      slots_[slot].bytes = std::max(slots_[slot].bytes, stored_bytes(group));
    }
    if (pass.reads)
      begin_read(slot);
    else
      settle(slot, SlotState::ready, guarded([&] { return slots_[slot].data.fit(groups_[group], options_.form); }));
  }
}

Status Optimizer::first_failure(storage::Report& report) {
  const std::lock_guard lock(mutex_);
  for (Slot& slot : slots_)
    if (slot.state == SlotState::failed) {
      report.problem = slot.report.problem;
      return slot.status;
    }
  return {};
}

/// Brings the first subgroup that is in memory to that position: a folder that is late holds up its own subgroups alone.
/// The mutex is held.
void Optimizer::bring_forward(Pass& pass, std::size_t position) {
  const std::size_t next = slot_of_[pass.order[position]];
  if (next != kNone && slots_[next].state == SlotState::ready) return;
  std::size_t first = pass.order.size();
  for (const Slot& slot : slots_)
    if (slot.state == SlotState::ready && pass.position[slot.group] != kNone && pass.position[slot.group] >= position)
      first = std::min(first, pass.position[slot.group]);
  if (first == pass.order.size()) return;
  std::swap(pass.order[position], pass.order[first]);
  pass.position[pass.order[position]] = position;
  pass.position[pass.order[first]] = first;
}

/// Waits until the subgroup at a position is in memory.
Status Optimizer::wait_for_subgroup(Pass& pass, std::size_t position, storage::Report& report) {
  for (;;) {
    std::uint64_t seen = 0;
    {
      const std::lock_guard lock(mutex_);
      seen = changes_;
      if (pass.reads && pass.writes) bring_forward(pass, position);
    }
    read_ahead(pass, position);
    QUERN_RETURN_IF_ERROR(first_failure(report));
    std::unique_lock lock(mutex_);
    const std::size_t group = pass.order[position];
    const std::size_t slot = slot_of_[group];
    if (slot != kNone && slots_[slot].state == SlotState::ready) return {};
    // Whatever was read or written meanwhile may have made room to read further ahead.
    const StepActivity what = slot == kNone ? StepActivity::wait_for_memory : StepActivity::wait_for_read;
    const double begin = seconds_now();
    changed_.wait(lock, [&] { return changes_ != seen; });
    lock.unlock();
    record(what, in_files() ? manifest_.groups[group].folder : 0, group, begin);
  }
}

void Optimizer::record(StepActivity activity, std::size_t folder, std::size_t group, double begin) {
  if (!options_.record) return;
  const double end = seconds_now();
  // A picture without a span is better than a step that fails for it.
  (void)guarded([&] {
    const std::lock_guard lock(mutex_);
    spans_.push_back({activity, folder, group, begin - pass_begin_, end - pass_begin_});
    return Status();
  });
}

Status Optimizer::run_pass(Pass& pass, storage::Report& report) {
  if (pass.writes) {
    pass.next = manifest_;
    pass.next.stamp = ++last_stamp_;
    pass.next.groups.resize(groups_.size());
    if (in_files() && pass.folder.empty()) pass.folder = even_folders();
  }
  spans_.clear();
  pass_begin_ = seconds_now();
  pass.position.assign(groups_.size(), kNone);
  for (std::size_t p = 0; p < pass.order.size(); ++p) {
    pass.position[pass.order[p]] = p;
    if (pass.reads && slot_of_[pass.order[p]] != kNone) ++usage_.cached_reads;
  }
  const Status status = guarded([&]() -> Status {
    for (std::size_t p = 0; p < pass.order.size(); ++p) {
      QUERN_RETURN_IF_ERROR(wait_for_subgroup(pass, p, report));
      const std::size_t slot = slot_of_[pass.order[p]];
      slots_[slot].changed = slots_[slot].changed || pass.writes;
      const double begin = seconds_now();
      QUERN_RETURN_IF_ERROR(pass.body(slots_[slot].data, groups_[pass.order[p]]));
      record(StepActivity::update, 0, pass.order[p], begin);
      if (pass.reads && pass.writes) update_rate_.add(groups_[pass.order[p]].values, seconds_now() - begin);
      {
        const std::lock_guard lock(mutex_);
        slots_[slot].bytes = slots_[slot].data.bytes();
        count_memory(pass, p);
      }
      if (pass.writes && in_files()) begin_write(pass, slot);
    }
    return {};
  });
  // Whatever happened: nobody uses a slot any more once this returns.
  const double begin = seconds_now();
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      return std::none_of(slots_.begin(), slots_.end(),
                          [](const Slot& s) { return s.state == SlotState::loading || s.state == SlotState::writing; });
    });
  }
  record(StepActivity::wait_for_writes, 0, kNone, begin);
  return status.ok() ? guarded([&] { return first_failure(report); }) : status;
}

void Optimizer::drop_changes(const Pass& pass) {
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    if (!slots_[s].changed && slots_[s].state != SlotState::failed) continue;
    if (slots_[s].changed && !in_files()) broken_ = true;
    // What a read or a body left half filled is of no use to anybody: its sizes may not fit what lies beside the slots.
    empty_slot(s, true);
  }
  if (!pass.writes || !in_files()) return;
  for (std::size_t g = 0; g < pass.next.groups.size(); ++g)
    if (pass.next.groups[g].stamp == pass.next.stamp)
      (void)guarded([&] { return files_.remove(path_of(g, pass.next.groups[g])); });
}

Status Optimizer::publish(const Manifest& next, storage::Report& report) {
  if (options_.durable)
    for (const auto& folder : folders_)
      if (const Status synced = files_.sync_folder(folder->path()); !synced.ok())
        return storage::fail_file(report, folder->path(), "sync it", synced);
  const Folder& first = *folders_.front();
  const String temporary = first.file("state.new");
  (void)files_.remove(temporary);
  return storage::publish_file(files_, temporary, first.file("state"), first.path(), write_manifest(next), report);
}

Status Optimizer::finish_pass(Pass& pass, Status status, storage::Report& report) {
  if (status.ok() && pass.writes && in_files()) {
    status = guarded([&] { return publish(pass.next, report); });
    if (!status.ok()) {
      // The new manifest may be in place all the same: then its files must stay, and so must the old ones.
      broken_ = true;
      (void)guarded([&] {
        const auto bytes = storage::read_file(files_, folders_.front()->file("state"), kMostManifestBytes);
        const bool old =
            bytes.ok() ? *bytes == write_manifest(manifest_) : !loaded_ && storage::is_missing(bytes.status());
        broken_ = !old;
        return Status();
      });
      if (broken_) return status;
    }
  }
  if (!status.ok()) {
    drop_changes(pass);
    return status;
  }
  if (!pass.writes) return {};
  std::swap(manifest_, pass.next);
  loaded_ = true;
  for (Slot& slot : slots_) slot.changed = false;
  if (!in_files()) return {};
  for (std::size_t g = 0; g < pass.next.groups.size(); ++g) {
    if (pass.next.groups[g].stamp == 0) continue;  // there was none
    // The step counts whatever happens here; a file that stays goes when the folders are opened again.
    (void)guarded([&] {
      const String path = path_of(g, pass.next.groups[g]);
      const Status removed = files_.remove(path);
      if (!removed.ok()) report.notes.push_back(storage::join({path, ": an old file could not be removed"}));
      return removed;
    });
  }
  return {};
}

}  // namespace quern::offload
