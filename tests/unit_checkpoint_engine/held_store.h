// A store in memory whose writer can be held up, an engine on it, and states to save.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/engine/engine.h"
#include "tests/faults/simulated_disk.h"

namespace quern::testing {

inline constexpr double kLong = 60;  // seconds that nothing here takes

/// Names and values of tensors of bytes.
struct State {
  std::vector<std::pair<std::string, std::vector<std::uint8_t>>> tensors;
};

/// `sizes` in bytes; the values depend on the seed and cannot be packed.
inline State state_of(const std::vector<std::uint64_t>& sizes, std::uint64_t seed) {
  State state;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::vector<std::uint8_t> values(sizes[i]);
    std::uint64_t word = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15) + i;
    for (std::uint8_t& value : values) {
      word = word * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
      value = static_cast<std::uint8_t>(word >> 56);
    }
    state.tensors.emplace_back("t" + std::to_string(i), std::move(values));
  }
  return state;
}

class HeldStore {
 public:
  explicit HeldStore(checkpoint::EngineOptions options) {
    disk_.on_open([this](std::string_view path) -> Status {
      // Parts are what a save writes first.
      if (path.find("/tmp/") == std::string_view::npos) return {};
      std::unique_lock lock(mutex_);
      reached_ = true;
      changed_.notify_all();
      changed_.wait(lock, [&] { return !held_; });
      return {};
    });
    checkpoint::Report report;
    auto opened = checkpoint::Engine::open(disk_, "store", options, report);
    EXPECT_TRUE(opened.ok()) << report.problem;
    if (opened.ok()) engine_ = std::move(opened).value();
  }
  ~HeldStore() {
    release();
    engine_.reset();
  }
  HeldStore(const HeldStore&) = delete;
  HeldStore& operator=(const HeldStore&) = delete;

  /// From now on a save stops before its first byte is written.
  void hold() { set(true); }
  void release() { set(false); }
  /// Until a save stands there.
  void await_held() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return reached_; });
  }
  /// Until the save of that step was cancelled or dropped.
  void await_stopping(std::uint64_t step) {
    checkpoint::Report report;
    for (;;) {
      const auto progress = engine_->poll(step, report);
      if (!progress.ok() || progress->stopping) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  checkpoint::Engine& engine() { return *engine_; }
  SimulatedDisk& disk() { return disk_; }
  void close_engine() { engine_.reset(); }

  Status submit(const State& state, std::uint64_t step, checkpoint::Report& report,
                checkpoint::FileSaveOptions options = {}) {
    options.save.step = step;
    QUERN_ASSIGN_OR_RETURN(auto save, engine_->begin(options, report));
    for (const auto& [name, values] : state.tensors) {
      checkpoint::AddedTensor tensor;
      tensor.name = name;
      tensor.what.type = checkpoint::ElementType::u8;
      const std::uint64_t extent = values.size();
      QUERN_ASSIGN_OR_RETURN(tensor.what.shape, Shape::make({&extent, 1}));
      tensor.data = values.data();
      QUERN_RETURN_IF_ERROR(engine_->add(*save, std::move(tensor), report));
    }
    return engine_->submit(std::move(save), report);
  }
  void expect_submit(const State& state, std::uint64_t step) {
    checkpoint::Report report;
    EXPECT_TRUE(submit(state, step, report).ok()) << report.problem;
  }
  bool fence(double seconds = kLong, std::string_view tensor = "") {
    checkpoint::Report report;
    const auto free = engine_->fence(tensor, seconds, report);
    EXPECT_TRUE(free.ok()) << report.problem;
    return free.ok() && *free;
  }
  bool wait(std::uint64_t step, checkpoint::SaveLevel level, double seconds = kLong) {
    checkpoint::Report report;
    const auto reached = engine_->wait(step, level, seconds, report);
    EXPECT_TRUE(reached.ok()) << report.problem;
    return reached.ok() && *reached;
  }
  /// The sentence of a save that must fail.
  std::string failure(std::uint64_t step, StatusCode code) {
    checkpoint::Report report;
    const auto reached = engine_->wait(step, checkpoint::SaveLevel::durable, kLong, report);
    EXPECT_FALSE(reached.ok()) << "step " << step;
    EXPECT_TRUE(reached.ok() || reached.status().code() == code) << report.problem;
    return {report.problem.data(), report.problem.size()};
  }
  /// The store holds the state, bit for bit. Nothing may be under way.
  void expect_saved(const State& state, std::uint64_t step) {
    const checkpoint::Store store(disk_, "store");
    SerialRunner runner;
    checkpoint::Report report;
    const auto manifest = store.at_step(step, report);
    ASSERT_TRUE(manifest.ok()) << report.problem;
    ASSERT_EQ(manifest->tensors.size(), state.tensors.size());
    checkpoint::Restorer restorer(store, runner);
    AlignedBuffer values;
    for (std::uint32_t i = 0; i < state.tensors.size(); ++i) {
      const auto& [name, expected] = state.tensors[i];
      ASSERT_EQ(std::string_view(manifest->tensors[i].name), name);
      ASSERT_TRUE(restorer.tensor(manifest->name, i, values, report).ok()) << report.problem;
      ASSERT_EQ(values.size(), expected.size()) << name;
      ASSERT_TRUE(expected.empty() || std::memcmp(values.data(), expected.data(), expected.size()) == 0) << name;
    }
  }
  bool has(std::uint64_t step) {
    const checkpoint::Store store(disk_, "store");
    checkpoint::Report report;
    return store.at_step(step, report).ok();
  }

 private:
  void set(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    reached_ = false;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  bool reached_ = false;
  SimulatedDisk disk_;
  std::unique_ptr<checkpoint::Engine> engine_;
};

inline checkpoint::EngineOptions ring_of_bytes(std::uint64_t bytes,
                                               checkpoint::WhenFull when_full = checkpoint::WhenFull::block) {
  checkpoint::EngineOptions options;
  options.ring_bytes = bytes;
  options.when_full = when_full;
  return options;
}

}  // namespace quern::testing
