// quern lidar bench: size, measured error and time of each scan under each bound and mode.
#include <algorithm>

#include <fmt/format.h>

#include "cli/files/memory.h"
#include "cli/lidar/scans.h"
#include "cli/lidar/verb.h"
#include "cli/messages/clock.h"
#include "cli/verbs/verbs.h"
#include "lidar/images/range_cloud.h"

namespace quern::cli {
namespace {

constexpr std::uint64_t kFineMode = 50'000'000;

struct Trial {
  LidarMode mode = LidarMode::set;
  std::uint64_t bound_nm = 0;  ///< 0: exact
};

/// Each mode under each bound; exact once.
std::vector<Trial> trials_of(const LidarArgs& args) {
  std::vector<Trial> out;
  for (const std::uint64_t bound : args.max_errors_nm) {
    if (args.modes.empty()) out.push_back({bound <= kFineMode ? LidarMode::points : LidarMode::set, bound});
    for (const LidarMode mode : args.modes)
      if (mode != LidarMode::exact) out.push_back({mode, bound});
  }
  if (std::find(args.modes.begin(), args.modes.end(), LidarMode::exact) != args.modes.end())
    out.push_back({LidarMode::exact, 0});
  return out;
}

struct Measured {
  std::uint64_t bytes = 0;
  double encode_seconds = 0, decode_seconds = 0;
  lidar::PromiseCheck check;
  double bound = 0;
};

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

Measured measure(const std::string& path, const lidar::PointCloud& scan, const Trial& trial, const LidarArgs& args,
                 TaskRunner& runner) {
  const bool is_bounded_image = trial.mode != LidarMode::exact && lidar::is_image(scan);
  const lidar::PointCloud cloud = is_bounded_image ? lidar::points_of_image(scan) : scan;
  lidar::FrameOptions options;
  options.mode = static_cast<lidar::Mode>(trial.mode);
  if (trial.bound_nm != 0) options.max_error_nm = trial.bound_nm;
  const std::uint64_t most_points = lidar::points_within(memory_limit(args.run));
  Measured out;
  std::vector<double> encode, decode;
  for (unsigned i = 0; i < args.repeats; ++i) {
    const Stopwatch encoding;
    auto frame = lidar::encode_frame(cloud, options, runner);
    if (!frame.ok()) fail_status(frame.status(), Phase::encode, path);
    encode.push_back(encoding.seconds());
    const Stopwatch decoding;
    const auto back =
        check(lidar::decode_frame(frame->description, frame->scan, most_points, runner), Phase::encode, path);
    decode.push_back(decoding.seconds());
    if (i != 0) continue;
    out.bytes = frame->scan.size();
    const auto info = check(codec::lidar::scan_info(frame->scan), Phase::encode, path);
    const lidar::Promise promise = promise_of(frame->description, info);
    out.bound = promise.bound;
    out.check = check(lidar::check_promise(cloud, back, promise, runner), Phase::encode, path);
  }
  out.encode_seconds = median(encode);
  out.decode_seconds = median(decode);
  return out;
}

double largest(const Measured& m) {
  return std::max({m.check.distances.forward.max, m.check.distances.backward.max, m.check.max_pair_distance});
}

Json row_json(const std::string& path, const lidar::PointCloud& cloud, const Trial& trial, const Measured& m,
              const LidarArgs& args) {
  const auto bytes = static_cast<double>(std::max<std::uint64_t>(m.bytes, 1));
  return Json{{"input", path},
              {"points", cloud.points()},
              {"mode", mode_name(static_cast<lidar::Mode>(trial.mode))},
              {"bound", m.bound},
              {"input_bytes", cloud.source_bytes},
              {"output_bytes", m.bytes},
              {"ratio", static_cast<double>(cloud.source_bytes) / bytes},
              {"bits_per_point", 8 * bytes / static_cast<double>(std::max<std::uint64_t>(cloud.points(), 1))},
              {"encode_seconds", m.encode_seconds},
              {"decode_seconds", m.decode_seconds},
              {"max_error", number_or_null(largest(m))},
              {"mean_error", number_or_null(m.check.distances.forward.mean)},
              {"mean_error_back", number_or_null(m.check.distances.backward.mean)},
              {"violations", m.check.violations},
              {"threads", thread_count(args.run)},
              {"version", QUERN_VERSION}};
}

std::string row_text(const lidar::PointCloud& cloud, const Trial& trial, const Measured& m) {
  const auto bytes = static_cast<double>(std::max<std::uint64_t>(m.bytes, 1));
  return fmt::format("  {:6}  {:>8}  {:>9}  {:>7.1f}  {:>7.2f}  {:>9}  {:>9}  {:>8.0f}  {:>8.0f}{}\n",
                     mode_name(static_cast<lidar::Mode>(trial.mode)), m.bound == 0 ? "-" : length_text(m.bound),
                     m.bytes, static_cast<double>(cloud.source_bytes) / bytes,
                     8 * bytes / static_cast<double>(std::max<std::uint64_t>(cloud.points(), 1)),
                     length_text(largest(m)), length_text(m.check.distances.forward.mean), m.encode_seconds * 1000,
                     m.decode_seconds * 1000, m.check.passed() ? "" : "  MISSED");
}

Exit bench_scan(const Scans& scans, std::size_t number, const LidarArgs& args, TaskRunner& runner) {
  const std::string path = scans.label(number);
  lidar::PointCloud cloud = scans.read(number).cloud;
  if (args.drop_attributes) cloud.columns.resize(lidar::is_image(cloud) ? 1 : 0);
  Exit result = Exit::ok;
  if (!args.run.json)
    print_text(
        fmt::format("{}: {} points, {} bytes, {} attributes\n  mode       bound      bytes    ratio  bits/pt"
                    "      worst       mean  enc [ms]  dec [ms]\n",
                    path, cloud.points(), cloud.source_bytes, cloud.columns.size()));
  for (const Trial& trial : trials_of(args)) {
    const Measured m = measure(path, cloud, trial, args, runner);
    if (args.run.json) {
      print_json(row_json(path, cloud, trial, m, args));
    } else {
      print_text(row_text(cloud, trial, m));
    }
    if (!m.check.passed()) result = Exit::bound;
  }
  return result;
}

}  // namespace

Exit run_lidar_bench(const LidarArgs& args) {
  Execution execution;
  execution.threads = args.run.threads;
  RunnerHandle runner(execution);
  Exit result = Exit::ok;
  const Scans scans(args.inputs, args);
  for (std::size_t i = 0; i < scans.size(); ++i)
    attempt(result, [&] {
      const Exit one = bench_scan(scans, i, args, runner.get());
      if (result == Exit::ok) result = one;
    });
  return result;
}

}  // namespace quern::cli
