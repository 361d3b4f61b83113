// Files of the flow solver: names, bytes, and that nothing unfinished is left behind.
#include "datasets/flow/output.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "datasets/flow/run.h"

namespace quern::flow {
namespace {

namespace fs = std::filesystem;

/// An empty folder of this test, removed at the end.
class OutputTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() / ("quern_flow_" + std::to_string(::getpid()) + "_" + info->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_)) found.push_back(entry.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  }
  OutputOptions options(OutputFormat format, ElementType type) const {
    return {folder_.string(), format, type, "test"};
  }

  fs::path folder_;
  Grid grid_ = Grid::make({3, 4, 5}).value();
  PeriodicBoundary boundary_;
  Solver solver_ = Solver::make(grid_, kelvin_helmholtz(grid_, 1), boundary_, 1).value();
  Written written_;
  std::string detail_;
};

template <class T>
std::vector<T> read_little_endian(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  std::vector<T> values;
  for (std::size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    Bits bits = 0;
    for (std::size_t b = 0; b < sizeof(T); ++b)
      bits |= static_cast<Bits>(static_cast<unsigned char>(bytes[i + b])) << 8 * b;
    values.push_back(std::bit_cast<T>(bits));
  }
  return values;
}

TEST_F(OutputTest, RawFiles_HaveNamesSizesAndValues) {
  ASSERT_TRUE(solver_.advance(solver_.stable_time_step(0.4)).ok());
  ASSERT_TRUE(write_fields(solver_, options(OutputFormat::raw, ElementType::f32), written_, detail_).ok()) << detail_;
  ASSERT_TRUE(write_fields(solver_, options(OutputFormat::raw, ElementType::f64), written_, detail_).ok()) << detail_;
  std::vector<std::string> expected;
  for (const char* what : {"density", "energy", "pressure", "velocity_x", "velocity_y", "velocity_z"})
    for (const char* type : {"f32", "f64"}) expected.push_back(std::string(what) + "_t0001_3x4x5." + type);
  EXPECT_EQ(names(), expected);
  EXPECT_EQ(written_.files.size(), 12u);
  EXPECT_EQ(written_.bytes, 6u * 60u * 12u);
  std::vector<double> values(grid_.elems());
  for (const QuantityInfo& info : quantities()) {
    solver_.field(info.quantity, values);
    EXPECT_EQ(read_little_endian<double>(folder_ / output_name(info.name, 1, grid_, "f64")), values) << info.name;
    std::vector<float> singles;
    for (const double v : values) singles.push_back(static_cast<float>(v));
    EXPECT_EQ(read_little_endian<float>(folder_ / output_name(info.name, 1, grid_, "f32")), singles) << info.name;
  }
}

TEST_F(OutputTest, Name_HasAtLeastFourDigits) {
  EXPECT_EQ(output_name("density", 10, grid_, "f32"), "density_t0010_3x4x5.f32");
  EXPECT_EQ(output_name("flow", 123456, grid_, "h5"), "flow_t123456_3x4x5.h5");
}

TEST_F(OutputTest, Hdf5_IsWrittenOrDeclinedClearly) {
  const Status status = write_fields(solver_, options(OutputFormat::hdf5, ElementType::f64), written_, detail_);
  if (has_hdf5()) {
    ASSERT_TRUE(status.ok()) << detail_;
    EXPECT_EQ(names(), std::vector<std::string>{"flow_t0000_3x4x5.h5"});
    std::ifstream in(folder_ / "flow_t0000_3x4x5.h5", std::ios::binary);
    char signature[8] = {};
    in.read(signature, sizeof signature);
    EXPECT_EQ(std::memcmp(signature, "\x89HDF\r\n\x1a\n", 8), 0);
  } else {
    EXPECT_EQ(status.code(), StatusCode::unsupported);
    EXPECT_TRUE(names().empty());
  }
}

TEST_F(OutputTest, MissingFolder_IsAnIoErrorThatNamesTheFile) {
  OutputOptions nowhere = options(OutputFormat::raw, ElementType::f32);
  nowhere.directory += "/missing";
  EXPECT_EQ(write_fields(solver_, nowhere, written_, detail_).code(), StatusCode::io_error);
  EXPECT_NE(detail_.find("missing/density_t0000"), std::string::npos) << detail_;
}

TEST_F(OutputTest, NameTakenByAFolder_LeavesNothingUnfinished) {
  fs::create_directories(folder_ / output_name("density", 0, grid_, "f32") / "inside");
  EXPECT_EQ(write_fields(solver_, options(OutputFormat::raw, ElementType::f32), written_, detail_).code(),
            StatusCode::io_error);
  EXPECT_EQ(names(), std::vector<std::string>{"density_t0000_3x4x5.f32"});
  EXPECT_TRUE(written_.files.empty());
}

TEST_F(OutputTest, Run_WritesEachKthStepAndTheLast) {
  RunOptions run_options;
  run_options.steps = 7;
  run_options.every = 3;
  run_options.initial = true;
  const auto go_on = [](const Solver&) { return true; };
  ASSERT_TRUE(run(solver_, run_options, options(OutputFormat::raw, ElementType::f32), go_on, written_, detail_).ok());
  std::vector<std::string> steps;
  for (const std::string& name : names())
    if (name.starts_with("density")) steps.push_back(name.substr(8, 5));
  EXPECT_EQ(steps, (std::vector<std::string>{"t0000", "t0003", "t0006", "t0007"}));
}

TEST_F(OutputTest, Run_EndsAtTheTimeAskedFor) {
  RunOptions run_options;
  run_options.time = 0.1;
  const auto go_on = [](const Solver&) { return true; };
  ASSERT_TRUE(run(solver_, run_options, options(OutputFormat::raw, ElementType::f32), go_on, written_, detail_).ok());
  EXPECT_DOUBLE_EQ(solver_.time(), 0.1);
  EXPECT_EQ(written_.files.size(), 6u);
}

TEST_F(OutputTest, Run_StopsWhenTheObserverAsks) {
  RunOptions run_options;
  run_options.steps = 100;
  const auto three_steps = [](const Solver& solver) { return solver.step() < 3; };
  const Status status =
      run(solver_, run_options, options(OutputFormat::raw, ElementType::f32), three_steps, written_, detail_);
  EXPECT_EQ(status.code(), StatusCode::cancelled);
  EXPECT_EQ(solver_.step(), 3u);
  EXPECT_TRUE(names().empty());
}

}  // namespace
}  // namespace quern::flow
