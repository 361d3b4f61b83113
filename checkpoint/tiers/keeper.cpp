#include "checkpoint/tiers/keeper.h"

#include <algorithm>

namespace quern::checkpoint {
namespace {

constexpr std::uint64_t kLookEvery = std::uint64_t{64} << 20;  ///< bytes of a copy between two looks at the memory

/// Bytes of a checkpoint; what cannot be read counts as nothing and is collect()'s business.
std::uint64_t bytes_of(const Store& store, const CheckpointName& name) {
  Report unheard;
  const auto manifest = store.read(name, unheard);
  return manifest.ok() ? manifest->stored_bytes() : 0;
}

/// How many of the newest fit beside one more of the size of the newest; at least one.
std::size_t count_that_fit(const Store& memory, const Vector<CheckpointName>& names, std::uint64_t limit) {
  std::uint64_t sum = 0, one_more = 0;
  std::size_t count = 0;
  for (std::size_t i = names.size(); i-- > 0; ++count) {
    const std::uint64_t bytes = bytes_of(memory, names[i]);
    if (count == 0) one_more = bytes;
    sum += bytes;
    if (count != 0 && (one_more > limit || sum > limit - one_more)) break;
  }
  return std::max<std::size_t>(count, 1);
}

Status trim(const Store& memory, const Store& store, const KeeperOptions& options, Kept& out, Report& report) {
  QUERN_ASSIGN_OR_RETURN(const auto names, memory.list_current(report));
  CollectOptions collecting;
  collecting.keep = count_that_fit(memory, names, options.memory_bytes);
  if (names.size() <= *collecting.keep) return {};
  const auto done = collect(memory, collecting, report);
  if (!done.ok()) return is_busy(done.status()) ? Status() : done.status();
  out.dropped += done->removed.size();
  Report unheard;
  const auto there = store.list(unheard);
  for (const CheckpointName& name : done->removed) {
    if (name.step % options.every != 0 || !there.ok()) continue;
    if (std::find(there->begin(), there->end(), name) == there->end())
      report.notes.push_back(
          join({"step ", decimal(name.step), " had to leave memory before it was in ", store.root()}));
  }
  return {};
}

Status copy_missing(const Store& memory, const Store& store, const KeeperOptions& options, Kept& out, Report& report) {
  QUERN_RETURN_IF_ERROR(store.make_folders(report));
  QUERN_RETURN_IF_ERROR(check_order(memory, store, report));
  QUERN_ASSIGN_OR_RETURN(const auto missing, missing_on(memory, {&store, options.every}, report));
  CopyControl control = options.copy;
  std::uint64_t since = 0;
  control.turn = [&](std::size_t bytes) {
    if ((since += bytes) >= kLookEvery) {
      since = 0;
      Report own;
      (void)trim(memory, store, options, out, own);
      report.notes.insert(report.notes.end(), own.notes.begin(), own.notes.end());
    }
    return options.copy.turn(bytes);
  };
  for (const CheckpointName& name : missing) {
    Report own;
    const auto copied = copy_checkpoint(memory, store, name, control, own);
    if (copied.ok()) {
      out.copied += copied->checkpoints;
      out.copied_bytes += copied->bytes;
      continue;
    }
    if (is_busy(copied.status())) continue;  // its trainer copies it
    if (copied.status().code() == StatusCode::io_error || copied.status().code() == StatusCode::cancelled) {
      report.problem = own.problem;
      return copied.status();
    }
    // It is damaged, or has left memory meanwhile.
    report.notes.push_back(join({"step ", decimal(name.step), " was not copied: ", own.problem}));
  }
  return {};
}

}  // namespace

Status fill_memory(const Store& memory, const Store& store, const KeeperOptions& options, TaskRunner& runner,
                   Report& report) {
  QUERN_RETURN_IF_ERROR(memory.make_folders(report));
  QUERN_RETURN_IF_ERROR(store.make_folders(report));
  QUERN_ASSIGN_OR_RETURN(const auto names, memory.list(report));
  QUERN_ASSIGN_OR_RETURN(const auto there, store.list(report));
  if (!names.empty() || there.empty()) return {};
  QUERN_ASSIGN_OR_RETURN(const Found found, newest_of(std::span(&store, 1), runner, report));
  const std::uint64_t bytes = found.manifest.stored_bytes();
  if (bytes > options.memory_bytes / 2)
    return fail(report, StatusCode::invalid_argument,
                join({store.root(), ": step ", decimal(found.manifest.name.step), " takes ", decimal(bytes),
                      " bytes, and memory must hold two of its size; give --memory at least that"}));
  return copy_checkpoint(store, memory, found.manifest.name, options.copy, report).status();
}

Status keep_once(const Store& memory, const Store& store, const KeeperOptions& options, Kept& out, Report& report) {
  QUERN_RETURN_IF_ERROR(memory.check_apart(store, report));
  QUERN_RETURN_IF_ERROR(trim(memory, store, options, out, report));
  const Status copied = copy_missing(memory, store, options, out, report);
  const String problem = report.problem;
  QUERN_RETURN_IF_ERROR(trim(memory, store, options, out, report));
  QUERN_ASSIGN_OR_RETURN(const auto names, memory.list_all(report));
  for (const CheckpointName& name : names) out.held_bytes += bytes_of(memory, name);
  QUERN_ASSIGN_OR_RETURN(const auto current, memory.list_current(report));
  for (const CheckpointName& name : current) out.steps.push_back(name.step);
  report.problem = problem;
  return copied;
}

}  // namespace quern::checkpoint
