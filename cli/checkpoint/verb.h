// What the works of quern checkpoint share: the store, the runner, and how a failure becomes an exit code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/convert/checkpoint_files.h"
#include "cli/args/exit_codes.h"
#include "cli/checkpoint/args.h"
#include "cli/files/safe_file.h"
#include "libcompress/core/task_runner.h"

namespace quern::cli {

/// A store on the operating system's files, and on its nodes where it has some.
checkpoint::Store open_store(const std::string& path);

/// The store of a request, on the operating system's files.
class CheckpointWorkspace {
 public:
  explicit CheckpointWorkspace(const CheckpointArgs& args);
  CheckpointWorkspace(const CheckpointWorkspace&) = delete;
  CheckpointWorkspace& operator=(const CheckpointWorkspace&) = delete;

  const checkpoint::Store& store() const { return store_; }
  TaskRunner& runner() { return runner_.get(); }
  checkpoint::Report& report() { return report_; }
  /// Prints notes that were not printed yet, unless quiet.
  void print_notes();

  void check(const Status& status, Phase phase = Phase::encode) {
    if (!status.ok()) fail_with(status, phase);
  }
  template <class T>
  T check(Result<T> result, Phase phase = Phase::encode) {
    if (!result.ok()) fail_with(result.status(), phase);
    return std::move(result).value();
  }
  [[noreturn]] void fail_with(const Status& status, Phase phase);

  /// The checkpoint asked for, else the newest.
  checkpoint::Manifest chosen();

 private:
  const CheckpointArgs& args_;
  checkpoint::Store store_;
  RunnerHandle runner_;
  checkpoint::Report report_;
};

/// Permissions that open a file to nobody who may not read all inputs; those of an index include the files beside it.
mode_t least_mode(const std::vector<std::string>& inputs);

/// A sink that is a file under a temporary name until commit(), or standard output for the path "-".
class SafeFileSink final : public checkpoint::FileSink {
 public:
  /// `mode`: permissions of a new file, as those of SafeFile.
  SafeFileSink(const std::string& path, bool replace, mode_t mode);
  Status write(std::span<const std::uint8_t> bytes, checkpoint::Report& report) override;
  void commit() {
    if (file_) file_->commit();
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::optional<SafeFile> file_;
  std::string path_;
  std::uint64_t bytes_ = 0;
};

Exit run_checkpoint_save(const CheckpointArgs& args);
Exit run_checkpoint_load(const CheckpointArgs& args);
Exit run_checkpoint_ls(const CheckpointArgs& args);
Exit run_checkpoint_info(const CheckpointArgs& args);
Exit run_checkpoint_diff(const CheckpointArgs& args);
Exit run_checkpoint_verify(const CheckpointArgs& args);
Exit run_checkpoint_repair(const CheckpointArgs& args);
Exit run_checkpoint_compact(const CheckpointArgs& args);
Exit run_checkpoint_gc(const CheckpointArgs& args);
Exit run_checkpoint_convert(const CheckpointArgs& args);
Exit run_checkpoint_bench(const CheckpointArgs& args);
Exit run_checkpoint_export(const CheckpointArgs& args);
Exit run_checkpoint_tiers(const CheckpointArgs& args);
Exit run_checkpoint_place(const CheckpointArgs& args);
Exit run_checkpoint_keeper(const CheckpointArgs& args);
/// The store and its tiers, in this order.
Vector<checkpoint::Store> stores_of(const CheckpointArgs& args);

}  // namespace quern::cli
