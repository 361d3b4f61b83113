// Every operation of copying checkpoints to a further tier is made to fail in every way: the tier shows whole
// checkpoints or none, the store is as it was, and the next copy brings all of them.
#include <gtest/gtest.h>

#include <iostream>

#include "checkpoint/engine/engine.h"
#include "checkpoint/engine/segment_ring.h"
#include "checkpoint/tiers/tiers.h"
#include "tests/faults/everywhere.h"
#include "tests/faults/locked_files.h"
#include "tests/faults/small_store.h"
#include "tests/support/instrumented.h"

namespace quern::testing {
namespace {

using checkpoint::Report;
using checkpoint::Store;

Status drain(SimulatedDisk& disk, Report& report) {
  const Store store(disk, "store"), tier(disk, "shared/tier");
  QUERN_RETURN_IF_ERROR(tier.make_folders(report));
  QUERN_ASSIGN_OR_RETURN(const auto missing, checkpoint::missing_on(store, {&tier, 1}, report));
  for (const auto& name : missing)
    QUERN_RETURN_IF_ERROR(checkpoint::copy_checkpoint(store, tier, name, {}, report).status());
  return {};
}

/// Step 1; 2 and 3 that need it.
SimulatedDisk three_steps() {
  SimulatedDisk disk;
  const Store store(disk, "store");
  Report report;
  for (const std::uint64_t step : {1, 2, 3}) {
    checkpoint::SaveOptions options;
    options.step = step;
    options.least_shared_bytes = 0;
    if (step != 1) options.base = 1;
    EXPECT_TRUE(save_small(store, options, report).ok()) << report.problem;
  }
  return disk;
}

/// What the folder shows is whole; which of the steps it shows.
std::size_t check_shown(const Store& store, const std::string& where) {
  Report report;
  const auto names = store.list(report);
  if (!names.ok()) return 0;
  for (const auto& name : *names) {
    EXPECT_TRUE(store.read_checked(name, report).ok()) << where << ": " << report.problem;
    EXPECT_TRUE(check_small(store, name.step, report).ok()) << where << ": " << report.problem;
  }
  return names->size();
}

TEST(TierCrash, Copying_EveryFault_WholeOrAbsentAndTheStoreAsItWas) {
  const SimulatedDisk before = three_steps();
  std::size_t shown[8] = {};
  const CrashCounts counts = crash_everywhere(
      before,
      [](SimulatedDisk& disk) {
        Report report;
        return drain(disk, report);
      },
      [&](SimulatedDisk& disk, bool succeeded, const std::string& where) {
        Report report;
        EXPECT_EQ(check_shown(Store(disk, "store"), where), 3U) << where;
        const std::size_t first = check_shown(Store(disk, "shared/tier"), where);
        ++shown[first & 7];
        EXPECT_TRUE(!succeeded || first == 3) << where << ": " << first;
        EXPECT_TRUE(drain(disk, report).ok()) << where << ": " << report.problem;
        EXPECT_EQ(check_shown(Store(disk, "shared/tier"), where), 3U) << where;
        return !::testing::Test::HasFailure();
      },
      5);
  std::cout << counts.operations << " operations, " << counts.points << " points; checkpoints shown: 0 " << shown[0]
            << ", 1 " << shown[1] << ", 2 " << shown[2] << ", 3 " << shown[3] << "\n";
  EXPECT_GE(counts.points, kInstrumented ? 100U : 300U);
  EXPECT_GT(shown[0], 0U);
  EXPECT_GT(shown[1], 0U);
  EXPECT_GT(shown[2], 0U);
  EXPECT_GT(shown[3], 0U);
}

/// Two saves through an engine with a tier behind it; each is durable before the next comes.
Status save_with_tier(SimulatedDisk& disk) {
  LockedFiles files(disk);
  Report report;
  checkpoint::EngineOptions options;
  options.ring_bytes = checkpoint::SegmentRing::kSegmentBytes;
  options.keep_local = 1;
  checkpoint::TierOptions tier;
  tier.path = "shared/tier";
  tier.probe = false;
  options.tiers.push_back(tier);
  const auto second = small_state(2), third = small_state(3);
  QUERN_ASSIGN_OR_RETURN(const auto engine, checkpoint::Engine::open(files, "store", options, report));
  for (const std::uint64_t step : {2, 3}) {
    checkpoint::FileSaveOptions save;
    save.save.step = step;
    QUERN_ASSIGN_OR_RETURN(auto pending, engine->begin(save, report));
    for (const SmallTensor& tensor : step == 2 ? second : third) {
      checkpoint::AddedTensor added;
      added.name = tensor.name;
      added.what = tensor.what;
      added.data = tensor.values.data();
      QUERN_RETURN_IF_ERROR(engine->add(*pending, std::move(added), report));
    }
    const std::string text = "step " + std::to_string(step);
    QUERN_RETURN_IF_ERROR(
        engine->add_blob(*pending, "text", {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, report));
    QUERN_RETURN_IF_ERROR(engine->submit(std::move(pending), report));
    QUERN_ASSIGN_OR_RETURN(const bool there, engine->wait(step, checkpoint::SaveLevel::durable, 60, report));
    if (!there) return Status(StatusCode::internal, "a wait hangs");
  }
  return engine->close(checkpoint::AtEnd::drain, 60, report);
}

TEST(TierCrash, EngineWithTier_EveryFault_DurableIsOnTheTier) {
  SimulatedDisk before;
  {
    Report report;
    checkpoint::SaveOptions options;
    options.step = 1;
    ASSERT_TRUE(save_small(Store(before, "store"), options, report).ok()) << report.problem;
  }
  std::size_t durable = 0, lost = 0;
  const CrashCounts counts = crash_everywhere(
      before, save_with_tier,
      [&](SimulatedDisk& disk, bool succeeded, const std::string& where) {
        const Store store(disk, "store"), tier(disk, "shared/tier");
        const std::size_t local = check_shown(store, where), far = check_shown(tier, where);
        EXPECT_TRUE(!succeeded || far == 3) << where << ": " << far;
        // What the engine removed from the store is on the tier.
        EXPECT_GE(local + far, 1U) << where;
        Report report;
        SerialRunner runner;
        const Store both[] = {store, tier};
        const auto newest = checkpoint::newest_of(both, runner, report);
        EXPECT_TRUE(newest.ok()) << where << ": " << report.problem;
        if (succeeded) {
          ++durable;
          EXPECT_EQ(newest->manifest.name.step, 3U) << where;
        } else {
          ++lost;
        }
        return !::testing::Test::HasFailure();
      },
      5);
  std::cout << counts.operations << " operations, " << counts.points << " points; durable " << durable << ", not "
            << lost << "\n";
  EXPECT_GE(counts.points, kInstrumented ? 30U : 100U);
  EXPECT_GT(lost, 0U);
}

}  // namespace
}  // namespace quern::testing
