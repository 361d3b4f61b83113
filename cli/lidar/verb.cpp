// Drives in files, failures with file and frame, figures; and which work runs.
#include "cli/lidar/verb.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "cli/files/memory.h"
#include "cli/verbs/verbs.h"
#include "libcompress/core/run_tasks.h"

namespace quern::cli {
namespace {

/// What the user can do about a drive that cannot be read.
const char* drive_advice(StatusCode code) {
  switch (code) {
    case StatusCode::bad_magic: return "; this is no drive, name a file that quern lidar compress wrote";
    case StatusCode::truncated: return "; the file is incomplete, fetch or write it again";
    case StatusCode::corrupt:
    case StatusCode::checksum_mismatch: return "; the drive is damaged, restore it from a copy";
    case StatusCode::unsupported_version: return "; a newer quern wrote it, update this one";
    case StatusCode::memory_limit: return "; raise --memory or lower -T";
    case StatusCode::internal: return "; this is a defect in quern, please report it";
    default: return "";
  }
}

[[noreturn]] void fail_drive(const std::string& where, const Status& status) {
  fail(exit_for(status, Phase::decode), where + ": " + status.text() + drive_advice(status.code()));
}

}  // namespace

DriveFile::DriveFile(const std::string& path, const RunArgs& run, const std::string& history)
    : path_(path), mapping_(Mapping::of_file(path)), source_(mapping_.bytes()) {
  Execution execution;
  execution.threads = 1;
  execution.memory_limit = memory_limit(run);
  auto opened = lidar::Drive::open(source_, execution);
  if (!opened.ok()) fail_drive(path, opened.status());
  drive_ = std::move(opened).value();
  if (!history.empty()) {
    history_ =
        open_history(history, run, "; name the folder of the history, or of a bundle, that frames were predicted from");
    drive_->set_history(history_.get());
  }
  most_points_ = lidar::points_within(execution.memory_limit / thread_count(run));
}

lidar::CodedFrame DriveFile::read_coded(std::uint64_t index) {
  auto coded = drive_->read_coded(index);
  if (coded.ok()) return std::move(coded).value();
  if (!drive_->misses_history()) fail_frame(path_, index, coded.status());
  const std::string where = fmt::format("{}: frame {}: ", path_, index);
  if (history_ == nullptr)
    fail(Exit::missing, where + coded.status().text() + "; name that history, or its bundle, with --history DIR");
  fail_needed(where, coded.status(), history_->report(), "; restore the history from a copy");
}

lidar::PointCloud DriveFile::decode(std::uint64_t index, lidar::CodedFrame& coded, TaskRunner& runner) const {
  auto cloud = lidar::decode_frame(coded.description, coded.scan, most_points_, runner, coded.prediction);
  if (!cloud.ok()) fail_frame(path_, index, cloud.status());
  release(coded.scan);
  release(coded.prediction);
  return std::move(cloud).value();
}

std::optional<lidar::PointCloud> DriveFile::decode_chained(std::uint64_t index, lidar::CodedFrame& coded,
                                                           TaskRunner& runner) {
  if (!coded.description.rays && !coded.description.is_predicted()) return std::nullopt;
  auto cloud = decode(index, coded, runner);
  drive_->remember(index, coded.description, cloud);
  return cloud;
}

namespace {

/// What the user can do about a history, by code.
std::string history_advice(const Status& status) {
  switch (status.code()) {
    case StatusCode::bad_magic: return "; name a folder that quern lidar history init made";
    case StatusCode::truncated:
    case StatusCode::corrupt:
    case StatusCode::checksum_mismatch: return "; restore it from a copy";
    case StatusCode::unsupported_version: return "; a newer quern wrote it, update this one";
    case StatusCode::memory_limit: return "; raise --memory";
    case StatusCode::out_of_memory: return "; not enough memory, lower -T or free some";
    case StatusCode::internal: return "; this is a defect in quern, please report it";
    case StatusCode::io_error: return errno_advice(static_cast<int>(status.first()));
    default: return "";
  }
}

}  // namespace

std::unique_ptr<lidar::HistoryTiles> open_history(const std::string& folder, const RunArgs& run, const char* advice) {
  lidar::Report report;
  auto history = lidar::History::open(storage::system_files(), String(folder), report);
  if (!history.ok() && storage::is_missing(history.status())) fail(Exit::io, plain(report.problem) + advice);
  if (!history.ok()) fail_history(folder, history.status(), report);
  const std::uint64_t memory = memory_limit(run);
  return std::make_unique<lidar::HistoryTiles>(std::move(history).value(), memory / 4, memory / 2);
}

void fail_history(const std::string& folder, const Status& status, const lidar::Report& report) {
  if (report.problem.empty()) fail_status(status, Phase::decode, folder);
  fail(exit_for(status, Phase::decode), plain(report.problem) + history_advice(status));
}

void fail_needed(const std::string& where, const Status& status, const lidar::Report& report, const char* advice) {
  const std::string text = where + (report.problem.empty() ? std::string(status.text()) : plain(report.problem));
  if (lidar::is_lost(status)) fail(Exit::missing, text + advice);
  fail(exit_for(status, Phase::decode), text + history_advice(status));
}

bool is_drive_file(const std::string& path) {
  if (path == "-") return false;
  try {
    const Mapping mapping = Mapping::of_file(path);
    MemorySource source(mapping.bytes());
    const auto info = inspect_records(source, builtin_record_codecs());
    return info.ok() && lidar::is_drive(*info);
  } catch (const CliError&) {
    return false;
  }
}

void run_works(TaskRunner& runner, std::size_t tasks, const std::function<void(std::size_t)>& work) {
  std::mutex mutex;
  std::optional<CliError> first;
  std::size_t lowest = tasks;
  const Status status = run_tasks(runner, tasks, [&](std::size_t i) -> Status {
    try {
      work(i);
    } catch (const CliError& error) {
      const std::lock_guard lock(mutex);
      if (i < lowest) {
        lowest = i;
        first.emplace(error);
      }
      return Status(StatusCode::cancelled, "");
    }
    return {};
  });
  if (first) throw CliError(*first);
  if (!status.ok()) fail(Exit::resource, status.text() + "; lower -T, or free some memory");
}

std::string frame_text(std::uint64_t index, const lidar::FrameDescription& description) {
  return fmt::format("frame {} ({})", index, plain(description.name));
}

void fail_frame(const std::string& path, std::uint64_t index, const Status& status) {
  if (status.code() == StatusCode::invalid_argument) fail_drive(path, status);
  fail_drive(fmt::format("{}: frame {}", path, index), status);
}

const char* mode_name(lidar::Mode mode) {
  switch (mode) {
    case lidar::Mode::set: return "set";
    case lidar::Mode::points: return "points";
    case lidar::Mode::exact: return "exact";
  }
  return "";
}

lidar::Promise promise_of(const lidar::FrameDescription& description, const codec::lidar::ScanInfo& info) {
  lidar::Promise promise;
  promise.kind = info.mode == lidar::Mode::set      ? lidar::PromiseKind::set
                 : info.mode == lidar::Mode::points ? lidar::PromiseKind::points
                                                    : lidar::PromiseKind::exact;
  promise.bound = lidar::frame_errors(description, info).bound;
  promise.units = info.max_error;
  return promise;
}

std::string length_text(double metres) {
  if (!std::isfinite(metres)) return "none";
  if (metres >= 1) return fmt::format("{:.4g} m", metres);
  if (metres >= 0.01) return fmt::format("{:.4g} cm", metres * 100);
  return fmt::format("{:.4g} mm", metres * 1000);
}

Json distances_json(const lidar::DistanceSummary& summary) {
  return Json{{"points", summary.points},
              {"max", number_or_null(summary.max)},
              {"mean", number_or_null(summary.mean)},
              {"rms", number_or_null(summary.rms)},
              {"median", number_or_null(summary.median)},
              {"p99", number_or_null(summary.p99)},
              {"worst_point", summary.points == 0 ? Json(nullptr) : Json(summary.worst_point)}};
}

Exit run_lidar(const LidarArgs& args) {
  switch (args.work) {
    case LidarWork::compress: return run_lidar_compress(args);
    case LidarWork::decompress: return run_lidar_decompress(args);
    case LidarWork::info: return run_lidar_info(args);
    case LidarWork::verify: return run_lidar_verify(args);
    case LidarWork::compare: return run_lidar_compare(args);
    case LidarWork::bench: return run_lidar_bench(args);
    case LidarWork::history: return run_lidar_history(args);
  }
  return Exit::usage;
}

}  // namespace quern::cli
