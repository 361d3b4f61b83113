// The folders that a state is spread over: who may use them, how fast they are, what goes where.
#pragma once

#include <memory>
#include <mutex>
#include <span>

#include "offload/packed_file.h"
#include "offload/worker.h"
#include "storage/file_system.h"
#include "storage/moving_rate.h"
#include "storage/report.h"

namespace quern::offload {

struct FolderOptions {
  String path;
  /// Processes that share a device name one file here, which is made when it is missing: they read and write one at a
  /// time, which devices like better. A process that dies lets go of it. Empty: nobody waits for others.
  String turn_file;
};

/// What a folder did, in all.
struct FolderUse {
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  double read_rate = 0;  ///< bytes a second of late; 0: not known
  double write_rate = 0;
};

/// Of a clock that never goes back.
double seconds_now();

class Folder {
 public:
  Folder(storage::FileSystem& files, FolderOptions options, bool own_threads);

  /// Makes the folder and holds it until this object dies. Fails when another process holds it.
  Status take(storage::Report& report);
  /// After a fork: the child closes its copy and leaves the lock to the parent.
  void leave_to_parent() { held_.reset(); }
  /// Refuses a turn file that is the lock of this folder: whoever holds that one would wait for itself.
  Status check_turn_file(std::string_view turn_file, storage::Report& report) const;
  const String& turn_file() const { return options_.turn_file; }
  const String& path() const { return options_.path; }
  String file(std::string_view name) const { return storage::join({options_.path, "/", name}); }

  /// One read at a time, one write at a time.
  Worker& reader() { return reader_; }
  Worker& writer() { return writer_; }
  /// Runs `body`, which fills in what it moved, in this process's turn, and measures it.
  template <class Body>
  Status read_in_turn(Moved& moved, storage::Report& report, const Body& body) {
    return in_turn(false, moved, report, body);
  }
  template <class Body>
  Status write_in_turn(Moved& moved, storage::Report& report, const Body& body) {
    return in_turn(true, moved, report, body);
  }
  /// What codes files of one direction; made when it is first asked for, by the thread that uses it.
  FileCoder& coder(bool writes);
  /// Frees them, between passes.
  void drop_coders();
  /// A read or write took from `begin` to `end`, in seconds of seconds_now().
  void add(bool writes, std::uint64_t bytes, double begin, double end);
  FolderUse use() const;

 private:
  template <class Body>
  Status in_turn(bool writes, Moved& moved, storage::Report& report, const Body& body) {
    QUERN_ASSIGN_OR_RETURN(const auto turn, wait_for_turn(report));
    QUERN_RETURN_IF_ERROR(body());
    // Where coding is the slower of the two, the folder was at work for a part of the time only.
    const double end = seconds_now();
    add(writes, moved.bytes, end - moved.path_seconds, end);
    return {};
  }
  Result<std::unique_ptr<storage::FileLock>> wait_for_turn(storage::Report& report);

  storage::FileSystem& files_;
  FolderOptions options_;
  std::unique_ptr<storage::FileLock> held_;
  mutable std::mutex mutex_;
  FolderUse use_;
  /// One direction: its rate, and when its last read or write ended.
  struct Direction {
    storage::MovingRate rate;
    double end = 0;
  };
  const bool own_threads_;
  std::unique_ptr<FileCoder> coders_[2];  ///< of reads, of writes
  Direction read_;
  Direction write_;
  Worker reader_;
  Worker writer_;
};

}  // namespace quern::offload
