// Predictions of frames by poses: the bound holds and drives come back, whatever the poses say.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory_resource>
#include <optional>
#include <set>
#include <vector>

#include "codecs/lidar/octree/morton.h"
#include "lidar/drive/posed_frames.h"
#include "lidar/history/tile.h"
#include "lidar/verify/exact_check.h"
#include "tests/unit_lidar/clouds.h"
#include "tests/unit_lidar_drive/golden_drive.h"

namespace quern::lidar {
namespace {

using namespace quern::lidar_test;
using namespace quern::lidar::exact;

constexpr std::array<double, 12> kIdentity = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};
constexpr std::uint32_t kBound = 1500;

std::array<double, 12> turned(double angle, double x) {
  return {std::cos(angle), -std::sin(angle), 0, x, std::sin(angle), std::cos(angle), 0, 2, 0, 0, 1, -1};
}

TEST(Pose_OfAMatrix, IsRigidOrNone) {
  for (const double angle : {0.0, 0.3, 1.7, 3.1, -2.0}) {
    const auto pose = pose_of_matrix(turned(angle, 100));
    ASSERT_TRUE(pose.has_value());
    EXPECT_TRUE(is_pose(*pose));
    EXPECT_EQ(pose->translation[0], 1'000'000);
  }
  auto nearly = kIdentity;
  nearly[0] = 1.0004;
  EXPECT_TRUE(pose_of_matrix(nearly).has_value());
  auto bad = kIdentity;
  bad[0] = 1.01;
  EXPECT_FALSE(pose_of_matrix(bad).has_value());
  bad[0] = -1;
  EXPECT_FALSE(pose_of_matrix(bad).has_value());
  bad[0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(pose_of_matrix(bad).has_value());
  for (const double far : {1e12, std::numeric_limits<double>::infinity()})
    EXPECT_FALSE(pose_of_matrix(turned(0, far)).has_value());
}

TEST(Move_BetweenPoses, IsThatOfTheMatrices) {
  const double angle = 0.5;
  const Move move(*pose_of_matrix(turned(angle, 3)), *pose_of_matrix(kIdentity));
  const auto at = move({100'000, -50'000, 20'000});
  ASSERT_TRUE(at.has_value());
  EXPECT_NEAR(static_cast<double>((*at)[0]), 100'000 * std::cos(angle) + 50'000 * std::sin(angle) + 30'000, 2);
  EXPECT_NEAR(static_cast<double>((*at)[1]), 100'000 * std::sin(angle) - 50'000 * std::cos(angle) + 20'000, 2);
  EXPECT_NEAR(static_cast<double>((*at)[2]), 20'000 - 10'000, 2);
  EXPECT_FALSE(move({Move::kMostUnits + 1, 0, 0}).has_value());
  EXPECT_FALSE(Move(Pose{{1, 0, 0, 0}, {Pose::kMostTranslation, 0, 0}}, Pose())({0, 0, 0}).has_value());
}

TEST(RaysOf_AScan, AreItsRings) {
  const auto rays = find_rays(unit_points(posed_clouds()[0].words));
  ASSERT_TRUE(rays.has_value());
  EXPECT_EQ(rays->rings.size(), 16U);
  EXPECT_TRUE(are_rays(*rays));
  EXPECT_FALSE(find_rays({}).has_value());
  const std::vector<UnitPoint> same(1000, {50'000, 0, 0});
  EXPECT_FALSE(find_rays(same).has_value());
}

TEST(RayCast_OfPointsInAnyOrder, IsTheSame) {
  auto points = unit_points(posed_clouds()[1].words);
  const auto rays = find_rays(points);
  ASSERT_TRUE(rays.has_value());
  RayCast forward(*rays), backward(*rays);
  for (std::size_t i = 0; i < points.size(); ++i) {
    forward.add(points[i]);
    backward.add(points[points.size() - 1 - i]);
  }
  EXPECT_EQ(forward.seen(), backward.seen());
  EXPECT_GT(forward.seen().size(), points.size() / 2);
}

TEST(KnownPoints_OfATile, AreTheCentresOfCubes) {
  using namespace quern::codec::lidar;
  const auto rays = find_rays(unit_points(posed_clouds()[0].words));
  ASSERT_TRUE(rays.has_value());
  const Pose pose = *pose_of_matrix(turned(0.4, 7));
  const std::vector<std::pair<std::uint32_t, std::int64_t>> sides = {
      {50, 800}, {125, 1000}, {400, 800}, {500, 1000}, {800, 800}, {1000, 1000}, {1250, 1250}, {40'000, 40'000}};
  for (const auto& [cell_units, side] : sides) {
    Random random(cell_units);
    const auto cells_a_side = std::min<std::uint64_t>(kTileUnits / cell_units, 40);
    std::set<Cell> chosen;
    for (int i = 0; i < 600; ++i)
      chosen.insert(morton(random.below(cells_a_side), random.below(cells_a_side), random.below(cells_a_side)));
    const Vector<Cell> cells(chosen.begin(), chosen.end());
    const SeenFrame tile{pose_of({0, 0, 0}), cell_centres(cells, cell_units)};
    ScanPredictor predictor(*rays, pose, true);
    predictor.add_cells(tile, cell_units);

    const Move move(tile.pose, pose);
    const std::int64_t units = cell_units;
    std::set<UnitPoint> cubes;
    for (const Cell cell : cells)
      cubes.insert({morton_x(cell) * units / side, morton_y(cell) * units / side, morton_z(cell) * units / side});
    std::vector<UnitPoint> expected, known;
    for (const auto& [x, y, z] : cubes)
      expected.push_back(move({x * side + side / 2, y * side + side / 2, z * side + side / 2}).value());
    for (const PredictedPoint& point : predictor.seen())
      if (point.weight == 0) known.push_back(point.at);
    std::sort(expected.begin(), expected.end());
    std::sort(known.begin(), known.end());
    EXPECT_EQ(known, expected) << cell_units;
    EXPECT_EQ(predictor.known_points(), known.size());
  }
}

/// Encoded in order, every third a key frame.
std::vector<CodedFrame> encode_all(const std::vector<Pose>& poses, Mode mode = Mode::set) {
  PosedFrames frames(3);
  SerialRunner runner;
  std::vector<CodedFrame> out;
  const auto clouds = posed_clouds();
  for (std::size_t i = 0; i < clouds.size(); ++i) {
    auto frame = frames.encode(clouds[i], {mode, kBound * UINT64_C(100'000)}, poses[i], runner);
    if (!frame.ok()) ADD_FAILURE() << frame.status().text();
    out.push_back(std::move(frame).value());
    out.back().description.name = "frame";
  }
  return out;
}

Vector<std::uint8_t> drive_of(const std::vector<CodedFrame>& frames) {
  std::vector<Vector<std::uint8_t>> descriptions;
  for (const CodedFrame& frame : frames) descriptions.push_back(write_description(frame.description));
  std::vector<StoredFrame> stored;
  for (std::size_t i = 0; i < frames.size(); ++i) stored.push_back({descriptions[i], frames[i].scan});
  Vector<std::uint8_t> out;
  VectorSink sink(out);
  EXPECT_TRUE(write_drive(stored, Execution(), sink).ok());
  return out;
}

/// Frames come back in any order, within the bound by the kd-tree in both directions.
void check_drive(const std::vector<CodedFrame>& frames) {
  const auto bytes = drive_of(frames);
  MemorySource source(bytes);
  const auto drive = Drive::open(source, Execution());
  ASSERT_TRUE(drive.ok());
  SerialRunner runner;
  const auto clouds = posed_clouds();
  for (const std::uint64_t i : {2U, 0U, 4U, 1U, 3U, 2U}) {
    const auto back = (*drive)->read(i, 1 << 20, runner);
    ASSERT_TRUE(back.ok()) << i << ": " << back.status().text();
    const auto source_points = exact_points(clouds[i].words, false);
    const auto decoded = exact_points(back->words, false);
    EXPECT_EQ(violations(source_points, decoded, {kBound, 10000}), 0U);
    EXPECT_EQ(violations(decoded, source_points, {kBound, 10000}), 0U);
  }
}

TEST(PosedFrames_OfTheSamePlace, PredictAndKeepTheBound) {
  const auto frames = encode_all(posed_poses());
  EXPECT_FALSE(frames[0].description.references.size() > 0);
  EXPECT_TRUE(frames[0].description.rays.has_value());
  EXPECT_EQ(frames[2].description.references.size(), 2U);
  EXPECT_TRUE(frames[3].description.references.empty());
  SerialRunner runner;
  const auto alone = encode_frame(posed_clouds()[2], {Mode::set, kBound * UINT64_C(100'000)}, runner);
  ASSERT_TRUE(alone.ok());
  EXPECT_LT(frames[2].scan.size(), alone->scan.size());
  check_drive(frames);
  check_drive(encode_all(posed_poses(), Mode::points));
}

TEST(PosedFrames_WithWrongPoses, CostNextToNothing) {
  const std::vector<Pose> far(5, Pose{{0, 0, 0, 1}, {Pose::kMostTranslation, -Pose::kMostTranslation, 0}});
  std::vector<Pose> wrong, near_zero;
  for (int i = 0; i < 5; ++i) {
    wrong.push_back({{i + 1, -i, 3, i * i}, {30'000 * i, -50'000, 7'000 * i}});
    near_zero.push_back({{0, i % 2, 1, 0}, {i * Pose::kMostTranslation / 8, 0, 0}});
  }
  SerialRunner runner;
  const auto clouds = posed_clouds();
  for (const auto& poses : {far, wrong, near_zero}) {
    const auto frames = encode_all(poses);
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const auto alone = encode_frame(clouds[i], {Mode::set, kBound * UINT64_C(100'000)}, runner);
      ASSERT_TRUE(alone.ok());
      EXPECT_LE(frames[i].scan.size(), alone->scan.size() + alone->scan.size() / 100 + 16);
    }
    check_drive(frames);
  }
}

StatusCode code_of(const std::vector<CodedFrame>& frames, std::uint64_t index) {
  const auto bytes = drive_of(frames);
  MemorySource source(bytes);
  const auto drive = Drive::open(source, Execution());
  SerialRunner runner;
  return (*drive)->read(index, 1 << 20, runner).status().code();
}

TEST(PosedFrames_OfHostileDescriptions, AreCorrupt) {
  const auto good = encode_all(posed_poses());
  ASSERT_FALSE(good[2].description.references.empty());
  auto frames = good;
  frames[0].description.rays.reset();
  EXPECT_EQ(code_of(frames, 2), StatusCode::corrupt);
  frames = good;
  frames[1].description.key_distance = 2;
  EXPECT_EQ(code_of(frames, 1), StatusCode::corrupt);
  EXPECT_EQ(code_of(frames, 2), StatusCode::corrupt);
  frames = good;
  frames[0].description.pose.reset();
  EXPECT_EQ(code_of(frames, 2), StatusCode::corrupt);
  frames = good;
  frames[0].description.pose->translation[0] += 100'000;
  EXPECT_NE(code_of(frames, 1), StatusCode::ok);
  frames = good;
  frames[2].description.references = {2};
  EXPECT_NE(code_of(frames, 2), StatusCode::ok);
}

/// A key frame and `length` - 1 behind it. The last and each eighth before it are said to be predicted from as many
/// before them as can be.
std::vector<CodedFrame> crossed_chain(std::size_t length) {
  const auto good = encode_all(posed_poses());
  SerialRunner runner;
  const auto alone = encode_frame(posed_clouds()[1], {Mode::set, kBound * UINT64_C(100'000)}, runner);
  EXPECT_TRUE(alone.ok());
  std::vector<CodedFrame> frames(length, *alone);
  for (std::size_t i = 0; i < length; ++i) {
    FrameDescription& description = frames[i].description;
    description.name = "frame";
    description.pose = posed_poses()[0];
    if ((length - 1 - i) % kMostReferenceDistance != 0) continue;
    description.key_distance = i;
    for (std::uint64_t back = 1; back <= std::min<std::uint64_t>(i, kMostReferenceDistance); ++back)
      description.references.push_back(back);
  }
  frames[0].description.rays = good[0].description.rays;
  return frames;
}

/// The most memory that is taken at a time.
class PeakMemory : public std::pmr::memory_resource {
 public:
  std::size_t peak() const { return peak_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    used_ += bytes;
    peak_ = std::max(peak_, used_);
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    used_ -= bytes;
    std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  std::size_t used_ = 0;
  std::size_t peak_ = 0;
};

/// Reads the last frame, then, where `after` says so, one before it.
std::size_t peak_of_reading(const std::vector<CodedFrame>& frames, std::optional<std::uint64_t> after = {}) {
  const auto bytes = drive_of(frames);
  MemorySource source(bytes);
  PeakMemory memory;
  const MemoryScope scope(&memory);
  const auto drive = Drive::open(source, Execution());
  SerialRunner runner;
  EXPECT_EQ((*drive)->read(frames.size() - 1, 1 << 20, runner).status().text(), "");
  if (after) {
    EXPECT_TRUE((*drive)->read(*after, 1 << 20, runner).ok());
  }
  return memory.peak();
}

TEST(PosedFrames_OfALongChain, AreNotAllKept) {
  const std::size_t one_frame = sizeof(UnitPoint) * posed_clouds()[1].points();
  const std::size_t shorter = peak_of_reading(crossed_chain(kMostReferenceDistance + 1));
  const auto longest = crossed_chain(kMostKeyDistance + 1);
  EXPECT_LT(peak_of_reading(longest), shorter + 3 * one_frame);
  EXPECT_LT(peak_of_reading(longest, 30), shorter + 3 * one_frame);
}

TEST(PosedFrames_ThatTakeTooMuchMemory, AreRefused) {
  auto frames = crossed_chain(9);
  SerialRunner runner;
  const auto read_last = [&] {
    const auto bytes = drive_of(frames);
    MemorySource source(bytes);
    Execution execution;
    execution.memory_limit = 256 * posed_clouds()[1].points();
    const auto drive = Drive::open(source, execution);
    return (*drive)->read(frames.size() - 1, 1 << 20, runner).status().code();
  };
  EXPECT_EQ(read_last(), StatusCode::memory_limit);
  for (CodedFrame& frame : frames)
    if (!frame.description.references.empty()) frame.description.references = {1};
  EXPECT_EQ(read_last(), StatusCode::ok);
}

TEST(PosedFrames_InAnyOrder, AreTheSame) {
  PosedFrames encoder(64);
  SerialRunner runner;
  std::vector<CodedFrame> frames;
  for (std::uint64_t i = 0; i < 20; ++i) {
    const auto made = spinning_scan(16, 80, i % 3, true);
    PointCloud cloud;
    cloud.words.assign(made.words.begin(), made.words.end());
    auto frame = encoder.encode(cloud, {Mode::set, kBound * UINT64_C(100'000)}, posed_poses()[i % 5], runner);
    ASSERT_TRUE(frame.ok()) << frame.status().text();
    frames.push_back(std::move(frame).value());
    frames.back().description.name = "frame";
  }
  ASSERT_EQ(frames[19].description.references.size(), 4U);
  const auto bytes = drive_of(frames);
  MemorySource source(bytes);
  const auto in_turn = Drive::open(source, Execution());
  std::vector<Vector<std::uint32_t>> words;
  for (std::uint64_t i = 0; i < frames.size(); ++i) words.push_back((*in_turn)->read(i, 1 << 20, runner)->words);
  const auto mixed = Drive::open(source, Execution());
  for (const std::uint64_t i : {19U, 18U, 3U, 12U, 11U, 19U, 0U, 7U, 1U, 10U}) {
    const auto back = (*mixed)->read(i, 1 << 20, runner);
    ASSERT_TRUE(back.ok()) << i << ": " << back.status().text();
    EXPECT_EQ(back->words, words[i]) << i;
  }
}

TEST(KnownPoints_BeyondTheMemory, AreRefused) {
  const auto frames = encode_all(posed_poses());
  ASSERT_EQ(frames[2].description.references.size(), 2U);
  ASSERT_TRUE(frames[2].description.known);
  const auto bytes = drive_of(frames);
  MemorySource source(bytes);
  SerialRunner runner;
  std::uint64_t known = 0;
  const auto whole = Drive::open(source, Execution());
  for (const std::uint64_t i : {0U, 1U}) known += unit_points((*whole)->read(i, 1 << 20, runner)->words).size();
  for (const std::uint64_t points : {known, known - 1}) {
    Execution execution;
    execution.memory_limit = 256 * points;
    ASSERT_EQ(points_within(execution.memory_limit), points);
    const auto drive = Drive::open(source, execution);
    ASSERT_TRUE(drive.ok()) << drive.status().text();
    EXPECT_EQ((*drive)->read(2, 1 << 20, runner).status().code(),
              points == known ? StatusCode::ok : StatusCode::memory_limit);
  }
}

TEST(PosedDescription_OutOfRange, IsCorrupt) {
  const auto good = encode_all(posed_poses());
  const auto refused = [&](auto change) {
    FrameDescription description = good[1].description;
    description.rays = good[0].description.rays;
    EXPECT_TRUE(read_description(write_description(description)).ok());
    change(description);
    return read_description(write_description(description)).status().code() != StatusCode::ok;
  };
  EXPECT_TRUE(good[1].description.known);
  // Known points without a prediction.
  EXPECT_TRUE(refused([](auto& d) { d.references.clear(); }));
  EXPECT_TRUE(refused([](auto& d) { d.pose->quaternion = {0, 0, 0, 0}; }));
  EXPECT_TRUE(refused([](auto& d) { d.pose->quaternion[1] = Pose::kMostQuaternion + 1; }));
  EXPECT_TRUE(refused([](auto& d) { d.pose->translation[2] = Pose::kMostTranslation + 1; }));
  EXPECT_TRUE(refused([](auto& d) { d.pose.reset(); }));
  EXPECT_TRUE(refused([](auto& d) { std::swap(d.rays->rings[1], d.rays->rings[2]); }));
  EXPECT_TRUE(refused([](auto& d) { d.rays->rings.clear(); }));
  EXPECT_TRUE(refused([](auto& d) { d.rays->step.y = 1; }));
  EXPECT_TRUE(refused([](auto& d) { d.references = {0}; }));
  EXPECT_TRUE(refused([](auto& d) { d.references = {2}; }));
  EXPECT_TRUE(refused([](auto& d) {
    d.key_distance = kMostReferenceDistance + 1;
    d.references = {kMostReferenceDistance + 1};
  }));
  EXPECT_TRUE(refused([](auto& d) { d.key_distance = kMostKeyDistance + 1; }));
}

}  // namespace
}  // namespace quern::lidar
