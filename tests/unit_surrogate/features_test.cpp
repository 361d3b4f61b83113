// Stage 1: what is sampled and counted, and closed forms where the truth is known.
#include <gtest/gtest.h>

#include <limits>

#include "surrogate/closed_form.h"
#include "surrogate/features.h"
#include "surrogate/inputs.h"
#include "surrogate/sample_blocks.h"
#include "tests/unit_surrogate/fields.h"

namespace quern::surrogate {
namespace {

using test::view;
using test::waves;

Features features_of(const ArrayView& array, std::size_t threads = 1) {
  Execution execution;
  execution.threads = threads;
  const auto range = value_range(array, {}, execution);
  auto out = extract_features(array, range, {}, builtin_codecs(), execution);
  EXPECT_TRUE(out.ok()) << out.status().text();
  return std::move(out).value();
}

TEST(SamplePlan, LargeArrays_ReadAtMostATwentieth) {
  for (const char* text : {"100000000", "20000x5000", "512x512x512", "30x40x128x512", "7x11x130x130x130"}) {
    const Shape shape = Shape::parse(text).value();
    const SamplePlan plan(shape);
    EXPECT_LE(plan.sampled(), shape.elems() / 20) << text;
    EXPECT_GE(plan.sampled(), kFeatureBlocks.sampled) << text;
    for (std::uint64_t i = 0; i < plan.blocks; ++i) {
      const std::uint64_t last = plan.begin(i) +
                                 ((plan.block[0] - 1) * plan.extents[1] + plan.block[1] - 1) * plan.extents[2] +
                                 plan.block[2] - 1;
      ASSERT_LT(last, shape.elems()) << text << " block " << i;
    }
  }
}

TEST(SamplePlan, SmallArrays_AreReadWhole) {
  for (const char* text : {"1", "5", "1x1x7", "40x50", "12x15x40x9", "3x1x3"}) {
    const Shape shape = Shape::parse(text).value();
    EXPECT_EQ(SamplePlan(shape).sampled(), shape.elems()) << text;
  }
}

TEST(Features, Threads_DoNotChangeThem) {
  const std::vector<float> values = waves(40, 100, 120, 0.01);
  const ArrayView array = view(values, "40x100x120");
  const Features one = features_of(array, 1);
  const Features four = features_of(array, 4);
  for (std::size_t p = 0; p < kPredictors; ++p) {
    EXPECT_EQ(one.residuals[p].counts, four.residuals[p].counts) << p;
    EXPECT_EQ(one.residuals[p].noise_gain, four.residuals[p].noise_gain) << p;
  }
  ASSERT_EQ(one.lorenzo.size(), four.lorenzo.size());
  for (std::size_t i = 0; i < one.lorenzo.size(); ++i) EXPECT_EQ(one.lorenzo[i].log_bits, four.lorenzo[i].log_bits);
  for (const int grid : {4, 14, 30}) EXPECT_EQ(inputs_at(one, grid), inputs_at(four, grid));
}

TEST(Features, SpecialValues_AreCountedAndLeftOut) {
  std::vector<float> values = waves(1, 200, 200, 0.01);
  for (std::size_t i = 0; i < values.size(); i += 10) values[i] = std::numeric_limits<float>::quiet_NaN();
  values[5] = std::numeric_limits<float>::infinity();
  const Features f = features_of(view(values, "200x200"));
  EXPECT_EQ(f.specials, 4001U);
  EXPECT_EQ(f.sampled, 40000U);
  EXPECT_LT(f.range, 10);
}

TEST(ClosedForm, NormalNoise_HasItsEntropy) {
  // White noise of deviation s in steps of 2 E has 0.5 log2(2 pi e s^2) - log2(2 E) bits when s is well above E.
  const std::vector<float> values = waves(1, 400, 500, 100);
  const Features f = features_of(view(values, "400x500"));
  for (const int grid : {14, 18, 22}) {
    const double bound = exp2_of(-0.5 * grid);
    const double deviation = 100 / f.range;
    const double expected = 2.0471 + log2_of(deviation) - log2_of(2 * bound);
    EXPECT_NEAR(quantize(f.residuals[kValue], -grid).entropy, expected, 0.12) << grid;
    // A difference of neighbours has twice the variance: half a bit more.
    EXPECT_NEAR(quantize(f.residuals[kRow], -grid).entropy, expected + 0.5, 0.12) << grid;
  }
}

TEST(ClosedForm, LinearFields_NeedNoBits) {
  std::vector<float> values(128 * 128);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 128 + 2 * (i / 128));
  const Features f = features_of(view(values, "128x128"));
  EXPECT_LT(quantize(f.residuals[kLorenzo], -20).conditional, 0.01);
  EXPECT_GT(quantize(f.residuals[kRow], -20).zero_share, -1e-9);
}

TEST(ClosedForm, TighterBounds_NeedMoreBits) {
  const std::vector<float> values = waves(20, 60, 70, 0.03);
  const Features f = features_of(view(values, "20x60x70"));
  double before = -1;
  for (int grid = 4; grid < 40; grid += 4) {
    const double bits = quantize(f.residuals[kLorenzo], -grid).conditional;
    EXPECT_GE(bits, before - 0.02) << grid;
    before = bits;
  }
}

TEST(Numbers, LogarithmAndPower_MatchTheLibrary) {
  for (double x = 1e-9; x < 1e9; x *= 1.37) {
    EXPECT_NEAR(log2_of(x), std::log2(x), 2e-8) << x;
    EXPECT_NEAR(exp2_of(log2_of(x)) / x, 1, 1e-7) << x;
    EXPECT_EQ(bin_of(x), std::clamp(static_cast<int>(std::floor(2 * std::log2(x))) + kUnitBin, 0, kBins - 1)) << x;
  }
  EXPECT_NEAR(normal_below(1), 0.8413447, 1e-6);
  EXPECT_NEAR(normal_below(-2.5), 0.0062097, 1e-6);
}

}  // namespace
}  // namespace quern::surrogate
