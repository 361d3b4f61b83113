// quern lidar decompress: frames are read in turn, decoded side by side, and written as files.
#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <set>

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "cli/args/values.h"
#include "cli/files/file_names.h"
#include "cli/files/memory.h"
#include "cli/files/safe_file.h"
#include "cli/lidar/outputs.h"
#include "cli/lidar/verb.h"
#include "cli/messages/clock.h"
#include "cli/messages/progress.h"
#include "lidar/files/cloud_files.h"

namespace quern::cli {
namespace {

constexpr std::size_t kFramesPerThread = 2;

void make_folder(const std::string& path) {
  if (mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) fail_errno(path, "make the folder");
  if (!is_directory(path)) fail(Exit::io, path + ": is no folder; several frames need one");
}

lidar::FileFormat format_for(const LidarArgs& args, const lidar::FrameDescription& description, bool to_file) {
  if (!args.format.empty()) return lidar::parse_format(args.format).value_or(lidar::FileFormat::unknown);
  const auto by_name = to_file ? lidar::format_of_name(args.output) : lidar::FileFormat::unknown;
  if (by_name != lidar::FileFormat::unknown) return by_name;
  const bool is_of_a_file =
      description.format != lidar::FileFormat::unknown && description.format <= lidar::FileFormat::las;
  return is_of_a_file ? description.format : lidar::FileFormat::pcd;
}

/// A frame on its way: coded, decoded, then as a file's bytes.
struct Job {
  std::uint64_t index = 0;
  lidar::CodedFrame coded;
  std::optional<lidar::PointCloud> cloud;
  lidar::FileFormat format = lidar::FileFormat::pcd;
  lidar::CloudFile file;
  std::uint64_t points = 0;
};

void make_file(Job& job, const DriveFile& source) {
  auto file = lidar::write_cloud(*job.cloud, job.format);
  if (!file.ok()) fail_writing(source.path(), job.index, job.coded.description, file.status());
  job.cloud.reset();
  job.file = std::move(file).value();
}

void write_file(const std::string& path, const Job& job, const DriveFile& source, const LidarArgs& args) {
  if (path == "-") {
    if (!write_all(STDOUT_FILENO, job.file.bytes)) fail_errno("standard output", "write");
    return;
  }
  SafeFile file(path, {.replace = args.force, .mode = mode_like(source.path())});
  if (!write_all(file.descriptor(), job.file.bytes)) fail_errno(path, "write");
  file.commit();
}

/// Names of files in a folder; of frames of one name all but the first get their numbers.
class FileNames {
 public:
  std::string next(const LidarArgs& args, const Job& job) {
    std::string stem = plain(job.coded.description.name);
    const std::string ending = lidar::format_name(job.format);
    while (!seen_.insert(stem + "." + ending).second) stem += fmt::format("-{}", job.index);
    return in_folder(args.output, stem + "." + ending);
  }

 private:
  std::set<std::string> seen_;
};

struct Totals {
  std::uint64_t bytes = 0, points = 0, frames = 0;
  std::map<std::string, std::uint64_t> left_out;  ///< columns, and how many frames had them
  std::vector<std::uint64_t> left_frames;         ///< whose history is missing
};

/// With --keep-going nothing where the frame's history is missing, which is told.
std::optional<lidar::CodedFrame> read_unless_missing(DriveFile& source, std::uint64_t index, const LidarArgs& args,
                                                     Totals& totals) {
  try {
    return source.read_coded(index);
  } catch (const CliError& error) {
    if (error.code() != Exit::missing) throw;
    if (!args.keep_going)
      fail(Exit::missing, std::string(error.what()) + ", or leave such frames out with --keep-going");
    totals.left_frames.push_back(index);
    print_note(error.what());
    return std::nullopt;
  }
}

void tell(const LidarArgs& args, const Totals& totals, std::uint64_t input_bytes, double seconds) {
  if (!args.run.quiet)
    for (const auto& [name, frames] : totals.left_out)
      print_note(
          fmt::format("{}: column {} of {} frames has no place in this format and was left out; --format pcd "
                      "keeps all",
                      args.output, name, frames));
  if (args.run.json) {
    print_json(Json{{"output", args.output},
                    {"frames", totals.frames},
                    {"frames_left_out", totals.left_frames},
                    {"points", totals.points},
                    {"input_bytes", input_bytes},
                    {"output_bytes", totals.bytes},
                    {"seconds", seconds},
                    {"frames_per_s", static_cast<double>(totals.frames) / std::max(seconds, 1e-9)},
                    {"threads", thread_count(args.run)},
                    {"version", QUERN_VERSION}},
               args.output == "-");
  } else if (!args.run.quiet) {
    print_note(fmt::format("{}: {} frames, {} points, {}, {:.1f} frames/s",
                           args.output == "-" ? "standard output" : args.output, totals.frames, totals.points,
                           size_text(totals.bytes), static_cast<double>(totals.frames) / std::max(seconds, 1e-9)));
  }
}

}  // namespace

Exit run_lidar_decompress(const LidarArgs& args) {
  DriveFile source(args.inputs.front(), args.run, args.history);
  const std::uint64_t all = source.drive().frames();
  const std::uint64_t begin = args.frame.value_or(0);
  if (begin >= all)
    fail(Exit::usage,
         fmt::format("{}: there is no frame {}; the drive has {}, counted from 0", source.path(), begin, all));
  const std::uint64_t end = args.frame ? begin + 1 : all;
  const auto all_frames = open_all_frames(args, source.path());
  const bool to_file = all_frames != nullptr || args.output == "-" ||
                       (end - begin == 1 && !is_directory(args.output) && !args.output.ends_with('/'));
  if (args.output == "-") {
    if (end - begin != 1 && all_frames == nullptr)
      fail(Exit::usage, "-o -: the drive has several frames; name a folder, or give --frame");
    check_stdout(args.force);
  }
  if (to_file) {
    check_output(source.path(), args.output, args.force);
  } else {
    make_folder(args.output);
  }
  Execution execution;
  execution.threads = args.run.threads;
  RunnerHandle runner(execution);
  SerialRunner serial;
  Progress progress(source.path(), args.run);
  FileNames names;
  Totals totals;
  const Stopwatch watch;
  const std::size_t batch = kFramesPerThread * runner.get().width();
  for (std::uint64_t first = begin; first < end; first += batch) {
    std::vector<Job> jobs;
    for (std::uint64_t index = first; index < std::min(first + batch, end); ++index) {
      auto coded = read_unless_missing(source, index, args, totals);
      if (!coded) continue;
      Job& job = jobs.emplace_back();
      job.index = index;
      job.coded = std::move(*coded);
      if (all_frames == nullptr) job.format = format_for(args, job.coded.description, to_file);
      job.cloud = source.decode_chained(index, job.coded, runner.get());
    }
    TaskRunner& inner = jobs.size() == 1 ? runner.get() : serial;
    TaskRunner& outer = jobs.size() == 1 ? static_cast<TaskRunner&>(serial) : runner.get();
    run_works(outer, jobs.size(), [&](std::size_t i) {
      if (!jobs[i].cloud) jobs[i].cloud = source.decode(jobs[i].index, jobs[i].coded, inner);
      jobs[i].points = jobs[i].cloud->points();
      if (all_frames == nullptr) make_file(jobs[i], source);
    });
    for (Job& job : jobs) {
      if (all_frames != nullptr) {
        all_frames->add({job.index, &job.coded.description, std::move(*job.cloud)}, job.file.left_out);
      } else {
        write_file(to_file ? args.output : names.next(args, job), job, source, args);
      }
      for (const String& column : job.file.left_out) ++totals.left_out[plain(column)];
      totals.bytes += job.file.bytes.size();
      totals.points += job.points;
      ++totals.frames;
      progress.update(totals.frames, end - begin);
    }
  }
  if (all_frames != nullptr) {
    totals.bytes = all_frames->finish();
    if (!all_frames->note().empty() && !args.run.quiet) print_note(all_frames->note());
  }
  tell(args, totals, source.bytes(), watch.seconds());
  return totals.left_frames.empty() ? Exit::ok : Exit::missing;
}

}  // namespace quern::cli
