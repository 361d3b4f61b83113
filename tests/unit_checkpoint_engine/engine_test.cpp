// States of saves: levels, fences, cancelling, closing, failures, processes.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "tests/support/instrumented.h"
#include "tests/unit_checkpoint_engine/held_store.h"

namespace quern::testing {
namespace {

using checkpoint::AtEnd;
using checkpoint::EngineOptions;
using checkpoint::Report;
using checkpoint::SaveLevel;
using checkpoint::SaveProgress;

constexpr std::uint64_t kMiB = 1 << 20;

TEST(Engine, Save_LevelsOneAfterTheOther_WhatWasSubmittedIsSaved) {
  HeldStore store(ring_of_bytes(8 * kMiB));
  State state = state_of({100000, 3 * kMiB, 0, 17}, 1);
  const State was = state;
  store.hold();
  store.expect_submit(state, 7);
  EXPECT_TRUE(store.fence());
  for (auto& [name, values] : state.tensors)
    for (std::uint8_t& value : values) value = 0;
  EXPECT_TRUE(store.wait(7, SaveLevel::captured));
  EXPECT_TRUE(store.wait(7, SaveLevel::host));
  store.await_held();
  EXPECT_FALSE(store.wait(7, SaveLevel::local, 0.02));
  EXPECT_FALSE(store.wait(7, SaveLevel::durable, 0));
  Report report;
  const auto held = store.engine().poll(7, report);
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(held->level, SaveLevel::host);
  EXPECT_FALSE(held->finished);
  EXPECT_EQ(held->captured_bytes, held->raw_bytes);
  store.release();
  EXPECT_TRUE(store.wait(7, SaveLevel::durable));
  store.expect_saved(was, 7);
  const auto done = store.engine().poll(7, report);
  ASSERT_TRUE(done.ok());
  EXPECT_TRUE(done->finished && done->published);
  EXPECT_EQ(done->counts.raw_bytes, 100000 + 3 * kMiB + 17);
  EXPECT_EQ(done->copied_tensors, 3U);
  EXPECT_LE(done->submit_seconds, done->captured_seconds);
  EXPECT_LE(done->captured_seconds, done->durable_seconds);
  EXPECT_GT(store.engine().stats().copy_rate, 0);
}

TEST(Engine, Saves_ManyOneAfterTheOther_AllThere) {
  HeldStore store(ring_of_bytes(4 * kMiB));
  State state = state_of({300000, 70000, 1}, 1);
  std::vector<State> were;
  for (std::uint64_t step = 1; step <= 20; ++step) {
    ASSERT_TRUE(store.fence());
    for (auto& [name, values] : state.tensors) values[0] = static_cast<std::uint8_t>(step);
    were.push_back(state);
    store.expect_submit(state, step);
  }
  Report report;
  EXPECT_TRUE(*store.engine().wait_all(kLong, report));
  for (std::uint64_t step = 1; step <= 20; ++step) store.expect_saved(were[step - 1], step);
  EXPECT_EQ(store.engine().stats().durable, 20U);
}

TEST(Engine, Fence_OfOneTensor_DoesNotWaitForOthers) {
  HeldStore store(ring_of_bytes(2 * kMiB));
  const State state = state_of({kMiB, 3 * kMiB}, 1);  // the second never fits
  store.hold();
  store.expect_submit(state, 1);
  EXPECT_TRUE(store.fence(kLong, "t0"));
  EXPECT_FALSE(store.fence(0.02, "t1"));
  EXPECT_FALSE(store.fence(0));
  EXPECT_TRUE(store.fence(0, "unknown"));
  store.release();
  EXPECT_TRUE(store.fence());
}

TEST(Engine, Submit_SameStepTwice_Refused) {
  HeldStore store(ring_of_bytes(2 * kMiB));
  const State state = state_of({1000}, 1);
  store.hold();
  store.expect_submit(state, 5);
  Report report;
  EXPECT_EQ(store.submit(state, 5, report).code(), StatusCode::invalid_argument);
  EXPECT_NE(report.problem.find("step 5"), String::npos) << report.problem;
  store.release();
  EXPECT_TRUE(store.wait(5, SaveLevel::durable));
  // Now it is in the store, which the save finds out.
  store.expect_submit(state, 5);
  EXPECT_NE(store.failure(5, StatusCode::invalid_argument).find("step 5"), std::string::npos);
}

TEST(Engine, Submit_OlderStepThanTheNewest_IsTheNewest) {
  HeldStore store(ring_of_bytes(2 * kMiB));
  const State a = state_of({1000}, 1), b = state_of({1000}, 2);
  store.expect_submit(a, 50);
  store.expect_submit(b, 40);
  EXPECT_TRUE(store.wait(40, SaveLevel::durable));
  store.expect_saved(b, 40);
  store.expect_saved(a, 50);
}

TEST(Engine, Add_NamesTwiceAndDevices_RefusedWithTheName) {
  HeldStore store(ring_of_bytes(2 * kMiB));
  Report report;
  State state = state_of({10, 10}, 1);
  state.tensors[1].first = "t0";
  EXPECT_EQ(store.submit(state, 1, report).code(), StatusCode::invalid_argument);
  EXPECT_NE(report.problem.find("'t0'"), String::npos) << report.problem;
  checkpoint::FileSaveOptions options;
  auto save = store.engine().begin(options, report);
  ASSERT_TRUE(save.ok());
  checkpoint::AddedTensor tensor;
  tensor.name = "weights";
  tensor.on_device = true;
  EXPECT_EQ(store.engine().add(**save, tensor, report).code(), StatusCode::unsupported);
  EXPECT_NE(report.problem.find("'weights'"), String::npos) << report.problem;
}

TEST(Engine, Cancel_CapturedOrWaiting_NothingIsSavedAndLifeGoesOn) {
  HeldStore store(ring_of_bytes(2 * kMiB));
  const State state = state_of({1500000}, 1);
  store.hold();
  store.expect_submit(state, 1);
  store.expect_submit(state, 2);  // finds no room
  EXPECT_FALSE(store.fence(0.02));
  store.await_held();
  Report report;
  EXPECT_TRUE(store.engine().cancel(2, report).ok());
  EXPECT_TRUE(store.fence());
  EXPECT_TRUE(store.engine().cancel(1, report).ok());
  store.release();
  EXPECT_NE(store.failure(1, StatusCode::cancelled).find("step 1: cancelled"), std::string::npos);
  EXPECT_NE(store.failure(2, StatusCode::cancelled).find("step 2: cancelled"), std::string::npos);
  EXPECT_FALSE(store.engine().cancel(2, report).ok());
  store.expect_submit(state, 3);
  EXPECT_TRUE(store.wait(3, SaveLevel::durable));
  EXPECT_FALSE(store.has(1));
  EXPECT_FALSE(store.has(2));
  store.expect_saved(state, 3);
  EXPECT_TRUE(store.disk().list("store/tmp")->empty());
  EXPECT_EQ(store.engine().stats().cancelled, 2U);
}

TEST(Engine, Cancel_BehindAnother_RoomAndTensorsAreFreeAtOnce) {
  HeldStore store(ring_of_bytes(4 * kMiB));
  const State small = state_of({1500000}, 1), large = state_of({1500000, 5 * kMiB}, 2);
  store.hold();
  store.expect_submit(small, 1);
  store.await_held();
  store.expect_submit(large, 2);  // its second tensor is to be coded where it lies
  EXPECT_FALSE(store.fence(0.02));
  Report report;
  EXPECT_TRUE(store.engine().cancel(2, report).ok());
  EXPECT_TRUE(store.fence());
  store.expect_submit(small, 3);
  EXPECT_TRUE(store.fence());
  store.release();
  EXPECT_TRUE(store.wait(3, SaveLevel::durable));
  store.expect_saved(small, 1);
  store.expect_saved(small, 3);
  EXPECT_FALSE(store.has(2));
}

TEST(Engine, Save_PartOfAGroup_DurableOnceAllAreThere) {
  HeldStore store(ring_of_bytes(4 * kMiB));
  State first = state_of({1000}, 1), second = state_of({2000}, 2);
  second.tensors[0].first = "other";
  checkpoint::FileSaveOptions options;
  options.save.group = "together";
  options.save.writers = 2;
  Report report;
  ASSERT_TRUE(store.submit(first, 1, report, options).ok()) << report.problem;
  EXPECT_TRUE(*store.engine().wait_all(kLong, report));
  EXPECT_TRUE(store.wait(1, SaveLevel::host));
  EXPECT_FALSE(store.wait(1, SaveLevel::local));
  const auto made = store.engine().poll(1, report);
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(made->finished && !made->published && made->level == SaveLevel::host);
  EXPECT_FALSE(store.has(1));
  options.save.writer = 1;
  ASSERT_TRUE(store.submit(second, 1, report, options).ok()) << report.problem;
  EXPECT_TRUE(store.wait(1, SaveLevel::durable));
  EXPECT_TRUE(store.has(1));
}

TEST(Engine, Wait_UnknownStep_Refused) {
  HeldStore store(ring_of_bytes(2 * kMiB));
  Report report;
  EXPECT_FALSE(store.engine().wait(3, SaveLevel::local, 0, report).ok());
  EXPECT_NE(report.problem.find("step 3"), String::npos) << report.problem;
  EXPECT_FALSE(store.engine().poll(3, report).ok());
}

TEST(Engine, Close_Drain_WaitsForAll) {
  HeldStore store(ring_of_bytes(4 * kMiB));
  const State state = state_of({200000}, 1);
  for (std::uint64_t step = 1; step <= 5; ++step) store.expect_submit(state, step);
  Report report;
  EXPECT_TRUE(store.engine().close(AtEnd::drain, kLong, report).ok()) << report.problem;
  for (std::uint64_t step = 1; step <= 5; ++step) store.expect_saved(state, step);
}

TEST(Engine, Close_DropAndTimeout_EarlierCheckpointsStay) {
  for (const bool by_timeout : {false, true}) {
    HeldStore store(ring_of_bytes(4 * kMiB));
    const State state = state_of({200000}, 1);
    store.expect_submit(state, 1);
    EXPECT_TRUE(store.wait(1, SaveLevel::durable));
    store.hold();
    store.expect_submit(state, 2);
    store.expect_submit(state, 3);
    store.await_held();
    std::thread later([&] {
      store.await_stopping(2);
      store.release();
    });
    Report report;
    const Status closed = store.engine().close(by_timeout ? AtEnd::drain : AtEnd::drop, 0.02, report);
    later.join();
    EXPECT_EQ(closed.code(), StatusCode::cancelled);
    EXPECT_NE(report.problem.find("2 saves did not reach the disk; step 2: dropped"), String::npos) << report.problem;
    store.expect_saved(state, 1);
    EXPECT_FALSE(store.has(2));
    EXPECT_FALSE(store.has(3));
    EXPECT_TRUE(store.disk().list("store/tmp")->empty());
  }
}

TEST(Engine, Close_AfterAFailureNobodyAskedAbout_SaysSo) {
  HeldStore store(ring_of_bytes(2 * kMiB));
  const State state = state_of({1000}, 1);
  store.expect_submit(state, 1);
  EXPECT_TRUE(store.wait(1, SaveLevel::durable));
  store.expect_submit(state, 1);  // it is there
  Report report;
  EXPECT_FALSE(store.engine().close(AtEnd::drain, kLong, report).ok());
  EXPECT_NE(report.problem.find("1 save did not reach the disk; step 1"), String::npos) << report.problem;
}

TEST(Engine, Close_AfterACancelledSave_IsNoFailure) {
  HeldStore store(ring_of_bytes(2 * kMiB));
  const State state = state_of({1000}, 1);
  store.hold();
  store.expect_submit(state, 1);
  store.expect_submit(state, 2);
  store.await_held();
  Report report;
  EXPECT_TRUE(store.engine().cancel(2, report).ok());
  store.release();
  EXPECT_TRUE(store.engine().close(AtEnd::drain, kLong, report).ok()) << report.problem;
  EXPECT_TRUE(store.has(1));
  EXPECT_FALSE(store.has(2));
}

TEST(Engine, Save_DiskFullOrBroken_SentenceNamesTheFile_EarlierOnesStay) {
  for (const FaultKind fault : {FaultKind::disk_full, FaultKind::io_error}) {
    HeldStore store(ring_of_bytes(4 * kMiB));
    const State state = state_of({2 * kMiB}, 1);
    store.expect_submit(state, 1);
    EXPECT_TRUE(store.wait(1, SaveLevel::durable));
    store.hold();
    const State next = state_of({2 * kMiB}, 2);
    store.expect_submit(next, 2);
    store.await_held();
    store.disk().fail_at(0, fault);  // the part's first bytes
    store.release();
    const std::string sentence = store.failure(2, StatusCode::io_error);
    EXPECT_NE(sentence.find("step 2: "), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("part-0000"), std::string::npos) << sentence;
    EXPECT_TRUE(store.fence());
    store.close_engine();
    store.expect_saved(state, 1);
  }
}

TEST(Engine, Save_MoreMemoryThanItMayTake_FailsAndSaysHowMuch) {
  EngineOptions options = ring_of_bytes(16 * kMiB);
  options.coding_bytes = 4 * kMiB;
  HeldStore store(options);
  const State state = state_of({12 * kMiB}, 1);
  store.expect_submit(state, 1);
  const std::string sentence = store.failure(1, StatusCode::out_of_memory);
  EXPECT_NE(sentence.find("step 1"), std::string::npos) << sentence;
  EXPECT_LE(store.engine().stats().coding_peak, 4 * kMiB);
}

TEST(Engine, Save_NoMemoryAtAll_FailsWithASentence) {
  EngineOptions options = ring_of_bytes(2 * kMiB);
  options.coding_bytes = 1;
  HeldStore store(options);
  const State state = state_of({1000}, 1);
  store.expect_submit(state, 1);
  const std::string sentence = store.failure(1, StatusCode::out_of_memory);
  EXPECT_NE(sentence.find("step 1: coding needs more than the 1 bytes"), std::string::npos) << sentence;
}

TEST(Engine, AfterFork_CallsOfTheChildAreRefused) {
  if (kInstrumented) GTEST_SKIP() << "sanitizers do not follow threads over fork()";
  HeldStore store(ring_of_bytes(2 * kMiB));
  const pid_t child = fork();
  if (child == 0) {
    Report report;
    checkpoint::FileSaveOptions options;
    const bool refused = !store.engine().begin(options, report).ok() && !store.engine().fence("", 1, report).ok() &&
                         report.problem.find("forked") != String::npos && store.engine().stats().ring_bytes == 0;
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  const State state = state_of({1000}, 1);
  store.expect_submit(state, 1);
  EXPECT_TRUE(store.wait(1, SaveLevel::durable));
}

TEST(Engine, Exit_EngineOpen_DrainsOrDropsAsConfigured) {
  if (kInstrumented) GTEST_SKIP() << "sanitizers do not follow threads over fork()";
  for (const AtEnd how : {AtEnd::drain, AtEnd::drop}) {
    const std::string folder =
        (std::filesystem::temp_directory_path() / ("quern-engine-exit-" + std::to_string(getpid()))).string();
    std::filesystem::remove_all(folder);
    const pid_t child = fork();
    if (child == 0) {
      EngineOptions options = ring_of_bytes(64 * kMiB);
      options.at_exit = how;
      if (how == AtEnd::drop) options.write_rate = 1 << 20;  // the first takes half a minute
      Report report;
      // Made before the engine, so that it goes after the engine is closed.
      static const State state = state_of(std::vector<std::uint64_t>(16, 2 * kMiB), 3);
      static auto engine = checkpoint::Engine::open(checkpoint::system_files(), folder, options, report);
      for (std::uint64_t step = 1; step <= 4; ++step) {
        checkpoint::FileSaveOptions save;
        save.save.step = step;
        auto pending = (*engine)->begin(save, report);
        for (const auto& [name, values] : state.tensors) {
          checkpoint::AddedTensor tensor;
          tensor.name = name;
          tensor.what.type = checkpoint::ElementType::u8;
          const std::uint64_t extent = values.size();
          tensor.what.shape = *Shape::make({&extent, 1});
          tensor.data = values.data();
          (void)(*engine)->add(**pending, std::move(tensor), report);
        }
        if (!(*engine)->submit(std::move(*pending), report).ok()) _exit(3);
      }
      std::exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    const checkpoint::Store store(checkpoint::system_files(), String(folder));
    Report report;
    const auto names = store.list(report);
    ASSERT_TRUE(names.ok()) << report.problem;
    EXPECT_EQ(names->size(), how == AtEnd::drain ? 4U : 0U);
    std::filesystem::remove_all(folder);
  }
}

}  // namespace
}  // namespace quern::testing
