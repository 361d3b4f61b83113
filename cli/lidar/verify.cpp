// quern lidar verify: checksums, decoding, and with the original scans the bound in both directions.
#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "cli/files/memory.h"
#include "cli/lidar/scans.h"
#include "cli/lidar/verb.h"
#include "cli/messages/clock.h"
#include "cli/messages/progress.h"
#include "lidar/cloud/zero_points.h"
#include "lidar/images/range_cloud.h"

namespace quern::cli {
namespace {

struct FrameResult {
  lidar::FrameDescription description;
  codec::lidar::ScanInfo info;
  std::uint64_t points = 0;
  std::optional<lidar::PromiseCheck> check;  ///< with an original
  bool has_zeros = false;                    ///< the original that it fails against has points at the origin
};

/// A frame that was read, and decoded where it is in a chain of predictions.
struct FrameJob {
  lidar::CodedFrame coded;
  std::optional<lidar::PointCloud> cloud;
  FrameResult result;
};

FrameJob read_frame(DriveFile& source, std::uint64_t index, TaskRunner& runner) {
  FrameJob job;
  job.coded = source.read_coded(index);
  const auto info = codec::lidar::scan_info(job.coded.scan);
  if (!info.ok()) fail_frame(source.path(), index, info.status());
  job.result.info = *info;
  job.cloud = source.decode_chained(index, job.coded, runner);
  return job;
}

void check_frame(const DriveFile& source, std::uint64_t index, FrameJob& job, const Scans& originals,
                 TaskRunner& runner) {
  if (!job.cloud) job.cloud = source.decode(index, job.coded, runner);
  const lidar::PointCloud cloud = std::move(*job.cloud);
  FrameResult& out = job.result;
  out.description = std::move(job.coded.description);
  out.points = cloud.points();
  if (originals.empty()) return;
  lidar::PointCloud scan = originals.read(static_cast<std::size_t>(index)).cloud;
  const bool is_image = lidar::is_image(scan);
  if (is_image && out.description.kind != lidar::CodedKind::projected) scan = lidar::points_of_image(scan);
  // A drive that was made without attributes promises none.
  if (cloud.columns.empty()) scan.columns.clear();
  if (is_image && cloud.columns.size() == 1 && out.description.kind == lidar::CodedKind::projected)
    scan.columns.resize(1);
  auto checked = lidar::check_promise(scan, cloud, promise_of(out.description, out.info), runner);
  if (!checked.ok()) fail_status(checked.status(), Phase::decode, originals.label(static_cast<std::size_t>(index)));
  out.check = std::move(checked).value();
  out.check->distances.a_to_b = {};
  out.check->distances.b_to_a = {};
  if (!out.check->passed() && !is_image) out.has_zeros = lidar::drop_zero_points(scan) != 0;
}

double largest(const lidar::PromiseCheck& check) {
  return std::max({check.distances.forward.max, check.distances.backward.max, check.max_pair_distance});
}

std::string failure_text(const lidar::PromiseCheck& check, double bound) {
  if (!check.same_points) return "is another number of points, or of another type";
  if (check.violations != 0)
    return fmt::format("misses {}: {} points, the worst by {}",
                       bound == 0 ? std::string("exactness") : "its bound " + length_text(bound), check.violations,
                       length_text(largest(check)));
  return fmt::format("has other attributes at {} points", check.attribute_changes);
}

Json frame_json(std::uint64_t index, const FrameResult& frame) {
  Json out{{"frame", index}, {"name", plain(frame.description.name)}, {"points", frame.points}};
  out["bound"] = lidar::frame_errors(frame.description, frame.info).bound;
  if (!frame.check) return out;
  out["passed"] = frame.check->passed();
  out["violations"] = frame.check->violations;
  out["attribute_changes"] = frame.check->attribute_changes;
  out["max_error"] = number_or_null(largest(*frame.check));
  out["forward"] = distances_json(frame.check->distances.forward);
  out["backward"] = distances_json(frame.check->distances.backward);
  return out;
}

struct Totals {
  std::uint64_t points = 0, violations = 0, changed = 0, failed = 0;
  double max_error = 0, mean_sum = 0;
  std::string first_failure;
};

void add(const DriveFile& source, std::uint64_t index, const FrameResult& frame, const LidarArgs& args, Totals& out) {
  out.points += frame.points;
  if (!frame.check) return;
  out.violations += frame.check->violations;
  out.changed += frame.check->attribute_changes;
  out.max_error = std::max(out.max_error, largest(*frame.check));
  out.mean_sum += frame.check->distances.forward.mean;
  const double bound = lidar::frame_errors(frame.description, frame.info).bound;
  if (!frame.check->passed()) {
    ++out.failed;
    if (out.first_failure.empty())
      out.first_failure = fmt::format("{}: {} {}{}", source.path(), frame_text(index, frame.description),
                                      failure_text(*frame.check, bound),
                                      frame.has_zeros ? "; if it was made with --drop-zeros, type --drop-zeros" : "");
  }
  if (args.run.verbose && !args.run.json)
    print_text(fmt::format("{}: {}, largest error {}, mean {} and back {}\n", frame_text(index, frame.description),
                           frame.check->passed() ? "kept" : "MISSED", length_text(largest(*frame.check)),
                           length_text(frame.check->distances.forward.mean),
                           length_text(frame.check->distances.backward.mean)));
}

void tell(const DriveFile& source, const LidarArgs& args, const Totals& totals, std::uint64_t frames, Json each,
          double seconds) {
  const bool compared = !args.originals.empty();
  const double mean = frames == 0 ? 0 : totals.mean_sum / static_cast<double>(frames);
  if (args.run.json) {
    print_json(Json{{"input", source.path()},
                    {"input_bytes", source.bytes()},
                    {"frames", frames},
                    {"points", totals.points},
                    {"whole", true},
                    {"compared", compared},
                    {"violations", compared ? Json(totals.violations) : Json(nullptr)},
                    {"attribute_changes", compared ? Json(totals.changed) : Json(nullptr)},
                    {"failed_frames", compared ? Json(totals.failed) : Json(nullptr)},
                    {"max_error", compared ? number_or_null(totals.max_error) : Json(nullptr)},
                    {"mean_error", compared ? number_or_null(mean) : Json(nullptr)},
                    {"each", std::move(each)},
                    {"seconds", seconds},
                    {"threads", thread_count(args.run)},
                    {"version", QUERN_VERSION}});
  } else if (!args.run.quiet) {
    std::string text = fmt::format("{}: {} frames, {} points: all checksums match, every frame decodes\n",
                                   source.path(), frames, totals.points);
    if (compared && totals.failed == 0)
      text += fmt::format("  against the original: every frame keeps its bound; largest error {}, mean {}\n",
                          length_text(totals.max_error), length_text(mean));
    print_text(text);
  }
}

}  // namespace

Exit run_lidar_verify(const LidarArgs& args) {
  DriveFile source(args.inputs.front(), args.run, args.history);
  const std::uint64_t frames = source.drive().frames();
  const Scans originals(args.originals, args);
  if (!originals.empty() && originals.size() != frames)
    fail(Exit::usage,
         fmt::format("--original: there are {} scans, but {} has {} frames", originals.size(), source.path(), frames));
  if (const Status whole = source.drive().check_bytes(); !whole.ok())
    fail(exit_for(whole, Phase::decode), source.path() + ": " + whole.text() + "; restore the drive from a copy");
  Execution execution;
  execution.threads = args.run.threads;
  RunnerHandle runner(execution);
  SerialRunner serial;
  Progress progress(source.path(), args.run);
  Totals totals;
  Json each = Json::array();
  const Stopwatch watch;
  const std::size_t width = runner.get().width();
  for (std::uint64_t first = 0; first < frames; first += width) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(width, frames - first));
    std::vector<FrameJob> jobs;
    for (std::size_t i = 0; i < count; ++i) jobs.push_back(read_frame(source, first + i, runner.get()));
    TaskRunner& inner = count == 1 ? runner.get() : serial;
    TaskRunner& outer = count == 1 ? static_cast<TaskRunner&>(serial) : runner.get();
    run_works(outer, count, [&](std::size_t i) { check_frame(source, first + i, jobs[i], originals, inner); });
    for (std::size_t i = 0; i < count; ++i) {
      add(source, first + i, jobs[i].result, args, totals);
      if (args.run.json) each.push_back(frame_json(first + i, jobs[i].result));
    }
    progress.update(first + count, frames);
  }
  tell(source, args, totals, frames, std::move(each), watch.seconds());
  if (totals.failed != 0) fail(Exit::bound, totals.first_failure);
  return Exit::ok;
}

}  // namespace quern::cli
