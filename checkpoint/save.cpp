// A session: what a save begins with, blobs, and the end of it.
#include "checkpoint/save.h"

#include <algorithm>

#include "checkpoint/parity.h"
#include "checkpoint/publish.h"
#include "checkpoint/save_known.h"
#include "checkpoint/saving/tensor_coder.h"

namespace quern::checkpoint {
namespace {

constexpr std::size_t kMostManifestsSearched = 64;
constexpr std::uint32_t kMostBases = 20;  // with their moments, less than a restore follows

}  // namespace

SaveSession::SaveSession(const Store& store, const SaveOptions& options, TaskRunner& runner)
    : store_(store), options_(options), runner_(runner), restorer_(store, runner) {
  options_.limits.depth = std::min(options_.limits.depth, kMostBases);
  options_.limits.replays = std::min(options_.limits.replays, kMostBases);
}

SaveSession::~SaveSession() {
  try {
    abort();
  } catch (const std::bad_alloc&) {
    // What stays in tmp/ is swept away by the next writer: the locks go with the members.
  }
}

void SaveSession::abort() {
  parts_.clear();
  if (folder_made_ && options_.writers == 1) {
    (void)remove_tree(store_.files(), store_.tmp_folder(manifest_.name.id));
    if (own_lock_ != nullptr) (void)store_.files().remove(store_.tmp_lock(manifest_.name.id));
  }
  folder_made_ = false;
  own_lock_.reset();
  store_lock_.reset();
}

Result<std::unique_ptr<SaveSession>> SaveSession::begin(const Store& store, const SaveOptions& options,
                                                        TaskRunner& runner, Report& report) {
  auto session = std::unique_ptr<SaveSession>(new SaveSession(store, options, runner));
  QUERN_RETURN_IF_ERROR(session->start(report));
  return session;
}

Status SaveSession::start(Report& report) {
  FileSystem& files = store_.files();
  if (options_.writers == 0 || options_.writers > 65536 || options_.writer >= options_.writers)
    return fail(report, StatusCode::invalid_argument, "a writer's number must be below the number of writers");
  if (options_.writers > 1 && options_.group.empty())
    return fail(report, StatusCode::invalid_argument, "several writers need a common name for their group");
  if (!options_.group.empty() && !is_plain_id(options_.group))
    return fail(report, StatusCode::invalid_argument, "a group's name has 1 to 64 letters, digits, '-' and '_'");
  QUERN_RETURN_IF_ERROR(check_parity(options_.parity_data, options_.parity_files, report));
  QUERN_RETURN_IF_ERROR(store_.make_folders(report));
  auto lock = files.lock(store_.lock_path(), LockKind::shared, true);
  if (!lock.ok()) return fail_file(report, store_.lock_path(), "lock it", lock.status());
  store_lock_ = std::move(lock).value();
  sweep(store_, false, report);

  manifest_.name.step = options_.step;
  manifest_.library = QUERN_VERSION;
  manifest_.writer = options_.writer;
  manifest_.writers = options_.writers;
  if (options_.group.empty()) {
    auto made = files.new_name();
    if (!made.ok()) return fail_file(report, store_.root(), "make a name", made.status());
    manifest_.name.id = std::move(made).value();
  } else {
    manifest_.name.id = options_.group;
  }
  QUERN_ASSIGN_OR_RETURN(const auto names, store_.list(report));
  for (const CheckpointName& name : names) {
    if (name.id == manifest_.name.id)
      return fail(report, StatusCode::invalid_argument, join({"the group '", name.id, "' has been used before"}));
    if (name.step == options_.step && !options_.replace) {
      Report own;
      if (store_.read_checked(name, own).ok())
        return fail(report, StatusCode::invalid_argument, join({store_.root(), ": ", step_text(name), " is in the store already"}));
    }
  }
  known_.reset(new Known);
  QUERN_RETURN_IF_ERROR(open_base(report));
  if (options_.search_equal) QUERN_RETURN_IF_ERROR(find_known(report));

  const String& id = manifest_.name.id;
  auto own = files.lock(store_.tmp_lock(id), LockKind::shared, true);
  if (!own.ok()) return fail_file(report, store_.tmp_lock(id), "lock it", own.status());
  own_lock_ = std::move(own).value();
  const String folder = store_.tmp_folder(id);
  const Status made = files.make_folder(folder);
  if (!made.ok() && !(options_.writers > 1 && exists_already(made))) return fail_file(report, folder, "make the folder", made);
  folder_made_ = true;
  const std::uint32_t count = std::max<std::uint32_t>(options_.parity_data, 1);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t number = options_.writer * count + i;
    QUERN_ASSIGN_OR_RETURN(PartWriter part, PartWriter::create(files, join({folder, "/", numbered_name("part", number)}),
                                                               part_identity(manifest_.name, number), report));
    parts_.push_back(std::move(part));
  }
  return {};
}

Status SaveSession::open_base(Report& report) {
  if (!options_.base) return {};
  if (*options_.base == options_.step)
    return fail(report, StatusCode::invalid_argument, "a checkpoint cannot be its own base");
  QUERN_ASSIGN_OR_RETURN(const Manifest found, store_.at_step(*options_.base, report));
  base_.reset(new Base);
  base_->name = found.name;
  manifest_.base = found.name;
  for (std::uint32_t i = 0; i < found.tensors.size(); ++i) {
    base_->tensors.emplace(piece_key(found.tensors[i]), i);
    if (found.tensors[i].role == "grad") base_->met.insert(i);  // nobody has to bring gradients each time
  }
  return {};
}

Status SaveSession::find_known(Report& report) {
  QUERN_ASSIGN_OR_RETURN(const auto names, store_.list(report));
  const std::size_t first = names.size() > kMostManifestsSearched ? names.size() - kMostManifestsSearched : 0;
  for (std::size_t i = first; i < names.size(); ++i) {
    Report own;
    const auto manifest = store_.read_checked(names[i], own);
    if (!manifest.ok()) continue;  // damaged ones are verify's business
    SavedTensor saved;
    for (std::uint32_t t = 0; t < manifest->tensors.size(); ++t) {
      const ManifestTensor& tensor = manifest->tensors[t];
      saved.number = t;
      if (!tensor.alias) known_->add(tensor, names[i], saved);
    }
  }
  return {};
}

PartWriter& SaveSession::smallest_part(std::uint32_t& number) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < parts_.size(); ++i)
    if (parts_[i].bytes() < parts_[best].bytes()) best = i;
  number = static_cast<std::uint32_t>(best);
  return parts_[best];
}

Status SaveSession::add_blob(std::string_view name, std::span<const std::uint8_t> bytes, Report& report) {
  ManifestBlob blob;
  blob.name = name;
  blob.bytes = bytes.size();
  blob.content = content_hash(bytes);
  PartWriter& part = smallest_part(blob.part);
  blob.record = static_cast<std::uint32_t>(part.records());
  for (std::uint32_t i = 0; i < blob.records(); ++i) {
    const std::size_t begin = i * codec::tensor::kChunkBytes;
    const auto piece = bytes.subspan(begin, std::min(codec::tensor::kChunkBytes, bytes.size() - begin));
    Record record;
    record.kind = RecordKind::blob;
    record.tensor = static_cast<std::uint32_t>(manifest_.blobs.size());
    record.chunk = i;
    record.raw_bytes = static_cast<std::uint32_t>(piece.size());
    QUERN_RETURN_IF_ERROR(part.add(record, piece, {}, report));
  }
  manifest_.blobs.push_back(std::move(blob));
  return {};
}

Result<SaveResult> SaveSession::finish_parts(Report& report) {
  if (std::find(added_.begin(), added_.end(), 0) != added_.end())
    return fail(report, StatusCode::invalid_argument, "a tensor's number is left out");
  if (base_ != nullptr && base_->met.size() < base_->tensors.size() && options_.writers == 1) {
    for (const auto& [key, index] : base_->tensors)
      if (!base_->met.contains(index))
        return fail(report, StatusCode::invalid_argument,
                    join({"tensor '", key.substr(0, key.find('\n')), "' of the base, ", step_text(base_->name), ", is missing"}));
  }
  for (PartWriter& part : parts_) {
    QUERN_ASSIGN_OR_RETURN(const PartInfo info, part.finish(report));
    manifest_.parts.push_back(info);
  }
  parts_.clear();
  if (options_.parity_data != 0) {
    manifest_.parity.data = options_.parity_data;
    manifest_.parity.parity = options_.parity_files;
    QUERN_RETURN_IF_ERROR(write_parity(store_.files(), store_.tmp_folder(manifest_.name.id), manifest_.name,
                                       options_.writer, manifest_.parts, manifest_.parity, report));
  }
  return SaveResult{manifest_.name, false, 0, {}};
}

Result<SaveResult> SaveSession::measure(Report& report) {
  QUERN_ASSIGN_OR_RETURN(SaveResult result, finish_parts(report));
  QUERN_ASSIGN_OR_RETURN(const auto bytes, write_manifest(manifest_, report));
  result.manifest_bytes = bytes.size();
  result.manifest = manifest_;
  abort();
  return result;
}

Result<SaveResult> SaveSession::commit(Report& report) {
  FileSystem& files = store_.files();
  const String id = manifest_.name.id;
  QUERN_ASSIGN_OR_RETURN(SaveResult result, finish_parts(report));
  std::unique_ptr<FileLock> arrival;
  if (options_.writers > 1) {
    auto lock = files.lock(arrival_lock(store_, id), LockKind::exclusive, true);
    if (!lock.ok()) return fail_file(report, arrival_lock(store_, id), "lock it", lock.status());
    arrival = std::move(lock).value();
    QUERN_RETURN_IF_ERROR(leave_sub_manifest(store_, manifest_, report));
    QUERN_ASSIGN_OR_RETURN(auto joined, join_sub_manifests(store_, manifest_.name, options_.writers, report));
    if (!joined) {
      result.manifest = manifest_;
      folder_made_ = false;
      own_lock_.reset();
      return result;
    }
    manifest_ = std::move(*joined);
  }
  QUERN_ASSIGN_OR_RETURN(result.manifest_bytes, publish(store_, manifest_, report));
  folder_made_ = false;
  (void)files.remove(store_.tmp_lock(id));
  own_lock_.reset();
  result.published = true;
  result.manifest = manifest_;
  return result;
}

}  // namespace quern::checkpoint
