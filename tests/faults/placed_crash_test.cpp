// Every operation of a save, and of a repair, of a store that is spread over nodes is made to fail in every way: old or
// new checkpoints are whole, and what the save said to be safe survives the loss of as many nodes as parity covers.
#include <gtest/gtest.h>

#include <iostream>

#include "storage/parity/erasure.h"
#include "tests/faults/everywhere.h"
#include "tests/faults/placed_nodes.h"
#include "tests/faults/small_store.h"
#include "tests/support/instrumented.h"

namespace quern::testing {
namespace {

using checkpoint::Report;
using checkpoint::Store;

Status save_step(SimulatedDisk& disk, std::uint64_t step) {
  Report report;
  QUERN_ASSIGN_OR_RETURN(const Store store, Store::open(disk, "store", report));
  checkpoint::SaveOptions options;
  options.step = step;
  return save_small(store, options, report);
}

Status repair_all(SimulatedDisk& disk, Report& report) {
  QUERN_ASSIGN_OR_RETURN(const Store store, Store::open(disk, "store", report));
  QUERN_ASSIGN_OR_RETURN(const auto names, checkpoint::names_to_repair(store, report));
  SerialRunner runner;
  for (const auto& name : names) {
    const auto finding = checkpoint::repair_checkpoint(store, name, runner);
    if (finding.good) continue;
    return checkpoint::fail(report, StatusCode::corrupt, finding.problems.front());
  }
  return {};
}

/// What the store shows is whole; how many checkpoints it shows.
std::size_t check_shown(SimulatedDisk& disk, const std::string& where) {
  Report report;
  const auto store = Store::open(disk, "store", report);
  EXPECT_TRUE(store.ok()) << where << ": " << report.problem;
  if (!store.ok()) return 0;
  const auto names = store->list(report);
  EXPECT_TRUE(names.ok()) << where << ": " << report.problem;
  if (!names.ok()) return 0;
  for (const auto& name : *names) EXPECT_TRUE(check_small(*store, name.step, report).ok()) << where << report.problem;
  return names->size();
}

class PlacedCrash : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!storage::has_erasure_coding()) GTEST_SKIP() << "built without ISA-L";
    Report report;
    ASSERT_TRUE(place_small(before_, 2, 1, 4, report).ok()) << report.problem;
    ASSERT_TRUE(save_step(before_, 1).ok());
  }
  SimulatedDisk before_;
};

TEST_F(PlacedCrash, Saving_EveryFault_OldOrNewAndSafeOnNodes) {
  std::size_t shown[3] = {};
  const CrashCounts counts = crash_everywhere(
      before_, [](SimulatedDisk& disk) { return save_step(disk, 2); },
      [&](SimulatedDisk& disk, bool succeeded, const std::string& where) {
        const std::size_t there = check_shown(disk, where);
        EXPECT_TRUE(there == 2 || (!succeeded && there == 1)) << where << ": " << there;
        ++shown[there % 3];
        // Each node in its turn, by the number of points.
        lose_nodes(disk, 1U << (shown[1] + shown[2]) % 3);
        Report report;
        // What a save that failed could not remove is told and does not appear.
        const bool mended = repair_all(disk, report).ok();
        EXPECT_TRUE(mended || (!succeeded && report.problem.find("without their manifest") != String::npos))
            << where << ": " << report.problem;
        EXPECT_GE(check_shown(disk, where), there) << where;
        return !::testing::Test::HasFailure();
      },
      5);
  std::cout << counts.operations << " operations, " << counts.points << " points; old " << shown[1] << ", new "
            << shown[2] << "\n";
  EXPECT_GE(counts.points, kInstrumented ? 50U : 200U);
  EXPECT_GT(shown[1], 0U);
  EXPECT_GT(shown[2], 0U);
}

TEST_F(PlacedCrash, Repairing_EveryFault_TheNextRepairBringsAll) {
  ASSERT_TRUE(save_step(before_, 2).ok());
  lose_nodes(before_, 1U << 1);
  const CrashCounts counts = crash_everywhere(
      before_,
      [](SimulatedDisk& disk) {
        Report report;
        return repair_all(disk, report);
      },
      [&](SimulatedDisk& disk, bool succeeded, const std::string& where) {
        if (succeeded) {
          EXPECT_EQ(check_shown(disk, where), 2U) << where;
        }
        Report report;
        EXPECT_TRUE(repair_all(disk, report).ok()) << where << ": " << report.problem;
        EXPECT_EQ(check_shown(disk, where), 2U) << where;
        return !::testing::Test::HasFailure();
      },
      2);
  std::cout << counts.operations << " operations, " << counts.points << " points\n";
  EXPECT_GE(counts.points, kInstrumented ? 20U : 60U);
}

}  // namespace
}  // namespace quern::testing
