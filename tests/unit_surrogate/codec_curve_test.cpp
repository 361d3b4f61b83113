// What `lorenzo` makes of samples, held against what it makes of arrays; counts of residuals, against plain ones.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <quern/compress.h>
#include <quern/stream_io.h>

#include "surrogate/codec_curve.h"
#include "surrogate/numbers.h"
#include "surrogate/residual_counts.h"
#include "tests/unit_surrogate/fields.h"

namespace quern::surrogate {
namespace {

using test::view;
using test::waves;

std::vector<CurvePoint> curve_of(const ArrayView& array, std::span<const std::uint64_t> fill_bits = {}) {
  SerialRunner runner;
  const auto range = value_range(array, fill_bits, Execution{});
  auto curve = lorenzo_curve(array, range.value_or(ValueRange{}), fill_bits, builtin_codecs(), runner);
  EXPECT_TRUE(curve.ok()) << curve.status().text();
  return std::move(curve).value();
}

double log_bits_made(const ArrayView& array, const ErrorBound& bound) {
  CompressOptions options;
  options.codec = "lorenzo";
  options.bound = bound;
  Vector<std::uint8_t> stream;
  VectorSink sink(stream);
  EXPECT_TRUE(compress(array, options, builtin_codecs(), Execution{}, sink).ok());
  return std::log2(8.0 * static_cast<double>(stream.size()) / static_cast<double>(array.elems()));
}

TEST(CodecCurve, OfAnArrayReadWhole_IsWhatTheCodecMakes) {
  const std::vector<float> values = waves(20, 40, 60, 0.02);
  const ArrayView array = view(values, "20x40x60");
  const std::vector<CurvePoint> curve = curve_of(array);
  ASSERT_GT(curve.size(), 10U);
  const ValueRange range = value_range(array, {}, Execution{}).value();
  for (const int octave : {3, 10, 18}) {
    const ErrorBound bound{BoundKind::abs, std::ldexp(range.max - range.min, -octave)};
    EXPECT_NEAR(log_bits_at(curve, -octave), log_bits_made(array, bound), 1e-6) << octave;
  }
}

TEST(CodecCurve, OfALargeArray_IsNearWhatTheCodecMakes) {
  const std::vector<float> values = waves(64, 80, 96, 0.02);
  const ArrayView array = view(values, "64x80x96");
  const std::vector<CurvePoint> curve = curve_of(array);
  ASSERT_GT(curve.size(), 5U);
  for (const int octave : {6, 10, 16})
    EXPECT_NEAR(log_bits_at(curve, -octave), log_bits_made(array, {BoundKind::rel, std::ldexp(1, -octave)}), 0.2);
}

TEST(CodecCurve, OfIntegers_HasTheStepsThatThereAre) {
  std::vector<std::int16_t> values(5000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int16_t>(i * 7 % 40);
  const ArrayView array{values.data(), DType::i16, Shape::parse("50x100").value()};
  const std::vector<CurvePoint> curve = curve_of(array);
  ASSERT_FALSE(curve.empty());
  // Half-widths of half a number: every bit comes back.
  EXPECT_NEAR(curve.back().log_bound, std::log2(0.5 / 39), 1e-6);
  EXPECT_NEAR(curve.back().log_bits, log_bits_made(array, {BoundKind::lossless, 0}), 1e-6);
  for (std::size_t i = 1; i < curve.size(); ++i) EXPECT_LT(curve[i].log_bound, curve[i - 1].log_bound);
}

TEST(CodecCurve, OfArraysWithoutARange_HasNoPoints) {
  const std::vector<float> same(300, 2.5F);
  EXPECT_TRUE(curve_of(view(same, "300")).empty());
  const std::vector<float> none(300, std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(curve_of(view(none, "300")).empty());
  EXPECT_TRUE(curve_of({nullptr, DType::f32, Shape::parse("0x5").value()}).empty());
}

TEST(CodecCurve, SpecialValuesInASample_AreMasked) {
  std::vector<float> values = waves(40, 100, 120, 0.02);
  for (std::size_t i = 0; i < values.size(); i += 50) values[i] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<CurvePoint> curve = curve_of(view(values, "40x100x120"));
  ASSERT_FALSE(curve.empty());
  EXPECT_LT(log_bits_at(curve, -8), 4);
}

TEST(CodecCurve, BetweenPoints_IsALine_AboveThem_TheEnd) {
  const std::vector<CurvePoint> curve{{-1, 0}, {-3, 2}, {-4, 6}};
  EXPECT_EQ(log_bits_at(curve, 0), 0);
  EXPECT_EQ(log_bits_at(curve, -2), 1);
  EXPECT_EQ(log_bits_at(curve, -3.5), 4);
  EXPECT_EQ(log_bits_at(curve, -9), 6);
}

TEST(CodecCurve, BelowItsPoints_TakesABitMoreAHalving_UpToTheMost) {
  const std::vector<CurvePoint> curve{{-1, 0}, {-4, 4}};
  EXPECT_NEAR(exp2_of(log_bits_at(curve, -4, 32)), 16, 1e-6);
  EXPECT_NEAR(exp2_of(log_bits_at(curve, -9, 32)), 21, 1e-6);
  EXPECT_NEAR(exp2_of(log_bits_at(curve, -40, 32)), 32, 1e-6);
  EXPECT_EQ(log_bits_at(curve, -9, 8), 4);  // what the codec made is not made less
  EXPECT_EQ(log_bits_at(curve, 0, 32), 0);
}

TEST(CodecCurve, Copies_AreOfArraysThatAreNotReadWhole) {
  EXPECT_EQ(lorenzo_sampled(Shape::parse("64x64x64").value()), 0U);
  EXPECT_EQ(lorenzo_sampled(Shape::parse("0x5").value()), 0U);
  EXPECT_EQ(lorenzo_sampled(Shape::parse("1000000").value()), UINT64_C(1) << 16);
}

TEST(ResidualCounts, AreThoseOfPlainArithmetic) {
  SampleBlock block;
  block.extents = {4, 5, 600};
  block.values.resize(block.elems());
  block.valid.assign(block.elems(), 1);
  for (std::size_t i = 0; i < block.elems(); i += 37) block.valid[i] = 0;
  std::vector<double> residual(block.elems());
  std::uint32_t state = 7;
  for (double& r : residual) {
    state = state * 1664525U + 1013904223U;
    r = std::ldexp(static_cast<double>(state >> 8) - 0x1p23, -24 - static_cast<int>(state >> 3 & 31));
  }
  const Inner inner{{1, 1, 1}, {4, 5, 599}};
  std::vector<float> magnitude;
  take_magnitudes(residual, block.extents, inner, magnitude);
  JointCounts joint;
  count_residuals(block, magnitude, inner, joint);
  JointCounts plain;
  plain.make_room();
  for (std::uint64_t z = 1; z < 4; ++z)
    for (std::uint64_t y = 1; y < 5; ++y)
      for (std::uint64_t x = 2; x < 599; ++x) {
        const auto at = [&](std::uint64_t dz, std::uint64_t dy, std::uint64_t dx) {
          return std::abs(residual[((z - dz) * 5 + y - dy) * 600 + x - dx]);
        };
        double around = at(0, 0, 1);
        unsigned known = 1;
        if (y > 1) around += at(0, 1, 0), ++known;
        if (z > 1) around += at(1, 0, 0), ++known;
        if (block.valid[(z * 5 + y) * 600 + x] != 0) ++plain.at(bin_of(around / known) / 2, bin_of(at(0, 0, 0)));
      }
  // Rounding to binary32 moves what lies at an edge.
  std::uint64_t total = 0, apart = 0;
  for (std::size_t i = 0; i < plain.counts.size(); ++i) {
    total += plain.counts[i];
    apart += std::max(plain.counts[i], joint.counts[i]) - std::min(plain.counts[i], joint.counts[i]);
  }
  EXPECT_GT(total, 6000U);
  EXPECT_LE(apart, 4U);
  joint.add_up();
  std::uint64_t all = 0;
  for (const std::uint32_t count : joint.up_to.back()) all += count;
  EXPECT_EQ(all, total);
}

TEST(ResidualCounts, OfGroups_AreOfTheLargestValidOne) {
  SampleBlock block;
  block.extents = {1, 1, 64};
  block.values.resize(64);
  block.valid.assign(64, 1);
  std::vector<float> magnitude(64, 0x1p-20F);
  magnitude[3] = 0.25F;
  magnitude[40] = 0.25F;
  block.valid[40] = 0;
  Counts counts{};
  count_groups(block, magnitude, {{0, 0, 0}, {1, 1, 64}}, counts);
  EXPECT_EQ(counts[static_cast<std::size_t>(bin_of(0.25))], 1U);
  EXPECT_EQ(counts[static_cast<std::size_t>(bin_of(0x1p-20))], 1U);
}

}  // namespace
}  // namespace quern::surrogate
