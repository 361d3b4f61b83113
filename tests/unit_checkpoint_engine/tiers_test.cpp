// Further tiers behind an engine's store: levels, tiers that are full, late, gone or slow, lost stores, eviction.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "checkpoint/engine/engine.h"
#include "checkpoint/engine/segment_ring.h"
#include "checkpoint/tiers/tiers.h"
#include "tests/faults/locked_files.h"
#include "tests/faults/simulated_disk.h"
#include "tests/faults/small_store.h"
#include "tests/unit_checkpoint_capi/handles.h"

namespace quern::testing {
namespace {

using checkpoint::AtEnd;
using checkpoint::Engine;
using checkpoint::EngineOptions;
using checkpoint::Report;
using checkpoint::SaveLevel;
using checkpoint::Store;
using checkpoint::TierOptions;

constexpr double kLong = 60;  // seconds that nothing here takes

class Tiers : public ::testing::Test {
 protected:
  std::unique_ptr<Engine> open(const EngineOptions& given = {}, TierOptions tier = {}) {
    EngineOptions options = given;
    options.ring_bytes = checkpoint::SegmentRing::kSegmentBytes;
    tier.path = "shared/run";
    tier.probe = false;
    tier.files = &far_;
    options.tiers.push_back(tier);
    Report report;
    auto engine = Engine::open(near_, "local/run", options, report);
    EXPECT_TRUE(engine.ok()) << report.problem;
    return engine.ok() ? std::move(engine).value() : nullptr;
  }
  void submit(Engine& engine, std::uint64_t step, std::optional<std::uint64_t> base = {}) {
    states_.push_back(std::make_unique<std::vector<SmallTensor>>(small_state(step)));
    Report report;
    checkpoint::FileSaveOptions options;
    options.save.step = step;
    options.save.base = base;
    auto save = engine.begin(options, report);
    ASSERT_TRUE(save.ok()) << report.problem;
    for (const SmallTensor& tensor : *states_.back()) {
      checkpoint::AddedTensor added;
      added.name = tensor.name;
      added.what = tensor.what;
      added.data = tensor.values.data();
      ASSERT_TRUE(engine.add(**save, std::move(added), report).ok()) << report.problem;
    }
    const std::string text = "step " + std::to_string(step);
    ASSERT_TRUE(
        engine.add_blob(**save, "text", {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, report)
            .ok());
    ASSERT_TRUE(engine.submit(std::move(*save), report).ok()) << report.problem;
  }
  bool wait(Engine& engine, std::uint64_t step, SaveLevel level, double seconds = kLong) {
    Report report;
    const auto reached = engine.wait(step, level, seconds, report);
    EXPECT_TRUE(reached.ok()) << report.problem;
    return reached.ok() && *reached;
  }
  std::string failure(Engine& engine, std::uint64_t step) {
    Report report;
    EXPECT_FALSE(engine.wait(step, SaveLevel::durable, kLong, report).ok()) << "step " << step;
    return {report.problem.data(), report.problem.size()};
  }
  static std::vector<std::uint64_t> steps_of(const Store& store) {
    Report report;
    std::vector<std::uint64_t> out;
    const auto names = store.list_current(report);
    if (names.ok())
      for (const auto& name : *names) out.push_back(name.step);
    return out;
  }
  static void expect_saved(const Store& store, std::uint64_t step) {
    Report report;
    const Status status = check_small(store, step, report);
    EXPECT_TRUE(status.ok()) << "step " << step << ": " << status.text() << " " << report.problem;
  }
  Status close(Engine& engine, AtEnd how = AtEnd::drain) {
    Report report;
    const Status status = engine.close(how, kLong, report);
    problem_ = {report.problem.data(), report.problem.size()};
    return status;
  }

  SimulatedDisk near_disk_, far_disk_;
  LockedFiles near_{near_disk_}, far_{far_disk_};
  const Store local_{near_, "local/run"}, shared_{far_, "shared/run"};
  std::vector<std::unique_ptr<std::vector<SmallTensor>>> states_;
  std::string problem_;
};

using Steps = std::vector<std::uint64_t>;

TEST_F(Tiers, Save_LocalFirst_DurableOnceTheTierHasIt) {
  const auto engine = open();
  submit(*engine, 1);
  EXPECT_TRUE(wait(*engine, 1, SaveLevel::durable));
  far_.hold(true);
  submit(*engine, 2, 1);
  EXPECT_TRUE(wait(*engine, 2, SaveLevel::local));
  EXPECT_FALSE(wait(*engine, 2, SaveLevel::durable, 0.02));
  Report report;
  const auto held = engine->poll(2, report);
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(held->level, SaveLevel::local);
  EXPECT_FALSE(held->finished);
  EXPECT_FALSE(*engine->wait_all(0, report));
  EXPECT_EQ(engine->tier_stats()[0].waiting, 1U);
  far_.hold(false);
  EXPECT_TRUE(wait(*engine, 2, SaveLevel::durable));
  EXPECT_TRUE(engine->poll(2, report)->finished);
  EXPECT_EQ(engine->stats().durable, 2U);
  EXPECT_TRUE(close(*engine).ok()) << problem_;
  for (const std::uint64_t step : {1, 2}) expect_saved(shared_, step);
  // The same bytes, in the same place of the order.
  const auto names = local_.list(report);
  ASSERT_TRUE(names.ok()) << report.problem;
  for (const auto& name : *names) {
    const std::string manifest(local_.manifest_path(name).substr(local_.root().size()));
    EXPECT_EQ(near_disk_.bytes_of("local/run" + manifest), far_disk_.bytes_of("shared/run" + manifest));
  }
}

TEST_F(Tiers, FullTier_SaveStaysLocalAndSaysSo_NextOneBringsBoth) {
  const auto engine = open();
  submit(*engine, 1);
  EXPECT_TRUE(wait(*engine, 1, SaveLevel::durable));
  far_.change([&] { far_disk_.fail_at(0, FaultKind::disk_full); });
  submit(*engine, 2);
  const std::string told = failure(*engine, 2);
  for (const char* const part : {"step 2", "local/run", "shared/run", "No space left"})
    EXPECT_NE(told.find(part), std::string::npos) << told;
  EXPECT_TRUE(wait(*engine, 2, SaveLevel::local));
  expect_saved(local_, 2);
  EXPECT_EQ(steps_of(shared_), Steps({1}));
  EXPECT_FALSE(engine->tier_stats()[0].problem.empty());
  far_.change([&] { far_disk_.fail_at(static_cast<std::size_t>(-1), FaultKind::none); });
  submit(*engine, 3);
  EXPECT_TRUE(wait(*engine, 3, SaveLevel::durable));
  EXPECT_TRUE(engine->tier_stats()[0].problem.empty());
  EXPECT_TRUE(close(*engine).ok()) << problem_;
  for (const std::uint64_t step : {1, 2, 3}) expect_saved(shared_, step);
}

TEST_F(Tiers, MissingAtStart_SavesGoOn_CaughtUpLater) {
  far_.set_gone(true);
  std::vector<std::string> notes;
  std::mutex mutex;
  EngineOptions options;
  options.note = [&](const String& text) {
    const std::lock_guard lock(mutex);
    notes.emplace_back(text);
  };
  const auto engine = open(options);
  submit(*engine, 1);
  EXPECT_NE(failure(*engine, 1).find("shared"), std::string::npos);
  expect_saved(local_, 1);
  far_.set_gone(false);
  submit(*engine, 2);
  EXPECT_TRUE(wait(*engine, 2, SaveLevel::durable));
  EXPECT_TRUE(close(*engine).ok()) << problem_;
  EXPECT_EQ(steps_of(shared_), Steps({1, 2}));
  EXPECT_FALSE(notes.empty());
}

TEST_F(Tiers, GoneInMidWrite_NothingHalf_TheNextEngineBringsIt) {
  for (const int after : {3, 9, 14, 20, 26}) {
    {
      const auto engine = open();
      submit(*engine, static_cast<std::uint64_t>(after));
      EXPECT_TRUE(wait(*engine, static_cast<std::uint64_t>(after), SaveLevel::durable));
      far_.go_after(after);
      submit(*engine, static_cast<std::uint64_t>(after) + 1);
      const std::string told = failure(*engine, static_cast<std::uint64_t>(after) + 1);
      EXPECT_NE(told.find("shared/run"), std::string::npos) << told;
      EXPECT_TRUE(close(*engine).ok()) << problem_;
    }
    far_.set_gone(false);
    for (const std::uint64_t step : steps_of(shared_)) expect_saved(shared_, step);
  }
  const auto engine = open();
  EXPECT_TRUE(close(*engine).ok()) << problem_;
  EXPECT_EQ(steps_of(shared_), steps_of(local_));
}

TEST_F(Tiers, EveryNth_OthersAreDurableInTheStore) {
  TierOptions tier;
  tier.every = 2;
  const auto engine = open({}, tier);
  far_.hold(true);
  submit(*engine, 1);
  EXPECT_TRUE(wait(*engine, 1, SaveLevel::durable));
  far_.hold(false);
  for (const std::uint64_t step : {2, 3, 4}) submit(*engine, step);
  EXPECT_TRUE(close(*engine).ok()) << problem_;
  EXPECT_EQ(steps_of(shared_), Steps({2, 4}));
  EXPECT_EQ(steps_of(local_), Steps({1, 2, 3, 4}));
}

TEST_F(Tiers, KeepLocal_RemovedOnceOnTheTier_NeverBefore) {
  EngineOptions options;
  options.keep_local = 2;
  {
    const auto engine = open(options);
    for (const std::uint64_t step : {1, 2, 3}) {
      submit(*engine, step);
      EXPECT_TRUE(wait(*engine, step, SaveLevel::durable));
    }
    far_.set_gone(true);
    submit(*engine, 4);
    EXPECT_FALSE(failure(*engine, 4).empty());
    submit(*engine, 5);
    EXPECT_FALSE(failure(*engine, 5).empty());
    EXPECT_TRUE(close(*engine).ok()) << problem_;
  }
  const Steps left = steps_of(local_);
  for (const std::uint64_t step : {4, 5}) EXPECT_NE(std::find(left.begin(), left.end(), step), left.end());
  far_.set_gone(false);
  const auto engine = open(options);
  EXPECT_TRUE(close(*engine).ok()) << problem_;
  EXPECT_EQ(steps_of(local_), Steps({4, 5}));
  EXPECT_EQ(steps_of(shared_), Steps({1, 2, 3, 4, 5}));
}

TEST_F(Tiers, KeepLocal_LastTierHangs_WhatItDoesNotWantIsRemoved) {
  EngineOptions options;
  options.keep_local = 1;
  TierOptions nearer, last;
  nearer.path = "other/run";
  nearer.probe = false;
  options.tiers.push_back(nearer);
  last.every = 2;
  const auto engine = open(options, last);
  submit(*engine, 1);
  EXPECT_TRUE(wait(*engine, 1, SaveLevel::durable));
  far_.hold(true);
  submit(*engine, 2);
  EXPECT_TRUE(wait(*engine, 2, SaveLevel::local));
  submit(*engine, 3);
  EXPECT_TRUE(wait(*engine, 3, SaveLevel::durable));
  for (int i = 0; i < 1000 && steps_of(local_) != Steps({2, 3}); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(steps_of(local_), Steps({2, 3}));
  far_.hold(false);
  EXPECT_TRUE(close(*engine).ok()) << problem_;
  EXPECT_EQ(steps_of(local_), Steps({3}));
}

TEST_F(Tiers, Evictable_WhatNoTierHasOrWasReplaced_Stays) {
  Report report;
  checkpoint::SaveOptions options;
  for (const std::uint64_t step : {1, 2, 3}) {
    options.step = step;
    ASSERT_TRUE(save_small(local_, options, report).ok()) << report.problem;
  }
  const auto names = local_.list(report);
  ASSERT_EQ(names->size(), 3U);
  ASSERT_TRUE(checkpoint::copy_checkpoint(local_, shared_, (*names)[1], {}, report).ok()) << report.problem;
  const checkpoint::Tier tiers[] = {{&shared_, 2}};
  checkpoint::CollectOptions collection;
  const auto may_go = checkpoint::evictable(local_, tiers, 1, report);
  ASSERT_TRUE(may_go.ok()) << report.problem;
  collection.remove_exactly = *may_go;
  ASSERT_EQ(collection.remove_exactly.size(), 1U);
  EXPECT_EQ(collection.remove_exactly[0].step, 2U);
  // Step 2 is saved again before the collection comes.
  options.step = 2;
  options.replace = true;
  ASSERT_TRUE(save_small(local_, options, report).ok()) << report.problem;
  ASSERT_TRUE(checkpoint::collect(local_, collection, report).ok()) << report.problem;
  EXPECT_EQ(steps_of(local_), Steps({1, 3, 2}));
}

TEST_F(Tiers, StoreLost_NextSaveIsNewestAndTheTierGivesTheOthers) {
  {
    const auto engine = open();
    for (const std::uint64_t step : {1, 2, 3}) submit(*engine, step);
    EXPECT_TRUE(close(*engine).ok()) << problem_;
  }
  SimulatedDisk fresh;
  LockedFiles near(fresh);
  const Store local(near, "local/run");
  Report report;
  SerialRunner runner;
  ASSERT_TRUE(local.make_folders(report).ok());
  const Store both[] = {local, shared_};
  auto found = checkpoint::newest_of(both, runner, report);
  ASSERT_TRUE(found.ok()) << report.problem;
  EXPECT_EQ(found->tier, 1U);
  EXPECT_EQ(found->manifest.name.step, 3U);
  // A save that knows nothing of the tier would be found behind what is there.
  checkpoint::SaveOptions alone;
  alone.step = 9;
  ASSERT_TRUE(save_small(local, alone, report).ok());
  EXPECT_EQ(checkpoint::check_order(local, shared_, report).code(), StatusCode::invalid_argument);
  EXPECT_NE(report.problem.find("promote"), String::npos) << report.problem;
  EngineOptions options;
  options.ring_bytes = checkpoint::SegmentRing::kSegmentBytes;
  TierOptions tier;
  tier.path = "shared/run";
  tier.files = &far_;
  tier.probe = false;
  tier.every = 4;
  options.tiers.push_back(tier);
  auto engine = Engine::open(near, "local/run", options, report);
  ASSERT_TRUE(engine.ok()) << report.problem;
  submit(**engine, 4);
  EXPECT_TRUE(wait(**engine, 4, SaveLevel::durable));
  EXPECT_TRUE(close(**engine).ok()) << problem_;
  found = checkpoint::newest_of(both, runner, report);
  ASSERT_TRUE(found.ok()) << report.problem;
  EXPECT_EQ(found->manifest.name.step, 4U);
  EXPECT_EQ(found->manifest.name.generation, 4U);
}

TEST_F(Tiers, DamagedInTheStore_NotCopied_NewestComesFromTheTier) {
  const auto engine = open();
  submit(*engine, 1);
  EXPECT_TRUE(wait(*engine, 1, SaveLevel::durable));
  EXPECT_TRUE(close(*engine).ok());
  Report report;
  const auto name = local_.list(report)->front();
  const std::string part = "local/run/data/" + std::string(name.id) + "/part-0000";
  auto& bytes = near_disk_.bytes_of(part);
  bytes[5000] ^= 1;
  SerialRunner runner;
  const Store both[] = {local_, shared_};
  const auto found = checkpoint::newest_of(both, runner, report);
  ASSERT_TRUE(found.ok()) << report.problem;
  EXPECT_EQ(found->tier, 1U);
  ASSERT_EQ(report.notes.size(), 1U);
  EXPECT_NE(report.notes[0].find("local/run"), String::npos);
  const Store third(far_, "third");
  EXPECT_EQ(checkpoint::copy_checkpoint(local_, third, name, {}, report).status().code(),
            StatusCode::checksum_mismatch);
  EXPECT_EQ(steps_of(third), Steps());
  // Brought back from the tier, it takes the place of the damaged one once that is seen to be damaged.
  near_disk_.bytes_of(part).pop_back();
  EXPECT_TRUE(checkpoint::copy_checkpoint(shared_, local_, name, {}, report).ok()) << report.problem;
  expect_saved(local_, 1);
}

TEST_F(Tiers, UnreadableInTheStore_LaterOnesAreCopied) {
  Report report;
  checkpoint::SaveOptions options;
  for (const std::uint64_t step : {1, 2}) {
    options.step = step;
    ASSERT_TRUE(save_small(local_, options, report).ok()) << report.problem;
  }
  ASSERT_TRUE(near_.remove(checkpoint::join({local_.data_folder(local_.list(report)->front().id), "/part-0000"})).ok());
  const auto engine = open();
  submit(*engine, 3);
  EXPECT_TRUE(wait(*engine, 3, SaveLevel::durable));
  EXPECT_TRUE(close(*engine).ok()) << problem_;
  EXPECT_EQ(steps_of(shared_), Steps({2, 3}));
}

TEST_F(Tiers, CopiedByAnotherEngine_OthersGoOnAndItIsLookedAtAgain) {
  const ScratchFolder folder;
  const Store near(checkpoint::system_files(), String(folder.store()));
  const Store far(checkpoint::system_files(), String(folder.store() + "-tier"));
  Report report;
  for (const std::uint64_t step : {1, 2}) {
    checkpoint::SaveOptions options;
    options.step = step;
    ASSERT_TRUE(save_small(near, options, report).ok()) << report.problem;
  }
  ASSERT_TRUE(far.make_folders(report).ok()) << report.problem;
  const auto names = near.list(report);
  auto lock = far.files().lock(far.tmp_lock(names->front().id), storage::LockKind::exclusive, false);
  ASSERT_TRUE(lock.ok());
  EXPECT_TRUE(checkpoint::is_busy(checkpoint::copy_checkpoint(near, far, names->front(), {}, report).status()));
  EngineOptions options;
  options.ring_bytes = checkpoint::SegmentRing::kSegmentBytes;
  TierOptions tier;
  tier.path = far.root();
  tier.probe = false;
  options.tiers.push_back(tier);
  const auto engine = Engine::open(checkpoint::system_files(), near.root(), options, report);
  ASSERT_TRUE(engine.ok()) << report.problem;
  submit(**engine, 3);
  EXPECT_TRUE(wait(**engine, 3, SaveLevel::durable));
  EXPECT_EQ(steps_of(far), Steps({2, 3}));
  lock = Status(StatusCode::internal, "given back");
  EXPECT_TRUE(close(**engine).ok()) << problem_;
  EXPECT_EQ(steps_of(far), Steps({1, 2, 3}));
}

TEST_F(Tiers, KeptForOthersInTheStore_KeptForOthersOnTheTier) {
  // 3 needs a tensor of 2, which needs another of 1: 1 goes, 2 is retired.
  constexpr std::uint8_t kValues[3][2] = {{1, 2}, {1, 3}, {4, 3}};
  Report report;
  SerialRunner runner;
  for (const std::uint64_t step : {1, 2, 3}) {
    checkpoint::SaveOptions options;
    options.step = step;
    options.least_shared_bytes = 0;
    const auto session = checkpoint::SaveSession::begin(local_, options, runner, report);
    ASSERT_TRUE(session.ok()) << report.problem;
    for (std::size_t i = 0; i < 2; ++i) {
      const std::vector<std::uint8_t> values(200, kValues[step - 1][i]);
      checkpoint::TensorSource source;
      source.name = i == 0 ? "a" : "b";
      const std::uint64_t extent = values.size();
      source.what = {checkpoint::ElementType::u8, *Shape::make({&extent, 1})};
      source.values = values;
      ASSERT_TRUE((*session)->add_tensor(source, report).ok()) << report.problem;
    }
    ASSERT_TRUE((*session)->commit(report).ok()) << report.problem;
  }
  checkpoint::CollectOptions options;
  options.keep = 1;
  ASSERT_TRUE(checkpoint::collect(local_, options, report).ok()) << report.problem;
  ASSERT_EQ(local_.list_retired(report)->size(), 1U);
  const auto names = local_.list(report);
  ASSERT_EQ(names->size(), 1U);
  const auto copied = checkpoint::copy_checkpoint(local_, shared_, names->front(), {}, report);
  ASSERT_TRUE(copied.ok()) << report.problem;
  EXPECT_EQ(copied->checkpoints, 2U);
  EXPECT_EQ(steps_of(shared_), Steps({3}));
  EXPECT_EQ(shared_.list_retired(report)->size(), 1U);
  EXPECT_TRUE(checkpoint::verify_checkpoint(shared_, names->front(), true, runner).good);
}

TEST_F(Tiers, AnotherRunOnTheTier_Refused) {
  Report report;
  checkpoint::SaveOptions options;
  options.step = 77;
  ASSERT_TRUE(save_small(shared_, options, report).ok());
  options.step = 1;
  ASSERT_TRUE(save_small(local_, options, report).ok());
  const auto copied = checkpoint::copy_checkpoint(local_, shared_, local_.list(report)->front(), {}, report);
  EXPECT_EQ(copied.status().code(), StatusCode::invalid_argument);
  EXPECT_NE(report.problem.find("different runs"), String::npos) << report.problem;
}

TEST_F(Tiers, TierIsTheStore_Refused) {
  const ScratchFolder folder;
  const std::filesystem::path store = folder.store(), link = folder.store() + "-link";
  Report report;
  const Store own(checkpoint::system_files(), String(store.string()));
  ASSERT_TRUE(own.make_folders(report).ok()) << report.problem;
  for (const std::uint64_t step : {1, 2}) {
    checkpoint::SaveOptions options;
    options.step = step;
    ASSERT_TRUE(save_small(own, options, report).ok()) << report.problem;
  }
  std::filesystem::create_directory_symlink(store, link);
  for (const std::string& path :
       {store.string(), link.string(), (store / ".." / "store").string(), std::filesystem::relative(store).string()}) {
    const Store same(checkpoint::system_files(), String(path));
    const checkpoint::Tier tiers[] = {{&same, 1}};
    EXPECT_EQ(checkpoint::evictable(own, tiers, 1, report).status().code(), StatusCode::invalid_argument) << path;
    EXPECT_EQ(checkpoint::copy_checkpoint(own, same, own.list(report)->front(), {}, report).status().code(),
              StatusCode::invalid_argument);
    EngineOptions options;
    options.ring_bytes = checkpoint::SegmentRing::kSegmentBytes;
    options.keep_local = 1;
    TierOptions tier;
    tier.path = path;
    options.tiers.push_back(tier);
    EXPECT_EQ(Engine::open(checkpoint::system_files(), own.root(), options, report).status().code(),
              StatusCode::invalid_argument);
    EXPECT_NE(report.problem.find("same folder"), String::npos) << report.problem;
  }
  EXPECT_EQ(steps_of(own), Steps({1, 2}));
}

TEST_F(Tiers, SlowTier_OldestIsPassedOver) {
  TierOptions tier;
  tier.most_waiting = 1;
  const auto engine = open({}, tier);
  far_.hold(true);
  for (const std::uint64_t step : {1, 2, 3, 4}) {
    submit(*engine, step);
    EXPECT_TRUE(wait(*engine, step, SaveLevel::local));
  }
  far_.hold(false);
  EXPECT_TRUE(wait(*engine, 4, SaveLevel::durable));
  Report report;
  EXPECT_TRUE(*engine->wait_all(kLong, report));
  EXPECT_GE(engine->tier_stats()[0].passed_over, 1U);
  const std::uint64_t passed = engine->tier_stats()[0].passed_over;
  EXPECT_FALSE(close(*engine).ok());
  EXPECT_NE(problem_.find("passed over"), std::string::npos) << problem_;
  EXPECT_EQ(steps_of(shared_).size(), 4U - passed);
  EXPECT_EQ(steps_of(local_).size(), 4U);
}

TEST_F(Tiers, CloseByDrop_EndsACopyInTheMiddle) {
  TierOptions tier;
  tier.write_rate = 1;  // bytes a second
  const auto engine = open({}, tier);
  submit(*engine, 1);
  EXPECT_TRUE(wait(*engine, 1, SaveLevel::local));
  EXPECT_FALSE(wait(*engine, 1, SaveLevel::durable, 0.05));
  EXPECT_EQ(close(*engine, AtEnd::drop).code(), StatusCode::cancelled);
  EXPECT_NE(problem_.find("step 1"), std::string::npos) << problem_;
  EXPECT_EQ(steps_of(shared_), Steps());
  expect_saved(local_, 1);
}

}  // namespace
}  // namespace quern::testing
