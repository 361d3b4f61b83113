// What the works of quern lidar share: inputs as clouds, drives, how failures become exit codes, figures as JSON.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/args/exit_codes.h"
#include "cli/files/byte_streams.h"
#include "cli/lidar/args.h"
#include "cli/messages/file_report.h"
#include "libcompress/core/task_runner.h"
#include "lidar/drive/drive.h"
#include "lidar/history/history_tiles.h"
#include "lidar/verify/promise.h"

namespace quern::cli {

Exit run_lidar_compress(const LidarArgs& args);
Exit run_lidar_decompress(const LidarArgs& args);
Exit run_lidar_info(const LidarArgs& args);
Exit run_lidar_verify(const LidarArgs& args);
Exit run_lidar_compare(const LidarArgs& args);
Exit run_lidar_bench(const LidarArgs& args);
Exit run_lidar_history(const LidarArgs& args);
/// Says what topics a bag has; for run_lidar_info(). Throws CliError.
void tell_bag(const std::string& path, const LidarArgs& args);
/// quern lidar history parity and repair.
Exit run_history_parity(const LidarArgs& args);
Exit run_history_repair(const LidarArgs& args);
/// Says what range images have that --sensor belongs to. Throws CliError.
void tell_images(const std::string& path, const LidarArgs& args);

/// Calls `take` with number, from 1, and text of each line that is not empty, without blanks at its end. Throws
/// CliError where the file cannot be read.
void for_each_line(const std::string& path, const std::function<void(std::size_t, std::string_view)>& take);
/// Throws CliError, naming `what` there is one of on each line, where `found` are not `frames`.
void check_one_a_frame(const std::string& path, const char* what, std::size_t found, std::size_t frames);

/// Nanoseconds of a file with a time a line. Throws CliError where it has not `frames` of them.
std::vector<std::int64_t> read_times(const std::string& path, std::size_t frames);

/// Poses of a file with 12 numbers a line. Throws CliError, naming the line, where one is not rigid or they are not
/// `frames`.
std::vector<lidar::Pose> read_poses(const std::string& path, std::size_t frames);

constexpr const char* kMakeHistory = "; name the folder of one, or make one with quern lidar history init";
/// Opens a history for reading. Throws CliError, with `advice` where there is none.
std::unique_ptr<lidar::HistoryTiles> open_history(const std::string& folder, const RunArgs& run,
                                                  const char* advice = kMakeHistory);
/// Throws what a history said and what to do, with the code of its status.
[[noreturn]] void fail_history(const std::string& folder, const Status& status, const lidar::Report& report);
/// What a call on a history returned. Throws CliError.
template <class T>
T check_history(Result<T> result, const std::string& folder, const lidar::Report& report) {
  if (!result.ok()) fail_history(folder, result.status(), report);
  return std::move(result).value();
}
/// The same of an epoch or a tile that a drive needs: Exit::missing and `advice` where it is missing or damaged.
[[noreturn]] void fail_needed(const std::string& where, const Status& status, const lidar::Report& report,
                              const char* advice);

/// A drive in a file, mapped.
class DriveFile {
 public:
  /// `history`: the folder that frames are predicted from; empty: none. Throws CliError.
  DriveFile(const std::string& path, const RunArgs& run, const std::string& history = {});
  lidar::Drive& drive() { return *drive_; }
  const std::string& path() const { return path_; }
  std::uint64_t bytes() const { return mapping_.bytes().size(); }
  /// Throws CliError, naming the frame; with Exit::missing where its history is not there, naming the tile.
  lidar::CodedFrame read_coded(std::uint64_t index);
  /// Decodes a frame that was read; its bytes and its prediction are gone then. Throws CliError, naming the frame.
  lidar::PointCloud decode(std::uint64_t index, lidar::CodedFrame& coded, TaskRunner& runner) const;
  /// The same of a frame that others may be predicted from, which the drive remembers; nothing of other frames. For a
  /// caller who decodes several frames side by side: so none of them holds a prediction or is decoded twice.
  std::optional<lidar::PointCloud> decode_chained(std::uint64_t index, lidar::CodedFrame& coded, TaskRunner& runner);

 private:
  std::string path_;
  Mapping mapping_;
  MemorySource source_;
  std::unique_ptr<lidar::HistoryTiles> history_;
  std::unique_ptr<lidar::Drive> drive_;
  std::uint64_t most_points_ = 0;  ///< of a frame that fits into the run's memory with the frames beside it
};

/// What to do where a scan does not fit into its share of --memory: fewer threads help where there are several shares.
constexpr const char* memory_advice(std::size_t shares) {
  return shares > 1 ? "; raise --memory or lower -T" : "; raise --memory";
}

/// Whether the file begins a stream of records that is a drive.
bool is_drive_file(const std::string& path);

/// Runs `tasks` calls of `work(index)` on the runner. Of CliErrors that they throw, that of the lowest index is thrown.
void run_works(TaskRunner& runner, std::size_t tasks, const std::function<void(std::size_t)>& work);

/// Gives the memory of a container back, which an empty list that is assigned does not.
template <class T>
void release(T& container) {
  T().swap(container);
}

/// "frame 12 (000012)".
std::string frame_text(std::uint64_t index, const lidar::FrameDescription& description);
/// Throws with file and frame.
[[noreturn]] void fail_frame(const std::string& path, std::uint64_t index, const Status& status);

const char* mode_name(lidar::Mode mode);
lidar::Promise promise_of(const lidar::FrameDescription& description, const codec::lidar::ScanInfo& info);

/// "14.9 cm", "0.8 mm", "2.5 m".
std::string length_text(double metres);
Json distances_json(const lidar::DistanceSummary& summary);
inline std::string plain(const String& text) { return {text.data(), text.size()}; }

}  // namespace quern::cli
