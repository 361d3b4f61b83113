// The command quern-flow: exit status, messages and files, run as a user would.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "datasets/flow/output.h"

namespace quern::flow {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  int status;
  std::string text;  ///< standard output and standard error
};

Outcome run_command(const std::string& arguments) {
  const std::string line = std::string("'") + QUERN_FLOW_COMMAND + "' " + arguments + " 2>&1 </dev/null";
  FILE* pipe = ::popen(line.c_str(), "r");
  if (pipe == nullptr) return {-1, "popen failed"};
  std::string text;
  std::array<char, 4096> block{};
  while (const std::size_t n = std::fread(block.data(), 1, block.size(), pipe)) text.append(block.data(), n);
  const int status = ::pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text};
}

class CommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() / ("quern_flow_command_" + std::to_string(::getpid()) + "_" + info->name());
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string out() const { return " --out '" + folder_.string() + "'"; }
  std::string bytes(const std::string& name) const {
    std::ifstream in(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  fs::path folder_;
};

TEST_F(CommandTest, ShortRun_WritesFilesAndNoProgress) {
  const Outcome o = run_command("--setup sedov --size 4x6x8 --steps 2 --type f64 -T 2" + out());
  EXPECT_EQ(o.status, 0) << o.text;
  EXPECT_EQ(o.text.find('\r'), std::string::npos);
  EXPECT_NE(o.text.find("6 files"), std::string::npos) << o.text;
  EXPECT_EQ(bytes("density_t0002_4x6x8.f64").size(), 4u * 6u * 8u * 8u);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 6);
}

TEST_F(CommandTest, Threads_DoNotChangeTheBytes) {
  ASSERT_EQ(run_command("-q --size 9x16x16 --steps 8 -T 1" + out()).status, 0);
  const std::string one = bytes("velocity_z_t0008_9x16x16.f32");
  ASSERT_EQ(run_command("-q --size 9x16x16 --steps 8 -T 3" + out()).status, 0);
  EXPECT_EQ(one.size(), 9u * 16u * 16u * 4u);
  EXPECT_TRUE(bytes("velocity_z_t0008_9x16x16.f32") == one);
}

TEST_F(CommandTest, Quiet_PrintsNothing) {
  const Outcome o = run_command("--quiet --size 4x4x4 --steps 1" + out());
  EXPECT_EQ(o.status, 0);
  EXPECT_EQ(o.text, "");
}

TEST_F(CommandTest, Help_NamesEveryOptionAndExitStatus) {
  const Outcome o = run_command("--help");
  EXPECT_EQ(o.status, 0);
  for (const char* word : {"--setup", "--size", "--steps", "--time", "--every", "--out", "--format", "--type",
                           "--threads", "kelvin-helmholtz", "sedov", "Exit status"})
    EXPECT_NE(o.text.find(word), std::string::npos) << word;
}

TEST_F(CommandTest, WrongArguments_AreExplainedWithStatusOne) {
  const std::array<std::array<std::string, 2>, 12> cases{{
      {"--setup tornado --steps 1", "'tornado' is none of kelvin-helmholtz, sedov"},
      {"--size 64x64 --steps 1", "'64x64' is not a size"},
      {"--size 64x0x64 --steps 1", "not a size"},
      {"--size 8x8x8x8 --steps 1", "not a size"},
      {"--size 999999999x999999999x999999999 --steps 1", "more cells than can be addressed"},
      {"--size 4x4x4", "--steps N, --time T"},
      {"--steps 0", "--steps must be at least 1"},
      {"--steps -3", "'-3' is not a whole number"},
      {"--time -1", "--time must be a positive number"},
      {"--type f16 --steps 1", "'f16' is none of f32, f64"},
      {"--format netcdf --steps 1", "'netcdf' is none of"},
      {"--steps 1 --wings", "--wings"},
  }};
  for (const auto& [arguments, word] : cases) {
    const Outcome o = run_command(arguments + out());
    EXPECT_EQ(o.status, 1) << arguments << "\n" << o.text;
    EXPECT_NE(o.text.find(word), std::string::npos) << arguments << "\n" << o.text;
  }
}

TEST_F(CommandTest, FolderThatCannotBeMade_IsAnIoError) {
  const Outcome o = run_command("--size 4x4x4 --steps 1 --out /dev/null/fields");
  EXPECT_EQ(o.status, 2);
  EXPECT_NE(o.text.find("/dev/null/fields"), std::string::npos) << o.text;
}

TEST_F(CommandTest, Hdf5_IsWrittenOrDeclinedClearly) {
  const Outcome o = run_command("--size 4x4x4 --steps 1 --format hdf5" + out());
  if (has_hdf5()) {
    EXPECT_EQ(o.status, 0) << o.text;
    EXPECT_TRUE(fs::exists(folder_ / "flow_t0001_4x4x4.h5"));
  } else {
    EXPECT_EQ(o.status, 1);
    EXPECT_NE(o.text.find("raw"), std::string::npos);
  }
}

}  // namespace
}  // namespace quern::flow
