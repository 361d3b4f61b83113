// Garbage collection: what stays, what that needs, and the removal of the rest.
#include "checkpoint/store/collect.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "checkpoint/store/needs.h"
#include "checkpoint/store/publish.h"

namespace quern::checkpoint {
namespace {

struct Entry {
  CheckpointName name;
  bool retired = false;
  std::optional<Manifest> manifest;  ///< nothing: it cannot be read
  bool whole = false;                ///< its own parts are there
  bool stays = true;
  bool needed = false;  ///< by one that stays
};

/// All checkpoints of a store, the retired ones too, in the order they were published.
class Entries final : public ManifestSource {
 public:
  Status read(const Store& store, Report& report) {
    QUERN_ASSIGN_OR_RETURN(const auto retired, store.list_retired(report));
    QUERN_ASSIGN_OR_RETURN(const auto names, store.list(report));
    for (const CheckpointName& name : retired) add(store, name, true, report);
    for (const CheckpointName& name : names) add(store, name, false, report);
    return {};
  }
  Result<const Manifest*> find(const CheckpointName& name, Report& report) override {
    for (const Entry& entry : all)
      if (entry.name == name && entry.manifest) return &*entry.manifest;
    return fail(report, StatusCode::io_error, join({"step ", decimal(name.step), " cannot be read"}));
  }

  Vector<Entry> all;

 private:
  void add(const Store& store, const CheckpointName& name, bool retired, Report& report) {
    Entry entry;
    entry.name = name;
    entry.retired = retired;
    Report own;
    auto manifest = store.read_checked(name, own);
    entry.whole = manifest.ok();
    if (!manifest.ok()) manifest = store.read(name, own);
    if (manifest.ok()) {
      entry.manifest = std::move(manifest).value();
    } else {
      report.notes.push_back(join({"kept, because it cannot be read: ", own.problem}));
    }
    all.push_back(std::move(entry));
  }
};

std::optional<double> metric_of(const Entry& entry, std::string_view name) {
  for (const Tag& tag : entry.manifest->tags) {
    double value = 0;
    const char* const end = tag.text.data() + tag.text.size();
    if (tag.name == name && std::from_chars(tag.text.data(), end, value).ptr == end && std::isfinite(value))
      return value;
  }
  return std::nullopt;
}

/// Marks the whole checkpoints with the best numbers; of equal ones the newer.
Status keep_best(Vector<Entry>& entries, const KeepBest& best, Report& report) {
  Vector<std::pair<double, std::size_t>> found;
  for (std::size_t i = entries.size(); i-- > 0;) {
    if (!entries[i].whole || entries[i].retired) continue;
    if (const auto value = metric_of(entries[i], best.metric)) found.emplace_back(best.largest ? -*value : *value, i);
  }
  if (found.empty())
    return fail(
        report, StatusCode::invalid_argument,
        join({"no checkpoint has a number under the tag '", best.metric, "'; save with it, or leave this out"}));
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < std::min(best.count, found.size()); ++i) entries[found[i].second].stays = true;
  return {};
}

Status choose(Vector<Entry>& entries, const CollectOptions& options, Report& report) {
  const bool chosen = options.keep || options.keep_every != 0 || options.best;
  std::size_t left = options.keep.value_or(0);
  for (std::size_t i = entries.size(); i-- > 0;) {
    Entry& entry = entries[i];
    if (!entry.manifest) continue;
    const bool again = std::any_of(entries.begin(), entries.end(), [&](const Entry& later) {
      return !later.retired && later.name.step == entry.name.step && later.name.generation > entry.name.generation;
    });
    entry.stays = !entry.retired && !again;
    if (!entry.stays || !chosen) continue;
    const bool among_newest = left > 0;
    if (entry.whole && left > 0) --left;
    entry.stays = among_newest || (options.keep_every != 0 && entry.name.step % options.keep_every == 0);
  }
  if (options.best) QUERN_RETURN_IF_ERROR(keep_best(entries, *options.best, report));
  for (const std::uint64_t step : options.remove) {
    bool found = false;
    for (Entry& entry : entries) {
      if (entry.name.step != step || entry.retired) continue;
      found = true;
      if (entry.manifest) entry.stays = false;
    }
    if (!found)
      return fail(report, StatusCode::invalid_argument, join({"the store has no checkpoint of step ", decimal(step)}));
  }
  for (const CheckpointName& name : options.remove_exactly)
    for (Entry& entry : entries)
      if (is_exactly(entry.name, name) && !entry.retired && entry.manifest) entry.stays = false;
  return {};
}

/// Marks what those that stay need, tensor by tensor.
void mark_needed(Entries& entries) {
  Needs needs(entries);
  Report unheard;  // what a damaged checkpoint needs of one that is gone is verify's business
  for (const Entry& entry : entries.all)
    if (entry.stays && entry.manifest) (void)needs.add(*entry.manifest, unheard);
  for (Entry& entry : entries.all) entry.needed = entry.needed || (!entry.stays && needs.find(entry.name) != nullptr);
}

/// True when a tensor of the checkpoint needs one that goes.
bool loses(Entries& entries, const Entry& entry) {
  Needs needs(entries);
  Report unheard;
  if (!needs.add(*entry.manifest, unheard).ok()) return true;
  return std::any_of(needs.checkpoints().begin(), needs.checkpoints().end(), [&](const Needed& needed) {
    return std::none_of(entries.all.begin(), entries.all.end(),
                        [&](const Entry& e) { return e.name == needed.name && (e.stays || e.needed); });
  });
}

Status retire(const Store& store, const Entry& entry, Report& report) {
  const String from = store.manifest_path(entry.name);
  const Status status = store.files().rename(from, store.retired_path(entry.name));
  return status.ok() ? status : fail_file(report, from, "retire it", status);
}

/// Manifests, then data; the caller holds the store's lock.
Status carry_out(const Store& store, const Entries& entries, const Vector<const Entry*>& retired, Collected& out,
                 Report& report) {
  FileSystem& files = store.files();
  const auto sync = [&]() -> Status {
    const Status synced = files.sync_folder(store.manifests_root());
    return synced.ok() ? synced : fail_file(report, store.manifests_root(), "sync it", synced);
  };
  for (const Entry* const entry : retired) QUERN_RETURN_IF_ERROR(retire(store, *entry, report));
  if (!retired.empty()) QUERN_RETURN_IF_ERROR(sync());
  // Users before what they use: no manifest is ever there without those it needs.
  for (std::size_t i = entries.all.size(); i-- > 0;) {
    const Entry& entry = entries.all[i];
    if (entry.stays || entry.needed) continue;
    const String path = entry.retired ? store.retired_path(entry.name) : store.manifest_path(entry.name);
    const Status status = files.remove(path);
    if (!status.ok()) return fail_file(report, path, "remove it", status);
  }
  QUERN_RETURN_IF_ERROR(sync());
  for (const CheckpointName& name : out.removed) {
    const Status status = remove_tree(files, store.data_folder(name.id));
    if (!status.ok()) return fail_file(report, store.data_folder(name.id), "remove it", status);
  }
  return {};
}

Result<Collected> collect_locked(const Store& store, const CollectOptions& options, Report& report) {
  Entries entries;
  QUERN_RETURN_IF_ERROR(entries.read(store, report));
  if (const Status chosen = choose(entries.all, options, report); !chosen.ok())
    return fail_at(report, store.root(), chosen);
  mark_needed(entries);
  Collected out;
  Vector<const Entry*> retired;
  for (std::size_t i = entries.all.size(); i-- > 0;) {
    const Entry& entry = entries.all[i];
    if (entry.stays) continue;
    if (entry.needed) {
      out.kept_for_others.push_back(entry.name);
      if (!entry.retired && loses(entries, entry)) retired.push_back(&entry);
      continue;
    }
    out.removed.push_back(entry.name);
    out.freed_bytes += entry.manifest->stored_bytes();
  }
  if (options.dry_run) return out;
  QUERN_RETURN_IF_ERROR(carry_out(store, entries, retired, out, report));
  return out;
}

}  // namespace

Result<Collected> collect(const Store& store, const CollectOptions& options, Report& report) {
  QUERN_RETURN_IF_ERROR(store.check_is_store(report));
  const auto lock = store.files().lock(store.lock_path(), LockKind::exclusive, false);
  if (!lock.ok() && is_busy(lock.status())) {
    report.problem = join({store.root(), ": the store is in use; try again when saves have ended"});
    return lock.status();
  }
  if (!lock.ok()) return fail_file(report, store.lock_path(), "lock it", lock.status());
  QUERN_RETURN_IF_ERROR(store.check_writable(report));
  auto out = collect_locked(store, options, report);
  if (out.ok() && !options.dry_run) sweep(store, true, {}, report);
  return out;
}

void remove_replaced(const Store& store, Report& report) {
  Report unheard;
  const auto all = store.list(unheard), current = store.list_current(unheard);
  if (!all.ok() || !current.ok() || all->size() == current->size()) return;
  const auto lock = store.files().lock(store.lock_path(), LockKind::exclusive, false);
  if (!lock.ok()) return;
  Report own;
  const Status writable = store.check_writable(own);
  const auto out = writable.ok() ? collect_locked(store, {}, own) : Result<Collected>(writable);
  if (!out.ok()) report.notes.push_back(join({"what was replaced goes with the next collection: ", own.problem}));
}

}  // namespace quern::checkpoint
