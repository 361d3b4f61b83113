// Not a test: writes the golden scans into a folder.
#include <cstdio>
#include <fstream>

#include "tests/unit_lidar/golden_scans.h"

namespace {

bool write(const std::string& path, const std::vector<std::uint8_t>& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return out.good();
}

bool write_prediction(const std::string& path, const quern::lidar_test::GoldenScan& scan) {
  if (scan.prediction.empty()) return true;
  return write(path + ".prediction", quern::lidar_test::prediction_bytes(scan));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_golden_scans FOLDER\n");
    return 2;
  }
  for (const auto& scan : quern::lidar_test::golden_scans()) {
    if (scan.former) continue;
    const auto stream = quern::lidar_test::encode_golden(scan);
    const std::string path = std::string(argv[1]) + "/" + scan.name;
    if (stream.empty() || !write(path + ".scan", stream) ||
        !write(path + ".points", quern::lidar_test::decoded_golden(stream, scan.prediction)) ||
        !write_prediction(path, scan)) {
      std::fprintf(stderr, "cannot write %s\n", path.c_str());
      return 1;
    }
  }
  return 0;
}
