// Arrays through the codec: the bound, what compresses, layouts, special elements, exact values.
#include "tests/unit_stencil/helpers.h"

#include <limits>

namespace quern::codec::stencil::test {
namespace {

template <class T>
void expect_bound(DType dtype, const Shape& shape, const std::vector<double>& values, double bound, double ratio) {
  SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + shape.text() + " " + std::to_string(bound));
  const Coding coding(dtype, shape, as_bytes<T>(values), bound);
  Bytes back;
  const std::size_t bytes = coding.round_trip(back);
  EXPECT_EQ(count_missed<T>(coding, back, bound), 0u);
  EXPECT_LT(static_cast<double>(bytes) * ratio, static_cast<double>(back.size()));
}

TEST(Stencil_RoundTrip, EveryRankAndBound_KeepsTheBoundAndCompresses) {
  for (const Shape& shape : {shape_of({5000}), shape_of({70, 90}), shape_of({14, 25, 31}), shape_of({6, 5, 13, 17})}) {
    const auto values = waves(shape, 1);
    for (const double bound : {1e-1, 1e-3, 1e-5}) {
      expect_bound<float>(DType::f32, shape, values, bound, bound > 1e-4 ? 2.0 : 1.2);
      expect_bound<double>(DType::f64, shape, values, bound, bound > 1e-4 ? 4.0 : 2.0);
    }
  }
}

TEST(Stencil_RoundTrip, LinesOfOneElementAndOddExtents_ComeBack) {
  for (const Shape& shape : {shape_of({1}), shape_of({2}), shape_of({1, 1, 7}), shape_of({7, 1, 1}),
                             shape_of({3, 1, 5}), shape_of({1, 19, 2}), shape_of({2, 2, 2, 2, 2})})
    expect_bound<float>(DType::f32, shape, waves(shape, 2), 1e-2, 0.05);
}

TEST(Stencil_RoundTrip, SeveralChunks_KeepTheBound) {
  const Shape shape = shape_of({131, 150, 160});  // more than a chunk's elements
  const Coding coding(DType::f32, shape, as_bytes<float>(waves(shape, 3)), 1e-2, {{"layout", "3d:1,2"}});
  EXPECT_GT(coding.chunks(), 1u);
  Bytes back;
  const std::size_t bytes = coding.round_trip(back);
  EXPECT_LT(bytes * 4, back.size());
  EXPECT_EQ(count_missed<float>(coding, back, 1e-2), 0u);
}

TEST(Stencil_Lanes, WithoutRoomForSeveralAtOnce_AreWrittenOneAfterTheOther) {
  const Shape shape = shape_of({64, 1000});  // two rows a lane, each nearly as long coded as it is raw
  std::mt19937 random(6);
  std::vector<double> values(shape.elems());
  for (double& v : values) v = static_cast<double>(random() % (1u << 23)) - (1 << 22);
  expect_bound<float>(DType::f32, shape, values, 0.5, 1.2);
}

TEST(Stencil_Fit, LoudPlanes_DoNotDecideForAQuietVolume) {
  const Shape shape = shape_of({24, 40, 40});
  std::mt19937 random(7);
  std::vector<double> values(shape.elems());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double plane = static_cast<double>(i / 1600);
    const double noise = static_cast<double>(random() % 2001) / 1000 - 1;
    values[i] = 0.03 * std::sin(0.1 * static_cast<double>(i % 40) + 0.2) *
                    std::sin(0.09 * static_cast<double>(i / 40 % 40)) * std::cos(0.05 * plane) +
                2 * noise * std::exp(-0.9 * plane);
  }
  // Weights that suit the first planes would take half as many bytes again.
  expect_bound<float>(DType::f32, shape, values, 1e-4, 6.2);
}

TEST(Stencil_Integers, ComeBackExactlyUnderABoundBelowOne) {
  const Shape shape = shape_of({12, 30, 40});
  auto values = waves(shape, 4);
  for (double& v : values) v = std::floor(v * 1000);
  expect_bound<std::int16_t>(DType::i16, shape, values, 0.5, 1.5);
  expect_bound<std::int32_t>(DType::i32, shape, values, 7, 5);
  for (double& v : values) v = std::fabs(v) * 1000;
  expect_bound<std::uint32_t>(DType::u32, shape, values, 0.5, 1.0);
}

TEST(Stencil_Exceptions, SpecialBitsComeBackExactly) {
  const Shape shape = shape_of({40, 50});
  auto values = waves(shape, 5);
  values[17] = std::numeric_limits<double>::quiet_NaN();
  values[18] = -0.0;
  values[333] = std::numeric_limits<double>::infinity();
  values[1999] = -std::numeric_limits<double>::infinity();
  const Coding coding(DType::f32, shape, as_bytes<float>(values), 1e-3);
  Bytes back;
  const std::size_t bytes = coding.round_trip(back);
  EXPECT_LT(bytes * 2, back.size());
  EXPECT_EQ(count_missed<float>(coding, back, 1e-3), 0u);
  for (const std::size_t i : {17u, 18u, 333u, 1999u})
    EXPECT_EQ(std::memcmp(back.data() + 4 * i, coding.data().data() + 4 * i, 4), 0) << i;
}

TEST(Stencil_Exceptions, BoundNearTheSpacingOfNumbers_CostsFewExceptions) {
  const Shape shape = shape_of({30, 40, 50});
  auto values = waves(shape, 6);
  for (double& v : values) v = 1000 + 10 * v;  // spacing of binary32: 2^-14
  // Three quarters of a spacing above 2: without regard to the lattice a good part of all elements would miss.
  const double bound = 2.75 * 0x1p-14;
  const Coding coding(DType::f32, shape, as_bytes<float>(values), bound);
  Bytes back;
  const std::size_t bytes = coding.round_trip(back);
  EXPECT_LT(static_cast<double>(bytes) * 1.6, static_cast<double>(back.size()));
  EXPECT_EQ(count_missed<float>(coding, back, bound), 0u);
}

TEST(Stencil_Special, ElementsUnderAMask_CostNothing) {
  const Shape shape = shape_of({20, 60, 70});
  auto values = waves(shape, 7);
  std::mt19937 random(8);
  Bytes special(shape.elems(), 0);
  for (std::size_t i = 0; i < special.size(); ++i) {
    if (i % 4200 % 70 < 30) {
      special[i] = 1;
      values[i] = static_cast<double>(random());
    }
  }
  const Coding masked(DType::f32, shape, as_bytes<float>(values), 1e-3, {{"layout", "3d:1,2"}}, special);
  Bytes back;
  const std::size_t with_mask = masked.round_trip(back);
  EXPECT_EQ(count_missed<float>(masked, back, 1e-3), 0u);
  const Coding plain(DType::f32, shape, as_bytes<float>(waves(shape, 7)), 1e-3, {{"layout", "3d:1,2"}});
  const std::size_t without = plain.round_trip(back);
  EXPECT_LT(with_mask, without);
}

TEST(Stencil_Constant, TakesNineBytes) {
  const Shape shape = shape_of({32, 32, 32});
  const Coding coding(DType::f64, shape, as_bytes<double>(std::vector<double>(shape.elems(), 3.25)), 1e-3);
  Bytes back;
  const std::size_t bytes = coding.round_trip(back);
  EXPECT_EQ(bytes, 9u);
  EXPECT_EQ(back, coding.data());
}

TEST(Stencil_Noise, IsNeverMuchLargerThanItsElements) {
  std::mt19937_64 random(9);
  const Shape shape = shape_of({30, 30, 30});
  Bytes data(shape.elems() * 8);
  for (auto& byte : data) byte = static_cast<std::uint8_t>(random());
  const Coding coding(DType::f64, shape, data, 1e-300);
  Bytes back;
  const std::size_t bytes = coding.round_trip(back);
  EXPECT_LE(bytes, data.size() + 1);
  EXPECT_EQ(back, data);
}

TEST(Stencil_Parts, SwitchedOff_KeepTheBoundAndCostBytes) {
  const Shape shape = shape_of({20, 30, 40});
  const Bytes data = as_bytes<float>(waves(shape, 19));
  for (const char* layout : {"raster", "levels", "planes", "wavelet"}) {
    Bytes back;
    const std::size_t all = Coding(DType::f32, shape, data, 1e-3, {{"layout", layout}}).round_trip(back);
    for (const char* part : {"fit", "contexts"}) {
      if (std::string(part) == "fit" && std::string(layout) == "wavelet") continue;  // nothing is predicted
      const Coding without(DType::f32, shape, data, 1e-3, {{"layout", layout}, {part, "off"}});
      EXPECT_GT(without.round_trip(back), all) << layout << " " << part;
      EXPECT_EQ(count_missed<float>(without, back, 1e-3), 0u) << layout << " " << part;
    }
  }
}

TEST(Stencil_Plan, GoalSpeed_TakesNoTransformAndKeepsTheBound) {
  const Shape shape = shape_of({24, 30, 40});
  const Bytes data = as_bytes<float>(waves(shape, 23));
  const PlainSample sample(data.data(), DType::f32, shape.elems());
  SerialRunner serial;
  for (const double bound : {0.3, 1e-2, 1e-4}) {
    PlanRequest request;
    request.dtype = DType::f32;
    request.shape = shape;
    request.bound = {BoundKind::abs, bound};
    request.sample = &sample;
    request.runner = &serial;
    request.goal = "speed";
    const auto encoder = stencil_codec().plan(request);
    ASSERT_TRUE(encoder.ok()) << encoder.status().text();
    const CodecPlan& plan = (*encoder)->plan();
    constexpr std::uint8_t kWavelet = 3;
    EXPECT_FALSE(plan.params.size() > 2 && plan.params[2] == kWavelet) << bound;
    ASSERT_EQ(plan.grid.chunk, plan.grid.extents);
    const std::array<std::uint64_t, 2> strides{plan.grid.extents[1] * plan.grid.extents[2], plan.grid.extents[2]};
    Bytes stored((*encoder)->max_chunk_bytes());
    const Scratch room((*encoder)->scratch_bytes());
    const auto bytes = (*encoder)->encode({data.data(), plan.grid.extents, strides, nullptr, {}}, stored, room.span());
    ASSERT_TRUE(bytes.ok()) << bytes.status().text();
    stored.resize(*bytes);
    EXPECT_LT(*bytes * 2, data.size()) << bound;
    OpenRequest open;
    open.dtype = DType::f32;
    open.shape = shape;
    open.bound = request.bound;
    open.version = stencil_codec().info().version;
    open.params = plan.params;
    const auto decoder = stencil_codec().open(open);
    ASSERT_TRUE(decoder.ok()) << decoder.status().text();
    Bytes back(data.size());
    const Scratch decode_room((*decoder)->scratch_bytes());
    MutableBox3 out;
    out.data = back.data();
    out.extents = plan.grid.extents;
    out.strides = strides;
    ASSERT_TRUE((*decoder)->decode(stored, out, decode_room.span()).ok());
    EXPECT_EQ(count_missed<float>(Coding(DType::f32, shape, data, bound), back, bound), 0u) << bound;
  }
}

TEST(Stencil_Plan, EveryWay_IsASettingThatItTakesAndOneOfItsOwn) {
  for (const Shape& shape : {shape_of({3000}), shape_of({50, 60}), shape_of({12, 15, 17})}) {
    const auto values = as_bytes<float>(waves(shape, 4));
    std::vector<Vector<std::uint8_t>> params;
    for (const Settings& alternative : stencil_codec().alternatives({}, shape)) {
      const Coding coding(DType::f32, shape, values, 1e-2, alternative);
      params.push_back(coding.encoder().plan().params);
      EXPECT_EQ(std::count(params.begin(), params.end(), params.back()), 1) << alternative[0].second;
    }
    EXPECT_EQ(params.size(), shape.rank() > 1 ? 4u : 3u);
  }
  const Shape shape = shape_of({50, 60});
  EXPECT_TRUE(stencil_codec().alternatives({{"layout", "2d:1"}}, shape).empty());
  EXPECT_EQ(stencil_codec().alternatives({{"fit", "off"}}, shape).size(), 4u);
}

TEST(Stencil_Plan, RefusesWhatItCannotDo) {
  const Shape shape = shape_of({4, 4});
  const Bytes data = as_bytes<float>(std::vector<double>(16, 1.0));
  const PlainSample sample(data.data(), DType::f32, 16);
  SerialRunner serial;
  PlanRequest request;
  request.shape = shape;
  request.sample = &sample;
  request.runner = &serial;
  request.bound = {BoundKind::abs, 0};
  EXPECT_EQ(stencil_codec().plan(request).status().code(), StatusCode::unsupported);
  request.bound = {BoundKind::pwrel, 0.1};
  EXPECT_EQ(stencil_codec().plan(request).status().code(), StatusCode::unsupported);
  request.bound = {BoundKind::abs, 0.1};
  for (const char* layout : {"", "4d", "2d:", "2d:3", "3d:1", "3d:2,1", "3d:1,2x", "3d:1;2"}) {
    request.settings = {{"layout", layout}};
    EXPECT_EQ(stencil_codec().plan(request).status().code(), StatusCode::invalid_argument) << layout;
  }
  request.settings = {{"colour", "red"}};
  EXPECT_EQ(stencil_codec().plan(request).status().code(), StatusCode::unknown_setting);
  for (const char* layout : {"1d", "2d:0", "2d:1", "3d:0,2", "3d:1,1"}) {
    request.settings = {{"layout", layout}};
    EXPECT_TRUE(stencil_codec().plan(request).ok()) << layout;
  }
}

}  // namespace
}  // namespace quern::codec::stencil::test
