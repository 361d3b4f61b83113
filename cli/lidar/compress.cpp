// quern lidar compress: frames are coded side by side, kept in a temporary file, and then written as a drive.
#include <algorithm>
#include <deque>
#include <mutex>
#include <optional>

#include <unistd.h>

#include <fmt/format.h>

#include "cli/args/values.h"
#include "cli/files/memory.h"
#include "cli/files/safe_file.h"
#include "cli/lidar/scans.h"
#include "cli/lidar/verb.h"
#include "cli/messages/clock.h"
#include "cli/messages/progress.h"
#include "lidar/bags/point_cloud2.h"
#include "lidar/drive/posed_frames.h"
#include "lidar/images/range_cloud.h"
#include "lidar/locate/locator.h"

namespace quern::cli {
namespace {

/// Frames of a batch for each thread: enough that none waits long for the slowest.
constexpr std::size_t kFramesPerThread = 4;
/// Memory that coding takes for each point, above what was measured: 200 bytes alone, 650 with predictions. Attributes
/// come on top, and are held several times over: as the scan has them, in the coded order, and while they are coded.
constexpr std::uint64_t kPointBytes = 256;
constexpr std::uint64_t kPredictedPointBytes = 768;
constexpr std::uint64_t kAttributeCopies = 4;

/// What is told of a frame when it is coded, and where its bytes lie in the temporary file.
struct Coded {
  lidar::CodedFrame frame;
  codec::lidar::ScanInfo info;
  Vector<std::uint8_t> description;
  std::uint64_t scan_at = 0;
  std::uint64_t scan_bytes = 0;
  std::uint64_t dropped_zeros = 0;
  double seconds = 0;
};

lidar::FrameOptions frame_options(const LidarArgs& args) {
  lidar::FrameOptions options;
  const LidarMode mode = args.modes.front();
  options.mode = mode == LidarMode::set      ? lidar::Mode::set
                 : mode == LidarMode::points ? lidar::Mode::points
                                             : lidar::Mode::exact;
  if (!args.max_errors_nm.empty()) options.max_error_nm = args.max_errors_nm.front();
  return options;
}

/// Of a range image the ranges stay.
void keep_geometry(lidar::PointCloud& cloud) {
  if (lidar::is_image(cloud)) {
    cloud.columns.resize(1);
  } else {
    lidar::drop_attributes(cloud);
  }
}

/// Throws where coding the scan takes more than its share of --memory.
void check_fits(const lidar::PointCloud& cloud, const std::string& label, const LidarArgs& args, std::size_t shares) {
  std::uint64_t point_bytes = args.is_in_turn() ? kPredictedPointBytes : kPointBytes;
  for (const lidar::CloudColumn& column : cloud.columns) point_bytes += kAttributeCopies * dtype_bytes(column.type);
  const std::uint64_t most_points = memory_limit(args.run) / shares / point_bytes;
  if (cloud.points() > most_points)
    fail(Exit::resource, fmt::format("{}: has {} points, but memory allows {}{}", label, cloud.points(), most_points,
                                     memory_advice(shares)));
}

/// `encode(cloud, options)` codes the frame.
template <class Encode>
Coded encode_scan(const Scans& scans, std::size_t number, std::optional<std::int64_t> time, const LidarArgs& args,
                  const Encode& encode) {
  auto [cloud, stamp, zeros] = scans.read(number);
  const std::string label = scans.label(number);
  if (args.drop_attributes) keep_geometry(cloud);
  check_fits(cloud, label, args, scans.side_by_side());
  const lidar::FrameOptions options = frame_options(args);
  // Under a bound ranges follow from points, within it.
  if (options.mode != lidar::Mode::exact && lidar::is_image(cloud)) cloud = lidar::points_of_image(cloud);
  const Stopwatch watch;
  auto frame = encode(cloud, options);
  if (!frame.ok()) fail_status(frame.status(), Phase::encode, label);
  Coded out;
  out.frame = std::move(frame).value();
  out.frame.description.name = scans.frame_name(number);
  out.frame.description.time_stamp = time ? time : stamp;
  out.description = lidar::write_description(out.frame.description);
  out.info = check(codec::lidar::scan_info(out.frame.scan), Phase::encode, label);
  // Frames are kept until the drive is written.
  release(out.frame.prediction);
  release(out.frame.words);
  out.seconds = watch.seconds();
  out.dropped_zeros = zeros;
  return out;
}

void tell_frame(const std::string& label, const Coded& coded, const LidarArgs& args) {
  const auto& frame = coded.frame;
  if (frame.dropped_points != 0 && !args.run.quiet)
    print_note(fmt::format("{}: {} points with NaN or infinity were dropped; modes points and exact keep them", label,
                           frame.dropped_points));
  if (!args.run.verbose) return;
  print_note(fmt::format("{}: {} points, {} -> {} bytes, largest error {}, {:.0f} ms", label, frame.points,
                         frame.description.source_bytes, coded.scan_bytes + coded.description.size(),
                         length_text(frame.achieved_error), coded.seconds * 1000));
}

struct Totals {
  std::uint64_t input_bytes = 0, points = 0, kept_points = 0, dropped = 0, dropped_zeros = 0;
  std::uint64_t geometry = 0, order = 0, columns = 0, predicted = 0, by_history = 0, located = 0;
  double seconds = 0, largest_error = 0;

  void add(const Coded& coded) {
    input_bytes += coded.frame.description.source_bytes;
    points += coded.frame.points;
    kept_points += coded.info.points;
    dropped += coded.frame.dropped_points;
    dropped_zeros += coded.dropped_zeros;
    geometry += coded.info.geometry_bytes;
    order += coded.info.order_bytes;
    columns += coded.info.column_bytes;
    predicted += coded.info.predicted ? 1 : 0;
    by_history += coded.frame.description.reach ? 1 : 0;
    largest_error = std::max(largest_error, coded.frame.achieved_error);
  }
};

Json frame_json(const std::string& label, const Coded& coded) {
  return Json{{"input", label},
              {"name", plain(coded.frame.description.name)},
              {"points", coded.frame.points},
              {"dropped_points", coded.frame.dropped_points},
              {"input_bytes", coded.frame.description.source_bytes},
              {"output_bytes", coded.scan_bytes + coded.description.size()},
              {"max_error", coded.frame.achieved_error},
              {"seconds", coded.seconds}};
}

double ratio_of(std::uint64_t from, std::uint64_t to) {
  return static_cast<double>(from) / static_cast<double>(std::max<std::uint64_t>(to, 1));
}

void tell(const LidarArgs& args, const std::deque<Coded>& frames, const Scans& scans, const Totals& totals,
          std::uint64_t output_bytes) {
  const auto mode = frame_options(args).mode;
  const bool bounded = mode != lidar::Mode::exact;
  const double bound = bounded ? static_cast<double>(args.max_errors_nm.front()) / 1e9 : 0;
  if (args.run.json) {
    Json each = Json::array();
    for (std::size_t i = 0; i < frames.size(); ++i) each.push_back(frame_json(scans.label(i), frames[i]));
    print_json(Json{{"output", args.output},
                    {"frames", frames.size()},
                    {"points", totals.points},
                    {"kept_points", totals.kept_points},
                    {"dropped_points", totals.dropped},
                    {"dropped_zeros", totals.dropped_zeros},
                    {"input_bytes", totals.input_bytes},
                    {"output_bytes", output_bytes},
                    {"ratio", ratio_of(totals.input_bytes, output_bytes)},
                    {"bits_per_point", ratio_of(8 * output_bytes, totals.points)},
                    {"geometry_bytes", totals.geometry},
                    {"order_bytes", totals.order},
                    {"attribute_bytes", totals.columns},
                    {"predicted_frames", totals.predicted},
                    {"history_frames", totals.by_history},
                    {"located_frames", totals.located},
                    {"codec", "lidar"},
                    {"mode", mode_name(mode)},
                    {"bound",
                     bounded ? Json{{"kind", "distance"}, {"value", bound}} : Json{{"kind", "lossless"}, {"value", 0}}},
                    {"max_error", totals.largest_error},
                    {"psnr_db", nullptr},
                    {"violations", nullptr},
                    {"seconds", totals.seconds},
                    {"mb_per_s", ratio_of(totals.input_bytes, 1) / 1e6 / std::max(totals.seconds, 1e-9)},
                    {"frames_per_s", static_cast<double>(frames.size()) / std::max(totals.seconds, 1e-9)},
                    {"each", each},
                    {"device", "cpu"},
                    {"threads", thread_count(args.run)},
                    {"version", QUERN_VERSION}},
               args.output == "-");
    return;
  }
  if (args.run.quiet) return;
  const std::string error =
      bounded ? fmt::format("largest error {} of {}", length_text(totals.largest_error), length_text(bound))
              : std::string("nothing lost");
  print_note(fmt::format("{}: {} frames, {} -> {} (ratio {:.1f}), mode {}, {}, {:.1f} frames/s", args.output,
                         frames.size(), size_text(totals.input_bytes), size_text(output_bytes),
                         ratio_of(totals.input_bytes, output_bytes), mode_name(mode), error,
                         static_cast<double>(frames.size()) / std::max(totals.seconds, 1e-9)));
  if (args.drops_zeros)
    print_note(fmt::format("{}: {} points at 0 0 0 were left out as asked; give verify --drop-zeros, too", args.output,
                           totals.dropped_zeros));
  if (!args.history.empty() && args.poses.empty())
    print_note(fmt::format("{}: {} of {} frames found their place in {}{}", args.output, totals.located, frames.size(),
                           args.history, totals.located == 0 ? "; name their poses with --poses" : ""));
}

/// The mode that no input forbids.
mode_t least_mode(const std::vector<std::string>& paths) {
  mode_t mode = 0666;
  for (const std::string& path : paths) mode &= mode_like(path) | 0600;
  return mode;
}

/// Frames coded side by side, batch after batch; their scans in a temporary file.
class FrameCoder {
 public:
  FrameCoder(const LidarArgs& args, const Scans& scans, TaskRunner& runner)
      : args_(args), scans_(scans), runner_(runner), progress_(args.output, args.run, 1) {
    if (!args.times.empty()) times_ = read_times(args.times, scans.size());
    if (!args.poses.empty()) poses_ = read_poses(args.poses, scans.size());
  }

  void run() {
    const Stopwatch watch;
    if (args_.is_in_turn()) {
      run_in_order();
    } else {
      const std::size_t batch = kFramesPerThread * runner_.width();
      for (std::size_t first = 0; first < scans_.size(); first += batch)
        run_batch(first, std::min(batch, scans_.size() - first));
    }
    totals_.seconds = watch.seconds();
  }

  const std::deque<Coded>& frames() const { return frames_; }
  const Totals& totals() const { return totals_; }

  /// Fails where a collection removed the epoch meanwhile that the drive names.
  void check_epoch() const {
    if (!epoch_ || totals_.by_history == 0) return;
    lidar::Report report;
    const auto epoch = tiles_->history().read(*epoch_, report);
    if (!epoch.ok())
      fail_needed({}, epoch.status(), report, "; it was removed meanwhile, compress again with the newest epoch");
  }

  /// Writes the drive and returns its bytes.
  std::uint64_t write(int descriptor, const Execution& execution) const {
    const Mapping scans = spool_.map();
    std::vector<lidar::StoredFrame> stored;
    for (const Coded& coded : frames_)
      stored.push_back({coded.description, scans.bytes().subspan(static_cast<std::size_t>(coded.scan_at),
                                                                 static_cast<std::size_t>(coded.scan_bytes))});
    FdSink sink(descriptor);
    const auto written = lidar::write_drive(stored, execution, sink);
    if (!written.ok() && sink.error() != 0)
      fail(Exit::io, fmt::format("{}: cannot write: {}", args_.output, errno_text(sink.error())));
    return check(written, Phase::encode, args_.output);
  }

 private:
  void run_batch(std::size_t first, std::size_t count) {
    std::vector<Coded> coded(count);
    // One frame alone has the threads for its slices.
    TaskRunner& inner = count == 1 ? runner_ : static_cast<TaskRunner&>(serial_);
    TaskRunner& outer = count == 1 ? static_cast<TaskRunner&>(serial_) : runner_;
    run_works(outer, count, [&](std::size_t i) {
      coded[i] = encode_scan(scans_, first + i, time_of(first + i), args_, [&](const auto& cloud, const auto& options) {
        return lidar::encode_frame(cloud, options, inner);
      });
      note_done();
    });
    for (std::size_t i = 0; i < count; ++i) keep(first + i, coded[i]);
  }

  /// Each frame is predicted from those before it, and from the history.
  void run_in_order() {
    const lidar::UsedHistory used = history();
    std::optional<lidar::PosedFrames> frames(std::in_place, args_.key_every, used);
    std::vector<Coded> group;
    for (std::size_t i = 0; i < scans_.size(); ++i) {
      bool has_pose = false;
      group.push_back(encode_scan(scans_, i, time_of(i), args_, [&](const auto& cloud, const auto& options) {
        const auto pose = pose_of_frame(i, cloud);
        has_pose = pose.ok() && pose->has_value();
        auto frame = !pose.ok() ? Result<lidar::CodedFrame>(pose.status())
                     : has_pose ? frames->encode(cloud, options, **pose, runner_)
                                : lidar::encode_frame(cloud, options, runner_);
        if (!frame.ok() && tiles_ != nullptr && !tiles_->report().problem.empty())
          fail_needed({}, frame.status(), tiles_->report(), "; restore the history from a copy, or type --no-history");
        return frame;
      }));
      note_done();
      if (!has_pose || frames->is_key_next() || i + 1 == scans_.size()) keep_group(i + 1 - group.size(), group);
      // No frame behind one without a place is predicted from what lies before it.
      if (!has_pose) frames.emplace(args_.key_every, used);
    }
  }

  /// That of the file or, without one, where the scan finds its place in the history.
  Result<std::optional<lidar::Pose>> pose_of_frame(std::size_t i, const lidar::PointCloud& cloud) {
    if (!poses_.empty()) return std::optional(poses_[i]);
    if (!locator_ || cloud.kind != lidar::CoordinateKind::f32) return std::optional<lidar::Pose>();
    auto pose = locator_->locate(lidar::unit_points(cloud.words));
    if (pose.ok() && *pose) ++totals_.located;
    return pose;
  }

  /// The newest epoch of the history that was named.
  lidar::UsedHistory history() {
    if (args_.history.empty()) return {};
    tiles_ = open_history(args_.history, args_.run);
    lidar::Report report;
    const auto names = tiles_->history().epochs(report);
    if (!names.ok()) fail_history(args_.history, names.status(), report);
    if (names->empty()) return {};
    epoch_ = names->back().root;
    if (poses_.empty()) {
      auto places = lidar::read_places(tiles_->history(), report, memory_limit(args_.run) / 8);
      if (!places.ok()) fail_history(args_.history, places.status(), report);
      for (const String& note : report.notes) print_note(plain(note));
      locator_.emplace(*tiles_, *epoch_, std::move(places).value());
    }
    return {tiles_.get(), *epoch_};
  }

  /// Frames from a key frame to the next.
  void keep_group(std::size_t first, std::vector<Coded>& group) {
    std::vector<lidar::FrameDescription*> descriptions;
    for (Coded& coded : group) descriptions.push_back(&coded.frame.description);
    lidar::drop_unused(descriptions);
    for (std::size_t i = 0; i < group.size(); ++i) {
      group[i].description = lidar::write_description(group[i].frame.description);
      keep(first + i, group[i]);
    }
    group.clear();
  }

  std::optional<std::int64_t> time_of(std::size_t i) const {
    return times_.empty() ? std::nullopt : std::optional(times_[i]);
  }
  void note_done() {
    const std::lock_guard lock(mutex_);
    progress_.update(++done_, scans_.size());
  }

  void keep(std::size_t number, Coded& coded) {
    coded.scan_at = spooled_;
    coded.scan_bytes = coded.frame.scan.size();
    spool_.write(coded.frame.scan);
    spooled_ += coded.scan_bytes;
    release(coded.frame.scan);
    release(coded.frame.description.file_header);
    totals_.add(coded);
    tell_frame(scans_.label(number), coded, args_);
    frames_.push_back(std::move(coded));
  }

  const LidarArgs& args_;
  const Scans& scans_;
  TaskRunner& runner_;
  SerialRunner serial_;
  Progress progress_;
  std::mutex mutex_;  // of done_ and progress_
  std::uint64_t done_ = 0;
  std::vector<std::int64_t> times_;
  std::vector<lidar::Pose> poses_;
  std::unique_ptr<lidar::HistoryTiles> tiles_;
  std::optional<lidar::ContentHash> epoch_;  ///< of the history, that frames may be predicted from
  std::optional<lidar::Locator> locator_;    ///< where no poses are given
  SpoolFile spool_;
  std::uint64_t spooled_ = 0;
  std::deque<Coded> frames_;
  Totals totals_;
};

}  // namespace

Exit run_lidar_compress(const LidarArgs& args) {
  const Scans scans(args.inputs, args);
  std::vector<std::string> inputs = scans.files();
  for (const auto& [name, path] : args.channels) inputs.push_back(path);
  for (const std::string& path : inputs) check_output(path, args.output, args.force);
  for (const std::string& path : {args.sensor, args.times, args.poses})
    if (!path.empty()) check_output(path, args.output, args.force);
  if (args.output == "-") check_stdout(args.force);
  Execution execution;
  execution.threads = args.run.threads;
  execution.memory_limit = memory_limit(args.run);
  RunnerHandle runner(execution);
  std::optional<SafeFile> file;
  if (args.output != "-")
    file.emplace(args.output, SafeFile::Options{.replace = args.force, .mode = least_mode(inputs)});
  std::uint64_t output_bytes = 0;
  std::deque<Coded> frames;
  Totals totals;
  {
    FrameCoder coder(args, scans, runner.get());
    coder.run();
    output_bytes = coder.write(file ? file->descriptor() : STDOUT_FILENO, execution);
    coder.check_epoch();
    frames = coder.frames();
    totals = coder.totals();
  }
  if (file) file->commit();
  scans.tell_left_out();
  tell(args, frames, scans, totals, output_bytes);
  return Exit::ok;
}

}  // namespace quern::cli
