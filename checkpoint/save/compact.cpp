// Compaction: a checkpoint stored anew so that it needs no other.
#include "checkpoint/save/compact.h"

#include <algorithm>

#include "checkpoint/save/bound_check.h"
#include "checkpoint/store/collect.h"
#include "checkpoint/store/publish.h"
#include "checkpoint/store/stored_manifests.h"

namespace quern::checkpoint {
namespace {

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

/// A checkpoint that needs a tensor of `of`; nothing: there is none.
Result<std::optional<CheckpointName>> needed_by(const Store& store, const CheckpointName& of, Report& report) {
  std::optional<CheckpointName> found;
  StoredManifests manifests(store);
  QUERN_ASSIGN_OR_RETURN(const auto names, store.list_all(report));
  for (const CheckpointName& name : names) {
    if (name == of) continue;
    Report own;
    const auto manifest = manifests.find(name, own);
    if (!manifest.ok()) {
      report.notes.push_back(join({"what it needs is not known, because it cannot be read: ", own.problem}));
      continue;
    }
    Needs needs(manifests);
    (void)needs.add(**manifest, own);
    if (needs.find(of) != nullptr) found = name;
  }
  return found;
}

/// Manifest first, unless a save that began meanwhile has come to need it.
Status remove_old_form(const Store& store, const CheckpointName& old, Report& report) {
  FileSystem& files = store.files();
  const auto lock = files.lock(store.lock_path(), LockKind::exclusive, true);
  if (!lock.ok()) return fail_file(report, store.lock_path(), "lock it", lock.status());
  QUERN_RETURN_IF_ERROR(store.check_writable(report));
  QUERN_ASSIGN_OR_RETURN(const auto user, needed_by(store, old, report));
  if (user) {
    report.notes.push_back(
        join({"the old form of step ", decimal(old.step), " stays: step ", decimal(user->step), " needs it by now"}));
    return {};
  }
  Status status = files.remove(store.manifest_path(old));
  if (status.ok()) status = files.sync_folder(store.manifests_root());
  if (status.ok()) status = remove_tree(files, store.data_folder(old.id));
  return status.ok() ? status : fail_file(report, store.manifest_path(old), "remove the old form", status);
}

}  // namespace

Result<SaveResult> compact(const Store& store, std::uint64_t step, const SaveOptions& given, TaskRunner& runner,
                           Report& report) {
  QUERN_ASSIGN_OR_RETURN(const Manifest old, store.at_step(step, report));
  QUERN_ASSIGN_OR_RETURN(const auto user, needed_by(store, old.name, report));
  if (user)
    return fail(report, StatusCode::invalid_argument,
                join({"step ", decimal(user->step), " needs step ", decimal(step), "; compact that one first"}));
  SaveOptions options = given;
  options.step = step;
  options.base.reset();
  options.search_equal = false;
  options.replace = true;
  options.generation = old.name.generation;
  options.tags = old.tags;
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
  QUERN_RETURN_IF_ERROR(remove_old_form(store, old.name, report));
  return result;
}

}  // namespace quern::checkpoint
