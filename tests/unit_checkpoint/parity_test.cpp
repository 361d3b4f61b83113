// Parity: every pattern of lost and damaged files up to the number that parity covers is mended bit for bit; more is
// refused and nothing is changed.
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <random>
#include <string>

#include "storage/parity/erasure.h"
#include "tests/faults/simulated_disk.h"
#include "tests/faults/small_store.h"
#include "tests/support/instrumented.h"

namespace quern::testing {
namespace {

using checkpoint::Report;
using checkpoint::SaveOptions;
using checkpoint::Store;

class Parity : public ::testing::TestWithParam<std::pair<std::uint32_t, std::uint32_t>> {
 protected:
  void SetUp() override {
    if (!storage::has_erasure_coding()) GTEST_SKIP() << "built without ISA-L";
  }
};

TEST_P(Parity, Columns_EveryPattern_ComesBack) {
  const auto [data, parity] = GetParam();
  constexpr std::size_t kBytes = 257;
  std::mt19937 random(data);
  std::vector<std::uint8_t> original((data + parity) * kBytes);
  for (std::uint8_t& byte : original) byte = static_cast<std::uint8_t>(random());
  std::vector<std::uint8_t*> columns;
  for (std::uint32_t i = 0; i < data + parity; ++i) columns.push_back(original.data() + i * kBytes);
  ASSERT_TRUE(storage::make_parity(data, parity, kBytes, columns).ok());
  std::size_t patterns = 0;
  for (std::uint32_t pattern = 0; pattern < 1U << (data + parity); ++pattern) {
    const auto count = static_cast<std::uint32_t>(std::popcount(pattern));
    if (count > parity + 1) continue;
    std::vector<std::uint8_t> work = original;
    std::vector<std::uint8_t*> at;
    std::array<bool, 64> lost{};
    for (std::uint32_t i = 0; i < data + parity; ++i) {
      at.push_back(work.data() + i * kBytes);
      lost[i] = (pattern >> i & 1) != 0;
      if (lost[i]) std::fill_n(at[i], kBytes, std::uint8_t{0xAA});
    }
    const Status status = storage::rebuild_columns(data, parity, kBytes, at, std::span(lost).first(data + parity));
    EXPECT_EQ(status.ok(), count <= parity) << pattern;
    if (status.ok()) {
      EXPECT_EQ(work, original) << pattern;
    }
    ++patterns;
  }
  RecordProperty("patterns", static_cast<int>(patterns));
}

TEST_P(Parity, Files_EveryPattern_IsMendedOrRefused) {
  const auto [data, parity] = GetParam();
  SimulatedDisk disk;
  const Store store(disk, "store");
  Report report;
  SaveOptions options;
  options.step = 1;
  options.parity_data = data;
  options.parity_files = parity;
  ASSERT_TRUE(save_small(store, options, report).ok()) << report.problem;
  const auto name = store.list(report)->front();
  std::vector<std::string> paths;
  for (const std::string& path : disk.all_files())
    if (path.find("/part-") != std::string::npos || path.find("/parity-") != std::string::npos) paths.push_back(path);
  ASSERT_EQ(paths.size(), data + parity);
  std::map<std::string, std::vector<std::uint8_t>> whole;
  for (const std::string& path : paths) whole[path] = disk.bytes_of(path);
  SerialRunner runner;
  std::size_t mended = 0, refused = 0;
  for (std::uint32_t pattern = 1; pattern < 1U << paths.size(); ++pattern) {
    const auto count = static_cast<std::uint32_t>(std::popcount(pattern));
    if (count > parity + 1 || (count > parity && pattern % 5 != 0)) continue;
    if (kInstrumented && pattern % 37 != 1) continue;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if ((pattern >> i & 1) == 0) continue;
      auto& bytes = disk.bytes_of(paths[i]);
      switch ((pattern + i) % 3) {
        case 0: ASSERT_TRUE(disk.remove(paths[i]).ok()); break;
        case 1:
          bytes[bytes.size() / 2] ^= 4;
          bytes[4100] ^= 1;
          break;
        default: bytes.resize(bytes.size() / 3);
      }
    }
    const auto finding = checkpoint::repair_checkpoint(store, name, runner);
    if (count <= parity) {
      ASSERT_TRUE(finding.good && finding.repaired)
          << pattern << ": " << (finding.problems.empty() ? "" : finding.problems.front());
      for (const std::string& path : paths) ASSERT_EQ(disk.bytes_of(path), whole[path]) << pattern << " " << path;
      ++mended;
    } else {
      ASSERT_FALSE(finding.good) << pattern;
      ++refused;
      for (const std::string& path : paths) {
        if (!disk.exists(path)) {
          ASSERT_TRUE(disk.create(path).ok());
        }
        disk.bytes_of(path) = whole[path];
      }
    }
  }
  RecordProperty("mended", static_cast<int>(mended));
  RecordProperty("refused", static_cast<int>(refused));
  EXPECT_GT(mended, 0U);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Parity,
                         ::testing::Values(std::pair{4U, 2U}, std::pair{8U, 2U}, std::pair{10U, 4U},
                                           std::pair{1U, 1U}));

TEST(ParityManifest, Lost_ComesBackFromTheCopy) {
  if (!storage::has_erasure_coding()) GTEST_SKIP() << "built without ISA-L";
  SimulatedDisk disk;
  const Store store(disk, "store");
  Report report;
  SaveOptions options;
  options.step = 7;
  options.parity_data = 2;
  options.parity_files = 1;
  ASSERT_TRUE(save_small(store, options, report).ok());
  const auto name = store.list(report)->front();
  const std::string path(store.manifest_path(name));
  const auto whole = disk.bytes_of(path);
  SerialRunner runner;
  disk.bytes_of(path)[40] ^= 1;
  EXPECT_FALSE(checkpoint::verify_checkpoint(store, name, false, runner).good);
  EXPECT_TRUE(checkpoint::repair_checkpoint(store, name, runner).good);
  EXPECT_EQ(disk.bytes_of(path), whole);
  ASSERT_TRUE(disk.remove(path).ok());
  const auto names = checkpoint::names_to_repair(store, report);
  ASSERT_TRUE(names.ok() && names->size() == 1);
  EXPECT_TRUE(checkpoint::repair_checkpoint(store, names->front(), runner).good);
  EXPECT_EQ(disk.bytes_of(path), whole);
}

}  // namespace
}  // namespace quern::testing
