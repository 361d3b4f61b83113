// measure_quality against formulas evaluated in long double, on every type and on values at the ends of the range.
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <random>

#include <quern/metrics.h>

#include "tests/unit_metrics/arrays.h"

namespace quern {
namespace {

using test::shape_of;
using test::view;

Quality measure(const ArrayView& x, const ArrayView& y, const QualityOptions& options = {}, std::size_t threads = 1) {
  Execution execution;
  execution.threads = threads;
  auto result = measure_quality(x, y, options, execution);
  EXPECT_TRUE(result.ok()) << result.status().text();
  return result.value();
}

template <class T>
class QualityOf : public testing::Test {};
using Types = testing::Types<float, double, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                             std::uint16_t, std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(QualityOf, Types);

TYPED_TEST(QualityOf, RandomValues_AgreesWithLongDouble) {
  const unsigned seed = 3;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  std::vector<TypeParam> x(70001);
  std::vector<TypeParam> y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<TypeParam>(random() % 100 + 1);
    y[i] = static_cast<TypeParam>(x[i] + static_cast<TypeParam>(random() % 3));
  }
  long double squares = 0;
  long double largest = 0;
  long double relative = 0;
  std::size_t index = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double error = std::fabs(static_cast<long double>(x[i]) - static_cast<long double>(y[i]));
    squares += error * error;
    if (error > largest) index = i;
    largest = std::max(largest, error);
    relative = std::max(relative, error / static_cast<long double>(x[i]));
  }
  const Quality quality = measure(view(x), view(y));
  const long double mse = squares / static_cast<long double>(x.size());
  EXPECT_EQ(quality.elems, x.size());
  EXPECT_EQ(quality.valid, x.size());
  EXPECT_EQ(quality.specials_lost, 0u);
  EXPECT_EQ(quality.min, 1.0);
  EXPECT_EQ(quality.max, 100.0);
  EXPECT_EQ(quality.max_error, static_cast<double>(largest));
  EXPECT_EQ(quality.max_error_index, index);
  EXPECT_DOUBLE_EQ(quality.max_pointwise_rel, static_cast<double>(relative));
  EXPECT_DOUBLE_EQ(quality.mse, static_cast<double>(mse));
  ASSERT_TRUE(quality.psnr_db);
  EXPECT_NEAR(*quality.psnr_db, static_cast<double>(20 * std::log10(99.0L) - 10 * std::log10(mse)), 1e-10);
  ASSERT_TRUE(quality.nrmse);
  EXPECT_NEAR(*quality.nrmse, static_cast<double>(std::sqrt(mse) / 99), 1e-14);
  EXPECT_FALSE(quality.ssim);
}

TEST(Quality, HalfTypes_AreMeasuredInTheirValues) {
  const std::vector<std::uint16_t> f16{0x3c00, 0x4000, 0x0001};  // 1, 2, 2^-24
  const std::vector<std::uint16_t> f16_back{0x3c01, 0x4000, 0x0003};
  const Quality half = measure(view(f16, DType::f16), view(f16_back, DType::f16));
  EXPECT_EQ(half.max_error, 0x1p-10);
  EXPECT_EQ(half.max_ulp, 2u);
  EXPECT_EQ(half.max_pointwise_rel, 2.0);
  EXPECT_EQ(half.min, 0x1p-24);
  const std::vector<std::uint16_t> bf16{0x3f80, 0xbf80};  // 1, -1
  const std::vector<std::uint16_t> bf16_back{0x3f80, 0xbf84};
  const Quality brain = measure(view(bf16, DType::bf16), view(bf16_back, DType::bf16));
  EXPECT_EQ(brain.max_error, 0x1p-5);
  EXPECT_EQ(brain.max_ulp, 4u);
  EXPECT_EQ(brain.max_error_index, 1u);
}

TEST(Quality, PerfectReconstruction_HasNoPsnr) {
  const std::vector<float> x{1.0f, 2.0f, 4.0f};
  const Quality quality = measure(view(x), view(x));
  EXPECT_FALSE(quality.psnr_db);
  EXPECT_EQ(quality.mse, 0.0);
  EXPECT_EQ(*quality.nrmse, 0.0);
  EXPECT_EQ(quality.error_autocorrelation, Vector<double>(10, 0.0));
}

TEST(Quality, ConstantOriginal_HasNoNrmse) {
  const std::vector<float> x{1.0f, 1.0f};
  const std::vector<float> y{1.0f, 1.5f};
  const Quality quality = measure(view(x), view(y));
  EXPECT_FALSE(quality.nrmse);
  EXPECT_EQ(*quality.psnr_db, -HUGE_VAL);
}

TEST(Quality, InvalidElements_AreLeftOut) {
  const std::vector<float> x{std::nanf(""), 1.0f, -999.0f, 3.0f, HUGE_VALF, -0.0f};
  const std::vector<float> y{std::nanf(""), 1.5f, -999.0f, 3.0f, 5.0f, 0.0f};
  QualityOptions options;
  options.validity.fill_bits = {std::bit_cast<std::uint32_t>(-999.0f)};
  const Quality quality = measure(view(x), view(y), options);
  EXPECT_EQ(quality.valid, 3u);
  EXPECT_EQ(quality.specials_lost, 2u);
  EXPECT_EQ(quality.min, 0.0);
  EXPECT_EQ(quality.max, 3.0);
  EXPECT_EQ(quality.max_error, 0.5);
  EXPECT_EQ(quality.max_error_index, 1u);
  EXPECT_DOUBLE_EQ(quality.mse, 0.25 / 3);
}

TEST(Quality, NonFiniteReconstruction_IsAnInfiniteError) {
  for (const float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
    const std::vector<float> x{1.0f, 2.0f, 3.0f};
    const std::vector<float> y{1.0f, bad, 3.0f};
    const Quality quality = measure(view(x), view(y));
    EXPECT_EQ(quality.max_error, HUGE_VAL);
    EXPECT_EQ(quality.max_error_index, 1u);
    EXPECT_EQ(quality.mse, HUGE_VAL);
    EXPECT_EQ(*quality.psnr_db, -HUGE_VAL);
    EXPECT_TRUE(quality.error_autocorrelation.empty());
    EXPECT_FALSE(quality.ssim);
  }
}

TEST(Quality, AllNan_HasNoStatistics) {
  const std::vector<float> x(40, std::nanf(""));
  const Quality quality = measure(view(x, shape_of({5, 8})), view(x, shape_of({5, 8})));
  EXPECT_EQ(quality.valid, 0u);
  EXPECT_EQ(quality.elems, 40u);
  EXPECT_FALSE(quality.psnr_db);
  EXPECT_FALSE(quality.nrmse);
  EXPECT_FALSE(quality.ssim);
}

TEST(Quality, NoElementsAndOneElement_Work) {
  const ArrayView nothing{nullptr, DType::f32, shape_of({4, 0, 3})};
  EXPECT_EQ(measure(nothing, nothing).elems, 0u);
  const std::vector<double> x{2.0};
  const std::vector<double> y{2.5};
  const Quality quality = measure(view(x, Shape()), view(y, Shape()));
  EXPECT_EQ(quality.max_error, 0.5);
  EXPECT_EQ(quality.valid, 1u);
}

TEST(Quality, ErrorsWhoseSquaresLeaveTheRange_StillHaveAPsnr) {
  for (const double unit : {1e200, 1e-200, 0x1p-1060}) {
    const std::vector<double> x{0.0, 100 * unit, 50 * unit, 25 * unit};
    const std::vector<double> y{unit, 100 * unit, 51 * unit, 24 * unit};
    const Quality quality = measure(view(x), view(y));
    ASSERT_TRUE(quality.psnr_db);
    EXPECT_NEAR(*quality.psnr_db, 40 - 10 * std::log10(0.75), 1e-9) << unit;
    EXPECT_NEAR(*quality.nrmse, std::sqrt(0.75) / 100, 1e-12) << unit;
    EXPECT_NEAR(quality.error_autocorrelation[2], ((-1 + 0.25) * (1 + 0.25)) / (0.75 - 0.0625), 1e-9) << unit;
  }
}

TEST(Quality, RangeThatOverflows_StillHasAPsnr) {
  const std::vector<double> x{-DBL_MAX, DBL_MAX};
  const std::vector<double> y{-DBL_MAX, DBL_MAX / 2};
  const Quality quality = measure(view(x), view(y));
  EXPECT_NEAR(*quality.psnr_db, 20 * std::log10(4.0) + 10 * std::log10(2.0), 1e-9);
  EXPECT_NEAR(*quality.nrmse, 0.25 / std::sqrt(2.0), 1e-12);
}

/// r_k by its definition, walking rows and pairs.
std::vector<double> autocorrelation_by_definition(const std::vector<float>& x, const std::vector<float>& y,
                                                  std::size_t row, unsigned lags) {
  const auto valid = [&](std::size_t i) { return std::isfinite(x[i]); };
  const auto error = [&](std::size_t i) { return static_cast<long double>(x[i]) - static_cast<long double>(y[i]); };
  long double mean = 0;
  long double count = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (valid(i)) {
      mean += error(i);
      ++count;
    }
  mean /= count;
  std::vector<double> out;
  long double variance = 0;
  for (unsigned lag = 0; lag <= lags; ++lag) {
    long double sum = 0;
    long double pairs = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (i % row + lag >= row || !valid(i) || !valid(i + lag)) continue;
      sum += (error(i) - mean) * (error(i + lag) - mean);
      ++pairs;
    }
    if (lag == 0)
      variance = sum / pairs;
    else
      out.push_back(pairs == 0 ? 0.0 : static_cast<double>(sum / pairs / variance));
  }
  return out;
}

TEST(Quality, Autocorrelation_FollowsItsDefinition) {
  const unsigned seed = 5;
  SCOPED_TRACE(seed);
  for (const std::uint64_t row : {1u, 2u, 7u, 11u, 100u, 2047u, 2048u, 70000u}) {
    for (const bool gaps : {false, true}) {
      std::mt19937 random(seed);
      std::normal_distribution<float> normal;
      std::vector<float> x(140000 / row * row);
      std::vector<float> y(x.size());
      float memory = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        memory = 0.7f * memory + normal(random);
        x[i] = gaps && random() % 5 == 0 ? std::nanf("") : std::sin(static_cast<float>(i));
        y[i] = x[i] + memory + 3;
      }
      const Shape shape = shape_of({x.size() / row, row});
      QualityOptions options;
      options.with_ssim = false;
      options.autocorrelation_lags = 12;
      const Quality quality = measure(view(x, shape), view(y, shape), options);
      const auto expected = autocorrelation_by_definition(x, y, row, 12);
      ASSERT_EQ(quality.error_autocorrelation.size(), 12u);
      for (std::size_t k = 0; k < 12; ++k)
        EXPECT_NEAR(quality.error_autocorrelation[k], expected[k], 1e-10) << row << ' ' << k << ' ' << gaps;
    }
  }
}

TEST(Quality, AnyNumberOfThreads_GivesTheSameBits) {
  const unsigned seed = 9;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  const Shape shape = shape_of({70, 60, 67});
  std::vector<double> x(shape.elems());
  std::vector<double> y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = normal(random);
    y[i] = x[i] + 1e-3 * normal(random);
  }
  const Quality one = measure(view(x, shape), view(y, shape));
  for (const std::size_t threads : {2u, 3u, 7u}) {
    const Quality many = measure(view(x, shape), view(y, shape), {}, threads);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(one.mse), std::bit_cast<std::uint64_t>(many.mse));
    EXPECT_EQ(one.max_error_index, many.max_error_index);
    EXPECT_EQ(one.error_autocorrelation, many.error_autocorrelation);
    ASSERT_TRUE(one.ssim && many.ssim);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(*one.ssim), std::bit_cast<std::uint64_t>(*many.ssim));
  }
}

TEST(Quality, MseOfALargeArray_KeepsItsDigits) {
  std::vector<float> x(3000000, 0.0f);
  const std::vector<float> y(x.size(), 0.1f);
  const Quality quality = measure(view(x), view(y));
  const double error = static_cast<double>(0.1f);
  EXPECT_NEAR(quality.mse, error * error, 1e-14 * error);
  EXPECT_EQ(quality.error_autocorrelation, Vector<double>(10, 0.0)) << "a constant error has no variance";
}

TEST(Quality, BadArguments_AreRefused) {
  const std::vector<float> x{1.0f, 2.0f};
  QualityOptions options;
  options.autocorrelation_lags = 100000;
  EXPECT_EQ(measure_quality(view(x), view(x), options, {}).status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(measure_quality(view(x, shape_of({2})), view(x, shape_of({1, 2})), {}, {}).status().code(),
            StatusCode::invalid_shape);
}

}  // namespace
}  // namespace quern
