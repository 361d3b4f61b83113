// quern-drives: a command that makes the LiDAR scans of a vehicle that drives the same street for two months.
#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "datasets/lidar/sensor.h"

namespace {

namespace drives = quern::drives;
namespace fs = std::filesystem;

struct Arguments {
  std::string out;
  unsigned days = 60;
  unsigned first_day = 1;
  unsigned frames = 20;
  std::uint64_t town = 1;
  double start = 100;
  std::string sensor = "hdl64";
  unsigned threads = 1;
};

constexpr int kExitUsage = 1;
constexpr int kExitIo = 2;

/// Writes a file under another name and renames it, so that a file with its name is whole.
bool write_file(const fs::path& path, const void* bytes, std::size_t size) {
  const fs::path part = path.string() + ".part";
  std::ofstream file(part, std::ios::binary);
  file.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  file.close();
  if (!file) {
    std::fprintf(stderr, "quern-drives: %s could not be written\n", path.c_str());
    return false;
  }
  std::error_code failed;
  fs::rename(part, path, failed);
  return !failed;
}

std::string pose_line(const drives::PoseRows& rows) {
  std::string line;
  for (const double value : rows) {
    char text[40];
    std::snprintf(text, sizeof text, "%s%.9f", line.empty() ? "" : " ", value);
    line += text;
  }
  return line + "\n";
}

bool make_pass(const Arguments& arguments, const drives::Pass& pass) {
  char name[32];
  std::snprintf(name, sizeof name, pass.number == 0 ? "day-%02u" : "day-%02u-%u", pass.day, pass.number + 1);
  const fs::path folder = fs::path(arguments.out) / name;
  std::error_code failed;
  fs::create_directories(folder / "velodyne", failed);
  if (failed) {
    std::fprintf(stderr, "quern-drives: %s: %s\n", folder.c_str(), failed.message().c_str());
    return false;
  }
  drives::Street street(pass);
  const drives::Drive drive(street, arguments.start);
  const auto kind = arguments.sensor == "vlp16" ? drives::SensorKind::vlp16 : drives::SensorKind::hdl64;
  std::string poses;
  for (unsigned frame = 0; frame < arguments.frames; ++frame) {
    const auto points = drives::scan(kind, street, drive, frame);
    std::snprintf(name, sizeof name, "%06u.bin", frame);
    if (!write_file(folder / "velodyne" / name, points.data(), points.size() * sizeof(drives::ScanPoint))) return false;
    poses += pose_line(drive.pose(drives::time_of(frame)));
  }
  return write_file(folder / "poses.txt", poses.data(), poses.size());
}

int run(const Arguments& arguments) {
  std::vector<drives::Pass> passes;
  for (unsigned day = arguments.first_day; day <= arguments.days; ++day)
    for (unsigned number = 0; number < (day % 7 == 3 ? 2U : 1U); ++number)
      passes.push_back({arguments.town, day, number, 60});
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> good = true;
  std::vector<std::thread> threads;
  const auto work = [&] {
    for (std::size_t i = next++; i < passes.size() && good; i = next++)
      if (!make_pass(arguments, passes[i])) good = false;
  };
  for (unsigned i = 1; i < arguments.threads; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return good ? 0 : kExitIo;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app(
      "Makes the LiDAR scans of a vehicle that drives the same street every day, twice every seventh: "
      "DIR/day-DD/velodyne\n"
      "holds them as KITTI files them, DIR/day-DD/poses.txt a pose for each. The same arguments give the same bytes.",
      "quern-drives");
  app.add_option("--out", arguments.out, "folder for the scans")->required();
  app.add_option("--days", arguments.days, "the last day, 1 to 60")->check(CLI::Range(1, 60))->capture_default_str();
  app.add_option("--first-day", arguments.first_day, "the first day")->check(CLI::Range(1, 60))->capture_default_str();
  app.add_option("--frames", arguments.frames, "scans a pass, ten a second")
      ->check(CLI::Range(1, 300))
      ->capture_default_str();
  app.add_option("--town", arguments.town, "another street for each number")->capture_default_str();
  app.add_option("--start", arguments.start, "where passes begin, metres along the road")->capture_default_str();
  app.add_option("--sensor", arguments.sensor, "hdl64 or vlp16")
      ->check(CLI::IsMember({"hdl64", "vlp16"}))
      ->capture_default_str();
  app.add_option("-T,--threads", arguments.threads, "passes made side by side")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  return run(arguments);
}
