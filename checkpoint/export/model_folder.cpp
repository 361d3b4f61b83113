// Temporary siblings, and how they take the place of what was there.
#include "checkpoint/export/model_folder.h"

#include <algorithm>

#include "checkpoint/policy/roles.h"

namespace quern::checkpoint {
namespace {

/// Files that a loader of the folder would take for the model.
bool is_model_file(std::string_view name) {
  return name == "model.safetensors" || name == "model.safetensors.index.json" ||
         glob_matches("model-*-of-*.safetensors", name);
}

Status make_folders(FileSystem& files, const String& path, Report& report) {
  Status made = files.make_folder(path);
  const std::size_t slash = path.find_last_of('/');
  if (is_missing(made) && slash != String::npos && slash != 0) {
    QUERN_RETURN_IF_ERROR(make_folders(files, path.substr(0, slash), report));
    made = files.make_folder(path);
  }
  if (!made.ok() && !exists_already(made)) return fail_file(report, path, "make the folder", made);
  return {};
}

}  // namespace

Result<ModelFolder> ModelFolder::open(FileSystem& files, std::string_view path, bool replace, Report& report) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  ModelFolder out(files, path);
  QUERN_RETURN_IF_ERROR(make_folders(files, out.path_, report));
  const auto names = files.list(path);
  if (!names.ok()) return fail_file(report, path, "read it", names.status());
  for (const String& name : *names)
    if (is_model_file(name)) out.old_.push_back(name);
  if (!out.old_.empty() && !replace)
    return fail(report, StatusCode::invalid_argument,
                join({path, ": has a model already (", out.old_.front(),
                      "); name another folder, or replace it with --force (Python: replace=True)"}));
  return out;
}

ModelFolder::ModelFolder(ModelFolder&& other) noexcept
    : files_(other.files_),
      path_(std::move(other.path_)),
      old_(std::move(other.old_)),
      entries_(std::move(other.entries_)),
      file_(std::move(other.file_)),
      at_(other.at_),
      bytes_(other.bytes_) {
  other.entries_.clear();
}

ModelFolder::~ModelFolder() {
  file_.reset();
  for (const Entry& entry : entries_) (void)files_->remove(in_folder(entry.temporary));
}

Status ModelFolder::end_file(Report& report) {
  if (file_ == nullptr) return {};
  const Status synced = file_->sync();
  file_.reset();
  if (!synced.ok()) return fail_file(report, in_folder(entries_.back().name), "write it", synced);
  return {};
}

Status ModelFolder::begin(std::string_view name, Report& report) {
  QUERN_RETURN_IF_ERROR(end_file(report));
  const auto unique = files_->new_name();
  if (!unique.ok()) return fail_file(report, path_, "make a file", unique.status());
  Entry entry{String(name), join({".", name, ".", *unique})};
  auto made = files_->create(in_folder(entry.temporary));
  if (!made.ok()) return fail_file(report, in_folder(name), "write it", made.status());
  file_ = std::move(made).value();
  at_ = 0;
  entries_.push_back(std::move(entry));
  return {};
}

Status ModelFolder::write(std::span<const std::uint8_t> bytes, Report& report) {
  const Status status = write_fully(*file_, at_, bytes);
  if (!status.ok()) return fail_file(report, in_folder(entries_.back().name), "write it", status);
  at_ += bytes.size();
  bytes_ += bytes.size();
  return {};
}

Status ModelFolder::publish(Report& report) {
  QUERN_RETURN_IF_ERROR(end_file(report));
  // The old index goes first and the new one comes last: no index ever names files of the other model.
  const auto remove = [&](const String& name) -> Status {
    const Status removed = files_->remove(in_folder(name));
    if (!removed.ok() && !is_missing(removed)) return fail_file(report, in_folder(name), "remove it", removed);
    return {};
  };
  for (const String& name : old_)
    if (name.ends_with(".json")) QUERN_RETURN_IF_ERROR(remove(name));
  for (const String& name : old_)
    if (std::none_of(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == name; }))
      QUERN_RETURN_IF_ERROR(remove(name));
  while (!entries_.empty()) {
    const Entry& entry = entries_.front();
    const Status renamed = files_->rename(in_folder(entry.temporary), in_folder(entry.name));
    if (!renamed.ok()) return fail_file(report, in_folder(entry.name), "rename the new file to it", renamed);
    entries_.erase(entries_.begin());
  }
  const Status synced = files_->sync_folder(path_);
  if (!synced.ok()) return fail_file(report, path_, "sync it", synced);
  return {};
}

}  // namespace quern::checkpoint
