// The order of syncs and renames that makes a checkpoint appear at once, and the removal of what never got that far.
#include "checkpoint/store/publish.h"

#include <algorithm>

#include "checkpoint/store/box_runs.h"
#include "checkpoint/store/parity.h"

namespace quern::checkpoint {
namespace {

Status write_synced(FileSystem& files, const String& path, std::span<const std::uint8_t> bytes, Report& report) {
  auto file = files.create(path);
  if (!file.ok()) return fail_file(report, path, "create it", file.status());
  Status status = write_fully(*file.value(), 0, bytes);
  if (status.ok()) status = file.value()->sync();
  if (!status.ok()) return fail_file(report, path, "write it", status);
  return {};
}

/// Says which checkpoint is newest, for people and for scripts; nothing relies on it.
void write_hint(const Store& store, const CheckpointName& name) {
  const String line = join({manifest_file_name(name), "\n"});
  Report unheard;
  (void)publish_file(store.files(), join({store.tmp_root(), "/", name.id, ".latest"}), store.latest_path(),
                     store.root(), {reinterpret_cast<const std::uint8_t*>(line.data()), line.size()}, unheard);
}

/// Adds one writer's tensors to those of the writers before it.
Status append_writer(Manifest& whole, Manifest&& one, Report& report) {
  const auto first_tensor = static_cast<std::uint32_t>(whole.tensors.size());
  const auto first_part = static_cast<std::uint32_t>(whole.parts.size());
  Vector<std::uint32_t> references;  // from one's numbers to the whole's
  references.push_back(0);
  for (const CheckpointName& name : one.references) {
    const auto found = std::find(whole.references.begin(), whole.references.end(), name);
    references.push_back(static_cast<std::uint32_t>(found - whole.references.begin()) + 1);
    if (found == whole.references.end()) whole.references.push_back(name);
  }
  const auto move_place = [&](TensorPlace& place) {
    if (place.checkpoint == 0) place.tensor += first_tensor;
    place.checkpoint = references[place.checkpoint];
  };
  const auto moved = [&](std::optional<TensorPlace>& place) {
    if (place) move_place(*place);
  };
  if (whole.parity.data != one.parity.data || whole.parity.parity != one.parity.parity)
    return fail(report, StatusCode::invalid_argument, "the writers of a group must agree on parity");
  if (!whole.base) whole.base = one.base;  // a writer that could not use its base has none
  for (Tag& tag : one.tags)
    if (std::none_of(whole.tags.begin(), whole.tags.end(), [&](const Tag& known) { return known.name == tag.name; }))
      whole.tags.push_back(std::move(tag));
  for (ManifestTensor& tensor : one.tensors) {
    moved(tensor.alias);
    moved(tensor.base);
    if (tensor.companion) *tensor.companion += first_tensor;
    if (tensor.moments)
      for (std::uint32_t& number : *tensor.moments) number += first_tensor;
    if (tensor.base_moments)
      for (TensorPlace& place : *tensor.base_moments) move_place(place);
    tensor.part += first_part;
    whole.tensors.push_back(std::move(tensor));
  }
  for (ManifestBlob& blob : one.blobs) {
    blob.part += first_part;
    whole.blobs.push_back(std::move(blob));
  }
  whole.parts.insert(whole.parts.end(), one.parts.begin(), one.parts.end());
  whole.parity.files.insert(whole.parity.files.end(), one.parity.files.begin(), one.parity.files.end());
  for (ManifestFile& file : one.files) whole.files.push_back(std::move(file));
  return {};
}

/// A name stands once, or for pieces of one tensor that do not overlap.
Status check_names(const Manifest& manifest, Report& report) {
  Vector<const ManifestTensor*> sorted;
  for (const ManifestTensor& tensor : manifest.tensors) sorted.push_back(&tensor);
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    for (std::size_t j = i + 1; j < sorted.size() && sorted[j]->name == sorted[i]->name; ++j) {
      const ManifestTensor &a = *sorted[i], &b = *sorted[j];
      if (!a.is_piece || !b.is_piece)
        return fail(report, StatusCode::invalid_argument, join({"tensor '", a.name, "': two writers have it"}));
      if (a.whole != b.whole || a.what.type != b.what.type)
        return fail(report, StatusCode::invalid_argument,
                    join({"tensor '", a.name, "': its pieces differ in dtype or in the whole's shape"}));
      if (overlap(a.box, b.box))
        return fail(report, StatusCode::invalid_argument, join({"tensor '", a.name, "': its pieces overlap"}));
    }
  }
  return {};
}

String sub_manifest_path(const Store& store, std::string_view id, std::uint32_t writer) {
  return join({store.tmp_folder(id), "/", numbered_name("sub", writer)});
}

/// True when a writer has left its manifest for the last one of its group, and none has been published since.
bool somebody_waits(const Store& store, std::string_view id, std::uint64_t newest) {
  const auto names = store.files().list(store.tmp_folder(id));
  if (!names.ok()) return false;
  for (const String& name : *names) {
    if (!name.starts_with("sub-") || name.ends_with(".new")) continue;
    const auto bytes = read_file(store.files(), join({store.tmp_folder(id), "/", name}), kMaxManifestFile);
    Report unheard;
    const auto manifest = bytes.ok() ? read_manifest(*bytes, unheard) : Result<Manifest>(bytes.status());
    if (manifest.ok() && manifest->name.generation >= newest) return true;
  }
  return false;
}

}  // namespace

String arrival_lock(const Store& store, std::string_view id) { return join({store.tmp_root(), "/", id, ".arrive"}); }

Result<std::uint64_t> newest_generation(const Store& store, Report& report) {
  std::uint64_t newest = 0;
  QUERN_ASSIGN_OR_RETURN(const auto names, store.list_all(report));
  for (const CheckpointName& name : names) newest = std::max(newest, name.generation);
  return newest;
}

Status remove_unfinished(const Store& store, std::string_view id) {
  FileSystem& files = store.files();
  QUERN_RETURN_IF_ERROR(remove_tree(files, store.tmp_folder(id)));
  QUERN_ASSIGN_OR_RETURN(const auto in_tmp, files.list(store.tmp_root()));
  const String lock_name = join({id, ".lock"});
  for (const String& name : in_tmp)
    if (name.starts_with(join({id, "."})) && name != lock_name)
      QUERN_RETURN_IF_ERROR(files.remove(join({store.tmp_root(), "/", name})));
  return {};
}

void remove_unpublished(const Store& store, const CheckpointName& name) {
  FileSystem& files = store.files();
  const auto manifest = files.open(store.manifest_path(name));
  if (!manifest.ok() && is_missing(manifest.status())) (void)remove_tree(files, store.data_folder(name.id));
}

Result<std::uint64_t> publish(const Store& store, Manifest& manifest, const PublishAs& as, Report& report) {
  FileSystem& files = store.files();
  const auto order = files.lock(store.order_lock_path(), LockKind::exclusive, true);
  if (!order.ok()) return fail_file(report, store.order_lock_path(), "lock it", order.status());
  if (!as.replace) QUERN_RETURN_IF_ERROR(check_step_is_free(store, manifest.name.step, report));
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t newest, newest_generation(store, report));
  manifest.name.generation = as.generation.value_or(std::max(newest, as.above) + 1);
  const String& id = manifest.name.id;
  QUERN_ASSIGN_OR_RETURN(const auto bytes, write_manifest(manifest, report));
  if (manifest.parity.data != 0)
    QUERN_RETURN_IF_ERROR(write_synced(files, join({store.tmp_folder(id), "/manifest"}), bytes, report));
  QUERN_RETURN_IF_ERROR(put_in_place(store, manifest.name, bytes, false, report));
  (void)files.remove(arrival_lock(store, id));
  return bytes.size();
}

Status put_in_place(const Store& store, const CheckpointName& name, std::span<const std::uint8_t> bytes, bool retired,
                    Report& report) {
  FileSystem& files = store.files();
  const String from = store.tmp_folder(name.id), to = store.data_folder(name.id);
  Status status = files.sync_folder(from);
  if (!status.ok()) return fail_file(report, from, "sync it", status);
  status = files.rename(from, to);
  if (!status.ok()) return fail_file(report, from, "move it to data", status);
  status = files.sync_folder(store.data_root());
  if (!status.ok()) return fail_file(report, store.data_root(), "sync it", status);
  status = files.sync_folder(store.tmp_root());
  if (!status.ok()) return fail_file(report, store.tmp_root(), "sync it", status);
  QUERN_RETURN_IF_ERROR(publish_file(files, join({store.tmp_root(), "/", name.id, ".manifest"}),
                                     retired ? store.retired_path(name) : store.manifest_path(name),
                                     store.manifests_root(), bytes, report));
  if (!retired) write_hint(store, name);
  return {};
}

Status check_step_is_free(const Store& store, std::uint64_t step, Report& report) {
  QUERN_ASSIGN_OR_RETURN(const auto names, store.list_current(report));
  for (const CheckpointName& name : names) {
    Report own;
    if (name.step == step && store.read_checked(name, own).ok())
      return fail(report, StatusCode::invalid_argument,
                  join({store.root(), ": step ", decimal(step),
                        " is in the store already; save with replace (--replace) to put another in its place"}));
  }
  return {};
}

Status leave_sub_manifest(const Store& store, const Manifest& manifest, Report& report) {
  const String path = sub_manifest_path(store, manifest.name.id, manifest.writer);
  QUERN_ASSIGN_OR_RETURN(const auto bytes, write_manifest(manifest, report));
  return publish_file(store.files(), join({path, ".new"}), path, store.tmp_folder(manifest.name.id), bytes, report);
}

Result<std::optional<Manifest>> join_sub_manifests(const Store& store, const CheckpointName& name,
                                                   std::uint32_t writers, Report& report) {
  Manifest whole;
  for (std::uint32_t i = 0; i < writers; ++i) {
    const String path = sub_manifest_path(store, name.id, i);
    const auto bytes = read_file(store.files(), path, kMaxManifestFile);
    if (!bytes.ok() && is_missing(bytes.status())) return std::optional<Manifest>();
    if (!bytes.ok()) return fail_file(report, path, "read it", bytes.status());
    auto one = read_manifest(*bytes, report);
    if (!one.ok()) return fail_at(report, path, one.status());
    if (one->name != name || one->writer != i || one->writers != writers)
      return fail(report, StatusCode::invalid_argument,
                  join({path, ": the writers of a group must agree on step and number of writers"}));
    if (i == 0) {
      whole = std::move(one).value();
    } else {
      QUERN_RETURN_IF_ERROR(append_writer(whole, std::move(one).value(), report));
    }
  }
  QUERN_RETURN_IF_ERROR(check_names(whole, report));
  whole.writer = 0;
  whole.writers = 1;
  for (std::uint32_t i = 0; i < writers; ++i) {
    const Status removed = store.files().remove(sub_manifest_path(store, name.id, i));
    if (!removed.ok()) return fail_file(report, sub_manifest_path(store, name.id, i), "remove it", removed);
  }
  return std::optional<Manifest>(std::move(whole));
}

void sweep(const Store& store, bool waiting_too, std::string_view but, Report& report) {
  FileSystem& files = store.files();
  Report unheard;
  const auto newest = newest_generation(store, unheard);
  if (!newest.ok()) return;
  const auto in_tmp = files.list(store.tmp_root());
  if (!in_tmp.ok()) return;
  Vector<String> ids;
  for (const String& name : *in_tmp) {
    const String id = name.substr(0, name.find('.'));
    if (is_plain_id(id) && std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
  for (const String& id : ids) {
    if (id == but) continue;
    const auto lock = files.lock(store.tmp_lock(id), LockKind::exclusive, false);
    if (!lock.ok() || (!waiting_too && somebody_waits(store, id, *newest))) continue;
    (void)remove_unfinished(store, id);
    (void)files.remove(store.tmp_lock(id));
    report.notes.push_back(join({"removed what an unfinished save had left: ", store.tmp_folder(id)}));
  }
  const auto in_data = files.list(store.data_root());
  if (!in_data.ok()) return;
  const auto is_published = [&](const String& id, const Vector<CheckpointName>& names) {
    return std::any_of(names.begin(), names.end(), [&](const CheckpointName& name) { return name.id == id; });
  };
  const auto names = store.list_all(unheard);
  if (!names.ok()) return;
  for (const String& id : *in_data) {
    if (!is_plain_id(id) || is_published(id, *names)) continue;
    // With a copy of its manifest it may have been whole and published: saves leave it to repair, collection does not.
    const auto copy = files.open(join({store.data_folder(id), "/manifest"}));
    if (!waiting_too && (copy.ok() || !is_missing(copy.status()))) continue;
    const auto lock = files.lock(store.tmp_lock(id), LockKind::exclusive, false);
    if (!lock.ok()) continue;
    const auto again = store.list_all(unheard);  // its writer may have published it just now
    if (again.ok() && !is_published(id, *again) && remove_tree(files, store.data_folder(id)).ok())
      report.notes.push_back(join({"removed data without a manifest: ", store.data_folder(id)}));
    (void)files.remove(store.tmp_lock(id));
  }
}

}  // namespace quern::checkpoint
