// A keeper's rounds: what stays in memory, what reaches the store, and a trainer or keeper that dies at any operation.
#include "checkpoint/tiers/keeper.h"

#include <gtest/gtest.h>

#include <iostream>

#include "storage/parity/erasure.h"
#include "tests/faults/everywhere.h"
#include "tests/faults/placed_nodes.h"
#include "tests/faults/small_store.h"
#include "tests/support/instrumented.h"

namespace quern::testing {
namespace {

using checkpoint::KeeperOptions;
using checkpoint::KeeperState;
using checkpoint::Kept;
using checkpoint::Report;
using checkpoint::SaveOptions;
using checkpoint::Store;

constexpr std::uint64_t kPlenty = std::uint64_t{1} << 30;

Status save(SimulatedDisk& disk, std::uint64_t step, bool needs_first = false) {
  Report report;
  SaveOptions options;
  options.step = step;
  options.search_equal = needs_first;
  options.least_shared_bytes = 0;
  return save_small(Store(disk, "memory"), options, report);
}

Status round(SimulatedDisk& disk, std::uint64_t memory_bytes, Kept& kept, Report& report, std::uint64_t every = 1) {
  KeeperOptions options;
  options.memory_bytes = memory_bytes;
  options.every = every;
  const Store memory(disk, "memory"), store(disk, "store");
  SerialRunner runner;
  QUERN_RETURN_IF_ERROR(checkpoint::fill_memory(memory, store, options, runner, report));
  KeeperState state;  // as of a keeper that was just started
  return checkpoint::keep_once(memory, store, options, state, kept, report);
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

TEST(Keeper, Backlog_MoreThanFits_IsCopiedBeforeItGoes) {
  SimulatedDisk disk;
  Report report;
  for (std::uint64_t step = 1; step <= 6; ++step) ASSERT_TRUE(save(disk, step).ok());
  Kept kept;
  ASSERT_TRUE(round(disk, 1, kept, report).ok()) << report.problem;
  EXPECT_EQ(kept.copied, 6U);
  EXPECT_EQ(kept.dropped, 5U);
  EXPECT_TRUE(kept.lost.empty());
  EXPECT_EQ(steps(disk, "memory"), (Steps{6}));
  EXPECT_EQ(steps(disk, "store"), (Steps{1, 2, 3, 4, 5, 6}));
}

/// Cuts a byte off the first part of a store's checkpoint of that step.
void damage(SimulatedDisk& disk, const char* root, std::uint64_t step) {
  Report report;
  const Store store(disk, root);
  const auto names = store.list(report);
  ASSERT_TRUE(names.ok()) << report.problem;
  for (const auto& name : *names) {
    if (name.step != step) continue;
    const String path = store.data_folder(name.id);
    disk.bytes_of(std::string(path.data(), path.size()) + "/part-0000").pop_back();
    return;
  }
  FAIL() << "no step " << step;
}

TEST(Keeper, Store_CopyIsDamaged_IsCopiedAgainBeforeTheGoodOneGoes) {
  SimulatedDisk disk;
  Report report;
  Kept kept;
  ASSERT_TRUE(save(disk, 1).ok());
  ASSERT_TRUE(round(disk, 1, kept, report).ok()) << report.problem;
  damage(disk, "store", 1);
  ASSERT_TRUE(save(disk, 2).ok());
  ASSERT_TRUE(round(disk, 1, kept, report).ok()) << report.problem;
  EXPECT_TRUE(kept.lost.empty());
  EXPECT_EQ(steps(disk, "memory"), (Steps{2}));
  EXPECT_EQ(steps(disk, "store"), (Steps{1, 2}));
}

TEST(Keeper, Memory_CheckpointIsDamaged_TriedOnceAndToldWhenItGoes) {
  SimulatedDisk disk;
  for (std::uint64_t step = 1; step <= 2; ++step) ASSERT_TRUE(save(disk, step).ok());
  damage(disk, "memory", 1);
  const Store memory(disk, "memory"), store(disk, "store");
  KeeperOptions options;
  options.memory_bytes = kPlenty;
  KeeperState state;
  for (const std::size_t notes : {1U, 0U}) {
    Report report;
    Kept kept;
    ASSERT_TRUE(checkpoint::keep_once(memory, store, options, state, kept, report).ok()) << report.problem;
    EXPECT_EQ(report.notes.size(), notes);
  }
  EXPECT_EQ(steps(disk, "store"), (Steps{2}));
  options.memory_bytes = 1;
  Report report;
  Kept kept;
  ASSERT_TRUE(checkpoint::keep_once(memory, store, options, state, kept, report).ok()) << report.problem;
  EXPECT_EQ(kept.lost, (Vector<std::uint64_t>{1}));
  EXPECT_EQ(steps(disk, "memory"), (Steps{2}));
}

TEST(Keeper, Store_HasAnotherRunInThatPlace_IsAFailure) {
  SimulatedDisk disk;
  Report report;
  SaveOptions other;
  other.step = 9;
  ASSERT_TRUE(save_small(Store(disk, "store"), other, report).ok()) << report.problem;
  ASSERT_TRUE(save(disk, 1).ok());
  Kept kept;
  EXPECT_EQ(round(disk, kPlenty, kept, report).code(), StatusCode::invalid_argument);
  EXPECT_NE(report.problem.find("different runs"), String::npos) << report.problem;
  // Memory is looked after all the same, and says what it lost.
  ASSERT_TRUE(save(disk, 2).ok());
  EXPECT_FALSE(round(disk, 1, kept, report).ok());
  EXPECT_EQ(kept.lost, (Vector<std::uint64_t>{1}));
  EXPECT_EQ(steps(disk, "memory"), (Steps{2}));
}

TEST(Keeper, Limit_OthersNeedTheFirst_ItCountsAndIsNotCollectedInVain) {
  SimulatedDisk disk;
  Report report;
  std::uint64_t first = 0, largest = 0, newest = 0;
  for (std::uint64_t step = 1; step <= 5; ++step) {
    ASSERT_TRUE(save(disk, step, true).ok());
    const auto saved = Store(disk, "memory").at_step(step, report);
    ASSERT_TRUE(saved.ok()) << report.problem;
    newest = saved->stored_bytes();
    (step == 1 ? first : largest) = std::max(largest, newest);
  }
  KeeperOptions options;
  options.memory_bytes = first + 3 * largest;  // it counts with those that need it
  const Store memory(disk, "memory"), store(disk, "store");
  KeeperState state;
  Kept kept, idle;
  ASSERT_TRUE(checkpoint::keep_once(memory, store, options, state, kept, report).ok()) << report.problem;
  EXPECT_EQ(kept.lost.size(), 0U);
  EXPECT_LE(kept.held_bytes, first + 2 * largest);
  EXPECT_EQ(steps(disk, "memory").back(), 5U);
  // The first stays for the others: nobody tries to remove it in each round.
  ASSERT_TRUE(checkpoint::keep_once(memory, store, options, state, idle, report).ok()) << report.problem;
  const std::size_t operations = disk.operations();
  ASSERT_TRUE(checkpoint::keep_once(memory, store, options, state, idle, report).ok()) << report.problem;
  EXPECT_EQ(disk.operations(), operations);
  EXPECT_EQ(idle.dropped, 0U);
  // A memory that is lost gets back the newest with what it needs, or nothing.
  ASSERT_TRUE(disk.rename("memory", "lost").ok());
  SerialRunner runner;
  options.memory_bytes = first + 2 * newest - 1;
  EXPECT_FALSE(checkpoint::fill_memory(memory, store, options, runner, report).ok());
  EXPECT_NE(report.problem.find("--memory"), String::npos) << report.problem;
  options.memory_bytes = kPlenty;
  EXPECT_TRUE(checkpoint::fill_memory(memory, store, options, runner, report).ok()) << report.problem;
}

TEST(Keeper, Start_StoreOnNodesWithOtherParity_IsRefused) {
  if (!storage::has_erasure_coding()) GTEST_SKIP() << "built without ISA-L";
  SimulatedDisk disk;
  Report report;
  ASSERT_TRUE(place_small(disk, 3, 2, 6, report).ok()) << report.problem;
  ASSERT_TRUE(save(disk, 1).ok());
  const auto store = Store::open(disk, "store", report);
  ASSERT_TRUE(store.ok()) << report.problem;
  SerialRunner runner;
  KeeperOptions options;
  options.memory_bytes = kPlenty;
  EXPECT_EQ(checkpoint::fill_memory(Store(disk, "memory"), *store, options, runner, report).code(),
            StatusCode::invalid_argument);
  EXPECT_NE(report.problem.find("3+2"), String::npos) << report.problem;
  // One that is saved so later is a failure of the round, and not a note.
  KeeperState state;
  Kept kept;
  EXPECT_EQ(checkpoint::keep_once(Store(disk, "memory"), *store, options, state, kept, report).code(),
            StatusCode::unsupported);
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
