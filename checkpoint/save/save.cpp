// A session: what a save begins with, blobs, and the end of it.
#include "checkpoint/save/save.h"

#include <algorithm>

#include "checkpoint/save/save_known.h"
#include "checkpoint/save/tensor_coder.h"
#include "checkpoint/store/collect.h"
#include "checkpoint/store/parity.h"
#include "checkpoint/store/publish.h"

namespace quern::checkpoint {
namespace {

constexpr std::uint64_t kOldestShared = 64;  // checkpoints; what is older is stored again
constexpr std::size_t kMostSearchedForKey = 64;
constexpr std::uint32_t kMostBases = 20;  // with their moments, less than a restore follows

Status check_tags(const Vector<Tag>& tags, Report& report) {
  for (std::size_t i = 0; i < tags.size(); ++i) {
    const Tag& tag = tags[i];
    if (tag.name.empty() || tag.name.size() > 255 || tag.text.size() > 65535)
      return fail(report, StatusCode::invalid_argument,
                  join({"tag '", tag.name, "': names have 1 to 255 bytes, texts up to 65535"}));
    for (std::size_t j = 0; j < i; ++j)
      if (tags[j].name == tag.name)
        return fail(report, StatusCode::invalid_argument, join({"tag '", tag.name, "' is given twice"}));
  }
  return {};
}

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
  FileSystem& files = store_.files();
  const String folder = store_.tmp_folder(manifest_.name.id);
  parts_.clear();
  if (options_.writers == 1 && own_lock_ != nullptr) {
    (void)remove_tree(files, folder);
    remove_unpublished(store_, manifest_.name);
    (void)files.remove(store_.tmp_lock(manifest_.name.id));
  } else if (folder_made_) {
    const std::uint32_t count = std::max<std::uint32_t>(options_.parity_data, 1);
    for (std::uint32_t i = 0; i < count; ++i)
      (void)files.remove(join({folder, "/", numbered_name("part", options_.writer * count + i)}));
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

/// A store that is spread over nodes says itself how many parts and parity files a checkpoint has.
Status SaveSession::take_placement(Report& report) {
  QUERN_RETURN_IF_ERROR(store_.check_writable(report));
  if (store_.placed() == nullptr) return {};
  const auto placement = store_.placed()->placement();
  const bool given = options_.parity_data != 0 || options_.parity_files != 0;
  if (given && (options_.parity_data != placement->data || options_.parity_files != placement->parity))
    return fail(
        report, StatusCode::invalid_argument,
        join({store_.root(), ": is spread over nodes as ", decimal(placement->data), "+", decimal(placement->parity),
              "; leave the parity out (--parity), or choose nodes anew with quern "
              "checkpoint place"}));
  options_.parity_data = placement->data;
  options_.parity_files = placement->parity;
  return store_.placed()->check_nodes(report);
}

Status SaveSession::start(Report& report) {
  FileSystem& files = store_.files();
  if (options_.writers == 0 || options_.writers > 65536 || options_.writer >= options_.writers)
    return fail(report, StatusCode::invalid_argument, "a writer's number must be below the number of writers");
  if (options_.writers > 1 && options_.group.empty())
    return fail(report, StatusCode::invalid_argument, "several writers need a common name for their group");
  if (!options_.group.empty() && !is_plain_id(options_.group))
    return fail(report, StatusCode::invalid_argument, "a group's name has 1 to 64 letters, digits, '-' and '_'");
  QUERN_RETURN_IF_ERROR(check_tags(options_.tags, report));
  QUERN_RETURN_IF_ERROR(store_.make_folders(report));
  auto lock = files.lock(store_.lock_path(), LockKind::shared, true);
  if (!lock.ok()) return fail_file(report, store_.lock_path(), "lock it", lock.status());
  store_lock_ = std::move(lock).value();
  QUERN_RETURN_IF_ERROR(take_placement(report));
  QUERN_RETURN_IF_ERROR(check_parity(options_.parity_data, options_.parity_files, report));
  sweep(store_, false, options_.group, report);

  manifest_.name.step = options_.step;
  manifest_.tags = options_.tags;
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
  QUERN_ASSIGN_OR_RETURN(const auto names, store_.list_all(report));
  for (const CheckpointName& name : names)
    if (name.id == manifest_.name.id)
      return fail(report, StatusCode::invalid_argument, join({"the group '", name.id, "' has been used before"}));
  if (!options_.replace) QUERN_RETURN_IF_ERROR(check_step_is_free(store_, options_.step, report));
  known_.reset(new Known);
  QUERN_RETURN_IF_ERROR(open_base(report));
  if (options_.search_equal) QUERN_RETURN_IF_ERROR(find_known(report));

  const String& id = manifest_.name.id;
  auto own = files.lock(store_.tmp_lock(id), LockKind::shared, true);
  if (!own.ok()) return fail_file(report, store_.tmp_lock(id), "lock it", own.status());
  own_lock_ = std::move(own).value();
  const String folder = store_.tmp_folder(id);
  const Status made = files.make_folder(folder);
  if (!made.ok() && !(options_.writers > 1 && exists_already(made)))
    return fail_file(report, folder, "make the folder", made);
  folder_made_ = true;
  const std::uint32_t count = std::max<std::uint32_t>(options_.parity_data, 1);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t number = options_.writer * count + i;
    QUERN_ASSIGN_OR_RETURN(PartWriter part,
                           PartWriter::create(files, join({folder, "/", numbered_name("part", number)}),
                                              part_identity(manifest_.name, number), report));
    parts_.push_back(std::move(part));
  }
  return {};
}

Result<std::optional<std::uint64_t>> find_newest_key(const Store& store, std::uint32_t distance, Report& report) {
  std::optional<std::uint64_t> nothing;
  QUERN_ASSIGN_OR_RETURN(const auto names, store.list_current(report));
  for (std::size_t i = names.size(); i-- > 0 && names.size() - i <= kMostSearchedForKey;) {
    Report own;
    const auto manifest = store.read_checked(names[i], own);
    if (!manifest.ok() || manifest->base) continue;
    // In generations, for collection may have removed checkpoints between the two.
    const std::uint64_t age = names.back().generation - names[i].generation;
    return age + 1 >= distance ? nothing : std::optional<std::uint64_t>(names[i].step);
  }
  return nothing;
}

Status SaveSession::open_base(Report& report) {
  if (!options_.base && options_.base_newest) {
    QUERN_ASSIGN_OR_RETURN(options_.base, find_newest_key(store_, options_.key_distance, report));
    if (options_.base == options_.step) options_.base.reset();
  }
  if (!options_.base) return {};
  Report own;
  auto found = *options_.base == options_.step
                   ? Result<Manifest>(fail(own, StatusCode::invalid_argument, "a checkpoint cannot be its own base"))
                   : store_.at_step(*options_.base, own);
  if (found.ok()) {
    if (const Status needs = store_.check_needs(*found, own); !needs.ok()) found = needs;
  }
  if (!found.ok()) {
    if (found.status().code() == StatusCode::out_of_memory) return found.status();
    report.notes.push_back(join({"step ", decimal(options_.step), " is saved without a base: ", own.problem}));
    return {};
  }
  base_.reset(new Base);
  base_->name = found->name;
  manifest_.base = found->name;
  for (std::uint32_t i = 0; i < found->tensors.size(); ++i) base_->tensors.emplace(piece_key(found->tensors[i]), i);
  return {};
}

void SaveSession::note_misfits(Report& report) const {
  if (base_ == nullptr || base_->misfits == 0) return;
  report.notes.push_back(join({"tensor '", base_->first_misfit, "'",
                               base_->misfits > 1 ? join({" and ", decimal(base_->misfits - 1), " more"}) : String(),
                               " stored whole: dtype or shape is not that of the base, ", step_text(base_->name)}));
}

Status SaveSession::find_known(Report& report) {
  QUERN_ASSIGN_OR_RETURN(const auto names, store_.list_current(report));
  Vector<CheckpointName> searched;
  if (!names.empty()) searched.push_back(names.back());
  if (base_ != nullptr && (searched.empty() || searched[0] != base_->name)) searched.push_back(base_->name);
  const std::uint64_t newest = names.empty() ? 0 : names.back().generation;
  for (const CheckpointName& name : searched) {
    Report own;
    const auto manifest = restorer_.manifest(name, own);
    if (!manifest.ok()) continue;  // damaged ones are verify's business
    for (std::uint32_t t = 0; t < manifest.value()->tensors.size(); ++t) {
      if (manifest.value()->tensors[t].what.bytes() < options_.least_shared_bytes) continue;
      const auto place = restorer_.resolve(name, t, own);
      if (!place.ok() || newest - place->checkpoint.generation >= kOldestShared) continue;
      SavedTensor saved;
      saved.number = place->tensor;
      known_->add(at(*place), place->checkpoint, saved);
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
  note_misfits(report);
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
    QUERN_ASSIGN_OR_RETURN(manifest_.name.generation, newest_generation(store_, report));
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
  const PublishAs as{options_.replace, options_.generation, options_.above};
  QUERN_ASSIGN_OR_RETURN(result.manifest_bytes, publish(store_, manifest_, as, report));
  folder_made_ = false;
  (void)files.remove(store_.tmp_lock(id));
  own_lock_.reset();
  store_lock_.reset();
  // The new one is safe and found first. The former goes now, or with the next collection.
  if (options_.replace) remove_replaced(store_, report);
  result.name = manifest_.name;
  result.published = true;
  result.manifest = manifest_;
  return result;
}

}  // namespace quern::checkpoint
