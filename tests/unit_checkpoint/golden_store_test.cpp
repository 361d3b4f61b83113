// A store that version 0.2 of the format wrote (no generations in its names) is read, and goes on.
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "checkpoint/convert/checkpoint_files.h"
#include "tests/faults/small_store.h"
#include "tests/unit_checkpoint/store_fixture.h"

namespace quern::testing {
namespace {

using checkpoint::Report;
using checkpoint::SaveOptions;
using checkpoint::Store;

class GoldenStore : public ::testing::Test {
 protected:
  GoldenStore()
      : folder_(std::filesystem::temp_directory_path() / ("quern-golden-store-" + std::to_string(getpid()))),
        store_(checkpoint::system_files(), String(folder_ + "/run")) {
    std::filesystem::remove_all(folder_);
    std::filesystem::copy(QUERN_GOLDEN_STORE, folder_, std::filesystem::copy_options::recursive);
    std::filesystem::create_directories(folder_ + "/run/tmp");
  }
  ~GoldenStore() override { std::filesystem::remove_all(folder_); }

  void expect_file(std::uint64_t step) {
    const auto manifest = store_.at_step(step, report_);
    ASSERT_TRUE(manifest.ok()) << report_.problem;
    EXPECT_EQ(manifest->name.generation, 0U);
    checkpoint::Restorer restorer(store_, runner_);
    MemorySink sink;
    ASSERT_TRUE(checkpoint::load_file(restorer, *manifest, 0, sink, {}, report_).ok()) << report_.problem;
    std::ifstream file(folder_ + "/" + std::to_string(step) + ".safetensors", std::ios::binary);
    const std::vector<char> expected{std::istreambuf_iterator<char>(file), {}};
    ASSERT_EQ(sink.bytes_.size(), expected.size());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), reinterpret_cast<const char*>(sink.bytes_.data())));
  }

  const std::string folder_;
  Store store_;
  Report report_;
  SerialRunner runner_;
};

TEST_F(GoldenStore, IsReadAndWhole) {
  expect_file(100);
  expect_file(110);
  EXPECT_EQ(store_.newest(report_)->name.step, 110U);
  const auto names = store_.list(report_);
  for (const auto& name : *names)
    EXPECT_TRUE(checkpoint::verify_checkpoint(store_, name, true, runner_).good) << name.step;
}

TEST_F(GoldenStore, GoesOn) {
  SaveOptions options;
  options.base_newest = true;
  options.step = 105;
  ASSERT_TRUE(save_small(store_, options, report_).ok()) << report_.problem;
  const auto saved = store_.newest(report_);
  ASSERT_TRUE(saved.ok());
  EXPECT_EQ(saved->name.step, 105U) << "what has no generation is older";
  EXPECT_EQ(saved->name.generation, 1U);
  EXPECT_EQ(saved->base->step, 100U);
  EXPECT_TRUE(check_small(store_, 105, report_).ok()) << report_.problem;
  options.step = 110;
  options.replace = true;
  ASSERT_TRUE(save_small(store_, options, report_).ok()) << report_.problem;
  EXPECT_TRUE(check_small(store_, 110, report_).ok()) << report_.problem;
  expect_file(100);
  ASSERT_TRUE(checkpoint::compact(store_, 100, {}, runner_, report_).ok() ||
              std::string(report_.problem).find("needs step 100") != std::string::npos)
      << report_.problem;
  expect_file(100);
}

}  // namespace
}  // namespace quern::testing
