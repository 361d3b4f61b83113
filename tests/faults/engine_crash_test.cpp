// Every operation of an engine's saves is made to fail in every way; whatever is left is an old state or a new one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "checkpoint/engine/engine.h"
#include "checkpoint/engine/segment_ring.h"
#include "tests/faults/everywhere.h"
#include "tests/faults/small_store.h"
#include "tests/support/instrumented.h"

namespace quern::testing {
namespace {

using checkpoint::Engine;
using checkpoint::EngineOptions;
using checkpoint::Report;
using checkpoint::Store;

/// Two steps through one engine, the second against the first.
Status save_two(SimulatedDisk& disk, EngineOptions options) {
  Report report;
  const auto second = small_state(2), third = small_state(3);
  QUERN_ASSIGN_OR_RETURN(const auto engine, Engine::open(disk, "store", options, report));
  for (const std::uint64_t step : {2, 3}) {
    checkpoint::FileSaveOptions save;
    save.save.step = step;
    save.save.base = step - 1;
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
    QUERN_ASSIGN_OR_RETURN(const bool free, engine->fence("", 60, report));
    if (!free) return Status(StatusCode::internal, "a fence hangs");
  }
  return engine->close(checkpoint::AtEnd::drain, 60, report);
}

void crash_with(checkpoint::WhenFull when_full, std::size_t every) {
  SimulatedDisk before;
  {
    const Store store(before, "store");
    Report report;
    checkpoint::SaveOptions options;
    options.step = 1;
    ASSERT_TRUE(save_small(store, options, report).ok()) << report.problem;
  }
  EngineOptions options;
  options.ring_bytes = checkpoint::SegmentRing::kSegmentBytes;
  options.when_full = when_full;
  std::size_t found[4] = {};
  const CrashCounts counts = crash_everywhere(
      before, [&](SimulatedDisk& disk) { return save_two(disk, options); },
      [&](SimulatedDisk& disk, bool succeeded, const std::string& where) {
        const Store store(disk, "store");
        Report report;
        const auto names = store.list(report);
        EXPECT_TRUE(names.ok()) << where << ": " << report.problem;
        if (!names.ok()) return false;
        EXPECT_TRUE(check_small(store, 1, report).ok()) << where << ": " << report.problem;
        for (const auto& name : *names) {
          EXPECT_TRUE(name.step >= 1 && name.step <= 3) << where;
          const Status status = check_small(store, name.step, report);
          EXPECT_TRUE(status.ok()) << where << ", step " << name.step << ": " << status.text() << " " << report.problem;
          ++found[name.step & 3];
        }
        EXPECT_TRUE(!succeeded || names->size() == 3) << where;
        // The next save works.
        checkpoint::SaveOptions next;
        next.step = 9;
        EXPECT_TRUE(save_small(store, next, report).ok()) << where << ": " << report.problem;
        EXPECT_TRUE(check_small(store, 9, report).ok()) << where << ": " << report.problem;
        return !::testing::Test::HasFailure();
      },
      every);
  std::cout << counts.operations << " operations, " << counts.points << " points; steps found: 1 " << found[1] << ", 2 "
            << found[2] << ", 3 " << found[3] << "\n";
  EXPECT_GE(counts.points, kInstrumented ? 100U : 300U);
  EXPECT_GT(found[2], 0U);
  EXPECT_GT(found[3], 0U);
  EXPECT_LT(found[3], counts.points);
}

TEST(EngineCrash, TwoSavesOneAgainstTheOther_OldOrNew) {
  // All of them, some 2000 states, take a minute.
  const bool thorough = std::getenv("QUERN_TEST_THOROUGH") != nullptr;
  crash_with(checkpoint::WhenFull::block, thorough ? 1 : 5);
}

}  // namespace
}  // namespace quern::testing
