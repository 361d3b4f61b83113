#include "offload/folders.h"

#include <algorithm>
#include <chrono>

#include "storage/publish_file.h"

namespace quern::offload {

constexpr unsigned kDoubt = 8;  ///< a measurement that may be of a burst counts that much less

Folder::Folder(storage::FileSystem& files, FolderOptions options, bool own_threads)
    : files_(files),
      options_(std::move(options)),
      own_threads_(own_threads),
      reader_(own_threads),
      writer_(own_threads) {}

FileCoder& Folder::coder(bool writes) {
  auto& coder = coders_[writes ? 1 : 0];
  if (coder == nullptr) coder = std::make_unique<FileCoder>(own_threads_);
  return *coder;
}

void Folder::drop_coders() {
  for (auto& coder : coders_) coder.reset();
}

Status Folder::take(storage::Report& report) {
  QUERN_RETURN_IF_ERROR(storage::make_with_parents(files_, options_.path, report));
  const String parent = storage::parent_of(options_.path);
  if (const Status synced = files_.sync_folder(parent); !synced.ok())
    return storage::fail_file(report, parent, "sync it", synced);
  const String name = file("lock");
  auto lock = files_.lock(name, storage::LockKind::exclusive, false);
  if (!lock.ok() && storage::is_busy(lock.status()))
    return storage::fail(report, StatusCode::invalid_argument,
                         storage::join({options_.path,
                                        ": another optimizer holds this folder. Give each process a "
                                        "folder of its own, or wait until the other one has ended"}));
  if (!lock.ok()) return storage::fail_file(report, name, "lock it", lock.status());
  held_ = std::move(lock).value();
  return {};
}

Status Folder::check_turn_file(std::string_view turn_file, storage::Report& report) const {
  if (turn_file.empty()) return {};
  const String lock = file("lock");
  const auto turn = files_.identity(turn_file), own = files_.identity(lock);
  if (!turn.ok() || !own.ok() || *turn != *own) return {};  // what is not there yet is another file
  return storage::fail(report, StatusCode::invalid_argument,
                       storage::join({turn_file, ": this turn file is the lock of the folder ", path(),
                                      ". Name a file that lies in no folder of a state"}));
}

Result<std::unique_ptr<storage::FileLock>> Folder::wait_for_turn(storage::Report& report) {
  if (options_.turn_file.empty()) return std::unique_ptr<storage::FileLock>();
  auto lock = files_.lock(options_.turn_file, storage::LockKind::exclusive, true);
  if (!lock.ok()) return storage::fail_file(report, options_.turn_file, "lock it", lock.status());
  return std::move(lock).value();
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A device that was idle takes what comes faster than it can go on: caches fill up, limits have saved something up. So
// the rate lies between that of the time at work and that of the time since the last end. What is known already and
// lies between them grows slowly: by an eighth of a measurement, of at most twice what is known. Otherwise a folder that is
// little used would keep for ever a rate that it once had, and if the time at work counted in full it would look faster
// the less it is used. A folder that gets more work than it can do is measured as slower at once. Outside of the two
// the nearer end counts.
void Folder::add(bool writes, std::uint64_t bytes, double begin, double end) {
  const std::lock_guard lock(mutex_);
  (writes ? use_.bytes_written : use_.bytes_read) += bytes;
  Direction& direction = writes ? write_ : read_;
  const double at_work = end - begin;
  const double since_last = end - std::min(begin, direction.end);
  direction.end = end;
  const double known = direction.rate.per_second() * at_work;  // bytes in that time
  const double at_work_at_twice = static_cast<double>(bytes) / (2 * direction.rate.per_second());
  if (!direction.rate.known() || known >= static_cast<double>(bytes))
    direction.rate.add(bytes, at_work);
  else if (direction.rate.per_second() * since_last < static_cast<double>(bytes))
    direction.rate.add(bytes, since_last);
  else
    direction.rate.add(bytes / kDoubt, std::max(at_work, at_work_at_twice) / kDoubt);
}

FolderUse Folder::use() const {
  const std::lock_guard lock(mutex_);
  FolderUse use = use_;
  use.read_rate = read_.rate.per_second();
  use.write_rate = write_.rate.per_second();
  return use;
}

}  // namespace quern::offload
