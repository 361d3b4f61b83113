// Steps stored as their gradients: bit for bit along a chain, and what keeps a step from being replayed.
#include <gtest/gtest.h>

#include "checkpoint/restore/verify.h"
#include "checkpoint/save/compact.h"
#include "checkpoint/store/collect.h"
#include "tests/unit_checkpoint/store_fixture.h"
#include "tests/unit_checkpoint/training_run.h"

namespace quern::testing {
namespace {

using checkpoint::ElementType;
using checkpoint::FileSaveOptions;
using checkpoint::Manifest;
using checkpoint::ManifestTensor;
using checkpoint::Mode;
using checkpoint::Preset;
using checkpoint::Report;
using checkpoint::Store;

class ReplayStore : public StoreFixture {
 protected:
  /// Saves the run's state, and with a base its gradients for replay.
  Result<checkpoint::FileSaveResult> save(const TrainingRun& run, std::optional<std::uint64_t> base,
                                          const std::string& rule = TrainingRun::rule(),
                                          const checkpoint::Metadata& metadata = {{"lr", "0.001"}}) {
    FileSaveOptions options = options_;
    options.save.step = run.steps();
    options.save.base = base;
    report_ = {};
    Vector<String> paths;
    paths.push_back(put_file(disk_, "state" + std::to_string(run.steps()), run.state(), metadata));
    if (base) {
      paths.push_back(put_file(disk_, "gradients" + std::to_string(run.steps()), run.gradients()));
      QUERN_ASSIGN_OR_RETURN(options.replay, checkpoint::parse_replay_rule(rule, report_));
    }
    return checkpoint::save_files(store_, paths, options, runner_, report_);
  }
  void expect_exact(const TrainingRun& run) {
    const auto back = restore_all(store_, run.steps(), report_);
    ASSERT_TRUE(back.ok()) << report_.problem;
    for (const RunTensor& tensor : run.state()) EXPECT_EQ(back->at(tensor.name), tensor.values) << tensor.name;
  }
  std::size_t replayed(std::uint64_t step) {
    std::size_t count = 0;
    const auto found = store_.at_step(step, report_);
    for (const ManifestTensor& tensor : found->tensors) count += tensor.mode == Mode::replay ? 1 : 0;
    return count;
  }

  FileSaveOptions options_;
};

TEST_F(ReplayStore, Chain_IsBitExactAndCutWhereItGrowsLong) {
  TrainingRun run;
  run.step();
  ASSERT_TRUE(save(run, std::nullopt).ok()) << report_.problem;
  std::size_t longest = 0, current = 0, cuts = 0;
  for (std::uint64_t i = 2; i <= 24; ++i) {
    run.step();
    ASSERT_TRUE(save(run, i - 1).ok()) << report_.problem;
    ASSERT_NO_FATAL_FAILURE(expect_exact(run));
    const auto found = store_.at_step(i, report_);
    const bool all = found->tensors[0].mode == Mode::replay;
    current = all ? current + 1 : 0;
    cuts += all ? 0 : 1;
    longest = std::max(longest, current);
    for (const ManifestTensor& tensor : found->tensors) EXPECT_LE(tensor.depth, 16U);
  }
  EXPECT_GE(longest, 3U);
  EXPECT_GT(cuts, 0U);
  Report own;
  const auto names = store_.list(own);
  for (const auto& name : *names) {
    const auto finding = checkpoint::verify_checkpoint(store_, name, true, runner_);
    EXPECT_TRUE(finding.good) << (finding.problems.empty() ? "" : finding.problems[0]);
  }
  ASSERT_TRUE(checkpoint::compact(store_, 24, {}, runner_, report_).ok()) << report_.problem;
  EXPECT_EQ(replayed(24), 0U);
  EXPECT_TRUE(store_.at_step(24, report_)->references.empty());
  expect_exact(run);
}

TEST_F(ReplayStore, PlainOrder_IsBitExactToo) {
  TrainingRun run(kernels::AdamOrder::separate);
  std::string rule = TrainingRun::rule();
  rule.replace(rule.find("fused"), 5, "separate");
  run.step();
  ASSERT_TRUE(save(run, std::nullopt).ok()) << report_.problem;
  for (std::uint64_t i = 2; i <= 3; ++i) {
    run.step();
    ASSERT_TRUE(save(run, i - 1, rule).ok()) << report_.problem;
    EXPECT_GE(replayed(i), 3U);
    expect_exact(run);
  }
}

TEST_F(ReplayStore, Limit_OfReplaysHolds) {
  options_.save.limits.replays = 2;
  options_.save.limits.chain_percent = options_.save.limits.restore_percent = 100000;
  options_.save.limits.depth = 0;
  TrainingRun run;
  run.step();
  ASSERT_TRUE(save(run, std::nullopt).ok());
  std::vector<std::size_t> counts;
  for (std::uint64_t i = 2; i <= 6; ++i) {
    run.step();
    ASSERT_TRUE(save(run, i - 1).ok()) << report_.problem;
    counts.push_back(replayed(i));
    expect_exact(run);
  }
  EXPECT_EQ(counts, (std::vector<std::size_t>{6, 6, 0, 6, 6}));
}

TEST_F(ReplayStore, AnotherRule_IsToldAndDifferencesAreTaken) {
  TrainingRun run;
  run.step();
  ASSERT_TRUE(save(run, std::nullopt).ok());
  run.step();
  const auto saved = save(run, 1, TrainingRun::rule(), {{"lr", "0.00100001"}});
  ASSERT_TRUE(saved.ok()) << report_.problem;
  EXPECT_EQ(replayed(2), 0U);
  EXPECT_TRUE(notes_say("the step does not lead from the base to this state"));
  expect_exact(run);
  run.step();  // the order of operations counts
  std::string rule = TrainingRun::rule();
  rule.replace(rule.find("fused"), 5, "separate");
  ASSERT_TRUE(save(run, 2, rule).ok()) << report_.problem;
  EXPECT_EQ(replayed(3), 0U);
  expect_exact(run);
}

TEST_F(ReplayStore, BaseThatLostSomething_IsRefused) {
  TrainingRun run;
  run.step();
  options_.preset = Preset::balanced;
  ASSERT_TRUE(save(run, std::nullopt).ok());
  options_.preset = Preset::exact;
  run.step();
  const auto saved = save(run, 1);
  ASSERT_TRUE(saved.ok()) << report_.problem;
  EXPECT_TRUE(notes_say("the base has lost something"));
  EXPECT_EQ(replayed(2), 0U);  // of vectors the moments
  expect_exact(run);
}

TEST_F(ReplayStore, NoLearningRate_IsRefused) {
  TrainingRun run;
  run.step();
  ASSERT_TRUE(save(run, std::nullopt).ok());
  run.step();
  EXPECT_FALSE(save(run, 1, TrainingRun::rule(), {{"step", "2"}}).ok());
  EXPECT_NE(std::string(report_.problem).find("learning rate"), std::string::npos) << report_.problem;
}

TEST_F(ReplayStore, WrongBaseOrManifest_IsFoundAtLoad) {
  TrainingRun run;
  run.step();
  ASSERT_TRUE(save(run, std::nullopt).ok());
  run.step();
  ASSERT_TRUE(save(run, 1).ok());
  ASSERT_EQ(replayed(2), 6U);
  const Manifest good = store_.at_step(2, report_).value();
  const std::string path(store_.manifest_path(good.name));
  const auto attempt = [&](const char* what, const char* says, auto&& change) {
    Manifest bad = good;
    change(bad);
    report_ = {};
    const auto bytes = checkpoint::write_manifest(bad, report_);
    ASSERT_TRUE(bytes.ok());
    disk_.bytes_of(path).assign(bytes->begin(), bytes->end());
    EXPECT_FALSE(restore_all(store_, 2, report_).ok()) << what;
    EXPECT_NE(std::string(report_.problem).find(says), std::string::npos) << what << ": " << report_.problem;
  };
  attempt("bases in another order", "another state",
          [](Manifest& bad) { std::swap((*bad.tensors[0].base_moments)[0], (*bad.tensors[0].base_moments)[1]); });
  attempt("another gradient", "another shape", [](Manifest& bad) { bad.tensors[0].companion = 8; });
  attempt("no gradient", "does not fit", [](Manifest& bad) { bad.tensors[0].companion.reset(); });
  attempt("no moments of the base", "does not fit", [](Manifest& bad) { bad.tensors[0].base_moments.reset(); });
  attempt("a member that is not one", "does not fit", [](Manifest& bad) { bad.tensors[0].moments = {1, 6}; });
  attempt("a member of another group", "does not fit", [](Manifest& bad) { bad.tensors[1].companion = 3; });
  attempt("its own gradient", "", [](Manifest& bad) { bad.tensors[0].companion = 1; });
  attempt("another hash", "hash", [](Manifest& bad) { bad.tensors[2].content.low ^= 1; });
}

TEST_F(ReplayStore, GradientsNeedNotComeEachTime) {
  TrainingRun run;
  run.step();
  ASSERT_TRUE(save(run, std::nullopt).ok());
  run.step();
  ASSERT_TRUE(save(run, 1).ok());
  run.step();
  FileSaveOptions options;
  options.save.step = 3;
  options.save.base = 2;
  Vector<String> paths;
  paths.push_back(put_file(disk_, "alone", run.state()));
  ASSERT_TRUE(checkpoint::save_files(store_, paths, options, runner_, report_).ok()) << report_.problem;
  expect_exact(run);
}

}  // namespace
}  // namespace quern::testing
