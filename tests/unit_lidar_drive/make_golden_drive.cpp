// Not a test: writes the golden drive into a folder.
#include <cstdio>
#include <fstream>
#include <string>

#include "tests/unit_lidar_drive/golden_drive.h"

namespace {

bool write(const std::string& path, const quern::Vector<std::uint8_t>& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return out.good();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_golden_drive FOLDER\n");
    return 2;
  }
  const std::string folder = argv[1];
  const auto drive = quern::lidar_test::make_golden_drive();
  const auto posed = quern::lidar_test::make_posed_drive();
  const auto kinds = quern::lidar_test::make_kinds_drive();
  auto& files = quern::storage::system_files();
  const quern::String history = quern::String(folder) + "/history";
  quern::lidar::Report report;
  const auto epoch = quern::lidar_test::make_golden_history(files, history);
  auto opened = quern::lidar::History::open(files, history, report);
  if (!epoch.ok() || !opened.ok()) {
    std::fprintf(stderr, "%s: cannot make a history there\n", history.c_str());
    return 1;
  }
  quern::lidar::HistoryTiles tiles(std::move(opened).value(), 1 << 20);
  const auto predicted = quern::lidar_test::make_history_drive(tiles, *epoch);
  if (predicted.empty() || !write(folder + "/history.qnl", predicted) ||
      !write(folder + "/history.points", quern::lidar_test::decoded_drive(predicted, &tiles)) || drive.empty() ||
      !write(folder + "/drive.qnl", drive) ||
      !write(folder + "/drive.points", quern::lidar_test::decoded_drive(drive)) || posed.empty() ||
      !write(folder + "/kinds.qnl", kinds) ||
      !write(folder + "/kinds.points", quern::lidar_test::decoded_drive(kinds)) ||
      !write(folder + "/posed.qnl", posed) ||
      !write(folder + "/posed.points", quern::lidar_test::decoded_drive(posed))) {
    std::fprintf(stderr, "cannot write the drives\n");
    return 1;
  }
  return 0;
}
