// Tensors that change while they are saved, whenever that is; large tensors, which go into the part as they are coded;
// the same bytes whatever the number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>

#include "checkpoint/convert/set_coding.h"
#include "checkpoint/restore/verify.h"
#include "checkpoint/save/bound_check.h"
#include "libcompress/core/task_runner.h"
#include "tests/support/instrumented.h"
#include "tests/unit_checkpoint/store_fixture.h"
#include "tests/unit_checkpoint/training_run.h"

namespace quern::testing {
namespace {

using checkpoint::FileSaveOptions;
using checkpoint::Mode;
using checkpoint::Preset;
using checkpoint::Report;
using checkpoint::SaveSession;
using checkpoint::Store;

/// Tensors in memory that anybody may write to.
class SharedTensors final : public checkpoint::TensorSet {
 public:
  explicit SharedTensors(RunTensors tensors) : tensors_(std::move(tensors)), metadata_{{"lr", "0.001"}} {}
  std::size_t count() const override { return tensors_.size(); }
  checkpoint::SetTensor tensor(std::size_t i) const override {
    checkpoint::SetTensor out;
    out.name = tensors_[i].name;
    out.what = {tensors_[i].type, *Shape::try_make(tensors_[i].shape)};
    return out;
  }
  Result<std::span<const std::uint8_t>> values(std::size_t i, AlignedBuffer&, Report&) override {
    return std::span<const std::uint8_t>(tensors_[i].values);
  }
  Vector<const checkpoint::Metadata*> metadata() const override { return {&metadata_}; }
  void done(std::size_t i) override { done_.push_back(i); }
  RunTensors tensors_;
  std::vector<std::size_t> done_;

 private:
  checkpoint::Metadata metadata_;
};

/// Runs tasks one after the other, and something else before each of them.
class InterruptedRunner final : public TaskRunner {
 public:
  void run(std::size_t tasks, const TaskBody& body) override {
    for (std::size_t i = 0; i < tasks; ++i) {
      before(step++);
      body(i);
    }
  }
  std::size_t width() const override { return 1; }
  std::function<void(std::size_t)> before = [](std::size_t) {};
  std::size_t step = 0;
};

Status save_set(const Store& store, SharedTensors& set, const FileSaveOptions& options, TaskRunner& runner,
                Report& report) {
  checkpoint::SetCoding coding(set, options, runner);
  QUERN_RETURN_IF_ERROR(coding.prepare(report));
  QUERN_ASSIGN_OR_RETURN(auto session, SaveSession::begin(store, options.save, runner, report));
  QUERN_RETURN_IF_ERROR(coding.run(*session, report));
  return session->commit(report).status();
}

class ChangingTensors : public StoreFixture {
 protected:
  /// Saves `after` once for each moment at which tensor `t` may change; `back`: the old values return at once. Returns
  /// how many of the saves failed. What was saved is whole and is the tensor as it once was.
  std::size_t saves_that_fail(const RunTensors& after, std::size_t t, FileSaveOptions options, bool back) {
    std::size_t failures = 0;
    std::size_t steps = 1;
    for (std::size_t when = 0; when < steps; when += kInstrumented ? 3 : 1) {
      SharedTensors set(after);
      SimulatedDisk disk(disk_);
      const Store store(disk, store_.root());
      Report report;
      InterruptedRunner runner;
      runner.before = [&](std::size_t step) {
        auto& values = set.tensors_[t].values;
        if (step == when || (back && step == when + 1)) values[values.size() / 2] ^= 0x41;
      };
      const Status saved = save_set(store, set, options, runner, report);
      steps = std::max(steps, runner.step);
      if (!saved.ok()) {
        ++failures;
        EXPECT_EQ(saved.code(), StatusCode::invalid_argument) << report.problem;
        EXPECT_EQ(std::string_view(report.problem),
                  "tensor '" + after[t].name + "' changed while it was saved; copy it first or stop writing to it");
        continue;
      }
      const auto restored = restore_all(store, options.save.step, report);
      EXPECT_TRUE(restored.ok()) << report.problem;
      if (!restored.ok() || options.preset != Preset::exact) continue;
      Bytes changed = after[t].values;
      changed[changed.size() / 2] ^= 0x41;
      for (std::size_t i = 0; i < after.size(); ++i) {
        const Bytes& found = restored->at(after[i].name);
        EXPECT_TRUE(found == after[i].values || (i == t && found == changed)) << after[i].name << " " << when;
      }
    }
    return failures;
  }
  /// The same for each tensor.
  void expect_noticed(const RunTensors& after, const FileSaveOptions& options) {
    for (std::size_t t = 0; t < after.size(); ++t) {
      SCOPED_TRACE(after[t].name);
      EXPECT_GT(saves_that_fail(after, t, options, false), 0U);
      saves_that_fail(after, t, options, true);
    }
  }
  void save_base(const RunTensors& state, Preset preset) {
    SharedTensors set(state);
    FileSaveOptions options;
    options.preset = preset;
    options.save.step = 1;
    ASSERT_TRUE(save_set(store_, set, options, runner_, report_).ok()) << report_.problem;
  }
};

TEST_F(ChangingTensors, SaveAtAnyMoment_FailsOrKeepsWhatOnceWas) {
  TrainingRun run;
  run.step();
  for (const Preset preset : {Preset::exact, Preset::balanced}) {
    FileSaveOptions options;
    options.preset = preset;
    options.save.step = 2;
    RunTensors state = run.state();
    state.push_back({"zeros", checkpoint::ElementType::f32, {500}, Bytes(2000)});
    expect_noticed(state, options);
  }
}

TEST_F(ChangingTensors, SaveWithBase_FailsOrKeepsWhatOnceWas) {
  for (const Preset preset : {Preset::exact, Preset::archive}) {
    store_ = Store(disk_, checkpoint::join({"store", checkpoint::decimal(static_cast<std::uint64_t>(preset))}));
    TrainingRun run;
    run.step();
    save_base(run.state(), preset);
    run.step();
    FileSaveOptions options;
    options.preset = preset;
    options.save.step = 2;
    options.save.base = 1;
    expect_noticed(run.state(), options);
  }
}

TEST_F(ChangingTensors, WeightThatIsKeptAfterAll_ItsMomentsAreDoneOnce) {
  for (const Preset preset : {Preset::balanced, Preset::archive}) {
    store_ = Store(disk_, checkpoint::join({"store", checkpoint::decimal(static_cast<std::uint64_t>(preset))}));
    TrainingRun run;
    run.step();
    RunTensors state = run.state();
    // None of them negative: taken for statistics.
    for (RunTensor& tensor : state)
      for (std::size_t i = 3; i < tensor.values.size(); i += 4) tensor.values[i] &= 0x7f;
    save_base(state, preset);
    FileSaveOptions options;
    options.preset = preset;
    options.save.step = 2;
    options.save.base = 1;
    SharedTensors set(state);
    ASSERT_TRUE(save_set(store_, set, options, runner_, report_).ok()) << report_.problem;
    std::sort(set.done_.begin(), set.done_.end());
    ASSERT_EQ(set.done_.size(), state.size());
    for (std::size_t i = 0; i < state.size(); ++i) EXPECT_EQ(set.done_[i], i) << state[i].name;
  }
}

TEST_F(ChangingTensors, Replay_FailsOrKeepsWhatOnceWas) {
  TrainingRun run;
  run.step();
  save_base(run.state(), Preset::exact);
  run.step();
  FileSaveOptions options;
  options.save.step = 2;
  options.save.base = 1;
  options.replay = checkpoint::parse_replay_rule(TrainingRun::rule(), report_).value();
  RunTensors state = run.state();
  for (RunTensor& gradient : run.gradients()) state.push_back(std::move(gradient));
  expect_noticed(state, options);
}

RunTensor large(const char* name, std::uint32_t noise_bits) {
  RunTensor out{name, checkpoint::ElementType::f32, {3, 2'900'000}, Bytes(std::size_t{4} * 3 * 2'900'000)};
  std::mt19937 random(5);
  for (std::size_t i = 0; i < out.values.size() / 4; ++i) {
    const std::uint32_t bits = 0x3c000000u + (static_cast<std::uint32_t>(random()) >> (32 - noise_bits));
    std::memcpy(out.values.data() + 4 * i, &bits, 4);
  }
  return out;
}

TEST_F(ChangingTensors, LargeTensor_FailsOrKeepsWhatOnceWas) {
  SharedTensors set({large("w", 26)});
  for (const std::size_t when : {std::size_t{1}, std::size_t{20}}) {
    InterruptedRunner runner;
    runner.before = [&](std::size_t step) {
      if (step == when) set.tensors_[0].values.back() ^= 1;
    };
    FileSaveOptions options;
    EXPECT_EQ(save_set(store_, set, options, runner, report_).code(), StatusCode::invalid_argument);
    EXPECT_NE(report_.problem.find("tensor 'w' changed while it was saved"), String::npos) << report_.problem;
  }
}

/// What a lossy mode begins is taken back: a bound that cannot be kept, and codes that are no smaller.
TEST_F(ChangingTensors, LargeTensorThatCannotLose_IsStoredExactly) {
  SharedTensors set({large("exp_avg_sq.wide", 30), large("noise", 30)});
  FileSaveOptions options;
  options.policy.rules.push_back({});
  options.policy.rules.back().name = "exp_avg_sq.*";
  options.policy.rules.back().treatment = checkpoint::Treatment::blk8;
  options.policy.rules.push_back({});
  options.policy.rules.back().treatment = checkpoint::Treatment::ebq;
  options.policy.rules.back().unit = checkpoint::BoundUnit::absolute;
  options.policy.rules.back().bound = 1e-12;
  Execution three;
  three.threads = 3;
  RunnerHandle threads(three);
  // The last value is the one that would be lost.
  const float tiny = 1e-30f;
  std::memcpy(set.tensors_[0].values.data() + set.tensors_[0].values.size() - 4, &tiny, 4);
  checkpoint::SetCoding coding(set, options, threads.get());
  ASSERT_TRUE(coding.prepare(report_).ok()) << report_.problem;
  auto session = SaveSession::begin(store_, options.save, threads.get(), report_);
  ASSERT_TRUE(session.ok() && coding.run(**session, report_).ok()) << report_.problem;
  ASSERT_TRUE((*session)->commit(report_).ok()) << report_.problem;
  const auto tensors = coding.take_summaries();
  EXPECT_NE(tensors[0].saved.fallback.find("blk8: not every value"), String::npos) << tensors[0].saved.fallback;
  EXPECT_FALSE(checkpoint::is_lossy(tensors[0].saved.mode));
  EXPECT_NE(tensors[1].saved.fallback.find("ebq: "), String::npos) << tensors[1].saved.fallback;
  const auto finding = checkpoint::verify_checkpoint(store_, (*session)->name(), true, runner_);
  EXPECT_TRUE(finding.good) << finding.problems[0];
  const auto restored = restore_all(store_, 0, report_);
  ASSERT_TRUE(restored.ok()) << report_.problem;
  for (const RunTensor& tensor : set.tensors_) EXPECT_TRUE(restored->at(tensor.name) == tensor.values) << tensor.name;
}

TEST_F(ChangingTensors, AnyNumberOfThreads_WritesTheSameBytes) {
  std::vector<std::vector<std::uint8_t>> parts;
  TrainingRun first;
  first.step();
  for (const std::size_t threads : {1, 2, 5}) {
    SimulatedDisk disk;
    const Store store(disk, "store");
    Execution execution;
    execution.threads = threads;
    RunnerHandle runner(execution);
    TrainingRun run;
    for (std::uint64_t step = 1; step <= 2; ++step) {
      run.step();
      RunTensors state = run.state();
      state.push_back(state[0]);  // an alias
      state.back().name = "param.tied";
      state.push_back(large("w", 20));
      SharedTensors set(state);
      FileSaveOptions options;
      options.preset = Preset::balanced;
      options.save.step = step;
      if (step == 2) options.save.base = 1;
      ASSERT_TRUE(save_set(store, set, options, runner.get(), report_).ok()) << report_.problem;
    }
    for (const std::string& path : disk.all_files())
      if (path.find("part") != std::string::npos) parts.push_back(disk.bytes_of(path));
  }
  ASSERT_EQ(parts.size(), 6U);
  for (std::size_t i = 2; i < parts.size(); ++i) EXPECT_TRUE(parts[i] == parts[i % 2]) << i;
}

}  // namespace
}  // namespace quern::testing
