// What the wrapper does when all goes well: arrays, streams, regions, parameters, measures. Compiled as C++17.
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

#include <gtest/gtest.h>

#include <quern/quern.hpp>

static_assert(__cplusplus < 202002L, "this file shows that the wrapper is C++17");

namespace {

constexpr std::uint64_t kPlanes = 11;
constexpr std::uint64_t kRows = 23;
constexpr std::uint64_t kColumns = 37;
constexpr std::size_t kElements = kPlanes * kRows * kColumns;

std::vector<float> waves() {
  std::vector<float> values(kElements);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto x = static_cast<float>(i);
    values[i] = std::sin(0.013f * x) + 0.2f * std::cos(0.4f * x);
  }
  return values;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i)
    largest = std::max(largest, std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return largest;
}

TEST(Compress, VectorAndCallersMemory_HoldTheSameStreamWithinTheBound) {
  const std::vector<float> values = waves();
  quern::Context context;
  const quern::Params params("abs=1e-3");
  const quern::ConstArray field(values.data(), {kPlanes, kRows, kColumns});
  quern::Report report = QUERN_REPORT_INIT;
  const std::vector<std::uint8_t> stream = quern::compress(context, params, field, &report);
  EXPECT_EQ(report.output_bytes, stream.size());
  EXPECT_EQ(report.input_bytes, sizeof(float) * kElements);
  EXPECT_LT(stream.size(), sizeof(float) * kElements / 2);

  std::vector<unsigned char> room(quern::compress_bound(params, field));
  ASSERT_EQ(quern::compress_into(context, params, field, room.data(), room.size()), stream.size());
  EXPECT_EQ(std::memcmp(room.data(), stream.data(), stream.size()), 0);

  std::vector<float> back(kElements, -9.0f);
  quern::decompress(context, stream, quern::Array(back.data(), {kPlanes, kRows, kColumns}));
  EXPECT_LE(largest_difference(values, back), 1e-3);
  EXPECT_EQ(quern::decompress<float>(context, stream, kElements), back);
}

TEST(Compress, ThreadsOfTheContext_ChangeNothingInTheStream) {
  const std::vector<float> values = waves();
  const quern::ConstArray field(values.data(), {kPlanes, kRows, kColumns});
  const quern::Params params("rel=1e-4");
  quern::Context one;
  quern::Context three(3);
  EXPECT_EQ(quern::compress(one, params, field), quern::compress(three, params, field));
}

TEST(Region, Box_EqualsTheSameBoxOfTheWhole) {
  const std::vector<float> values = waves();
  quern::Context context;
  const auto stream =
      quern::compress(context, quern::Params("abs=0.01"), quern::ConstArray(values.data(), {kPlanes, kRows, kColumns}));
  const auto whole = quern::decompress<float>(context, stream, kElements);
  float box[2][3][5];
  quern::region(context, stream, {4, 7, 30}, {6, 10, 35}, quern::Array(&box[0][0][0], {2, 3, 5}));
  for (std::uint64_t z = 0; z < 2; ++z)
    for (std::uint64_t y = 0; y < 3; ++y)
      for (std::uint64_t x = 0; x < 5; ++x)
        EXPECT_EQ(box[z][y][x], whole[((4 + z) * kRows + 7 + y) * kColumns + 30 + x]) << z << ' ' << y << ' ' << x;
}

TEST(Levels, OfAStreamInLevels_AreItsEverySecondPlace) {
  const std::vector<float> values = waves();
  quern::Context context;
  const auto stream = quern::compress(context, quern::Params("abs=0.01 codec=stencil layout=levels"),
                                      quern::ConstArray(values.data(), {kPlanes, kRows, kColumns}));
  const auto whole = quern::decompress<float>(context, stream, kElements);
  EXPECT_GE(quern::levels(context, stream), 3u);
  const std::uint64_t planes = (kPlanes + 1) / 2;
  const std::uint64_t rows = (kRows + 1) / 2;
  const std::uint64_t columns = (kColumns + 1) / 2;
  std::vector<float> level(planes * rows * columns);
  quern::decompress_level(context, stream, 1, quern::Array(level.data(), {planes, rows, columns}));
  for (std::uint64_t i = 0; i < level.size(); ++i)
    EXPECT_EQ(level[i],
              whole[(2 * (i / columns / rows) * kRows + 2 * (i / columns % rows)) * kColumns + 2 * (i % columns)]);
  EXPECT_THROW(quern::decompress_level(context, stream, 40, quern::Array(level.data(), {planes, rows, columns})),
               quern::Error);
}

TEST(Inspect, Header_TellsTypeExtentsAndBound) {
  const std::vector<std::int16_t> values(42, 3);
  quern::Context context;
  quern::Params params;
  params.bound(QUERN_BOUND_ABS, 2).metadata(std::string("{}"));
  const auto stream = quern::compress(context, params, quern::ConstArray(values.data(), {6, 7}));
  const quern::StreamInfo info = quern::inspect(stream);
  EXPECT_EQ(info.dtype, QUERN_I16);
  EXPECT_EQ(info.enforced_value, 2.0);
  EXPECT_EQ(info.metadata_bytes, 2u);
  const quern::Extents extents = quern::extents_of(info);
  ASSERT_EQ(extents.rank(), 2u);
  EXPECT_EQ(extents[0], 6u);
  EXPECT_EQ(extents[1], 7u);
  EXPECT_EQ(quern::inspect(quern::Bytes(stream.data(), info.header_bytes)).chunks, info.chunks);
}

TEST(Arrays, Strides_PickElementsAndLeaveTheRestAlone) {
  std::vector<double> memory(40);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<double>(i) * 1.5;
  quern::Context context;
  const quern::Params params;
  const auto every_third = quern::compress(context, params, quern::ConstArray(memory.data() + 1, {13}, {3}));
  std::vector<double> back(40, -1.0);
  quern::decompress(context, every_third, quern::Array(back.data() + 36, {13}, {-3}));
  for (std::size_t i = 0; i < 13; ++i) EXPECT_EQ(back[36 - 3 * i], memory[1 + 3 * i]) << i;
  EXPECT_EQ(std::count(back.begin(), back.end(), -1.0), 40 - 13);
}

TEST(Arrays, TypesWithoutACxxType_GoByVoidPointer) {
  const std::array<std::uint16_t, 8> halves = {0x3c00, 0x4000, 0x7e01, 0x8000, 0x0001, 0xfc00, 0x3555, 0x0000};
  quern::Context context;
  const void* data = halves.data();
  const auto stream = quern::compress(context, quern::Params("abs=0.001"), quern::ConstArray(data, QUERN_F16, {2, 4}));
  EXPECT_EQ(quern::inspect(stream).dtype, QUERN_F16);
  std::array<std::uint16_t, 8> back{};
  void* room = back.data();
  quern::decompress(context, stream, quern::Array(room, QUERN_F16, {2, 4}));
  EXPECT_EQ(back[2], halves[2]) << "a NaN keeps its bits";
  EXPECT_EQ(back[3], halves[3]) << "so does -0";
}

TEST(Arrays, RankZero_IsOneElement) {
  const double value = 6.25;
  quern::Context context;
  const auto stream = quern::compress(context, quern::Params(), quern::ConstArray(&value, {}));
  EXPECT_EQ(quern::decompress<double>(context, stream, 1), std::vector<double>{6.25});
}

TEST(Arrays, EmptyExtent_MakesAStreamOfNothing) {
  quern::Context context;
  const std::vector<float> none;
  const auto stream = quern::compress(context, quern::Params(), quern::ConstArray(none.data(), {3, 0, 5}));
  EXPECT_TRUE(quern::decompress<float>(context, stream, 0).empty());
}

TEST(Arrays, ElementTypes_FollowFromTheCxxType) {
  EXPECT_EQ(quern::dtype_of<float>(), QUERN_F32);
  EXPECT_EQ(quern::dtype_of<double>(), QUERN_F64);
  EXPECT_EQ(quern::dtype_of<signed char>(), QUERN_I8);
  EXPECT_EQ(quern::dtype_of<long long>(), QUERN_I64);
  EXPECT_EQ(quern::dtype_of<std::uint16_t>(), QUERN_U16);
  EXPECT_EQ(quern::dtype_of<std::uint32_t>(), QUERN_U32);
}

TEST(Parameters, SetAndText_AreReadBack) {
  quern::Params params("pwrel=0.01,codec=lorenzo");
  EXPECT_EQ(params.get("codec"), "lorenzo");
  EXPECT_EQ(params.get("bound"), "pwrel=0.01");
  params.set("codec", "lossless").set("goal", "speed").bound(QUERN_BOUND_LOSSLESS);
  EXPECT_EQ(params.get("codec"), "lossless");
  EXPECT_EQ(params.get("goal"), "speed");
  EXPECT_EQ(params.get("bound"), "lossless");
}

TEST(Quality, VerdictAndComparison_SeeOneChangedValue) {
  std::vector<float> values = waves();
  values[100] = values[200] = -999.0f;
  quern::Context context;
  quern::Params params("abs=1e-3");
  params.add_fill(-999.0f);
  const quern::Extents extents{kPlanes, kRows, kColumns};
  const auto stream = quern::compress(context, params, quern::ConstArray(values.data(), extents));
  const auto back = quern::decompress<float>(context, stream, kElements);
  EXPECT_EQ(back[100], -999.0f);
  EXPECT_EQ(quern::verify(context, quern::ConstArray(values.data(), extents), stream).violations, 0u);
  const auto filled = quern::compare(context, params, quern::ConstArray(values.data(), extents),
                                     quern::ConstArray(back.data(), extents));
  EXPECT_EQ(filled.valid, kElements - 2);
  EXPECT_LE(filled.max_error, 1e-3);
  EXPECT_GT(filled.min, -2.0);
  const auto plain =
      quern::compare(context, quern::ConstArray(values.data(), extents), quern::ConstArray(back.data(), extents));
  EXPECT_EQ(plain.min, -999.0);

  values[4321] += 1.0f;
  const quern::Verdict verdict = quern::verify(context, quern::ConstArray(values.data(), extents), stream);
  EXPECT_EQ(verdict.violations, 1u);
  EXPECT_EQ(verdict.first_index, 4321u);
}

TEST(Handles, MoveAndCannotBeCopied) {
  static_assert(!std::is_copy_constructible_v<quern::Context> && std::is_nothrow_move_constructible_v<quern::Context>);
  static_assert(!std::is_copy_constructible_v<quern::Params> && std::is_nothrow_move_assignable_v<quern::Params>);
  static_assert(!std::is_convertible_v<quern::ConstArray, quern::Array>, "what is const cannot be decoded into");
  quern::Params params("abs=0.5");
  const quern::Params moved = std::move(params);
  EXPECT_EQ(moved.get("bound"), "abs=0.5");
}

}  // namespace
