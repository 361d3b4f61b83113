#include "checkpoint/tiers/keeper.h"

#include <algorithm>

#include "checkpoint/store/stored_manifests.h"

namespace quern::checkpoint {
namespace {

constexpr std::uint64_t kTrimEvery = std::uint64_t{64} << 20;  ///< bytes of a copy after which memory is trimmed

bool has(const Vector<CheckpointName>& names, const CheckpointName& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void add_once(Vector<CheckpointName>& names, const CheckpointName& name) {
  if (!has(names, name)) names.push_back(name);
}

/// Bytes of a checkpoint; what cannot be read counts as nothing and is collect()'s business.
std::uint64_t bytes_of(const Store& store, const CheckpointName& name) {
  Report unheard;
  const auto manifest = store.read(name, unheard);
  return manifest.ok() ? manifest->stored_bytes() : 0;
}

/// Bytes of all checkpoints of which something is needed: they stay with all their parts.
std::uint64_t bytes_of(const Needs& needs) {
  std::uint64_t sum = 0;
  for (const Needed& needed : needs.checkpoints())
    if (needed.manifest != nullptr) sum += needed.manifest->stored_bytes();
  return sum;
}

/// How many of the newest fit, with what they need, beside one more of the size of the newest; at least one.
std::size_t count_that_fit(const Store& memory, const Vector<CheckpointName>& names, std::uint64_t limit) {
  StoredManifests manifests(memory);
  Needs needs(manifests);
  std::uint64_t one_more = 0;
  std::size_t count = 0;
  for (std::size_t i = names.size(); i-- > 0; ++count) {
    Report unheard;
    const auto manifest = manifests.find(names[i], unheard);
    if (manifest.ok()) (void)needs.add(**manifest, unheard);
    if (count == 0) one_more = manifest.ok() ? (*manifest)->stored_bytes() : 0;
    if (count != 0 && (one_more > limit || bytes_of(needs) > limit - one_more)) break;
  }
  return std::max<std::size_t>(count, 1);
}

/// Of a checkpoint in memory; copy_checkpoint() has no such status for the store.
bool is_damage(StatusCode code) {
  return code == StatusCode::corrupt || code == StatusCode::checksum_mismatch || code == StatusCode::bad_magic ||
         code == StatusCode::truncated;
}

/// One round's work on two stores.
class Round {
 public:
  Round(const Store& memory, const Store& store, const KeeperOptions& options, KeeperState& state, Kept& out)
      : memory_(memory), store_(store), options_(options), state_(state), out_(out) {}

  Status run(Report& report) {
    QUERN_RETURN_IF_ERROR(forget_what_left(report));
    Status copied;
    String problem;
    if (options_.copies) {
      QUERN_RETURN_IF_ERROR(trim(options_.memory_bytes, true, report));
      // Memory bears what it holds already; what waits there for its copy is not to go for that.
      QUERN_ASSIGN_OR_RETURN(const std::uint64_t held, held_bytes(report));
      QUERN_ASSIGN_OR_RETURN(const auto names, memory_.list_current(report));
      const std::uint64_t one = names.empty() ? 0 : bytes_of(memory_, names.back());
      copied = copy_missing(std::max(options_.memory_bytes, held + one), report);
      // The keeper ends: what is in memory stays for the next one.
      if (copied.code() == StatusCode::cancelled) return copied;
      problem = report.problem;
    }
    QUERN_RETURN_IF_ERROR(trim(options_.memory_bytes, false, report));
    QUERN_ASSIGN_OR_RETURN(out_.held_bytes, held_bytes(report));
    QUERN_ASSIGN_OR_RETURN(const auto current, memory_.list_current(report));
    for (const CheckpointName& name : current) out_.steps.push_back(name.step);
    report.problem = problem;
    return copied;
  }

 private:
  Result<std::uint64_t> held_bytes(Report& report) const {
    QUERN_ASSIGN_OR_RETURN(const auto names, memory_.list_all(report));
    std::uint64_t sum = 0;
    for (const CheckpointName& name : names) sum += bytes_of(memory_, name);
    return sum;
  }

  Status forget_what_left(Report& report) {
    QUERN_ASSIGN_OR_RETURN(const auto names, memory_.list_all(report));
    for (Vector<CheckpointName>* const list : {&state_.copied, &state_.failed})
      list->erase(
          std::remove_if(list->begin(), list->end(), [&](const CheckpointName& name) { return !has(names, name); }),
          list->end());
    return {};
  }

  /// Those that are not among the newest whole ones that fit, the newest first.
  Result<Vector<CheckpointName>> beyond(std::uint64_t limit, Report& report) const {
    QUERN_ASSIGN_OR_RETURN(const auto names, memory_.list_current(report));
    const std::size_t count = count_that_fit(memory_, names, limit);
    Vector<CheckpointName> out;
    if (names.size() <= count) return out;
    std::size_t whole = 0;
    for (std::size_t i = names.size(); i-- > 0;) {
      Report unheard;
      if (whole >= count) {
        if (options_.stays != names[i]) out.push_back(names[i]);
      } else if (memory_.read_checked(names[i], unheard).ok()) {
        ++whole;
      }
    }
    return out;
  }

  /// Whether the store should have the checkpoint, and has no whole copy now.
  bool lacks(const CheckpointName& name) {
    if (name.step % options_.every != 0) return false;
    Report unheard;
    const auto manifest = memory_.read(name, unheard);
    if (!manifest.ok() || !is_whole_on(store_, *manifest)) return true;
    add_once(state_.copied, name);
    return false;
  }

  /// True when it was seen whole in the store, whose own collection removed it since: all there are newer.
  bool was_collected(const CheckpointName& name) const {
    Report unheard;
    const auto there = store_.list(unheard);
    return has(state_.copied, name) && there.ok() && !there->empty() && name.generation < there->front().generation;
  }

  /// `copied_only`: what the store lacks stays, and is copied again if the store lists it, for it is damaged there. What
  /// was asked in vain is not even looked for in the store, which may be slow.
  Status trim(std::uint64_t limit, bool copied_only, Report& report) {
    QUERN_ASSIGN_OR_RETURN(const auto old, beyond(limit, report));
    QUERN_ASSIGN_OR_RETURN(const auto before, memory_.list_all(report));
    if (old == state_.asked_in_vain && before == state_.seen_then) return {};
    Vector<CheckpointName> going, without_copy;
    for (const CheckpointName& name : old) {
      const bool lacking = lacks(name) && !was_collected(name);
      if (lacking) without_copy.push_back(name);
      if (!(lacking && copied_only) && !is_exactly(name, in_copy_)) going.push_back(name);
    }
    if (copied_only) damaged_there_ = without_copy;
    if (going.empty()) return {};
    CollectOptions collecting;
    collecting.remove_exactly = going;
    const auto done = collect(memory_, collecting, report);
    if (!done.ok()) return is_busy(done.status()) ? Status() : done.status();
    out_.dropped += done->removed.size();
    QUERN_ASSIGN_OR_RETURN(const auto left, memory_.list(report));
    for (const CheckpointName& name : going)
      if (has(without_copy, name) && !has(left, name)) out_.lost.push_back(name.step);
    state_.asked_in_vain.clear();
    state_.seen_then.clear();
    if (done->removed.empty() && going == old) {
      state_.asked_in_vain = old;
      QUERN_ASSIGN_OR_RETURN(state_.seen_then, memory_.list_all(report));
    }
    return {};
  }

  /// What the store lacks, and what it holds damaged of what is to leave memory, in the order of publishing.
  Result<Vector<CheckpointName>> to_copy(Report& report) const {
    QUERN_ASSIGN_OR_RETURN(auto out, missing_on(memory_, {&store_, options_.every}, report));
    QUERN_ASSIGN_OR_RETURN(const auto there, store_.list(report));
    for (const CheckpointName& name : damaged_there_)
      if (has(there, name)) add_once(out, name);
    std::stable_sort(out.begin(), out.end(),
                     [](const CheckpointName& a, const CheckpointName& b) { return a.generation < b.generation; });
    return out;
  }

  Status copy_missing(std::uint64_t limit, Report& report) {
    QUERN_RETURN_IF_ERROR(store_.make_folders(report));
    QUERN_RETURN_IF_ERROR(check_order(memory_, store_, report));
    QUERN_ASSIGN_OR_RETURN(const auto missing, to_copy(report));
    CopyControl control = options_.copy;
    std::uint64_t since = 0;
    control.turn = [&](std::size_t bytes) {
      if ((since += bytes) >= kTrimEvery) {
        since = 0;
        Report own;
        if (trim(options_.memory_bytes, true, own).ok()) (void)trim(limit, false, own);
        report.notes.insert(report.notes.end(), own.notes.begin(), own.notes.end());
      }
      return options_.copy.turn(bytes);
    };
    Status first;
    String problem;
    for (const CheckpointName& name : missing) {
      if (has(state_.failed, name)) continue;
      Report own;
      in_copy_ = name;
      const auto copied = copy_checkpoint(memory_, store_, name, control, own);
      in_copy_ = {};
      report.notes.insert(report.notes.end(), own.notes.begin(), own.notes.end());
      if (copied.ok()) {
        out_.copied += copied->checkpoints;
        out_.copied_bytes += copied->bytes;
        add_once(state_.copied, name);
        continue;
      }
      const StatusCode code = copied.status().code();
      if (is_busy(copied.status())) continue;  // its trainer copies it
      if (is_damage(code)) {
        // It is damaged, or has left memory meanwhile.
        state_.failed.push_back(name);
        report.notes.push_back(join({"step ", decimal(name.step), " was not copied: ", own.problem}));
        continue;
      }
      if (first.ok()) {
        first = copied.status();
        problem = own.problem;
      }
      if (code == StatusCode::io_error || code == StatusCode::cancelled) break;  // the others would fail as well
    }
    if (!first.ok()) report.problem = problem;
    return first;
  }

  const Store &memory_, &store_;
  const KeeperOptions& options_;
  KeeperState& state_;
  Kept& out_;
  Vector<CheckpointName> damaged_there_;  ///< or not there
  CheckpointName in_copy_;                ///< stays until that is over
};

/// What is saved with another parity could never be copied.
Status check_parity(const Store& memory, const Store& store, const CheckpointName& newest, Report& report) {
  if (store.placed() == nullptr) return {};
  Report unheard;
  const auto manifest = memory.read(newest, unheard);
  const auto placement = store.placed()->placement();
  if (!manifest.ok() || (manifest->parity.data == placement->data && manifest->parity.parity == placement->parity))
    return {};
  return fail(report, StatusCode::invalid_argument,
              join({store.root(), ": is spread over nodes as ", decimal(placement->data), "+",
                    decimal(placement->parity), ", and step ", decimal(newest.step), " of ", memory.root(),
                    " has other parity; save with that parity, or give --store another folder"}));
}

}  // namespace

Status fill_memory(const Store& memory, const Store& store, const KeeperOptions& options, TaskRunner& runner,
                   Report& report) {
  QUERN_RETURN_IF_ERROR(memory.make_folders(report));
  QUERN_RETURN_IF_ERROR(store.make_folders(report));
  QUERN_ASSIGN_OR_RETURN(const auto names, memory.list(report));
  if (!names.empty()) return check_parity(memory, store, names.back(), report);
  QUERN_ASSIGN_OR_RETURN(const auto there, store.list(report));
  if (there.empty()) return {};
  QUERN_ASSIGN_OR_RETURN(const Found found, newest_of(std::span(&store, 1), runner, report));
  StoredManifests manifests(store);
  Needs needs(manifests);
  QUERN_RETURN_IF_ERROR(needs.add(found.manifest, report));
  const std::uint64_t one = found.manifest.stored_bytes(), all = bytes_of(needs);
  if (one > options.memory_bytes || all > options.memory_bytes - one)
    return fail(report, StatusCode::invalid_argument,
                join({store.root(), ": step ", decimal(found.manifest.name.step), " takes ", decimal(all),
                      " bytes with what it needs, and memory must hold one more of its size; give --memory ",
                      decimal(all + one), " or more"}));
  return copy_checkpoint(store, memory, found.manifest.name, options.copy, report).status();
}

Status keep_once(const Store& memory, const Store& store, const KeeperOptions& options, KeeperState& state, Kept& out,
                 Report& report) {
  QUERN_RETURN_IF_ERROR(memory.check_apart(store, report));
  return Round(memory, store, options, state, out).run(report);
}

}  // namespace quern::checkpoint
