// Saving and restoring: equal content, chains, pieces, several writers, collection, and what is refused.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include "checkpoint/convert/checkpoint_files.h"
#include "tests/faults/simulated_disk.h"
#include "tests/faults/small_store.h"
#include "tests/unit_checkpoint/store_fixture.h"

namespace quern::testing {
namespace {

using checkpoint::ElementType;
using checkpoint::Report;
using checkpoint::SaveOptions;
using checkpoint::SaveSession;
using checkpoint::Store;
using checkpoint::TensorSource;

SaveOptions options_for(std::uint64_t step, std::optional<std::uint64_t> base = std::nullopt) {
  SaveOptions options;
  options.step = step;
  options.base = base;
  return options;
}

std::vector<std::uint8_t> ramp(std::size_t floats, float scale) {
  std::vector<std::uint8_t> out(floats * 4);
  for (std::size_t i = 0; i < floats; ++i) {
    const float value = scale * static_cast<float>(static_cast<double>((i * 2654435761U) % 100003) / 100003.0 - 0.5);
    std::memcpy(out.data() + i * 4, &value, 4);
  }
  return out;
}

class StoreTest : public ::testing::Test {
 protected:
  SimulatedDisk disk_;
  Store store_{disk_, "store"};
  Report report_;
  SerialRunner runner_;
};

TEST_F(StoreTest, FoldersAboveTheStore_AreMadeAndSurviveLostPower) {
  const Store deep(disk_, "runs/of/today/a");
  ASSERT_TRUE(save_small(deep, options_for(1), report_).ok()) << report_.problem;
  SimulatedDisk later = disk_.after(Survival::durable, 1);
  EXPECT_TRUE(check_small(Store(later, "runs/of/today/a"), 1, report_).ok()) << report_.problem;
}

TEST_F(StoreTest, EqualTensors_AreStoredOnce) {
  SaveOptions options = options_for(1);
  options.least_shared_bytes = 0;
  ASSERT_TRUE(save_small(store_, options, report_).ok());
  options.step = 2;
  ASSERT_TRUE(save_small(store_, options, report_).ok());
  const auto one = store_.at_step(1, report_), two = store_.at_step(2, report_);
  ASSERT_TRUE(one.ok() && two.ok());
  ASSERT_TRUE(one->tensors[5].alias);  // frozen.tied
  EXPECT_EQ(one->tensors[5].alias->checkpoint, 0U);
  ASSERT_TRUE(two->tensors[4].alias);  // frozen
  EXPECT_EQ(two->tensors[4].alias->checkpoint, 1U);
  EXPECT_TRUE(check_small(store_, 2, report_).ok()) << report_.problem;
}

TEST_F(StoreTest, Chain_IsCutAtItsDepth) {
  SaveOptions options = options_for(1);
  options.limits.depth = 3;
  options.limits.chain_percent = options.limits.restore_percent = 100000;
  std::uint32_t deepest = 0;
  for (std::uint64_t step = 1; step <= 9; ++step) {
    options.step = step;
    if (step > 1) options.base = step - 1;
    ASSERT_TRUE(save_small(store_, options, report_).ok()) << report_.problem;
    const auto manifest = store_.at_step(step, report_);
    ASSERT_TRUE(manifest.ok());
    for (const auto& tensor : manifest->tensors) {
      deepest = std::max(deepest, tensor.depth);
      EXPECT_LE(tensor.depth, 3U);
    }
    EXPECT_TRUE(check_small(store_, step, report_).ok()) << report_.problem;
  }
  EXPECT_EQ(deepest, 3U);
}

TEST_F(StoreTest, Chain_IsCutByItsBytes) {
  SaveOptions options = options_for(1);
  options.limits.chain_percent = 0;  // only a key may have a difference behind it
  for (std::uint64_t step = 1; step <= 4; ++step) {
    options.step = step;
    if (step > 1) options.base = step - 1;
    ASSERT_TRUE(save_small(store_, options, report_).ok()) << report_.problem;
    const auto manifest = store_.at_step(step, report_);
    ASSERT_TRUE(manifest.ok());
    for (const auto& tensor : manifest->tensors) EXPECT_LE(tensor.depth, 1U);
  }
  options.limits.restore_percent = 100;  // and none at all
  options.limits.chain_percent = 60;
  options.step = 5;
  options.base = 4;
  ASSERT_TRUE(save_small(store_, options, report_).ok());
  const auto manifest = store_.at_step(5, report_);
  for (const auto& tensor : manifest->tensors) EXPECT_EQ(tensor.depth, 0U) << tensor.name;
}

TEST_F(StoreTest, DifferenceAndCompaction_ComeBackAndFreeTheBase) {
  ASSERT_TRUE(save_small(store_, options_for(1), report_).ok());
  ASSERT_TRUE(save_small(store_, options_for(2, 1), report_).ok());
  checkpoint::CollectOptions collect;
  collect.keep = 1;
  auto collected = checkpoint::collect(store_, collect, report_);
  ASSERT_TRUE(collected.ok());
  EXPECT_TRUE(collected->removed.empty());
  EXPECT_EQ(collected->kept_for_others.size(), 1U);
  const auto refused = checkpoint::compact(store_, 1, {}, runner_, report_);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(std::string(report_.problem).find("step 2 needs step 1"), std::string::npos);
  ASSERT_TRUE(checkpoint::compact(store_, 2, {}, runner_, report_).ok()) << report_.problem;
  collected = checkpoint::collect(store_, collect, report_);
  ASSERT_TRUE(collected.ok());
  EXPECT_EQ(collected->removed.size(), 1U);
  EXPECT_TRUE(check_small(store_, 2, report_).ok()) << report_.problem;
  EXPECT_EQ(store_.list(report_)->size(), 1U);
  EXPECT_EQ(disk_.list("store/data")->size(), 1U);
}

TEST_F(StoreTest, BadInput_IsRefusedAndLeavesTheStoreAlone) {
  ASSERT_TRUE(save_small(store_, options_for(1), report_).ok());
  const auto files = disk_.all_files();
  const auto values = ramp(6, 1);
  const auto attempt = [&](const SaveOptions& options, auto&& body) {
    report_ = {};
    auto session = SaveSession::begin(store_, options, runner_, report_);
    return session.ok() ? body(*session.value()) : session.status();
  };
  const auto add = [&](SaveSession& session, std::string_view name, ElementType type, std::vector<std::uint64_t> shape,
                       std::span<const std::uint8_t> bytes) {
    TensorSource source;
    source.name = name;
    source.what = {type, *Shape::try_make(shape)};
    source.values = bytes;
    return session.add_tensor(source, report_).status();
  };
  const auto says = [&](const char* part) { return std::string(report_.problem).find(part) != std::string::npos; };

  EXPECT_FALSE(attempt(options_for(1), [](SaveSession&) { return Status(); }).ok());
  EXPECT_TRUE(says("already")) << report_.problem;
  EXPECT_FALSE(attempt(options_for(2), [&](SaveSession& s) {
                 EXPECT_TRUE(add(s, "a", ElementType::f32, {2, 3}, values).ok());
                 return add(s, "a", ElementType::f32, {6}, values);
               }).ok());
  EXPECT_TRUE(says("'a'") && says("twice")) << report_.problem;
  EXPECT_FALSE(
      attempt(options_for(2), [&](SaveSession& s) { return add(s, "a", ElementType::f32, {7}, values); }).ok());
  EXPECT_TRUE(says("'a'")) << report_.problem;
  EXPECT_EQ(disk_.all_files(), files);
  EXPECT_TRUE(check_small(store_, 1, report_).ok());
}

TEST_F(StoreTest, MissingBase_IsNamed) {
  ASSERT_TRUE(save_small(store_, options_for(1), report_).ok());
  ASSERT_TRUE(save_small(store_, options_for(2, 1), report_).ok());
  const auto names = store_.list(report_);
  ASSERT_TRUE(disk_.remove(store_.manifest_path(names->front())).ok());
  report_ = {};
  EXPECT_FALSE(check_small(store_, 2, report_).ok());
  EXPECT_NE(std::string(report_.problem).find("checkpoint 1"), std::string::npos) << report_.problem;
  EXPECT_FALSE(store_.newest(report_).ok());
}

TEST_F(StoreTest, LargeTensor_OfManyChunks_ComesBackOnThreads) {
  const auto values = ramp(700'000, 1);  // 2.8 MB
  auto changed = values;
  for (std::size_t i = 0; i < changed.size(); i += 4) changed[i] ^= 1;
  for (const std::uint64_t step : {1, 2}) {
    SaveOptions options = options_for(step, step == 1 ? std::nullopt : std::optional<std::uint64_t>(1));
    auto session = SaveSession::begin(store_, options, runner_, report_);
    ASSERT_TRUE(session.ok());
    TensorSource source;
    source.name = "w";
    source.what = {ElementType::f32, *Shape::try_make(std::vector<std::uint64_t>{700, 1000})};
    source.values = step == 1 ? values : changed;
    ASSERT_TRUE(session.value()->add_tensor(source, report_).ok()) << report_.problem;
    ASSERT_TRUE(session.value()->add_blob("big", values, report_).ok());
    ASSERT_TRUE(session.value()->commit(report_).ok()) << report_.problem;
  }
  const auto manifest = store_.newest(report_);
  ASSERT_TRUE(manifest.ok());
  EXPECT_EQ(manifest->tensors[0].depth, 1U);
  checkpoint::Restorer restorer(store_, runner_);
  AlignedBuffer out;
  ASSERT_TRUE(restorer.tensor(manifest->name, 0, out, report_).ok()) << report_.problem;
  EXPECT_EQ(std::memcmp(out.data(), changed.data(), changed.size()), 0);
  Vector<std::uint8_t> blob;
  ASSERT_TRUE(restorer.blob(manifest->name, 0, blob, report_).ok());
  EXPECT_TRUE(std::equal(blob.begin(), blob.end(), values.begin(), values.end()));
}

TEST(StoreOnDisk, WritersInThreads_TheLastPublishesAndPiecesAreJoined) {
  const std::string folder = std::filesystem::temp_directory_path() / ("quern-store-" + std::to_string(getpid()));
  std::filesystem::remove_all(folder);
  const Store store(checkpoint::system_files(), String(folder));
  constexpr std::uint32_t kWriters = 4;
  const auto values = ramp(kWriters * 10 * 6, 2);
  std::vector<std::thread> threads;
  std::atomic<int> published = 0, failed = 0;
  for (std::uint32_t w = 0; w < kWriters; ++w) {
    threads.emplace_back([&, w] {
      SerialRunner runner;
      Report report;
      SaveOptions options;
      options.step = 5;
      options.group = "threads";
      options.writer = w;
      options.writers = kWriters;
      auto session = SaveSession::begin(store, options, runner, report);
      const Shape whole = *Shape::try_make(std::vector<std::uint64_t>{10, kWriters * 6});
      std::vector<std::uint8_t> piece;
      for (std::size_t row = 0; row < 10; ++row) {
        const auto* from = values.data() + (row * kWriters * 6 + w * 6) * 4;
        piece.insert(piece.end(), from, from + 24);
      }
      TensorSource source;
      source.name = "w";
      source.what = {ElementType::f32, *Shape::try_make(std::vector<std::uint64_t>{10, 6})};
      source.values = piece;
      source.whole = &whole;
      source.box = {{0, std::uint64_t{w} * 6}, {10, std::uint64_t{w} * 6 + 6}, 2};
      if (!session.ok() || !session.value()->add_tensor(source, report).ok()) {
        ++failed;
        return;
      }
      const auto result = session.value()->commit(report);
      if (!result.ok()) ++failed;
      if (result.ok() && result->published) ++published;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(published, 1);
  Report report;
  SerialRunner runner;
  const auto manifest = store.newest(report);
  ASSERT_TRUE(manifest.ok()) << report.problem;
  EXPECT_EQ(manifest->parts.size(), kWriters);
  checkpoint::Restorer restorer(store, runner);
  MemorySink sink;
  ASSERT_TRUE(checkpoint::load_tensors(restorer, *manifest, {}, {}, sink, {}, report).ok()) << report.problem;
  ASSERT_GT(sink.bytes_.size(), values.size());
  EXPECT_TRUE(std::equal(values.begin(), values.end(), sink.bytes_.end() - static_cast<std::ptrdiff_t>(values.size())));
  EXPECT_TRUE(checkpoint::verify_checkpoint(store, manifest->name, true, runner).good);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace quern::testing
