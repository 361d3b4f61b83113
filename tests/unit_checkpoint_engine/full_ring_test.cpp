// What happens when the ring has no room, and tensors that change while they are borrowed.
#include <thread>

#include "tests/support/instrumented.h"
#include "tests/unit_checkpoint_engine/held_store.h"

namespace quern::testing {
namespace {

using checkpoint::Report;
using checkpoint::SaveLevel;
using checkpoint::WhenFull;

constexpr std::uint64_t kMiB = 1 << 20;

TEST(FullRing, Block_FenceWaitsUntilCodingMadeRoom) {
  HeldStore store(ring_of_bytes(4 * kMiB));
  State state = state_of(std::vector<std::uint64_t>(8, 1500000), 1);
  const State was = state;
  store.hold();
  store.expect_submit(state, 1);
  store.await_held();
  EXPECT_FALSE(store.fence(0.05));
  EXPECT_FALSE(store.wait(1, SaveLevel::captured, 0));
  store.release();
  EXPECT_TRUE(store.fence());
  for (auto& [name, values] : state.tensors) values.assign(values.size(), 0);
  EXPECT_TRUE(store.wait(1, SaveLevel::durable));
  store.expect_saved(was, 1);
  EXPECT_LE(store.engine().stats().ring_peak, 4 * kMiB);
}

TEST(FullRing, Skip_SaveWithoutRoomIsDroppedWhole) {
  HeldStore store(ring_of_bytes(4 * kMiB, WhenFull::skip));
  const State state = state_of({3 * kMiB}, 1);
  store.hold();
  store.expect_submit(state, 1);
  store.expect_submit(state, 2);
  EXPECT_TRUE(store.fence());
  store.release();
  const std::string sentence = store.failure(2, StatusCode::cancelled);
  EXPECT_NE(sentence.find("step 2: skipped at tensor 't0'"), std::string::npos) << sentence;
  EXPECT_TRUE(store.wait(1, SaveLevel::durable));
  store.expect_saved(state, 1);
  EXPECT_FALSE(store.has(2));
  EXPECT_EQ(store.engine().stats().skipped, 1U);
  // Alone, a save that is larger than the ring is not skipped.
  const State large = state_of({3 * kMiB, 3 * kMiB, 3 * kMiB}, 2);
  store.expect_submit(large, 3);
  EXPECT_TRUE(store.wait(3, SaveLevel::durable));
  store.expect_saved(large, 3);
}

TEST(FullRing, CompressFirst_WhatFindsNoRoomIsCodedWhereItLies) {
  HeldStore store(ring_of_bytes(2 * kMiB, WhenFull::compress_first));
  const State state = state_of(std::vector<std::uint64_t>(6, 1500000), 1);
  store.hold();
  store.expect_submit(state, 1);
  EXPECT_FALSE(store.fence(0.02));
  store.release();
  EXPECT_TRUE(store.fence());
  EXPECT_TRUE(store.wait(1, SaveLevel::durable));
  store.expect_saved(state, 1);
  const auto stats = store.engine().stats();
  EXPECT_GE(stats.first_for_room, 4U);
  EXPECT_GE(stats.copied_tensors, 1U);
  EXPECT_EQ(stats.copied_tensors + stats.first_for_room + stats.first_by_rate, 6U);
}

TEST(FullRing, TensorLargerThanTheRing_StreamsThroughTheCoder) {
  for (const WhenFull when_full : {WhenFull::block, WhenFull::skip, WhenFull::compress_first}) {
    HeldStore store(ring_of_bytes(2 * kMiB, when_full));
    State state = state_of({100000, 9 * kMiB, 100000}, 1);
    const State was = state;
    store.expect_submit(state, 1);
    EXPECT_TRUE(store.fence());
    for (auto& [name, values] : state.tensors) values.assign(values.size(), 0);
    EXPECT_TRUE(store.wait(1, SaveLevel::durable));
    store.expect_saved(was, 1);
    EXPECT_EQ(store.engine().stats().first_for_size, 1U);
  }
}

TEST(FullRing, TinyTensors_ThousandsInASmallRing) {
  HeldStore store(ring_of_bytes(2 * kMiB));
  const State state = state_of(std::vector<std::uint64_t>(kInstrumented ? 10000 : 100000, 24), 1);
  store.expect_submit(state, 1);
  EXPECT_TRUE(store.fence());
  EXPECT_TRUE(store.wait(1, SaveLevel::durable));
  store.expect_saved(state, 1);
}

/// A save that waits behind one which fills the ring, so that its tensors are still borrowed.
TEST(FullRing, ChangedBeforeCapture_Debugging_SaveFailsAndNamesTheTensor) {
  auto options = ring_of_bytes(2 * kMiB);
  options.check_changes = true;
  HeldStore store(options);
  const State first = state_of({1900000}, 1);
  State second = state_of({500000, 600000}, 2);
  store.hold();
  store.expect_submit(first, 1);
  store.expect_submit(second, 2);
  EXPECT_FALSE(store.fence(0.05));
  second.tensors[1].second[12345] ^= 1;  // without a fence
  store.release();
  const std::string sentence = store.failure(2, StatusCode::invalid_argument);
  EXPECT_NE(sentence.find("step 2: tensor 't1' changed"), std::string::npos) << sentence;
  EXPECT_TRUE(store.wait(1, SaveLevel::durable));
  store.expect_saved(first, 1);
  EXPECT_FALSE(store.has(2));
  store.expect_submit(second, 3);
  EXPECT_TRUE(store.wait(3, SaveLevel::durable));
  store.expect_saved(second, 3);
}

TEST(FullRing, ChangedWhereItLies_Debugging_SaveFails) {
  auto options = ring_of_bytes(2 * kMiB);
  options.check_changes = true;
  HeldStore store(options);
  State state = state_of({3 * kMiB}, 1);  // never copied
  store.hold();
  store.expect_submit(state, 1);
  store.await_held();
  state.tensors[0].second[77] ^= 1;
  store.release();
  const std::string sentence = store.failure(1, StatusCode::invalid_argument);
  EXPECT_NE(sentence.find("tensor 't0' changed"), std::string::npos) << sentence;
  EXPECT_FALSE(store.has(1));
}

TEST(FullRing, FencesFromSeveralThreads_AllCopy) {
  HeldStore store(ring_of_bytes(32 * kMiB));
  const State state = state_of(std::vector<std::uint64_t>(12, 2 * kMiB), 1);
  for (std::uint64_t step = 1; step <= 3; ++step) {
    store.expect_submit(state, step);
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) threads.emplace_back([&] { EXPECT_TRUE(store.fence()); });
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_TRUE(store.wait(3, SaveLevel::durable));
  store.expect_saved(state, 3);
}

}  // namespace
}  // namespace quern::testing
