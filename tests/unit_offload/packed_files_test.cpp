// Entropy-coded files of subgroups: the same numbers, damage is found, and folders get them where coding pays.
#include <gtest/gtest.h>

#include <fstream>

#include "checkpoint/engine/counted_memory.h"
#include "offload/packed_file.h"
#include "storage/throttled_files.h"
#include "tests/support/instrumented.h"
#include "tests/unit_offload/offload_folders.h"
#include "tests/unit_offload/small_training.h"

namespace quern::testing {
namespace {

using namespace offload;

OffloadState train_until(SmallTraining& training, Optimizer& optimizer, std::uint64_t steps, storage::Report& report) {
  if (!optimizer.loaded()) {
    EXPECT_TRUE(training.load(optimizer, report).ok()) << report.problem;
  }
  while (optimizer.step_count() < steps)
    if (!training.step(optimizer, report).ok()) break;
  EXPECT_EQ(optimizer.step_count(), steps) << report.problem;
  auto state = training.read(optimizer, report);
  EXPECT_TRUE(state.ok()) << report.problem;
  return state.ok() ? std::move(state).value() : OffloadState{};
}

TEST_F(Offload, PackedFiles_GiveTheNumbersOfMemoryInFewerBytes) {
  for (const unsigned bits : {8u, 4u}) {
    SmallTraining training;
    OptimizerOptions options = training.options();
    options.form.bits = bits;
    const OffloadState wanted = train_until(training, *open(options), 4, report_);
    for (const bool own_threads : {false, true}) {
      SmallTraining again;
      OptimizerOptions o = options;
      o.io_threads = own_threads;
      o.file_form = FileForm::packed;
      o.memory_limit = coder_bytes(2) + 2 * plain_bytes(16384, o.form);
      const std::string name = std::to_string(bits) + (own_threads ? "threads" : "inline");
      o.folders = {folder(name + "a"), folder(name + "b")};
      auto optimizer = open(o);
      EXPECT_TRUE(train_until(again, *optimizer, 4, report_) == wanted);
      const Usage usage = optimizer->usage();
      EXPECT_EQ(usage.packed_subgroups, 6u);
      EXPECT_LE(usage.most_memory_bytes, o.memory_limit);
      std::uint64_t written = 0;
      for (const FolderUse& use : usage.folders) written += use.bytes_written;
      EXPECT_LT(written, 5 * usage.state_bytes) << "a load and four steps";
      // Goes on from these files, in whatever form it writes.
      for (const FileForm form : {FileForm::plain, FileForm::measured, FileForm::packed}) {
        optimizer.reset();
        o.file_form = form;
        optimizer = open(o);
        EXPECT_TRUE(train_until(again, *optimizer, 4, report_) == wanted);
        EXPECT_TRUE(training.read(*optimizer, report_).value() == wanted);
      }
    }
  }
}

TEST_F(Offload, Forms_ChangedBetweenSteps_DoNotChangeNumbers) {
  SmallTraining training;
  OptimizerOptions options = training.options();
  const OffloadState wanted = train_until(training, *open(options), 4, report_);
  options.folders = {folder("a")};
  SmallTraining again;
  OffloadState state;
  const FileForm forms[] = {FileForm::plain, FileForm::packed, FileForm::plain, FileForm::packed};
  for (std::uint64_t step = 1; step <= 4; ++step) {
    options.file_form = forms[step - 1];
    const auto optimizer = open(options);
    state = train_until(again, *optimizer, step, report_);
    EXPECT_EQ(optimizer->usage().packed_subgroups, options.file_form == FileForm::packed ? 6u : 0u);
  }
  EXPECT_TRUE(state == wanted);
}

TEST_F(Offload, PackedFiles_DamagedAnywhere_FailTheStepAndNameTheFile) {
  SmallTraining training({20000});
  OptimizerOptions options = training.options();
  options.folders = {folder("a")};
  options.file_form = FileForm::packed;
  options.io_threads = false;
  const OffloadState wanted = train_until(training, *open(options), 2, report_);
  for (const auto& entry : std::filesystem::directory_iterator(root_ / "a")) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("g")) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string good((std::istreambuf_iterator<char>(in)), {});
    const auto put = [&](const std::string& bytes) {
      std::ofstream(entry.path(), std::ios::binary | std::ios::trunc).write(bytes.data(), std::ssize(bytes));
    };
    for (std::size_t k = 0; k < 24; ++k) {
      std::string bad = good;
      // Sizes of chunks at the end, the end cut off, and places all over the file.
      const std::size_t at = k < 4 ? good.size() - 1 - k : (k - 4) * good.size() / 20;
      if (k % 8 == 7)
        bad.resize(at);
      else
        bad[at] = static_cast<char>(bad[at] ^ (1 << k % 8));
      put(bad);
      const auto optimizer = open(options);
      SmallTraining again({20000});
      report_ = {};
      EXPECT_FALSE(again.step(*optimizer, report_).ok()) << at;
      EXPECT_NE(report_.problem.find(name.c_str()), String::npos) << report_.problem;
      EXPECT_EQ(optimizer->step_count(), 2u);
    }
    put(good);
    SmallTraining again({20000});
    EXPECT_TRUE(again.read(*open(options), report_).value() == wanted);
  }
}

TEST_F(Offload, PackedFiles_StayBelowTheMemoryLimit) {
  constexpr std::uint64_t kValues = UINT64_C(1) << 21;
  SmallTraining training({kValues});
  OptimizerOptions options = training.options();
  options.subgroup_values = 1 << 17;
  options.folders = {folder("a")};
  options.file_form = FileForm::packed;
  options.memory_limit = coder_bytes(1) + 4 * plain_bytes(1 << 17, options.form);
  ASSERT_TRUE(training.load(*open(options), report_).ok()) << report_.problem;
  checkpoint::CountedMemory memory(0);
  {
    const MemoryScope scope(&memory);
    const auto optimizer = open(options);
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(training.step(*optimizer, report_).ok()) << report_.problem;
    EXPECT_LE(optimizer->usage().most_memory_bytes, options.memory_limit - coder_bytes(1));
    EXPECT_GT(optimizer->usage().cached_reads, 1u);
  }
  EXPECT_LE(memory.peak(), options.memory_limit + options.memory_limit / 20);
}

TEST_F(Offload, PackedFiles_BelowTheMemoryOfTheirCoders_AreRefused) {
  OptimizerOptions options = SmallTraining().options();
  options.folders = {folder("a")};
  options.file_form = FileForm::packed;
  options.memory_limit = coder_bytes(1) + 2 * plain_bytes(16384, options.form) - 1;
  // A limit above the whole state is none.
  options.region_values.assign(400, 16384);
  EXPECT_EQ(refused(options), StatusCode::memory_limit);
  EXPECT_NE(report_.problem.find("coding files takes"), String::npos) << report_.problem;
}

TEST_F(Offload, CodedState_BelowTheMemoryOfItsCoders_IsRefusedInAnyForm) {
  SmallTraining training({100 * 16384});
  OptimizerOptions options = training.options();
  options.folders = {folder("a")};
  options.file_form = FileForm::packed;
  options.memory_limit = coder_bytes(1) + 4 * plain_bytes(16384, options.form);
  ASSERT_TRUE(training.load(*open(options), report_).ok()) << report_.problem;
  options.memory_limit = 4 * plain_bytes(16384, options.form);
  for (const FileForm form : {FileForm::plain, FileForm::measured}) {
    options.file_form = form;
    EXPECT_EQ(refused(options), StatusCode::memory_limit);
    EXPECT_NE(report_.problem.find("files of this state are coded"), String::npos) << report_.problem;
  }
}

TEST_F(Offload, PlainSteps_OfACodedState_GiveTheMemoryOfCodersBack) {
  SmallTraining training({100 * 16384});
  OptimizerOptions options = training.options();
  options.folders = {folder("a")};
  options.file_form = FileForm::packed;
  options.memory_limit = coder_bytes(1) + 4 * plain_bytes(16384, options.form);
  ASSERT_TRUE(training.load(*open(options), report_).ok()) << report_.problem;
  options.file_form = FileForm::plain;
  const auto optimizer = open(options);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(training.step(*optimizer, report_).ok()) << report_.problem;
    EXPECT_EQ(optimizer->usage().packed_subgroups, 0u);
    // The first step reads coded files. The second has all memory for subgroups.
    const bool more = optimizer->usage().most_memory_bytes > options.memory_limit - coder_bytes(1) / 2;
    EXPECT_EQ(more, i == 1) << optimizer->usage().most_memory_bytes;
  }
}

TEST_F(Offload, MeasuredForm_OfAFolderThatIsFarSlowerThanCoding_IsPacked) {
  // Half a second of the folder for each subgroup, and less than a hundredth of coding.
  SmallTraining training({2 * 16384});
  OptimizerOptions options = training.options();
  const OffloadState wanted = train_until(training, *open(options), 3, report_);
  options.folders = {folder("a")};
  storage::ThrottledFiles files(storage::system_files(), [] { return false; });
  files.add(std::string(options.folders[0].path.data(), options.folders[0].path.size()), 192 << 10);
  SmallTraining again({2 * 16384});
  auto made = Optimizer::open(files, options, report_);
  ASSERT_TRUE(made.ok()) << report_.problem;
  Optimizer& optimizer = **made;
  ASSERT_TRUE(again.load(optimizer, report_).ok()) << report_.problem;
  EXPECT_EQ(optimizer.usage().packed_subgroups, 0u);
  EXPECT_TRUE(train_until(again, optimizer, 1, report_).step == 1);
  EXPECT_EQ(optimizer.usage().packed_subgroups, 1u) << "one file is tried";
  EXPECT_TRUE(train_until(again, optimizer, 3, report_) == wanted);
  // Coding is far faster than that folder, but perhaps not where every access to memory is watched.
  if (!kInstrumented) {
    EXPECT_EQ(optimizer.usage().packed_subgroups, 2u);
  }
}

TEST(OffloadForms, Folders_AreCodedWhereThatMakesAStepShorter) {
  const CodingRates coding{150e6, 600e6, 0.8};
  const auto chosen = [&](std::vector<PathRates> paths, Vector<bool> packed, double update, unsigned cores,
                          std::size_t threads = 1) {
    return folders_to_pack(paths, coding, {update, threads}, packed, cores);
  };
  using Bools = Vector<bool>;
  EXPECT_EQ(chosen({{50e6, 50e6}}, {false}, 1e9, 2), Bools{true});
  EXPECT_EQ(chosen({{100e6, 100e6}}, {false}, 1e9, 2), Bools{true});
  EXPECT_EQ(chosen({{400e6, 400e6}}, {true}, 1e9, 16), Bools{false}) << "the coder is slower than the folder";
  EXPECT_EQ(chosen({{2e9, 2e9}}, {false}, 1e9, 16), Bools{false});
  // Between the two a folder keeps what it has.
  EXPECT_EQ(chosen({{147e6, 147e6}}, {false}, 1e9, 16), Bools{false});
  EXPECT_EQ(chosen({{147e6, 147e6}}, {true}, 1e9, 16), Bools{true});
  // Four folders, each slower than a coder, on processors that have no time for it.
  const std::vector<PathRates> four(4, {100e6, 100e6});
  EXPECT_EQ(chosen(four, Bools(4, false), 1e9, 1), Bools(4, false));
  EXPECT_EQ(chosen(four, Bools(4, false), 1e9, 8), Bools(4, true));
  // On two processors the time is enough for the slow one of two folders.
  EXPECT_EQ(chosen({{1e9, 1e9}, {40e6, 40e6}}, {false, false}, 1e9, 2), (Bools{false, true}));
  // An update that keeps all eight processors busy leaves none to code on.
  EXPECT_EQ(chosen({{100e6, 100e6}}, {false}, 110e6, 8, 1), Bools{true});
  EXPECT_EQ(chosen({{100e6, 100e6}}, {false}, 110e6, 8, 8), Bools{false});
  // A folder whose rates are not known keeps its form, and the others are chosen for.
  EXPECT_EQ(chosen({{0, 0}}, {true}, 0, 2), Bools{true});
  EXPECT_EQ(chosen({{50e6, 50e6}, {0, 0}}, {false, false}, 1e9, 2), (Bools{true, false}));
  EXPECT_EQ(chosen({{0, 0}, {2e9, 2e9}}, {true, true}, 1e9, 16), (Bools{true, false}));
  EXPECT_EQ(chosen({{0, 50e6}}, {false}, 0, 2), Bools{true}) << "nothing was read yet";
  const PathRates rates = packed_rates({100e6, 200e6}, coding);
  EXPECT_DOUBLE_EQ(rates.read, 125e6);
  EXPECT_DOUBLE_EQ(rates.write, 150e6);
}

}  // namespace
}  // namespace quern::testing
