// Every bit of a small store, flipped: verification sees it, and no value comes back wrong.
#include <gtest/gtest.h>

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

/// Every bit of every `stride`-th byte of all files.
void flip_everything(bool with_parity, std::size_t stride) {
  SimulatedDisk disk;
  const Store store(disk, "store");
  Report report;
  SaveOptions options;
  options.step = 1;
  if (with_parity) {
    options.parity_data = 2;
    options.parity_files = 1;
  }
  ASSERT_TRUE(save_small(store, options, report).ok()) << report.problem;
  const auto names = store.list(report);
  ASSERT_TRUE(names.ok() && names->size() == 1);
  SerialRunner runner;
  ASSERT_TRUE(checkpoint::verify_checkpoint(store, names->front(), true, runner).good);
  std::size_t flips = 0;
  for (const std::string& path : disk.all_files()) {
    if (path == "store/LATEST" || path == "store/lock") continue;
    auto& bytes = disk.bytes_of(path);
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      if (at % stride != 0) continue;
      for (unsigned bit = 0; bit < 8; ++bit) {
        bytes[at] ^= static_cast<std::uint8_t>(1U << bit);
        ++flips;
        ASSERT_FALSE(checkpoint::verify_checkpoint(store, names->front(), true, runner).good)
            << path << " byte " << at << " bit " << bit;
        const Status status = check_small(store, 1, report);
        ASSERT_TRUE(status.ok() || status.code() != StatusCode::internal) << path << " byte " << at << " bit " << bit;
        bytes[at] ^= static_cast<std::uint8_t>(1U << bit);
      }
    }
  }
  ::testing::Test::RecordProperty("flips", static_cast<int>(flips));
  EXPECT_GT(flips, 500U);
}

TEST(Damage, EveryBit_IsSeenAndNeverBecomesAValue) { flip_everything(false, kInstrumented ? 29 : 1); }

TEST(Damage, BitsOfPartsAndParity_AreSeen) {
  if (!storage::has_erasure_coding()) GTEST_SKIP() << "built without ISA-L";
  flip_everything(true, kInstrumented ? 211 : 53);
}

TEST(Damage, PartCutShort_IsSeenAndTheOlderCheckpointIsUsed) {
  SimulatedDisk disk;
  const Store store(disk, "store");
  Report report;
  SaveOptions options;
  options.step = 1;
  ASSERT_TRUE(save_small(store, options, report).ok());
  options.step = 2;
  options.search_equal = false;
  ASSERT_TRUE(save_small(store, options, report).ok());
  const auto names = store.list(report);
  auto& part = disk.bytes_of("store/data/" + std::string(names->back().id) + "/part-0000");
  part.resize(part.size() - 8);
  const auto newest = store.newest(report);
  ASSERT_TRUE(newest.ok());
  EXPECT_EQ(newest->name.step, 1U);
  ASSERT_FALSE(report.notes.empty());
  EXPECT_NE(std::string(report.notes.back()).find("step 2 was passed over"), std::string::npos);
}

TEST(Damage, FooterOfAPart_IsRebuiltFromItsRecords) {
  SimulatedDisk disk;
  const Store store(disk, "store");
  Report report;
  SaveOptions options;
  options.step = 1;
  ASSERT_TRUE(save_small(store, options, report).ok());
  const auto name = store.list(report)->front();
  const std::string path = "store/data/" + std::string(name.id) + "/part-0000";
  const auto whole = disk.bytes_of(path);
  SerialRunner runner;
  disk.bytes_of(path).resize(whole.size() - 30);
  const auto mended = checkpoint::repair_checkpoint(store, name, runner);
  EXPECT_TRUE(mended.good && mended.repaired) << (mended.problems.empty() ? "" : mended.problems.front());
  EXPECT_EQ(disk.bytes_of(path), whole);
  // A damaged record cannot be mended without parity.
  auto& part = disk.bytes_of(path);
  part[4096 + 100] ^= 1;
  const auto kept = part;
  const auto hopeless = checkpoint::repair_checkpoint(store, name, runner);
  EXPECT_FALSE(hopeless.good);
  EXPECT_EQ(disk.bytes_of(path), kept);
}

}  // namespace
}  // namespace quern::testing
