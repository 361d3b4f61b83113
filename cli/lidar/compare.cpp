// quern lidar compare: distances between two scans in both directions, and a page of pictures.
#include <fmt/format.h>

#include "cli/files/file_names.h"
#include "cli/files/page_file.h"
#include "cli/lidar/scans.h"
#include "cli/lidar/verb.h"
#include "lidar/cloud/zero_points.h"
#include "lidar/images/range_cloud.h"

#ifdef QUERN_HAVE_REPORT
#include "cli/report/cloud_report.h"
#endif

namespace quern::cli {
namespace {

/// A file's scan, or the message of a bag that --frame says.
lidar::PointCloud load_scan(const std::string& path, const LidarArgs& args) {
  const Scans scans({path}, args);
  if (scans.size() == 1) return scans.read(0).cloud;
  if (!args.frame) fail(Exit::usage, fmt::format("{}: has {} scans; choose one with --frame", path, scans.size()));
  if (*args.frame >= scans.size())
    fail(Exit::usage,
         fmt::format("{}: there is no scan {}; it has {}, counted from 0", path, *args.frame, scans.size()));
  return scans.read(static_cast<std::size_t>(*args.frame)).cloud;
}

lidar::PointCloud load(const std::string& path, const LidarArgs& args, TaskRunner& runner) {
  if (!is_drive_file(path)) return load_scan(path, args);
  DriveFile source(path, args.run, args.history);
  const std::uint64_t frames = source.drive().frames();
  if (!args.frame && frames > 1)
    fail(Exit::usage, fmt::format("{}: the drive has {} frames; choose one with --frame", path, frames));
  auto coded = source.read_coded(args.frame.value_or(0));
  lidar::PointCloud cloud = source.decode(args.frame.value_or(0), coded, runner);
  // As of the other side's scan; pixels of an image are no points.
  if (args.drops_zeros && !lidar::is_image(cloud)) lidar::drop_zero_points(cloud);
  return cloud;
}

#ifdef QUERN_HAVE_REPORT
std::vector<report::CloudPoint> points_of(const lidar::PointCloud& cloud, const Vector<double>& errors) {
  std::vector<report::CloudPoint> out;
  for (std::uint64_t i = 0; i < cloud.points(); ++i) {
    if (!cloud.is_finite(i)) continue;
    const auto at = cloud.position(i);
    out.push_back({at[0], at[1], at[2], errors[static_cast<std::size_t>(i)]});
  }
  return out;
}

void write_html(const LidarArgs& args, const lidar::PointCloud& a, const lidar::PointCloud& b,
                const lidar::CloudDistances& distances) {
  report::CloudReport page;
  page.original_name = base_name(args.inputs[0]);
  page.decoded_name = base_name(args.inputs[1]);
  page.original = points_of(a, distances.a_to_b);
  page.decoded = points_of(b, distances.b_to_a);
  const auto row = [&](const char* name, double forward, double backward) {
    page.figures.push_back({name, forward, backward});
  };
  row("Largest distance", distances.forward.max, distances.backward.max);
  row("Mean distance", distances.forward.mean, distances.backward.mean);
  row("Root mean square", distances.forward.rms, distances.backward.rms);
  row("Median", distances.forward.median, distances.backward.median);
  row("99 of 100 points within", distances.forward.p99, distances.backward.p99);
  page.d1_psnr_db = distances.d1_psnr_db;
  page.footer = "quern " QUERN_VERSION;
  write_page(args.html, report::cloud_report_html(page), args.force);
}
#endif

std::string direction_text(const char* name, const lidar::DistanceSummary& d) {
  return fmt::format("  {:10}  {} points, largest {} (point {}), mean {}, rms {}, median {}, 99 % within {}\n", name,
                     d.points, length_text(d.max), d.worst_point, length_text(d.mean), length_text(d.rms),
                     length_text(d.median), length_text(d.p99));
}

}  // namespace

Exit run_lidar_compare(const LidarArgs& args) {
  check_page(args.inputs, args.html, args.force);
  Execution execution;
  execution.threads = args.run.threads;
  RunnerHandle runner(execution);
  const lidar::PointCloud a = load(args.inputs[0], args, runner.get());
  const lidar::PointCloud b = load(args.inputs[1], args, runner.get());
  const auto distances = check(lidar::measure_distances(a, b, runner.get()), Phase::encode, args.inputs[0]);
#ifdef QUERN_HAVE_REPORT
  if (!args.html.empty()) write_html(args, a, b, distances);
#endif
  if (args.run.json) {
    print_json(Json{{"a", args.inputs[0]},
                    {"b", args.inputs[1]},
                    {"a_points", a.points()},
                    {"b_points", b.points()},
                    {"forward", distances_json(distances.forward)},
                    {"backward", distances_json(distances.backward)},
                    {"max_error", number_or_null(std::max(distances.forward.max, distances.backward.max))},
                    {"chamfer", number_or_null(distances.chamfer())},
                    {"d1_psnr_db", number_or_null(distances.d1_psnr_db)},
                    {"version", QUERN_VERSION}});
  } else if (!args.run.quiet) {
    print_text(
        fmt::format("{} ({} points) against {} ({} points)\n", args.inputs[1], b.points(), args.inputs[0], a.points()) +
        direction_text("A to B", distances.forward) + direction_text("B to A", distances.backward) +
        fmt::format("  both        Chamfer distance {}, D1 PSNR {:.2f} dB\n", length_text(distances.chamfer()),
                    distances.d1_psnr_db));
  }
  return Exit::ok;
}

}  // namespace quern::cli
