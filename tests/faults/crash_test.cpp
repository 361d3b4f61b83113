// Every operation of a save, a compaction, a collection and a repair is made to fail in every way; whatever is left
// must be the old state or the new one, bit for bit, and the store must go on working.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iostream>

#include "storage/parity/erasure.h"
#include "tests/faults/everywhere.h"
#include "tests/faults/small_store.h"
#include "tests/support/instrumented.h"

namespace quern::testing {
namespace {

using checkpoint::Report;
using checkpoint::SaveOptions;
using checkpoint::SaveSession;
using checkpoint::Store;

SaveOptions options_for(std::uint64_t step) {
  SaveOptions options;
  options.step = step;
  return options;
}

struct Scenario {
  std::function<void(SimulatedDisk&)> prepare;
  std::function<Status(SimulatedDisk&)> run;
  std::vector<std::uint64_t> always;   ///< steps that must be whole whatever happens
  std::vector<std::uint64_t> allowed;  ///< steps that may be there, and are whole then
  std::uint64_t made = 0;              ///< step that must be there when run() says it succeeded; 0: none
  /// Whether a step holds what it should.
  std::function<Status(const Store&, std::uint64_t, Report&)> check = check_small;
};

struct Outcomes {
  std::size_t points = 0, old_state = 0, new_state = 0;
};

void check_after(const Scenario& scenario, SimulatedDisk& disk, bool succeeded, Outcomes& outcomes,
                 const std::string& where) {
  const Store store(disk, "store");
  Report report;
  const auto names = store.list(report);
  if (!names.ok()) {
    ASSERT_TRUE(scenario.always.empty() && !succeeded) << where << ": " << report.problem;
    return;
  }
  const auto has = [&](std::uint64_t step) {
    return std::any_of(names->begin(), names->end(), [&](const auto& name) { return name.step == step; });
  };
  for (const std::uint64_t step : scenario.always) {
    const Status status = scenario.check(store, step, report);
    ASSERT_TRUE(status.ok()) << where << ", step " << step << ": " << status.text() << " " << report.problem;
  }
  for (const auto& name : *names) {
    const bool expected =
        std::find(scenario.always.begin(), scenario.always.end(), name.step) != scenario.always.end() ||
        std::find(scenario.allowed.begin(), scenario.allowed.end(), name.step) != scenario.allowed.end();
    ASSERT_TRUE(expected) << where << ": step " << name.step << " came from nowhere";
    const Status status = scenario.check(store, name.step, report);
    ASSERT_TRUE(status.ok()) << where << ", step " << name.step << ": " << status.text() << " " << report.problem;
  }
  if (scenario.made != 0) {
    ++(has(scenario.made) ? outcomes.new_state : outcomes.old_state);
    if (succeeded) {
      ASSERT_TRUE(has(scenario.made)) << where;
    }
  }
  // Life goes on: the next save works, and nothing of the dead one stays.
  const Status next = save_small(store, options_for(99), report);
  ASSERT_TRUE(next.ok()) << where << ": " << report.problem;
  const Status there = check_small(store, 99, report);
  ASSERT_TRUE(there.ok()) << where << ": " << report.problem;
  const auto collected = checkpoint::collect(store, {}, report);
  ASSERT_TRUE(collected.ok()) << where << ": " << report.problem;
  const auto left = disk.list("store/tmp");
  ASSERT_TRUE(left.ok() && left->empty()) << where << ": " << (left->empty() ? "" : left->front());
  const auto after = store.list(report);
  const auto retired = store.list_retired(report);
  const auto folders = disk.list("store/data");
  ASSERT_EQ(after->size() + retired->size(), folders->size()) << where;
}

Outcomes run_everywhere(const Scenario& scenario) {
  SimulatedDisk before;
  scenario.prepare(before);
  Outcomes outcomes;
  const CrashCounts counts =
      crash_everywhere(before, scenario.run, [&](SimulatedDisk& disk, bool succeeded, const std::string& where) {
        check_after(scenario, disk, succeeded, outcomes, where);
        return !::testing::Test::HasFatalFailure();
      });
  outcomes.points = counts.points;
  std::cout << counts.operations << " operations, " << outcomes.points << " points: old state " << outcomes.old_state
            << ", new state " << outcomes.new_state << "\n";
  return outcomes;
}

Status save_step(SimulatedDisk& disk, const SaveOptions& options) {
  const Store store(disk, "store");
  Report report;
  return save_small(store, options, report);
}

void prepare_one(SimulatedDisk& disk) { ASSERT_TRUE(save_step(disk, options_for(1)).ok()); }

TEST(Crash, Save_FirstOfAStore_NothingOrWhole) {
  Scenario scenario{
      [](SimulatedDisk&) {}, [](SimulatedDisk& disk) { return save_step(disk, options_for(1)); }, {}, {1}, 1};
  EXPECT_GE(run_everywhere(scenario).points, kInstrumented ? 50U : 500U);
}

TEST(Crash, Save_WithBase_OldOrNew) {
  Scenario scenario{prepare_one,
                    [](SimulatedDisk& disk) {
                      SaveOptions options = options_for(2);
                      options.base = 1;
                      return save_step(disk, options);
                    },
                    {1},
                    {2},
                    2};
  const Outcomes outcomes = run_everywhere(scenario);
  EXPECT_GE(outcomes.points, kInstrumented ? 50U : 500U);
  EXPECT_GT(outcomes.old_state, 0U);
  EXPECT_GT(outcomes.new_state, 0U);
}

TEST(Crash, Save_WithParity_OldOrNew) {
  if (!storage::has_erasure_coding()) GTEST_SKIP() << "built without ISA-L";
  Scenario scenario{prepare_one,
                    [](SimulatedDisk& disk) {
                      SaveOptions options = options_for(2);
                      options.parity_data = 2;
                      options.parity_files = 1;
                      return save_step(disk, options);
                    },
                    {1},
                    {2},
                    2};
  EXPECT_GE(run_everywhere(scenario).points, kInstrumented ? 50U : 500U);
}

TEST(Crash, Save_TwoWriters_OldOrNew) {
  Scenario scenario{prepare_one,
                    [](SimulatedDisk& disk) {
                      SaveOptions options = options_for(2);
                      options.group = "group-of-2";
                      options.writers = 2;
                      QUERN_RETURN_IF_ERROR(save_step(disk, options));
                      options.writer = 1;
                      return save_step(disk, options);
                    },
                    {1},
                    {2},
                    2};
  EXPECT_GE(run_everywhere(scenario).points, kInstrumented ? 50U : 500U);
}

TEST(Crash, Compact_OfADifference_AlwaysThere) {
  Scenario scenario{[](SimulatedDisk& disk) {
                      prepare_one(disk);
                      SaveOptions options = options_for(2);
                      options.base = 1;
                      ASSERT_TRUE(save_step(disk, options).ok());
                    },
                    [](SimulatedDisk& disk) {
                      const Store store(disk, "store");
                      Report report;
                      SerialRunner runner;
                      return checkpoint::compact(store, 2, {}, runner, report).status();
                    },
                    {1, 2},
                    {},
                    2};
  EXPECT_GE(run_everywhere(scenario).points, kInstrumented ? 50U : 500U);
}

/// What comes back of steps 1 and 2, saved with a loss, on a disk without faults.
Scenario with_loss(std::function<Status(SimulatedDisk&)> prepare, std::function<Status(SimulatedDisk&)> run) {
  SimulatedDisk good;
  EXPECT_TRUE(prepare(good).ok());
  EXPECT_TRUE(run(good).ok());
  const Store store(good, "store");
  Report report;
  std::vector<std::vector<std::uint8_t>> expected(3);
  for (const std::uint64_t step : {1, 2}) {
    auto back = restore_small(store, step, report);
    EXPECT_TRUE(back.ok()) << report.problem;
    if (back.ok()) expected[step] = std::move(back).value();
  }
  Scenario scenario;
  scenario.prepare = [prepare](SimulatedDisk& disk) { ASSERT_TRUE(prepare(disk).ok()); };
  scenario.run = std::move(run);
  scenario.made = 2;
  scenario.check = [expected](const Store& at, std::uint64_t step, Report& said) -> Status {
    if (step >= expected.size()) return check_small(at, step, said);
    QUERN_ASSIGN_OR_RETURN(const auto back, restore_small(at, step, said));
    return back == expected[step] ? Status() : Status(StatusCode::internal, "other values came back");
  };
  return scenario;
}

Status save_lossy(SimulatedDisk& disk, std::uint64_t step) {
  const Store store(disk, "store");
  Report report;
  SaveOptions options = options_for(step);
  if (step > 1) options.base = step - 1;
  return save_small_lossy(store, options, report);
}

TEST(Crash, SaveWithLoss_WithBase_OldOrNew) {
  Scenario scenario = with_loss([](SimulatedDisk& disk) { return save_lossy(disk, 1); },
                                [](SimulatedDisk& disk) { return save_lossy(disk, 2); });
  scenario.always = {1};
  scenario.allowed = {2};
  const Outcomes outcomes = run_everywhere(scenario);
  EXPECT_GE(outcomes.points, kInstrumented ? 50U : 500U);
  EXPECT_GT(outcomes.old_state, 0U);
  EXPECT_GT(outcomes.new_state, 0U);
}

TEST(Crash, Compact_OfWhatLostSomething_AlwaysTheSameBits) {
  Scenario scenario = with_loss(
      [](SimulatedDisk& disk) {
        QUERN_RETURN_IF_ERROR(save_lossy(disk, 1));
        return save_lossy(disk, 2);
      },
      [](SimulatedDisk& disk) {
        const Store store(disk, "store");
        Report report;
        SerialRunner runner;
        return checkpoint::compact(store, 2, {}, runner, report).status();
      });
  scenario.always = {1, 2};
  EXPECT_GE(run_everywhere(scenario).points, kInstrumented ? 50U : 500U);
}

TEST(Crash, Replace_OldOrNewAndNeverBoth) {
  // The values that are found are those of the first save or of the second, whole.
  Scenario scenario{[](SimulatedDisk& disk) {
                      prepare_one(disk);
                      ASSERT_TRUE(save_step(disk, options_for(2)).ok());
                    },
                    [](SimulatedDisk& disk) {
                      SaveOptions options = options_for(2);
                      options.replace = true;
                      options.base_newest = true;
                      options.tags.push_back({"second", "yes"});
                      const Status status = save_step(disk, options);
                      if (!status.ok()) return status;
                      const Store store(disk, "store");
                      Report report;
                      const auto found = store.at_step(2, report);
                      return found.ok() && !found->tags.empty() ? Status()
                                                                : Status(StatusCode::internal, "the old one is found");
                    },
                    {1, 2},
                    {},
                    2};
  EXPECT_GE(run_everywhere(scenario).points, kInstrumented ? 50U : 500U);
}

TEST(Crash, Collect_ThatRetires_KeepsWhatIsNeeded) {
  // 3 needs a tensor of 2, which needs another of 1: 1 goes, 2 is retired.
  constexpr std::uint8_t kValues[3][2] = {{1, 2}, {1, 3}, {4, 3}};
  Scenario scenario{
      [&](SimulatedDisk& disk) {
        for (const std::uint64_t step : {1, 2, 3}) {
          const Store store(disk, "store");
          Report report;
          SerialRunner runner;
          SaveOptions options = options_for(step);
          options.least_shared_bytes = 0;
          const auto session = SaveSession::begin(store, options, runner, report);
          ASSERT_TRUE(session.ok());
          for (std::size_t i = 0; i < 2; ++i) {
            const std::vector<std::uint8_t> values(200, kValues[step - 1][i]);
            checkpoint::TensorSource source;
            source.name = i == 0 ? "a" : "b";
            source.what = {checkpoint::ElementType::u8, *Shape::try_make(std::vector<std::uint64_t>{200})};
            source.values = values;
            ASSERT_TRUE(session.value()->add_tensor(source, report).ok());
          }
          ASSERT_TRUE(session.value()->commit(report).ok());
        }
      },
      [](SimulatedDisk& disk) {
        const Store store(disk, "store");
        Report report;
        checkpoint::CollectOptions options;
        options.keep = 1;
        const auto done = checkpoint::collect(store, options, report);
        if (done.ok() && (done->removed.size() != 1 || store.list_retired(report)->size() != 1))
          return Status(StatusCode::internal, "nothing was retired");
        return done.status();
      },
      {3},
      {1, 2},
      0,
      [&](const Store& store, std::uint64_t step, Report& report) -> Status {
        if (step > 3) return check_small(store, step, report);
        QUERN_ASSIGN_OR_RETURN(const auto back, restore_small(store, step, report));
        std::vector<std::uint8_t> expected(200, kValues[step - 1][0]);
        expected.insert(expected.end(), 200, kValues[step - 1][1]);
        return back == expected ? Status() : Status(StatusCode::internal, "other values came back");
      }};
  EXPECT_GE(run_everywhere(scenario).points, 20U);
}

TEST(Crash, Collect_KeepsWhatIsNeeded) {
  Scenario scenario{[](SimulatedDisk& disk) {
                      for (const std::uint64_t step : {1, 2, 3}) {
                        SaveOptions options = options_for(step);
                        options.search_equal = false;
                        ASSERT_TRUE(save_step(disk, options).ok());
                      }
                    },
                    [](SimulatedDisk& disk) {
                      const Store store(disk, "store");
                      Report report;
                      checkpoint::CollectOptions options;
                      options.keep = 1;
                      return checkpoint::collect(store, options, report).status();
                    },
                    {3},
                    {1, 2},
                    0};
  EXPECT_GE(run_everywhere(scenario).points, 20U);
}

}  // namespace
}  // namespace quern::testing
