// Offloaded optimizers: the same numbers wherever the state lies, and nothing lost when something fails.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include "checkpoint/engine/counted_memory.h"
#include "tests/faults/simulated_disk.h"
#include "tests/support/instrumented.h"
#include "tests/unit_offload/offload_folders.h"
#include "tests/unit_offload/small_training.h"

namespace quern::testing {
namespace {

using offload::FolderOptions;
using offload::Optimizer;
using offload::OptimizerOptions;
using offload::StepOptions;
using storage::Report;

OffloadState train(SmallTraining& training, Optimizer& optimizer, std::uint64_t steps, Report& report) {
  if (!optimizer.loaded()) {
    EXPECT_TRUE(training.load(optimizer, report).ok()) << report.problem;
  }
  while (optimizer.step_count() < steps) {
    const auto outcome = training.step(optimizer, report);
    EXPECT_TRUE(outcome.ok()) << report.problem;
    if (!outcome.ok()) break;
  }
  auto state = training.read(optimizer, report);
  EXPECT_TRUE(state.ok()) << report.problem;
  return state.ok() ? std::move(state).value() : OffloadState{};
}

TEST_F(Offload, Step_WhereverTheStateLies_GivesTheSameNumbers) {
  for (const unsigned bits : {8u, 4u}) {
    SmallTraining training;
    OptimizerOptions options = training.options();
    options.form.bits = bits;
    const OffloadState wanted = train(training, *open(options), 5, report_);
    const auto copy = training.copy;
    const auto weights = training.weights;
    for (std::uint64_t i = 0; i < training.total(); ++i) {
      ASSERT_EQ(weights[i], wanted.weights[i]);
      ASSERT_EQ(copy[i], kernels::float_to_bfloat(wanted.weights[i]));
    }
    const std::uint64_t subgroup = offload::plain_bytes(16384, options.form);
    int run = 0;
    for (const std::size_t folders : {1u, 3u})
      for (const std::uint64_t slots : {2u, 3u, 100u})
        for (const bool own_threads : {false, true}) {
          SmallTraining again;
          OptimizerOptions o = options;
          o.io_threads = own_threads;
          o.threads = own_threads ? 3 : 1;
          o.memory_limit = slots * subgroup + subgroup / 2;
          o.durable = run == 1;
          for (std::size_t f = 0; f < folders; ++f)
            o.folders.push_back(
                folder(std::to_string(bits) + "-" + std::to_string(run) + "/" + std::to_string(f), "turn"));
          ++run;
          EXPECT_TRUE(train(again, *open(o), 5, report_) == wanted) << folders << " " << slots << " " << own_threads;
          EXPECT_EQ(again.copy, copy);
        }
  }
}

TEST_F(Offload, Step_AgainstAdamInBinary32_StaysNear) {
  SmallTraining training({20000});
  const auto optimizer = open(training.options());
  train(training, *optimizer, 60, report_);
  std::vector<float> w(20000), m(20000), v(20000);
  SmallTraining fresh({20000});
  const auto plain = open(fresh.options());
  const OffloadState start = train(fresh, *plain, 0, report_);
  w = start.weights;
  for (std::uint64_t s = 1; s <= 60; ++s) {
    codec::tensor::AdamSettings settings;
    settings.decay = 0.1;
    settings.step = s;
    const auto g = training.gradient(s);
    kernels::adam_kernels(kernels::IsaLevel::baseline)
        .step_f32(make_adam_rule(settings), g.data(), g.size(), w.data(), m.data(), v.data());
  }
  double moved = 0, apart = 0;
  for (std::size_t i = 0; i < w.size(); ++i) {
    moved += std::abs(static_cast<double>(w[i]) - static_cast<double>(start.weights[i]));
    apart += std::abs(static_cast<double>(w[i]) - static_cast<double>(training.weights[i]));
  }
  EXPECT_GT(moved, 0);
  EXPECT_LT(apart, 0.03 * moved);
}

TEST_F(Offload, Reopened_GoesOnWithTheSameNumbers) {
  SmallTraining training;
  OptimizerOptions options = training.options();
  const OffloadState wanted = train(training, *open(options), 6, report_);
  options.folders = {folder("a"), folder("b")};
  options.memory_limit = 400000;
  for (const std::uint64_t until : {2u, 3u, 6u}) {
    SmallTraining part;
    const OffloadState state = train(part, *open(options), until, report_);
    EXPECT_EQ(state.step, until);
    EXPECT_TRUE(until != 6 || state == wanted);
  }
  // Old files are gone: a lock and a member file in each folder, the manifest, and one file a subgroup.
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root_))
    files += entry.is_regular_file() ? 1 : 0;
  EXPECT_EQ(files, 2u + 2 + 1 + 6);
}

TEST_F(Offload, LoadedMoments_AreWhatTheirCodesStandFor) {
  SmallTraining training({50000});
  OptimizerOptions options = training.options();
  options.folders = {folder("a")};
  const auto optimizer = open(options);
  std::vector<float> first(50000), second(50000);
  for (std::size_t i = 0; i < first.size(); ++i) {
    first[i] = std::sin(static_cast<float>(i)) * 1e-3f;
    second[i] = i % 100 == 0 ? 0.0f : 1e-5f * (1 + static_cast<float>(i % 7));
    if (second[i] == 0) first[i] = i % 200 == 0 ? 0.0f : 1e-20f;
  }
  const auto source = [&](const offload::RegionPart& part) {
    for (std::uint64_t i = 0; i < part.count; ++i) {
      part.weights[i] = static_cast<float>(part.begin + i);
      part.first[i] = first[part.begin + i];
      part.second[i] = second[part.begin + i];
    }
    return Status();
  };
  ASSERT_TRUE(optimizer->load(41, source, report_).ok()) << report_.problem;
  EXPECT_EQ(optimizer->step_count(), 41u);
  const OffloadState state = training.read(*optimizer, report_).value();
  for (std::size_t i = 0; i < first.size(); ++i) {
    ASSERT_EQ(state.weights[i], static_cast<float>(i));
    ASSERT_LT(std::abs(state.second[i] - second[i]), second[i] == 0 ? 1e-30f : 0.25f * second[i]);
    ASSERT_LE(std::abs(state.first[i] - first[i]), 0.1f * std::sqrt(state.second[i]));
  }
  // Any part of it.
  std::vector<float> weights(700), m(700), v(700);
  ASSERT_TRUE(optimizer->read({0, 16000, 700, weights.data(), m.data(), v.data()}, report_).ok());
  for (std::size_t i = 0; i < 700; ++i) {
    ASSERT_EQ(weights[i], static_cast<float>(16000 + i));
    ASSERT_EQ(m[i], state.first[16000 + i]);
    ASSERT_EQ(v[i], state.second[16000 + i]);
  }
}

TEST_F(Offload, Step_NotFiniteGradient_IsSkippedOrRefusedAndChangesNothing) {
  SmallTraining training;
  const auto optimizer = open(training.options());
  const OffloadState before = train(training, *optimizer, 2, report_);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto skipped = training.step(*optimizer, report_, {}, nan);
  ASSERT_TRUE(skipped.ok());
  EXPECT_TRUE(skipped->skipped);
  StepOptions strict;
  strict.skip_not_finite = false;
  const auto refused = training.step(*optimizer, report_, strict, std::numeric_limits<float>::infinity());
  EXPECT_EQ(refused.status().code(), StatusCode::invalid_argument);
  EXPECT_TRUE(training.read(*optimizer, report_).value() == before);
}

TEST_F(Offload, Step_LossScaleAndClipping_AreThoseOfTheGradient) {
  SmallTraining plain, scaled, clipped;
  const auto a = open(plain.options());
  const auto b = open(scaled.options());
  const auto c = open(clipped.options());
  for (auto [training, optimizer] : {std::pair(&plain, &a), std::pair(&scaled, &b), std::pair(&clipped, &c)})
    train(*training, **optimizer, 0, report_);
  const double norm = plain.step(*a, report_)->norm;
  EXPECT_GT(norm, 0);
  StepOptions how;
  how.loss_scale = 1024;
  EXPECT_NEAR(scaled.step(*b, report_, how, 1024)->norm, norm, 1e-9 * norm);
  EXPECT_TRUE(plain.read(*a, report_).value() == scaled.read(*b, report_).value());
  how = {};
  how.max_norm = norm / 2;
  EXPECT_NEAR(clipped.step(*c, report_, how)->norm, norm, 1e-9 * norm);
  // Half the gradient: a quarter of the second moments, up to steps of codes.
  const OffloadState full = plain.read(*a, report_).value();
  const OffloadState half = clipped.read(*c, report_).value();
  double sum_full = 0, sum_half = 0;
  for (std::size_t i = 0; i < full.second.size(); ++i) {
    sum_full += static_cast<double>(full.second[i]);
    sum_half += static_cast<double>(half.second[i]);
  }
  EXPECT_NEAR(sum_half / sum_full, 0.25, 0.005);
}

TEST_F(Offload, Memory_StaysBelowItsLimit) {
  constexpr std::uint64_t kValues = UINT64_C(1) << 22;
  SmallTraining training({kValues});
  OptimizerOptions options = training.options();
  options.subgroup_values = 1 << 18;
  options.folders = {folder("a")};
  options.memory_limit = 4 * offload::plain_bytes(1 << 18, options.form) + 100000;
  checkpoint::CountedMemory memory(0);
  std::uint64_t after_load = 0;
  {
    const MemoryScope scope(&memory);
    const auto optimizer = open(options);
    ASSERT_TRUE(training.load(*optimizer, report_).ok()) << report_.problem;
    after_load = memory.peak();
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(training.step(*optimizer, report_).ok()) << report_.problem;
    EXPECT_GT(optimizer->usage().cached_reads, 6u) << "the last subgroups of a step are the first of the next";
    EXPECT_LE(optimizer->usage().most_memory_bytes, options.memory_limit);
    EXPECT_GT(optimizer->usage().state_bytes, 3 * options.memory_limit);
  }
  // A load has room for 2^18 values of each moment beside it; a step does not.
  EXPECT_LE(after_load, options.memory_limit + options.memory_limit / 20 + 2 * 4 * (1 << 18));
  checkpoint::CountedMemory second(0);
  {
    const MemoryScope scope(&second);
    const auto optimizer = open(options);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(training.step(*optimizer, report_).ok()) << report_.problem;
  }
  EXPECT_LE(second.peak(), options.memory_limit + options.memory_limit / 20);
}

TEST_F(Offload, Memory_BlocksThatDoNotFitTheirCodes_StayBelowTheLimitAndOneSubgroup) {
  constexpr std::uint64_t kValues = UINT64_C(1) << 21;
  constexpr std::uint64_t kSubgroup = 1 << 17;
  SmallTraining training({kValues});
  OptimizerOptions options = training.options();
  options.form.bits = 4;
  options.subgroup_values = kSubgroup;
  options.folders = {folder("a")};
  options.memory_limit = 5 * offload::plain_bytes(kSubgroup, options.form);
  const auto source = [](const offload::RegionPart& part) {
    for (std::uint64_t i = 0; i < part.count; ++i) {
      part.weights[i] = 1;
      part.second[i] = i % 2 == 0 ? 1e-30f : 1.0f;
      part.first[i] = i % 3 == 0 ? std::numeric_limits<float>::infinity() : 0.0f;
    }
    return Status();
  };
  checkpoint::CountedMemory memory(0);
  {
    const MemoryScope scope(&memory);
    const auto optimizer = open(options);
    ASSERT_TRUE(optimizer->load(0, source, report_).ok()) << report_.problem;
    const std::uint64_t one = optimizer->usage().state_bytes / (kValues / kSubgroup);
    EXPECT_GT(one, 2 * offload::plain_bytes(kSubgroup, options.form)) << "most blocks are kept beside their slots";
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(training.step(*optimizer, report_).ok()) << report_.problem;
    EXPECT_LE(optimizer->usage().most_memory_bytes, std::max(options.memory_limit, 2 * one) + one);
  }
}

TEST_F(Offload, Folders_InAnotherOrderOrNotAll_AreRefusedAndKept) {
  SmallTraining training;
  OptimizerOptions options = training.options();
  options.folders = {folder("a"), folder("b")};
  const OffloadState wanted = train(training, *open(options), 3, report_);
  const auto refused_with = [&](std::vector<FolderOptions> folders, const char* sentence) {
    OptimizerOptions other = options;
    other.folders.assign(folders.begin(), folders.end());
    EXPECT_EQ(refused(other), StatusCode::invalid_argument);
    EXPECT_NE(report_.problem.find(sentence), String::npos) << report_.problem;
  };
  refused_with({folder("b"), folder("a")}, "this is folder 2 of 2 of its state, and was given as folder 1 of 2");
  refused_with({folder("a")}, "this is folder 1 of 2 of its state, and was given as folder 1 of 1");
  refused_with({folder("b")}, "this is folder 2 of 2");
  refused_with({folder("c"), folder("b")}, "does not belong to the state in");
  refused_with({folder("a"), folder("c")}, "does not belong to the state in");
  refused_with({folder("a"), folder("b"), folder("c")}, "given as folder 1 of 3");
  // A folder of another state, at the right place.
  SmallTraining second;
  OptimizerOptions other = options;
  other.folders = {folder("d"), folder("e")};
  train(second, *open(other), 1, report_);
  refused_with({folder("a"), folder("e")}, "does not belong to the state in");
  std::filesystem::copy_file(root_ / "d" / "state", root_ / "a" / "state.kept");
  std::filesystem::rename(root_ / "a" / "state", root_ / "state");
  std::filesystem::rename(root_ / "a" / "state.kept", root_ / "a" / "state");
  refused_with({folder("a"), folder("b")}, "of another state");
  std::filesystem::rename(root_ / "state", root_ / "a" / "state");
  std::filesystem::rename(root_ / "a" / "member", root_ / "member");
  refused_with({folder("a"), folder("b")}, "no file \"member\"");
  std::filesystem::rename(root_ / "member", root_ / "a" / "member");
  const auto optimizer = open(options);
  EXPECT_TRUE(training.read(*optimizer, report_).value() == wanted) << "nothing was removed";
}

TEST_F(Offload, TurnFile_ThatIsAFoldersLock_IsRefused) {
  SmallTraining training;
  OptimizerOptions options = training.options();
  for (const char* const turn : {"a/lock", "a/../b/lock"}) {
    options.folders = {folder("a", turn), folder("b", turn)};
    EXPECT_EQ(refused(options), StatusCode::invalid_argument);
    EXPECT_NE(report_.problem.find("turn file"), String::npos) << report_.problem;
  }
}

TEST_F(Offload, Fork_ChildIsRefusedAndParentGoesOn) {
  if (kInstrumented) GTEST_SKIP() << "sanitizers do not follow threads over fork()";
  SmallTraining training;
  OptimizerOptions options = training.options();
  options.folders = {folder("a")};
  auto optimizer = open(options);
  const OffloadState before = train(training, *optimizer, 1, report_);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::close(ends[1]);
    Report report;
    const bool refused = !training.step(*optimizer, report).ok() && !training.read(*optimizer, report).ok() &&
                         !training.load(*optimizer, report).ok() && report.problem.find("fork") != String::npos;
    auto second = std::move(optimizer);
    char byte = 0;
    const bool waited = ::read(ends[0], &byte, 1) == 1;  // with the parent's lock open
    second.reset();
    ::_exit(refused && waited && ::read(ends[0], &byte, 1) == 1 ? 0 : 1);
  }
  ::close(ends[0]);
  EXPECT_EQ(refused(options), StatusCode::invalid_argument) << "the parent holds the folder";
  EXPECT_TRUE(training.read(*optimizer, report_).value() == before);
  optimizer.reset();
  optimizer = open(options);
  ASSERT_NE(optimizer, nullptr) << "a child that has the descriptor does not keep the folder";
  EXPECT_EQ(::write(ends[1], "x", 1), 1);
  EXPECT_EQ(refused(options), StatusCode::invalid_argument) << "a child that ends takes no lock away";
  EXPECT_EQ(::write(ends[1], "x", 1), 1);
  int outcome = 1;
  EXPECT_EQ(::waitpid(child, &outcome, 0), child);
  EXPECT_EQ(outcome, 0);
  ::close(ends[1]);
  EXPECT_EQ(refused(options), StatusCode::invalid_argument);
  EXPECT_EQ(train(training, *optimizer, 2, report_).step, 2u);
}

TEST_F(Offload, FirstOpening_FailsAnywhere_TheNextOneBegins) {
  SmallTraining training;
  OptimizerOptions options = training.options();
  options.io_threads = false;
  options.folders = {folder("a"), folder("b")};
  for (std::size_t operation = 1;; ++operation) {
    SimulatedDisk disk;
    disk.fail_at(operation, FaultKind::kill);
    (void)Optimizer::open(disk, options, report_);
    if (!disk.fault_happened()) {
      EXPECT_GT(operation, 8u);
      break;
    }
    for (const Survival survival : {Survival::everything, Survival::durable, Survival::names, Survival::mixture}) {
      SimulatedDisk after = disk.after(survival, operation);
      report_ = {};
      auto made = Optimizer::open(after, options, report_);
      ASSERT_TRUE(made.ok()) << operation << report_.problem;
      EXPECT_EQ(train(training, **made, 1, report_).step, 1u);
    }
  }
}

/// Refuses one allocation.
class FailingMemory final : public std::pmr::memory_resource {
 public:
  explicit FailingMemory(std::size_t fails_at) : left_(fails_at) {}
  bool failed() const { return left_ == 0; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (left_ != 0 && --left_ == 0) throw std::bad_alloc();
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  std::size_t left_;
};

class OffloadAllocations : public Offload, public ::testing::WithParamInterface<offload::FileForm> {};

TEST_P(OffloadAllocations, Step_AnyAllocationFails_LeavesTheStateBeforeOrAfter) {
  const bool packed = GetParam() == offload::FileForm::packed;
  // Coding allocates for each subgroup, whatever its size.
  const auto fresh = [&] { return packed ? SmallTraining({700, 300}) : SmallTraining({16384 + 700, 300}); };
  SmallTraining training = fresh(), undisturbed = fresh();
  const auto plain = open(training.options());
  const OffloadState before = train(undisturbed, *plain, 1, report_);
  const OffloadState after = train(undisturbed, *plain, 2, report_);
  OptimizerOptions options = training.options();
  options.io_threads = false;
  options.file_form = GetParam();
  options.memory_limit = 2 * offload::plain_bytes(packed ? 700 : 16384, options.form);
  if (packed) options.memory_limit += offload::coder_bytes(1);
  std::size_t kept = 0;
  for (std::size_t fails_at = 1;; ++fails_at) {
    options.folders = {folder(std::to_string(fails_at))};
    auto optimizer = open(options);
    train(training, *optimizer, 1, report_);
    FailingMemory memory(fails_at);
    bool counted = false;
    {
      const MemoryScope scope(&memory);
      try {
        Report report;
        counted = training.step(*optimizer, report).ok();
      } catch (const std::bad_alloc&) {
      }
    }
    const bool broken = !counted && !training.read(*optimizer, report_).ok();
    for (const bool reopened : {false, true}) {
      if (!reopened && broken) continue;
      if (reopened) {
        optimizer.reset();
        optimizer = open(options);
      }
      const auto state = training.read(*optimizer, report_);
      ASSERT_TRUE(state.ok()) << fails_at << report_.problem;
      ASSERT_TRUE(*state == after || (!counted && *state == before)) << fails_at;
    }
    kept += counted ? 0 : 1;
    std::filesystem::remove_all(root_ / std::to_string(fails_at));
    if (!memory.failed()) break;
  }
  EXPECT_GT(kept, 10u);
}

INSTANTIATE_TEST_SUITE_P(Forms, OffloadAllocations,
                         ::testing::Values(offload::FileForm::measured, offload::FileForm::packed),
                         [](const auto& form) {
                           return form.param == offload::FileForm::packed ? "packed" : "measured";
                         });

TEST_F(Offload, Open_WhatDoesNotFit_IsRefusedWithASentence) {
  SmallTraining training;
  OptimizerOptions options = training.options();
  options.subgroup_values = 1000;
  EXPECT_EQ(refused(options), StatusCode::invalid_argument);
  options = training.options();
  options.form.bits = 6;
  EXPECT_EQ(refused(options), StatusCode::invalid_argument);
  options = training.options();
  options.memory_limit = 100000;
  EXPECT_EQ(refused(options), StatusCode::memory_limit);
  options.folders = {folder("a")};
  EXPECT_EQ(refused(options), StatusCode::memory_limit);
  options.memory_limit = 300000;
  options.folders = {folder("a"), folder("a")};
  EXPECT_EQ(refused(options), StatusCode::invalid_argument);
  options.folders = {folder("a")};
  {
    const auto first = open(options);
    EXPECT_FALSE(first->loaded());
    EXPECT_FALSE(training.step(*first, report_).ok()) << "no weights yet";
    train(training, *first, 1, report_);
    EXPECT_EQ(refused(options), StatusCode::invalid_argument) << "two on one folder";
  }
  for (auto change : {+[](OptimizerOptions& o) { o.region_values[0] = 39999; },
                      +[](OptimizerOptions& o) { o.subgroup_values = 32768, o.memory_limit = 0; },
                      +[](OptimizerOptions& o) { o.form.bits = 4; }}) {
    OptimizerOptions other = options;
    change(other);
    EXPECT_EQ(refused(other), StatusCode::invalid_argument);
  }
  OptimizerOptions other = options;
  other.folders.push_back(folder("b"));
  EXPECT_EQ(refused(other), StatusCode::invalid_argument);
  EXPECT_EQ(open(options)->step_count(), 1u);
}

TEST_F(Offload, Step_BadArguments_AreRefusedAndChangeNothing) {
  SmallTraining training({20000});
  const auto optimizer = open(training.options());
  const OffloadState before = train(training, *optimizer, 1, report_);
  const auto g = training.gradient(2);
  offload::RegionStep good;
  good.gradient = {g.data(), codec::tensor::ElementType::f32};
  std::vector<offload::RegionStep> bad(5, good);
  bad[0].gradient.values = nullptr;
  bad[1].gradient.type = codec::tensor::ElementType::f16;
  bad[2].settings.beta2 = 1;
  bad[3].settings.rate = std::numeric_limits<double>::infinity();
  bad[4].settings.epsilon = -1;
  for (const offload::RegionStep& region : bad)
    EXPECT_EQ(optimizer->step(std::span(&region, 1), {}, report_).status().code(), StatusCode::invalid_argument);
  EXPECT_FALSE(optimizer->step(bad, {}, report_).ok()) << "five regions instead of one";
  StepOptions how;
  how.loss_scale = 0;
  EXPECT_FALSE(optimizer->step(std::span(&good, 1), how, report_).ok());
  for (const double scale : {1e-300, 1e-42, 1e300}) {
    how.loss_scale = scale;
    EXPECT_FALSE(optimizer->step(std::span(&good, 1), how, report_).ok()) << "gradients times infinity or 0";
  }
  how = {};
  how.max_norm = 1e-300;
  EXPECT_FALSE(optimizer->step(std::span(&good, 1), how, report_).ok());
  EXPECT_FALSE(optimizer
                   ->load(
                       UINT64_C(1) << 63, [](const offload::RegionPart&) { return Status(); }, report_)
                   .ok());
  how.max_norm = -1;
  EXPECT_FALSE(optimizer->step(std::span(&good, 1), how, report_).ok());
  float one = 0;
  EXPECT_FALSE(optimizer->read({1, 0, 1, &one, nullptr, nullptr}, report_).ok());
  EXPECT_FALSE(optimizer->read({0, 19999, 2, &one, nullptr, nullptr}, report_).ok());
  EXPECT_TRUE(training.read(*optimizer, report_).value() == before);
}

TEST_F(Offload, Step_FolderThatFailsInBetween_LeavesTheStateBefore) {
  SmallTraining training, undisturbed;
  OptimizerOptions options = training.options();
  const OffloadState wanted = train(undisturbed, *open(options), 3, report_);
  SimulatedDisk disk;
  options.folders = {folder("a")};
  options.io_threads = false;
  options.memory_limit = 2 * offload::plain_bytes(16384, options.form);
  auto made = Optimizer::open(disk, options, report_);
  ASSERT_TRUE(made.ok()) << report_.problem;
  const auto optimizer = std::move(made).value();
  const OffloadState before = train(training, *optimizer, 2, report_);
  for (const std::size_t fails_at : {1u, 4u, 9u}) {
    std::size_t opened = 0;
    disk.on_open([&](std::string_view) {
      return ++opened == fails_at ? Status(StatusCode::io_error, "gone {0}", EIO) : Status();
    });
    report_ = {};
    EXPECT_FALSE(training.step(*optimizer, report_).ok());
    EXPECT_FALSE(report_.problem.empty());
    disk.on_open({});
    const auto state = training.read(*optimizer, report_);
    ASSERT_TRUE(state.ok()) << report_.problem;
    EXPECT_TRUE(*state == before) << fails_at;
  }
  EXPECT_TRUE(train(training, *optimizer, 3, report_) == wanted);
}

TEST_F(Offload, DamagedFiles_AreNamed) {
  SmallTraining training;
  OptimizerOptions options = training.options();
  options.folders = {folder("a")};
  train(training, *open(options), 1, report_);
  std::string damaged;
  for (const auto& entry : std::filesystem::directory_iterator(root_ / "a"))
    if (entry.path().filename().string().starts_with("g0-")) damaged = entry.path();
  ASSERT_FALSE(damaged.empty());
  {
    std::fstream file(damaged, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(1000);
    file.put('x');
  }
  const auto optimizer = open(options);
  EXPECT_EQ(training.read(*optimizer, report_).status().code(), StatusCode::checksum_mismatch);
  EXPECT_NE(report_.problem.find(damaged.c_str()), String::npos);
  std::filesystem::remove(damaged);
  EXPECT_EQ(training.step(*optimizer, report_).status().code(), StatusCode::io_error);
}

TEST_F(Offload, TwoProcessesOneDevice_TakeTurns) {
  // As two threads with optimizers of their own; locks of a file are between openings, so these wait for each other.
  std::vector<OffloadState> results(2);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      SmallTraining training;
      Report report;
      OptimizerOptions options = training.options();
      options.folders = {folder("t" + std::to_string(i), "turn")};
      options.memory_limit = 300000;
      auto made = Optimizer::open(storage::system_files(), options, report);
      ASSERT_TRUE(made.ok()) << report.problem;
      results[i] = train(training, **made, 6, report);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(results[0] == results[1]);
  EXPECT_EQ(results[0].step, 6u);
}

}  // namespace
}  // namespace quern::testing
