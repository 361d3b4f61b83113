// The moving window behind the direct path: order, helpers, and failures in each step.
#include "bindings/hdf5/work_window.h"

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace {

using quern::hdf5::WindowSteps;
using quern::hdf5::WorkWindow;

TEST(WorkWindow, ManyItems_EachStepOnceInOrderOnTheRightThread) {
  for (const std::size_t threads : {1U, 2U, 5U}) {
    constexpr std::uint64_t kItems = 1000;
    const std::size_t slots = WorkWindow::slots(threads);
    const auto caller = std::this_thread::get_id();
    std::vector<std::uint64_t> held(slots, kItems), results(slots);
    std::vector<std::atomic<int>> busy(threads);
    std::uint64_t begun = 0, ended = 0;
    std::atomic<std::uint64_t> worked{0};
    WindowSteps steps;
    steps.begin = [&](std::uint64_t item, std::size_t slot) {
      EXPECT_EQ(item, begun++);
      EXPECT_EQ(std::this_thread::get_id(), caller);
      EXPECT_EQ(held[slot], kItems) << "the slot is free";
      held[slot] = item;
    };
    steps.work = [&](std::uint64_t item, std::size_t slot, std::size_t worker) {
      EXPECT_EQ(busy[worker]++, 0) << "a worker does one item at a time";
      EXPECT_EQ(held[slot], item);
      results[slot] = item * item;
      ++worked;
      --busy[worker];
    };
    steps.end = [&](std::uint64_t item, std::size_t slot) {
      EXPECT_EQ(item, ended++);
      EXPECT_EQ(std::this_thread::get_id(), caller);
      EXPECT_EQ(results[slot], item * item);
      held[slot] = kItems;
    };
    WorkWindow(kItems, threads, steps).run();
    EXPECT_EQ(worked, kItems);
    EXPECT_EQ(ended, kItems);
  }
}

TEST(WorkWindow, NoItems_ReturnsAtOnce) {
  WindowSteps steps;
  steps.begin = [](std::uint64_t, std::size_t) { FAIL(); };
  steps.work = [](std::uint64_t, std::size_t, std::size_t) { FAIL(); };
  steps.end = [](std::uint64_t, std::size_t) { FAIL(); };
  WorkWindow(0, 3, steps).run();
}

TEST(WorkWindow, FailureInAnyStep_ComesOutAndStopsTheRest) {
  for (const std::size_t threads : {1U, 4U}) {
    for (const int step : {0, 1, 2}) {
      std::atomic<std::uint64_t> later{0};
      const auto touch = [&](int which, std::uint64_t item) {
        if (which == step && item == 20) throw std::runtime_error("item 20");
        if (item > 20 + 2 * WorkWindow::slots(threads)) ++later;
      };
      WindowSteps steps;
      steps.begin = [&](std::uint64_t item, std::size_t) { touch(0, item); };
      steps.work = [&](std::uint64_t item, std::size_t, std::size_t) { touch(1, item); };
      steps.end = [&](std::uint64_t item, std::size_t) { touch(2, item); };
      EXPECT_THROW(WorkWindow(100000, threads, steps).run(), std::runtime_error);
      EXPECT_EQ(later, 0U);
    }
  }
}

}  // namespace
