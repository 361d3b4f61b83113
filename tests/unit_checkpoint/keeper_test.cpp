// A keeper's rounds: what stays in memory, what reaches the store, and a trainer or keeper that dies at any operation.
#include "checkpoint/tiers/keeper.h"

#include <gtest/gtest.h>

#include <iostream>

#include "tests/faults/everywhere.h"
#include "tests/faults/small_store.h"
#include "tests/support/instrumented.h"

namespace quern::testing {
namespace {

using checkpoint::KeeperOptions;
using checkpoint::Kept;
using checkpoint::Report;
using checkpoint::SaveOptions;
using checkpoint::Store;

constexpr std::uint64_t kPlenty = std::uint64_t{1} << 30;

Status save(SimulatedDisk& disk, std::uint64_t step) {
  Report report;
  SaveOptions options;
  options.step = step;
  options.search_equal = false;
  return save_small(Store(disk, "memory"), options, report);
}

Status round(SimulatedDisk& disk, std::uint64_t memory_bytes, Kept& kept, Report& report, std::uint64_t every = 1) {
  KeeperOptions options;
  options.memory_bytes = memory_bytes;
  options.every = every;
  const Store memory(disk, "memory"), store(disk, "store");
  SerialRunner runner;
  QUERN_RETURN_IF_ERROR(checkpoint::fill_memory(memory, store, options, runner, report));
  return checkpoint::keep_once(memory, store, options, kept, report);
}

std::vector<std::uint64_t> steps(SimulatedDisk& disk, const char* root) {
  Report report;
  const Store store(disk, root);
  const auto names = store.list(report);
  EXPECT_TRUE(names.ok()) << report.problem;
  std::vector<std::uint64_t> out;
  for (const auto& name : *names) {
    EXPECT_TRUE(check_small(store, name.step, report).ok()) << root << ": " << report.problem;
    out.push_back(name.step);
  }
  return out;
}

using Steps = std::vector<std::uint64_t>;

TEST(Keeper, Rounds_LimitOfMemory_NewestStayAllReachTheStore) {
  SimulatedDisk disk;
  Report report;
  Kept first;
  ASSERT_TRUE(save(disk, 1).ok());
  ASSERT_TRUE(round(disk, kPlenty, first, report).ok()) << report.problem;
  EXPECT_EQ(first.copied, 1U);
  const std::uint64_t one = first.held_bytes;
  for (std::uint64_t step = 2; step <= 5; ++step) {
    ASSERT_TRUE(save(disk, step).ok());
    Kept kept;
    ASSERT_TRUE(round(disk, one * 7 / 2, kept, report).ok()) << report.problem;  // two, and one being written
    EXPECT_EQ(kept.copied, 1U) << step;
    EXPECT_LE(kept.held_bytes, one * 5 / 2) << step;
  }
  EXPECT_EQ(steps(disk, "memory"), (Steps{4, 5}));
  EXPECT_EQ(steps(disk, "store"), (Steps{1, 2, 3, 4, 5}));
  // A limit below one checkpoint never takes the last one.
  Kept kept;
  ASSERT_TRUE(round(disk, 1, kept, report).ok()) << report.problem;
  EXPECT_EQ(steps(disk, "memory"), (Steps{5}));
}

TEST(Keeper, Rounds_StepsNotWanted_LeaveMemoryWithoutCopy) {
  SimulatedDisk disk;
  Report report;
  for (std::uint64_t step = 1; step <= 4; ++step) {
    ASSERT_TRUE(save(disk, step).ok());
    Kept kept;
    ASSERT_TRUE(round(disk, 1, kept, report, 2).ok()) << report.problem;
  }
  EXPECT_EQ(steps(disk, "memory"), (Steps{4}));
  EXPECT_EQ(steps(disk, "store"), (Steps{2, 4}));
  EXPECT_TRUE(report.notes.empty()) << report.notes.front();
}

TEST(Keeper, Start_EmptyMemory_GetsTheNewestOfTheStore) {
  SimulatedDisk disk;
  Report report;
  SaveOptions options;
  options.step = 7;
  ASSERT_TRUE(save_small(Store(disk, "store"), options, report).ok()) << report.problem;
  Kept kept;
  EXPECT_FALSE(round(disk, 100, kept, report).ok());
  EXPECT_NE(report.problem.find("--memory"), String::npos) << report.problem;
  report = {};
  ASSERT_TRUE(round(disk, kPlenty, kept, report).ok()) << report.problem;
  EXPECT_EQ(steps(disk, "memory"), (Steps{7}));
  // What is saved to memory now is newer than what the store had.
  ASSERT_TRUE(save(disk, 3).ok());
  ASSERT_TRUE(round(disk, kPlenty, kept, report).ok()) << report.problem;
  const Store store(disk, "store");
  EXPECT_EQ(store.newest(report)->name.step, 3U);
}

TEST(Keeper, Everything_EveryFault_OldOrNewAndNothingLost) {
  SimulatedDisk before;
  {
    Report report;
    Kept kept;
    ASSERT_TRUE(save(before, 1).ok());
    ASSERT_TRUE(round(before, 1, kept, report).ok()) << report.problem;
  }
  const CrashCounts counts = crash_everywhere(
      before,
      [](SimulatedDisk& disk) {
        Report report;
        Kept kept;
        QUERN_RETURN_IF_ERROR(save(disk, 2));
        return round(disk, 1, kept, report);
      },
      [](SimulatedDisk& disk, bool succeeded, const std::string& where) {
        const auto memory = steps(disk, "memory"), store = steps(disk, "store");
        EXPECT_TRUE(memory == (Steps{1}) || memory == (Steps{2}) || memory == (Steps{1, 2})) << where;
        EXPECT_TRUE(!succeeded || (memory == (Steps{2}) && store == (Steps{1, 2}))) << where;
        Report report;
        Kept kept;
        EXPECT_TRUE(round(disk, 1, kept, report).ok()) << where << ": " << report.problem;
        EXPECT_EQ(steps(disk, "memory").back(), memory.back()) << where;
        EXPECT_EQ(steps(disk, "store").back(), memory.back()) << where;
        return !::testing::Test::HasFailure();
      },
      5);
  std::cout << counts.operations << " operations, " << counts.points << " points\n";
  EXPECT_GE(counts.points, kInstrumented ? 50U : 200U);
}

}  // namespace
}  // namespace quern::testing
