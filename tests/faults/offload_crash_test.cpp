// Every operation of steps over files is made to fail in every way; whatever is left is a state before or after a step.
#include <gtest/gtest.h>

#include <iostream>

#include "offload/packed_file.h"
#include "tests/faults/everywhere.h"
#include "tests/support/instrumented.h"
#include "tests/unit_offload/small_training.h"

namespace quern::testing {
namespace {

using offload::Optimizer;
using offload::OptimizerOptions;
using storage::Report;

constexpr std::uint64_t kBefore = 1;
constexpr std::uint64_t kAfter = 3;

/// What is coded and cut off at each operation again and again is small.
SmallTraining small_training(offload::FileForm form) {
  if (form == offload::FileForm::packed) return SmallTraining({600, 300, 100});
  return SmallTraining({16384 + 700, 300});
}

OptimizerOptions options_of(const SmallTraining& training, bool durable, offload::FileForm form) {
  OptimizerOptions options = training.options();
  options.io_threads = false;
  options.durable = durable;
  options.file_form = form;
  const bool packed = form == offload::FileForm::packed;
  options.memory_limit = 2 * offload::plain_bytes(packed ? 600 : 16384, options.form);
  if (packed) options.memory_limit += offload::coder_bytes(2);
  for (const char* const path : {"fast", "slow"}) options.folders.emplace_back().path = path;
  return options;
}

Status train_until(SimulatedDisk& disk, bool durable, offload::FileForm form, std::uint64_t steps) {
  SmallTraining training = small_training(form);
  Report report;
  QUERN_ASSIGN_OR_RETURN(const auto optimizer, Optimizer::open(disk, options_of(training, durable, form), report));
  if (!optimizer->loaded()) QUERN_RETURN_IF_ERROR(training.load(*optimizer, report));
  while (optimizer->step_count() < steps) {
    const auto outcome = training.step(*optimizer, report);
    QUERN_RETURN_IF_ERROR(outcome.status());
  }
  return {};
}

/// States of all steps, by an optimizer that keeps them in memory.
std::vector<OffloadState> all_states(offload::FileForm form) {
  SmallTraining training = small_training(form);
  Report report;
  const auto optimizer = Optimizer::open(storage::system_files(), training.options(), report).value();
  std::vector<OffloadState> states;
  EXPECT_TRUE(training.load(*optimizer, report).ok());
  for (std::uint64_t step = 0; step <= kAfter + 1; ++step) {
    states.push_back(training.read(*optimizer, report).value());
    EXPECT_TRUE(training.step(*optimizer, report).ok());
  }
  return states;
}

void crash_with(bool durable, offload::FileForm form = offload::FileForm::measured) {
  const std::vector<OffloadState> states = all_states(form);
  SimulatedDisk before;
  ASSERT_TRUE(train_until(before, durable, form, kBefore).ok());
  std::size_t found[kAfter + 1] = {};
  std::size_t checked = 0;
  const CrashCounts counts = crash_everywhere(
      before, [&](SimulatedDisk& disk) { return train_until(disk, durable, form, kAfter); },
      [&](SimulatedDisk& disk, bool succeeded, const std::string& where) {
        // Without syncs the state survives the process, not the machine.
        if (!durable && where.find("survival 0") == std::string::npos) return true;
        ++checked;
        SmallTraining training = small_training(form);
        Report report;
        auto opened = Optimizer::open(disk, options_of(training, durable, form), report);
        EXPECT_TRUE(opened.ok()) << where << ": " << report.problem;
        if (!opened.ok()) return false;
        Optimizer& optimizer = **opened;
        const std::uint64_t step = optimizer.step_count();
        EXPECT_TRUE(step >= kBefore && step <= kAfter) << where << ": step " << step;
        EXPECT_TRUE(!succeeded || step == kAfter) << where;
        if (step > kAfter) return false;
        ++found[step];
        const auto state = training.read(optimizer, report);
        EXPECT_TRUE(state.ok() && *state == states[step]) << where << ": step " << step << ": " << report.problem;
        // And training goes on.
        EXPECT_TRUE(training.step(optimizer, report).ok()) << where << ": " << report.problem;
        const auto next = training.read(optimizer, report);
        EXPECT_TRUE(next.ok() && *next == states[step + 1]) << where << ": " << report.problem;
        return !::testing::Test::HasFailure();
      },
      durable ? 2 : 1);
  std::cout << counts.operations << " operations, " << checked << " points; steps found: 1 " << found[1] << ", 2 "
            << found[2] << ", 3 " << found[3] << "\n";
  EXPECT_GE(checked, kInstrumented || !durable ? 40U : 600U);
  EXPECT_GT(found[1], 0U);
  EXPECT_GT(found[2], 0U);
  EXPECT_GT(found[3], 0U);
}

TEST(OffloadCrash, DurableSteps_PowerCutAtEveryOperation_BeforeOrAfter) { crash_with(true); }

TEST(OffloadCrash, DurablePackedSteps_PowerCutAtEveryOperation_BeforeOrAfter) {
  crash_with(true, offload::FileForm::packed);
}

TEST(OffloadCrash, PackedSteps_DeathAtEveryOperation_BeforeOrAfter) { crash_with(false, offload::FileForm::packed); }

TEST(OffloadCrash, StepsWithoutSync_DeathAtEveryOperation_BeforeOrAfter) { crash_with(false); }

}  // namespace
}  // namespace quern::testing
