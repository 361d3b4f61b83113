// Committed scans decode to what they did when they were written, and the encoder still writes the same bytes.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

#include "tests/unit_lidar/golden_scans.h"

namespace quern::lidar_test {
namespace {

std::vector<std::uint8_t> read(const std::string& name) {
  std::ifstream in(std::string(QUERN_GOLDEN_SCANS) + "/" + name, std::ios::binary);
  EXPECT_TRUE(in.good()) << name;
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST(GoldenScans_Committed, DecodeAndAreWrittenTheSame) {
  for (const GoldenScan& scan : golden_scans()) {
    SCOPED_TRACE(scan.name);
    const auto stream = read(scan.name + ".scan");
    EXPECT_EQ(decoded_golden(stream, scan.prediction), read(scan.name + ".points"));
    if (!scan.prediction.empty()) {
      EXPECT_EQ(prediction_bytes(scan), read(scan.name + ".prediction"));
    }
    if (!scan.former) {
      EXPECT_EQ(encode_golden(scan), stream);
    }
  }
}

TEST(GoldenScans_Together, UseBothToolsAllModesAndForms) {
  std::set<std::pair<int, bool>> seen;
  std::uint64_t verbatim = 0;
  int predicted = 0;
  for (const GoldenScan& scan : golden_scans()) {
    const auto info = codec::lidar::scan_info(read(scan.name + ".scan"));
    ASSERT_TRUE(info.ok());
    seen.insert({static_cast<int>(info->mode), info->rays});
    verbatim += info->verbatim_points;
    predicted += info->predicted ? 1 : 0;
  }
  EXPECT_EQ(seen.size(), 6U);
  EXPECT_GT(verbatim, 0U);
  EXPECT_EQ(predicted, 12);
}

}  // namespace
}  // namespace quern::lidar_test
