// Garbage collection and compaction.
#include "checkpoint/collect.h"

#include <algorithm>

#include "checkpoint/bound_check.h"
#include "checkpoint/publish.h"

namespace quern::checkpoint {
namespace {

struct Entry {
  CheckpointName name;
  bool readable = false;
  bool stays = true;
  std::uint64_t bytes = 0;
  Vector<CheckpointName> references;
};

Result<Vector<Entry>> read_entries(const Store& store, Report& report) {
  QUERN_ASSIGN_OR_RETURN(const auto names, store.list(report));
  Vector<Entry> out;
  for (const CheckpointName& name : names) {
    Entry entry;
    entry.name = name;
    Report own;
    auto manifest = store.read(name, own);
    entry.readable = manifest.ok();
    if (manifest.ok()) {
      entry.references = manifest->references;
      entry.bytes = manifest->stored_bytes();
    } else {
      report.notes.push_back(join({"kept, because it cannot be read: ", own.problem}));
    }
    out.push_back(std::move(entry));
  }
  return out;
}

/// Marks what the entries that stay need, and what that needs.
void keep_needed(Vector<Entry>& entries, Vector<CheckpointName>& kept_for_others) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const Entry& entry : entries) {
      if (!entry.stays) continue;
      for (const CheckpointName& name : entry.references) {
        const auto needed = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.name == name; });
        if (needed == entries.end() || needed->stays) continue;
        needed->stays = true;
        kept_for_others.push_back(name);
        changed = true;
      }
    }
  }
}

/// Stores what comes back of a tensor so that it comes back again, bit for bit.
Status compact_tensor(const Manifest& old, std::uint32_t index, Restorer& restorer, SaveSession& session,
                      Report& report) {
  const ManifestTensor& tensor = old.tensors[index];
  AlignedBuffer values, companion;
  QUERN_RETURN_IF_ERROR(restorer.tensor(old.name, index, values, report));
  QUERN_ASSIGN_OR_RETURN(const Restorer::Place place, restorer.resolve(old.name, index, report));
  QUERN_ASSIGN_OR_RETURN(const Manifest* const owner, restorer.manifest(place.checkpoint, report));
  const ManifestTensor& stored = owner->tensors[place.tensor];
  TensorSource source;
  source.name = tensor.name;
  source.role = tensor.role;
  source.what = tensor.what;
  if (tensor.declared) source.declared = &*tensor.declared;
  source.values = values.span();
  if (tensor.is_piece) {
    source.whole = &tensor.whole;
    source.box = tensor.box;
  }
  const Mode mode = stored.bound_mode.value_or(stored.mode);
  if (is_lossy(mode)) source.lossy = LossyRequest{mode, stored.bound};
  if (is_lossy(mode) || tensor.decoded) source.original = tensor.content;
  if (tensor.companion && tensor.mode != Mode::replay) {
    QUERN_RETURN_IF_ERROR(restorer.tensor(old.name, *tensor.companion, companion, report));
    source.companion = tensor.companion;
    source.companion_values = companion.span();
    source.companion_type = old.tensors[*tensor.companion].what.type;
  }
  auto added = session.add_tensor(source, report);
  if (!added.ok()) return added.status();
  if (!added->fallback.empty())
    report.notes.push_back(join({"tensor '", tensor.name, "' kept exactly as it comes back: ", added->fallback}));
  return {};
}

}  // namespace

Result<Collected> collect(const Store& store, const CollectOptions& options, Report& report) {
  FileSystem& files = store.files();
  QUERN_RETURN_IF_ERROR(store.check_is_store(report));
  const auto lock = files.lock(store.lock_path(), LockKind::exclusive, false);
  if (!lock.ok() && is_busy(lock.status()))
    return fail(report, StatusCode::io_error, join({store.root(), ": the store is in use; try again when saves have ended"}));
  if (!lock.ok()) return fail_file(report, store.lock_path(), "lock it", lock.status());
  QUERN_ASSIGN_OR_RETURN(auto entries, read_entries(store, report));
  Collected out;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    Entry& entry = entries[i];
    const bool old = options.keep && i + *options.keep < entries.size();
    const bool named = std::find(options.remove.begin(), options.remove.end(), entry.name.step) != options.remove.end();
    entry.stays = !entry.readable || !(old || named);
  }
  for (const std::uint64_t step : options.remove)
    if (std::none_of(entries.begin(), entries.end(), [&](const Entry& e) { return e.name.step == step; }))
      return fail(report, StatusCode::invalid_argument,
                  join({store.root(), ": the store has no checkpoint of step ", decimal(step)}));
  keep_needed(entries, out.kept_for_others);
  // Users before what they use: no manifest is ever there without those it needs.
  for (std::size_t i = entries.size(); i-- > 0;) {
    const Entry& entry = entries[i];
    if (entry.stays) continue;
    out.removed.push_back(entry.name);
    out.freed_bytes += entry.bytes;
    if (options.dry_run) continue;
    const Status status = files.remove(store.manifest_path(entry.name));
    if (!status.ok()) return fail_file(report, store.manifest_path(entry.name), "remove it", status);
  }
  if (options.dry_run) return out;
  const Status synced = files.sync_folder(store.manifests_root());
  if (!synced.ok()) return fail_file(report, store.manifests_root(), "sync it", synced);
  for (const CheckpointName& name : out.removed) {
    const Status status = remove_tree(files, store.data_folder(name.id));
    if (!status.ok()) return fail_file(report, store.data_folder(name.id), "remove it", status);
  }
  sweep(store, true, report);
  return out;
}

Result<SaveResult> compact(const Store& store, std::uint64_t step, const SaveOptions& given, TaskRunner& runner,
                           Report& report) {
  QUERN_ASSIGN_OR_RETURN(const Manifest old, store.at_step(step, report));
  QUERN_ASSIGN_OR_RETURN(const auto entries, read_entries(store, report));
  for (const Entry& entry : entries)
    if (std::find(entry.references.begin(), entry.references.end(), old.name) != entry.references.end())
      return fail(report, StatusCode::invalid_argument,
                  join({"step ", decimal(entry.name.step), " needs step ", decimal(step), "; compact that one first"}));
  SaveOptions options = given;
  options.step = step;
  options.base.reset();
  options.search_equal = false;
  options.replace = true;
  QUERN_ASSIGN_OR_RETURN(auto session, SaveSession::begin(store, options, runner, report));
  Restorer restorer(store, runner);
  for (std::uint32_t i = 0; i < old.tensors.size(); ++i)
    QUERN_RETURN_IF_ERROR(compact_tensor(old, i, restorer, *session, report));
  Vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < old.blobs.size(); ++i) {
    QUERN_RETURN_IF_ERROR(restorer.blob(old.name, i, bytes, report));
    QUERN_RETURN_IF_ERROR(session->add_blob(old.blobs[i].name, bytes, report));
  }
  for (const ManifestFile& file : old.files) session->add_file(file);
  QUERN_ASSIGN_OR_RETURN(SaveResult result, session->commit(report));
  session.reset();
  // The new form is safe; the old one goes manifest first, unless a save that began meanwhile has come to need it.
  FileSystem& files = store.files();
  const auto lock = files.lock(store.lock_path(), LockKind::exclusive, true);
  if (!lock.ok()) return fail_file(report, store.lock_path(), "lock it", lock.status());
  QUERN_ASSIGN_OR_RETURN(const auto now, read_entries(store, report));
  for (const Entry& entry : now) {
    if (std::find(entry.references.begin(), entry.references.end(), old.name) == entry.references.end()) continue;
    report.notes.push_back(join({"the old form of step ", decimal(step), " stays: step ", decimal(entry.name.step),
                                 " needs it by now"}));
    return result;
  }
  Status status = files.remove(store.manifest_path(old.name));
  if (status.ok()) status = files.sync_folder(store.manifests_root());
  if (status.ok()) status = remove_tree(files, store.data_folder(old.name.id));
  if (!status.ok()) return fail_file(report, store.manifest_path(old.name), "remove the old form", status);
  return result;
}

}  // namespace quern::checkpoint
