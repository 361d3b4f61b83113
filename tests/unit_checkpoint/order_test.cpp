// The order of checkpoints: what is newest, what replaces what, and what each needs of others.
#include <gtest/gtest.h>

#include <unistd.h>
#include <algorithm>
#include <string>
#include <thread>

#include <filesystem>

#include "tests/faults/small_store.h"
#include "tests/unit_checkpoint/store_fixture.h"

namespace quern::testing {
namespace {

using checkpoint::CheckpointName;
using checkpoint::CollectOptions;
using checkpoint::ElementType;
using checkpoint::Manifest;
using checkpoint::Report;
using checkpoint::SaveOptions;
using checkpoint::SaveSession;
using checkpoint::Store;
using checkpoint::TensorSource;

SaveOptions options_for(std::uint64_t step) {
  SaveOptions options;
  options.step = step;
  options.least_shared_bytes = 0;
  return options;
}

/// One tensor of so many bytes under a name.
struct Piece {
  std::string name;
  std::vector<std::uint8_t> values;
};

class OrderTest : public StoreFixture {
 protected:
  Status save(const SaveOptions& options, const std::vector<Piece>& pieces) {
    QUERN_ASSIGN_OR_RETURN(const auto session, SaveSession::begin(store_, options, runner_, report_));
    for (const Piece& piece : pieces) {
      TensorSource source;
      source.name = piece.name;
      source.what = {ElementType::u8, *Shape::try_make(std::vector<std::uint64_t>{piece.values.size()})};
      source.values = piece.values;
      const auto added = session->add_tensor(source, report_);
      if (!added.ok()) return added.status();
    }
    return session->commit(report_).status();
  }
  /// Values of a tensor of the checkpoint of that step, or of the newest.
  std::vector<std::uint8_t> load(std::optional<std::uint64_t> step, const std::string& name) {
    const auto manifest = step ? store_.at_step(*step, report_) : store_.newest(report_);
    EXPECT_TRUE(manifest.ok()) << report_.problem;
    if (!manifest.ok()) return {};
    checkpoint::Restorer restorer(store_, runner_);
    AlignedBuffer out;
    for (std::size_t i = 0; i < manifest->tensors.size(); ++i) {
      if (std::string_view(manifest->tensors[i].name) != name) continue;
      const Status status = restorer.tensor(manifest->name, i, out, report_);
      EXPECT_TRUE(status.ok()) << report_.problem;
      return {out.span().begin(), out.span().end()};
    }
    ADD_FAILURE() << "no tensor " << name;
    return {};
  }
  std::vector<std::uint64_t> steps() {
    std::vector<std::uint64_t> out;
    const auto names = store_.list_current(report_);
    for (const auto& name : *names) out.push_back(name.step);
    return out;
  }
  checkpoint::Collected collect(const CollectOptions& options) {
    auto done = checkpoint::collect(store_, options, report_);
    EXPECT_TRUE(done.ok()) << report_.problem;
    return done.ok() ? std::move(done).value() : checkpoint::Collected();
  }
  /// A save of a group whose writer `writer` leaves its share.
  Status save_share(std::uint64_t step, const char* group, std::uint32_t writer) {
    SaveOptions options = options_for(step);
    options.group = group;
    options.writers = 2;
    options.writer = writer;
    return save(options, {{"t" + std::to_string(writer), noise(100, static_cast<std::uint32_t>(step))}});
  }

  static std::vector<std::uint8_t> noise(std::size_t bytes, std::uint32_t seed) {
    std::vector<std::uint8_t> out(bytes);
    std::uint32_t state = seed * 2654435761U + 12345;
    for (auto& byte : out) byte = static_cast<std::uint8_t>((state = state * 1664525U + 1013904223U) >> 24);
    return out;
  }
};

TEST_F(OrderTest, NameOfAManifest_GivesStepGenerationAndId) {
  for (const CheckpointName& name :
       {CheckpointName{0, "a", 0}, CheckpointName{7, "a-b", 3}, CheckpointName{UINT64_MAX - 1, "0f", 18},
        CheckpointName{10'000'000'000'000'000'000U, "x", 1}}) {
    const auto back = checkpoint::parse_manifest_file_name(checkpoint::manifest_file_name(name));
    ASSERT_TRUE(back.has_value()) << checkpoint::manifest_file_name(name);
    EXPECT_EQ(*back, name);
    EXPECT_EQ(back->generation, name.generation);
  }
  for (const char* const other : {"7-a", "000000000007.0-a", "000000000007.01-a", "000000000007.-a", "000000000007.3",
                                  "18446744073709551616-a", "0000000000070-a", "-a", "x-a", "000000000007.3-"})
    EXPECT_FALSE(checkpoint::parse_manifest_file_name(other).has_value()) << other;
}

TEST_F(OrderTest, LargeSteps_AreListedAndLoaded) {
  for (const std::uint64_t step : {std::uint64_t{1} << 63, UINT64_MAX - 1, std::uint64_t{0}})
    ASSERT_TRUE(save(options_for(step), {{"w", noise(64, static_cast<std::uint32_t>(step >> 40))}}).ok())
        << report_.problem;
  EXPECT_EQ(steps(), (std::vector<std::uint64_t>{std::uint64_t{1} << 63, UINT64_MAX - 1, 0}));
  EXPECT_EQ(load(UINT64_MAX - 1, "w"), noise(64, static_cast<std::uint32_t>((UINT64_MAX - 1) >> 40)));
}

TEST_F(OrderTest, Replace_GivesTheNewValuesAlways) {
  // Random ids once decided which of two was found; here 200 times with every kind of tie to other steps.
  for (std::uint32_t round = 0; round < 200; ++round) {
    const std::uint64_t step = 10 + round % 3;
    SaveOptions options = options_for(step);
    options.replace = true;
    if (round % 2 == 1) options.base_newest = true;
    const auto frozen = noise(500, 1);
    ASSERT_TRUE(save(options, {{"frozen", frozen}, {"w", noise(300, round)}}).ok()) << report_.problem;
    ASSERT_EQ(load(step, "w"), noise(300, round)) << round;
    ASSERT_EQ(load({}, "w"), noise(300, round)) << round;
    ASSERT_EQ(load(step, "frozen"), frozen);
  }
  EXPECT_EQ(steps().size(), 3U);
  EXPECT_LE(disk_.list("store/data")->size(), 6U) << "what was replaced is gone, or retired while others need it";
}

TEST_F(OrderTest, TwoSaversOfOneStep_OneWinsAndTheOtherIsTold) {
  auto first = SaveSession::begin(store_, options_for(3), runner_, report_);
  auto second = SaveSession::begin(store_, options_for(3), runner_, report_);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(second.value()->commit(report_).ok());
  EXPECT_FALSE(first.value()->commit(report_).ok());
  EXPECT_NE(std::string(report_.problem).find("step 3 is in the store already"), std::string::npos) << report_.problem;
  first.value().reset();
  EXPECT_EQ(store_.list(report_)->size(), 1U);
  EXPECT_EQ(disk_.list("store/data")->size(), 1U);
  EXPECT_TRUE(disk_.list("store/tmp")->empty());
}

/// A folder of the operating system's, where locks hold.
class OrderOnDisk : public ::testing::Test {
 protected:
  OrderOnDisk()
      : folder_(std::filesystem::temp_directory_path() / ("quern-order-" + std::to_string(getpid()))),
        store_(checkpoint::system_files(), String(folder_)) {
    std::filesystem::remove_all(folder_);
  }
  ~OrderOnDisk() override { std::filesystem::remove_all(folder_); }

  /// Saves step 5, and again while another writer holds the store.
  void replace_beside_another() {
    ASSERT_TRUE(save_small(store_, options_for(4), report_).ok());
    ASSERT_TRUE(save_small(store_, options_for(5), report_).ok());
    const auto other = SaveSession::begin(store_, options_for(9), runner_, report_);
    ASSERT_TRUE(other.ok());
    SaveOptions options = options_for(5);
    options.least_shared_bytes = UINT64_MAX;  // equal tensors would hold the former checkpoint
    options.replace = true;
    options.tags.push_back({"second", "yes"});
    ASSERT_TRUE(save_small(store_, options, report_).ok()) << report_.problem;
    ASSERT_EQ(store_.list(report_)->size(), 3U);
    ASSERT_EQ(store_.list_current(report_)->size(), 2U);
  }

  const std::string folder_;
  Store store_;
  Report report_;
  SerialRunner runner_;
};

TEST_F(OrderOnDisk, ReplacedWhileAnotherSaves_IsFoundFirstAndCollectedLater) {
  replace_beside_another();
  EXPECT_EQ(store_.at_step(5, report_)->tags.size(), 1U);
  EXPECT_EQ(store_.newest(report_)->tags.size(), 1U);
  EXPECT_EQ(checkpoint::collect(store_, {}, report_)->removed.size(), 1U);
  EXPECT_EQ(store_.at_step(5, report_)->tags.size(), 1U);
  EXPECT_TRUE(check_small(store_, 5, report_).ok()) << report_.problem;
}

TEST_F(OrderOnDisk, ReplacedStepThatIsDamaged_NeverGivesTheOldValues) {
  replace_beside_another();
  const auto name = store_.at_step(5, report_)->name;
  std::filesystem::remove(std::string(store_.data_folder(name.id)) + "/part-0000");
  EXPECT_FALSE(store_.at_step(5, report_).ok());
  EXPECT_EQ(store_.newest(report_)->name.step, 4U) << "the step before, not what was replaced";
}

TEST_F(OrderOnDisk, SaversInThreads_EachStepOnceAndTheLosersAreTold) {
  constexpr int kSavers = 2, kSteps = 100;
  std::atomic<int> won[kSteps] = {}, told[kSteps] = {};
  std::vector<std::thread> threads;
  for (int s = 0; s < kSavers; ++s)
    threads.emplace_back([&] {
      for (int step = 0; step < kSteps; ++step) {
        Report report;
        const Status saved = save_small(store_, options_for(static_cast<std::uint64_t>(step)), report);
        if (saved.ok()) ++won[step];
        if (!saved.ok() && std::string(report.problem).find("in the store already") != std::string::npos) ++told[step];
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (int step = 0; step < kSteps; ++step) EXPECT_TRUE(won[step] == 1 && told[step] == kSavers - 1) << step;
  EXPECT_EQ(store_.list(report_)->size(), static_cast<std::size_t>(kSteps));
}

TEST_F(OrderTest, NewestIsWhatWasSavedLast_AfterARunWasTakenUpFromAnOlderStep) {
  for (const std::uint64_t step : {100, 200, 300, 150})
    ASSERT_TRUE(save(options_for(step), {{"w", noise(50, static_cast<std::uint32_t>(step))}}).ok());
  EXPECT_EQ(store_.newest(report_)->name.step, 150U);
  CollectOptions options;
  options.keep = 2;
  collect(options);
  EXPECT_EQ(steps(), (std::vector<std::uint64_t>{300, 150}));
}

TEST_F(OrderTest, SmallTensors_AreNotSharedBetweenCheckpoints) {
  SaveOptions options = options_for(1);
  options.least_shared_bytes = SaveOptions().least_shared_bytes;
  const auto small = noise(65535, 1), large = noise(65536, 2);
  for (const std::uint64_t step : {1, 2, 3}) {
    options.step = step;
    ASSERT_TRUE(save(options, {{"small", small}, {"large", large}}).ok());
  }
  const auto manifest = store_.at_step(3, report_);
  EXPECT_FALSE(manifest->tensors[0].alias);
  ASSERT_TRUE(manifest->tensors[1].alias);
  EXPECT_EQ(manifest->references.front().step, 1U) << "of a chain of equal tensors the first is named";
}

TEST_F(OrderTest, SharedTensor_IsStoredAgainBeforeItIsTooOld) {
  const auto frozen = noise(1000, 7);
  std::uint64_t oldest = 0;
  for (std::uint64_t step = 1; step <= 150; ++step) {
    ASSERT_TRUE(save(options_for(step), {{"frozen", frozen}}).ok());
    const auto manifest = store_.at_step(step, report_);
    if (!manifest->references.empty()) oldest = std::max(oldest, step - manifest->references.front().step);
  }
  EXPECT_EQ(oldest, 64U);
}

TEST_F(OrderTest, LosingACheckpoint_CostsOnlyWhatNeedsATensorOfIt) {
  // Step 2 shares "a" with 1; step 3 shares "b" with 2, and nothing with 1.
  ASSERT_TRUE(save(options_for(1), {{"a", noise(400, 1)}, {"b", noise(400, 2)}}).ok());
  ASSERT_TRUE(save(options_for(2), {{"a", noise(400, 1)}, {"b", noise(400, 3)}}).ok());
  ASSERT_TRUE(save(options_for(3), {{"a", noise(400, 4)}, {"b", noise(400, 3)}}).ok());
  const auto one = store_.at_step(1, report_)->name;
  ASSERT_TRUE(disk_.rename(store_.data_folder(one.id), "store/elsewhere").ok());
  EXPECT_EQ(store_.newest(report_)->name.step, 3U);
  EXPECT_EQ(load(3, "b"), noise(400, 3));
  EXPECT_FALSE(store_.check_needs(*store_.at_step(2, report_), report_).ok());
  EXPECT_FALSE(checkpoint::verify_checkpoint(store_, store_.at_step(2, report_)->name, false, runner_).good);
  EXPECT_TRUE(checkpoint::verify_checkpoint(store_, store_.at_step(3, report_)->name, true, runner_).good);
}

TEST_F(OrderTest, Collection_FollowsTensorsAndRetiresWhatIsNeededInPart) {
  ASSERT_TRUE(save(options_for(1), {{"a", noise(400, 1)}, {"b", noise(400, 2)}}).ok());
  ASSERT_TRUE(save(options_for(2), {{"a", noise(400, 1)}, {"b", noise(400, 3)}}).ok());
  ASSERT_TRUE(save(options_for(3), {{"a", noise(400, 4)}, {"b", noise(400, 3)}}).ok());
  CollectOptions options;
  options.keep = 1;
  options.dry_run = true;
  const auto planned = collect(options);
  EXPECT_EQ(steps().size(), 3U);
  options.dry_run = false;
  const auto done = collect(options);
  EXPECT_EQ(planned.removed, done.removed);
  ASSERT_EQ(done.removed.size(), 1U);
  EXPECT_EQ(done.removed[0].step, 1U) << "step 3 needs a tensor of 2, and that one needs nothing of 1";
  EXPECT_EQ(done.kept_for_others.size(), 1U);
  EXPECT_EQ(steps(), std::vector<std::uint64_t>{3}) << "step 2 has lost a tensor: it is a checkpoint no more";
  EXPECT_EQ(load(3, "b"), noise(400, 3));
  EXPECT_TRUE(checkpoint::verify_checkpoint(store_, store_.at_step(3, report_)->name, true, runner_).good);
  EXPECT_EQ(disk_.list("store/data")->size(), 2U);
  // Once nobody needs it, it goes.
  ASSERT_TRUE(save(options_for(4), {{"a", noise(400, 5)}, {"b", noise(400, 6)}}).ok());
  EXPECT_EQ(collect(options).removed.size(), 2U);
  EXPECT_EQ(disk_.list("store/data")->size(), 1U);
  EXPECT_EQ(disk_.list("store/manifests")->size(), 1U);
}

TEST_F(OrderTest, KeptCheckpointThatIsWhole_StaysACheckpoint) {
  ASSERT_TRUE(save(options_for(1), {{"a", noise(400, 1)}}).ok());
  ASSERT_TRUE(save(options_for(2), {{"a", noise(400, 1)}}).ok());
  CollectOptions options;
  options.keep = 1;
  EXPECT_EQ(collect(options).kept_for_others.size(), 1U);
  EXPECT_EQ(steps(), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(load(1, "a"), noise(400, 1));
}

TEST_F(OrderTest, DamagedCheckpoints_DoNotCountAsKept) {
  for (const std::uint64_t step : {1, 2, 3, 4, 5})
    ASSERT_TRUE(save(options_for(step), {{"w", noise(100, static_cast<std::uint32_t>(step))}}).ok());
  for (const std::uint64_t step : {4, 5})
    ASSERT_TRUE(disk_.remove(store_.data_folder(store_.at_step(step, report_)->name.id) + "/part-0000").ok());
  CollectOptions options;
  options.keep = 2;
  collect(options);
  EXPECT_EQ(steps(), (std::vector<std::uint64_t>{2, 3, 4, 5}));
  EXPECT_EQ(load({}, "w"), noise(100, 3));
}

TEST_F(OrderTest, Retention_KeepsTheNewestEveryNthAndTheBest) {
  const char* const losses[] = {"5", "1.5", "4e0", "nan", "2.5", "3", "none", "2.25", "2.75", "2.6"};
  for (std::uint64_t step = 100; step <= 1000; step += 100) {
    SaveOptions options = options_for(step);
    options.tags.push_back({"loss", losses[step / 100 - 1]});
    ASSERT_TRUE(save(options, {{"w", noise(20, static_cast<std::uint32_t>(step))}}).ok()) << report_.problem;
  }
  EXPECT_EQ(store_.at_step(300, report_)->tags.front().text, String("4e0"));
  CollectOptions options;
  options.keep = 1;
  options.keep_every = 400;
  options.best = checkpoint::KeepBest{2, "loss", false};
  options.dry_run = true;
  EXPECT_EQ(collect(options).removed.size(), 6U);
  options.dry_run = false;
  collect(options);
  EXPECT_EQ(steps(), (std::vector<std::uint64_t>{200, 400, 800, 1000}));  // 800 by number and by loss
  options.best->metric = "accuracy";
  EXPECT_FALSE(checkpoint::collect(store_, options, report_).ok());
  EXPECT_NE(std::string(report_.problem).find("'accuracy'"), std::string::npos);
  EXPECT_EQ(steps().size(), 4U);
}

TEST_F(OrderTest, NewestKey_IsTheBaseUntilItIsOld) {
  std::vector<std::uint64_t> bases;
  for (std::uint64_t step = 1; step <= 12; ++step) {
    SaveOptions options = options_for(step);
    options.base_newest = true;
    ASSERT_TRUE(save_small(store_, options, report_).ok()) << report_.problem;
    const auto manifest = store_.at_step(step, report_);
    bases.push_back(manifest->base ? manifest->base->step : 0);
    for (const auto& tensor : manifest->tensors) EXPECT_LE(tensor.depth, 1U);
    CollectOptions keep;
    keep.keep = 3;
    collect(keep);
    EXPECT_LE(store_.list(report_)->size() + store_.list_retired(report_)->size(), 5U) << "three and their keys";
    for (const std::uint64_t held : steps()) EXPECT_TRUE(check_small(store_, held, report_).ok()) << report_.problem;
  }
  EXPECT_EQ(bases, (std::vector<std::uint64_t>{0, 1, 1, 1, 1, 0, 6, 6, 6, 6, 0, 11}));
}

TEST_F(OrderTest, BaseThatCannotBeUsed_MeansNoBaseAndANote) {
  ASSERT_TRUE(save_small(store_, options_for(1), report_).ok());
  SaveOptions options = options_for(2);
  options.base = 9;
  ASSERT_TRUE(save_small(store_, options, report_).ok()) << report_.problem;
  EXPECT_TRUE(notes_say("step 2 is saved without a base") && notes_say("no checkpoint of step 9"));
  EXPECT_FALSE(store_.at_step(2, report_)->base);
  options.step = 3;
  options.base = 3;
  ASSERT_TRUE(save_small(store_, options, report_).ok());
  // Values that are damaged are found out when they are predicted from.
  const auto one = store_.at_step(1, report_)->name;
  auto& part = disk_.bytes_of(std::string(store_.data_folder(one.id)) + "/part-0000");
  for (std::size_t at = 4096 + 40; at < part.size() - 400; at += 8) part[at] ^= 1;
  options = options_for(4);
  options.base = 1;
  options.search_equal = false;
  ASSERT_TRUE(save_small(store_, options, report_).ok()) << report_.problem;
  EXPECT_TRUE(notes_say("the base is given up"));
  EXPECT_TRUE(check_small(store_, 4, report_).ok()) << report_.problem;
}

TEST_F(OrderTest, TensorsOfAnotherShapeThanTheBases_AreStoredWhole) {
  ASSERT_TRUE(save(options_for(1), {{"a", noise(400, 1)}, {"b", noise(400, 2)}, {"gone", noise(9, 1)}}).ok());
  SaveOptions options = options_for(2);
  options.base = 1;
  ASSERT_TRUE(save(options, {{"a", noise(500, 1)}, {"b", noise(300, 2)}, {"new", noise(10, 3)}}).ok())
      << report_.problem;
  EXPECT_TRUE(notes_say("tensor 'a' and 1 more stored whole"));
  EXPECT_EQ(load(2, "a"), noise(500, 1));
  EXPECT_EQ(load(2, "new"), noise(10, 3));
}

TEST_F(OrderTest, EqualTensorWhoseFileIsGone_IsStoredAgain) {
  ASSERT_TRUE(save(options_for(1), {{"a", noise(400, 1)}}).ok());
  ASSERT_TRUE(disk_.remove(store_.data_folder(store_.at_step(1, report_)->name.id) + "/part-0000").ok());
  ASSERT_TRUE(save(options_for(2), {{"a", noise(400, 1)}}).ok());
  EXPECT_EQ(load(2, "a"), noise(400, 1));
}

TEST_F(OrderTest, GroupThatNeverBecameWhole_GoesAfterTheNextPublication) {
  ASSERT_TRUE(save_share(1, "one", 0).ok());  // its other writer died
  EXPECT_EQ(disk_.list("store/tmp/one")->size(), 2U);
  ASSERT_TRUE(save_share(2, "two", 0).ok());
  EXPECT_EQ(disk_.list("store/tmp/one")->size(), 2U) << "nothing was published since: the other writer may come";
  ASSERT_TRUE(save_share(2, "two", 1).ok()) << report_.problem;
  ASSERT_TRUE(save_share(3, "three", 0).ok());
  EXPECT_FALSE(disk_.exists("store/tmp/one/sub-0000"));
  EXPECT_TRUE(disk_.exists("store/tmp/three/sub-0000"));
  // Its own writer does not sweep a group away, whatever was published between.
  ASSERT_TRUE(save(options_for(4), {{"w", noise(10, 1)}}).ok());
  ASSERT_TRUE(save_share(5, "five", 0).ok());
  ASSERT_TRUE(save_share(5, "five", 1).ok());
  EXPECT_EQ(load(5, "t1"), noise(100, 5));
}

TEST_F(OrderTest, FailedSave_LeavesNothing) {
  ASSERT_TRUE(save(options_for(1), {{"w", noise(1000, 1)}}).ok());
  const auto before = disk_.all_files();
  std::size_t failures = 0;
  for (std::size_t k = 0; k < 60; ++k) {
    SimulatedDisk disk(disk_);
    disk.fail_at(k, FaultKind::disk_full);
    const Store store(disk, "store");
    Report report;
    if (save_small(store, options_for(2), report).ok()) continue;
    ++failures;
    disk.fail_at(static_cast<std::size_t>(-1), FaultKind::none);
    EXPECT_EQ(disk.all_files(), before) << k;
  }
  EXPECT_GT(failures, 10U);
}

}  // namespace
}  // namespace quern::testing
