// Checkpoints of offloaded state: the bytes at rest, as they are, and steps that go on from them bit for bit.
#include <gtest/gtest.h>

#include "tests/unit_offload/offload_folders.h"
#include "tests/unit_offload/small_training.h"

namespace quern::testing {
namespace {

using offload::Optimizer;
using offload::OptimizerOptions;

struct SavedState {
  Vector<std::uint8_t> description;
  std::vector<std::vector<std::uint8_t>> groups;
};

SavedState save(Optimizer& optimizer, storage::Report& report) {
  SavedState saved;
  saved.description = optimizer.describe(report).value();
  for (std::size_t g = 0; g < optimizer.subgroup_count(); ++g) {
    auto& bytes = saved.groups.emplace_back(optimizer.at_rest_bytes(g, report).value());
    // In two pieces that are cut anywhere.
    const std::span<std::uint8_t> all(bytes);
    const std::size_t cut = all.size() / 7 * 5 + 3;
    EXPECT_TRUE(optimizer.read_at_rest(g, 0, all.first(cut), report).ok()) << report.problem;
    EXPECT_TRUE(optimizer.read_at_rest(g, cut, all.subspan(cut), report).ok()) << report.problem;
  }
  return saved;
}

offload::AtRestSource source_of(const SavedState& saved) {
  return [&saved](std::size_t group, std::uint64_t begin, std::span<std::uint8_t> out) {
    if (begin + out.size() > saved.groups[group].size()) return Status(StatusCode::internal, "beyond the end");
    std::memcpy(out.data(), saved.groups[group].data() + begin, out.size());
    return Status();
  };
}

void steps(SmallTraining& training, Optimizer& optimizer, std::uint64_t until, storage::Report& report) {
  if (!optimizer.loaded()) {
    EXPECT_TRUE(training.load(optimizer, report).ok());
  }
  while (optimizer.step_count() < until) ASSERT_TRUE(training.step(optimizer, report).ok()) << report.problem;
}

TEST_F(Offload, Restored_GoesOnBitForBit_WhereverItLies) {
  for (const unsigned bits : {8u, 4u}) {
    SmallTraining training;
    OptimizerOptions memory = training.options();
    memory.form.bits = bits;
    OptimizerOptions files = memory;
    files.folders = {folder(std::to_string(bits) + "a"), folder(std::to_string(bits) + "b")};
    files.memory_limit = 3 * offload::plain_bytes(16384, memory.form);
    const auto first = open(memory);
    steps(training, *first, 4, report_);
    const SavedState saved = save(*first, report_);
    {
      SmallTraining again;
      const auto other = open(files);
      steps(again, *other, 4, report_);
      const SavedState same = save(*other, report_);
      EXPECT_EQ(same.description, saved.description) << "a description depends on where the state lies";
      EXPECT_EQ(same.groups, saved.groups);
    }
    steps(training, *first, 9, report_);
    const OffloadState wanted = training.read(*first, report_).value();
    // Into the folders, which hold step 4, after steps that it must forget; and into memory, with another seed.
    OptimizerOptions seeded = memory;
    seeded.seed = 99;
    for (const OptimizerOptions& options : {files, seeded}) {
      SmallTraining resumed;
      const auto optimizer = open(options);
      if (optimizer->loaded()) steps(resumed, *optimizer, 6, report_);
      ASSERT_TRUE(optimizer->restore(saved.description, source_of(saved), report_).ok()) << report_.problem;
      EXPECT_EQ(optimizer->step_count(), 4u);
      steps(resumed, *optimizer, 9, report_);
      EXPECT_TRUE(resumed.read(*optimizer, report_).value() == wanted);
    }
    // And the folders open with it.
    SmallTraining last;
    const auto reopened = open(files);
    EXPECT_EQ(reopened->step_count(), 9u);
    EXPECT_TRUE(last.read(*reopened, report_).value() == wanted);
  }
}

TEST_F(Offload, RestoredFromDamage_IsTheStateBefore) {
  SmallTraining training({40000});
  OptimizerOptions options = training.options();
  options.folders = {folder("a")};
  const auto optimizer = open(options);
  steps(training, *optimizer, 2, report_);
  const SavedState saved = save(*optimizer, report_);
  steps(training, *optimizer, 3, report_);
  const OffloadState before = training.read(*optimizer, report_).value();
  const auto refused = [&](const SavedState& state) {
    report_ = {};
    const Status status = optimizer->restore(state.description, source_of(state), report_);
    EXPECT_FALSE(status.ok());
    EXPECT_FALSE(report_.problem.empty() && status.text().empty());
    EXPECT_TRUE(training.read(*optimizer, report_).value() == before);
    return status.code();
  };
  for (const std::size_t at : {std::size_t{0}, std::size_t{4 * 16384 + 40}, saved.groups[1].size() - 1}) {
    SavedState damaged = saved;
    damaged.groups[1][at] ^= 1;
    EXPECT_NE(refused(damaged), StatusCode::ok);
  }
  // Each damaged byte of the description is found by its hash.
  for (std::size_t at = 0; at < saved.description.size(); at += 5) {
    SavedState damaged = saved;
    damaged.description[at] ^= 0x20;
    (void)refused(damaged);
  }
  EXPECT_TRUE(optimizer->restore(saved.description, source_of(saved), report_).ok());
  EXPECT_EQ(optimizer->step_count(), 2u);
}

TEST_F(Offload, LoadAfterAFailedRestore_HasNothingOfIt) {
  OptimizerOptions memory = SmallTraining({40000}).options();
  OptimizerOptions files = memory;
  files.folders = {folder("a")};
  files.memory_limit = 2 * offload::plain_bytes(16384, memory.form);
  SmallTraining training({40000});
  const auto first = open(memory);
  steps(training, *first, 3, report_);
  const SavedState saved = save(*first, report_);
  const OffloadState wanted = training.read(*first, report_).value();
  // Where each subgroup's sizes of tiles begin, and where codes lie.
  for (const std::size_t damaged_at : {std::size_t{4 * 16384}, std::size_t{4 * 16384 + 2000}})
    for (const std::uint64_t fails_from : {UINT64_MAX, UINT64_C(1)})
      for (const OptimizerOptions& options : {memory, files}) {
        SCOPED_TRACE(std::to_string(damaged_at) + " " + std::to_string(options.folders.size()));
        std::filesystem::remove_all(root_ / "a");
        const auto optimizer = open(options);
        SmallTraining again({40000});
        steps(again, *optimizer, 1, report_);
        SavedState damaged = saved;
        damaged.groups[1][damaged_at] ^= 0xff;
        const auto whole = source_of(damaged);
        const auto source = [&](std::size_t group, std::uint64_t begin, std::span<std::uint8_t> out) {
          const Status read = whole(group, begin, out);
          // After bytes that looked like any other: as a file does that ends too early.
          return group == 1 && begin >= fails_from ? Status(StatusCode::io_error, "no more") : read;
        };
        EXPECT_FALSE(optimizer->restore(damaged.description, source, report_).ok());
        ASSERT_TRUE(again.load(*optimizer, report_).ok()) << report_.problem;
        while (optimizer->step_count() < 3) ASSERT_TRUE(again.step(*optimizer, report_).ok()) << report_.problem;
        EXPECT_TRUE(again.read(*optimizer, report_).value() == wanted);
      }
}

TEST_F(Offload, RestoredIntoAnotherShape_IsRefused) {
  SmallTraining training({40000});
  const auto first = open(training.options());
  steps(training, *first, 1, report_);
  const SavedState saved = save(*first, report_);
  OptimizerOptions other = training.options();
  other.form.bits = 4;
  OptimizerOptions larger = training.options();
  larger.subgroup_values = 32768;
  OptimizerOptions longer = training.options();
  longer.region_values = {40001};
  for (const OptimizerOptions& options : {other, larger, longer}) {
    const auto optimizer = open(options);
    EXPECT_EQ(optimizer->restore(saved.description, source_of(saved), report_).code(), StatusCode::invalid_argument);
    EXPECT_FALSE(report_.problem.empty());
  }
  EXPECT_EQ(first->at_rest_bytes(3, report_).status().code(), StatusCode::invalid_argument);
  std::vector<std::uint8_t> one(1);
  const std::uint64_t size = first->at_rest_bytes(0, report_).value();
  EXPECT_EQ(first->read_at_rest(0, size, one, report_).code(), StatusCode::invalid_argument);
  EXPECT_EQ(first->read_at_rest(0, UINT64_MAX, one, report_).code(), StatusCode::invalid_argument);
}

}  // namespace
}  // namespace quern::testing
