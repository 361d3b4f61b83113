// Structural similarity against a direct evaluation of its definition, window by window, in long double.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include <quern/metrics.h>

#include "tests/unit_metrics/arrays.h"

namespace quern {
namespace {

using test::shape_of;
using test::view;

struct Fields {
  Shape shape;
  std::vector<float> x;
  std::vector<float> y;
};

Fields make_fields(const Shape& shape, float offset, float noise, bool gaps) {
  std::mt19937 random(17);
  std::normal_distribution<float> normal;
  Fields fields{shape, std::vector<float>(shape.elems()), std::vector<float>(shape.elems())};
  for (std::size_t i = 0; i < fields.x.size(); ++i) {
    fields.x[i] = offset + std::sin(0.05f * static_cast<float>(i)) + 0.1f * normal(random);
    if (gaps && random() % 400 == 0) fields.x[i] = std::nanf("");
    fields.y[i] = fields.x[i] + noise * normal(random);
  }
  return fields;
}

/// Sums of one window; `at` is its first element.
long double window_ssim(const Fields& f, std::size_t at, const std::size_t (&window)[3], const std::size_t (&stride)[3],
                        long double range) {
  long double x = 0, y = 0, xx = 0, yy = 0, xy = 0;
  for (std::size_t i = 0; i < window[0]; ++i)
    for (std::size_t j = 0; j < window[1]; ++j)
      for (std::size_t k = 0; k < window[2]; ++k) {
        const std::size_t e = at + i * stride[0] + j * stride[1] + k * stride[2];
        const long double a = f.x[e];
        const long double b = f.y[e];
        x += a, y += b, xx += a * a, yy += b * b, xy += a * b;
      }
  const long double n = static_cast<long double>(window[0] * window[1] * window[2]);
  const long double c1 = 0.01L * range * 0.01L * range;
  const long double c2 = 0.03L * range * 0.03L * range;
  const long double mx = x / n, my = y / n;
  const long double sx = (xx - n * mx * mx) / (n - 1), sy = (yy - n * my * my) / (n - 1);
  const long double sxy = (xy - n * mx * my) / (n - 1);
  return (2 * mx * my + c1) * (2 * sxy + c2) / ((mx * mx + my * my + c1) * (sx + sy + c2));
}

double ssim_by_definition(const Fields& f) {
  const std::size_t rank = f.shape.rank();
  std::size_t extents[3] = {1, 1, 1};
  for (std::size_t a = 0; a < std::min<std::size_t>(rank, 3); ++a) extents[2 - a] = f.shape[rank - 1 - a];
  const std::size_t stride[3] = {extents[1] * extents[2], extents[2], 1};
  const std::size_t volume = extents[0] * stride[0];
  std::size_t window[3];
  for (std::size_t a = 0; a < 3; ++a) window[a] = std::min<std::size_t>(7, extents[a]);
  long double low = INFINITY, high = -INFINITY;
  for (const float value : f.x)
    if (!std::isnan(value)) {
      low = std::min<long double>(low, value);
      high = std::max<long double>(high, value);
    }
  long double sum = 0;
  std::size_t windows = 0;
  for (std::size_t v = 0; v < f.x.size(); v += volume)
    for (std::size_t i = 0; i + window[0] <= extents[0]; ++i)
      for (std::size_t j = 0; j + window[1] <= extents[1]; ++j)
        for (std::size_t k = 0; k + window[2] <= extents[2]; ++k) {
          const long double one = window_ssim(f, v + i * stride[0] + j * stride[1] + k, window, stride, high - low);
          if (std::isnan(one)) continue;
          sum += one;
          ++windows;
        }
  return static_cast<double>(sum / static_cast<long double>(windows));
}

std::optional<double> ssim(const Fields& f, std::size_t threads = 1) {
  Execution execution;
  execution.threads = threads;
  auto result = measure_quality(view(f.x, f.shape), view(f.y, f.shape), {}, execution);
  EXPECT_TRUE(result.ok()) << result.status().text();
  return result->ssim;
}

TEST(Ssim, ShapesAndGaps_AgreeWithTheDefinition) {
  for (const Shape& shape :
       {shape_of({40, 50}), shape_of({23, 300}), shape_of({41, 19, 21}), shape_of({2, 3, 12, 11, 13}),
        shape_of({1, 30, 31}), shape_of({5, 40}), shape_of({40, 3, 9}), shape_of({7, 7, 7}), shape_of({9, 23, 270})})
    for (const bool gaps : {false, true})
      for (const float offset : {0.0f, 5.0f, -300.0f}) {
        const Fields fields = make_fields(shape, offset, 0.2f, gaps && shape.elems() > 2000);
        const auto measured = ssim(fields, 2);
        ASSERT_TRUE(measured) << shape.text();
        EXPECT_NEAR(*measured, ssim_by_definition(fields), 1e-9) << shape.text() << ' ' << gaps << ' ' << offset;
      }
}

TEST(Ssim, PerfectReconstruction_IsOne) {
  const auto measured = ssim(make_fields(shape_of({20, 30, 40}), 1.0f, 0.0f, true));
  ASSERT_TRUE(measured);
  EXPECT_NEAR(*measured, 1.0, 1e-12);
}

TEST(Ssim, HugeWrongValue_SpoilsItsWindowsOnly) {
  Fields fields = make_fields(shape_of({60, 70}), 1.0f, 0.0f, false);
  fields.y[30 * 70 + 30] = 1e38f;
  const auto measured = ssim(fields);
  ASSERT_TRUE(measured);
  EXPECT_NEAR(*measured, 1.0 - 49.0 / (54 * 64), 1e-9);
}

TEST(Ssim, DataWithoutWindows_HasNone) {
  EXPECT_FALSE(ssim(make_fields(shape_of({500}), 0.0f, 0.1f, false)));
  EXPECT_FALSE(ssim(make_fields(shape_of({1, 500}), 0.0f, 0.1f, false)));
  EXPECT_FALSE(ssim(make_fields(shape_of({3, 1, 1, 500}), 0.0f, 0.1f, false)));
  Fields constant{shape_of({20, 20}), std::vector<float>(400, 1.0f), std::vector<float>(400, 1.5f)};
  EXPECT_FALSE(ssim(constant));
}

TEST(Ssim, EveryWindowTouchesAGap_HasNone) {
  Fields fields = make_fields(shape_of({21, 21}), 0.0f, 0.1f, false);
  for (std::size_t i = 0; i < 21; ++i)
    for (std::size_t j = 0; j < 21; ++j)
      if (i % 7 == 3 && j % 7 == 3) fields.x[i * 21 + j] = std::nanf("");
  EXPECT_FALSE(ssim(fields));
}

TEST(Ssim, MemoryLimitTooSmall_IsRefused) {
  const Fields fields = make_fields(shape_of({20, 30, 40}), 1.0f, 0.0f, true);
  Execution execution;
  execution.memory_limit = 1000;
  EXPECT_EQ(measure_quality(view(fields.x, fields.shape), view(fields.y, fields.shape), {}, execution).status().code(),
            StatusCode::memory_limit);
}

}  // namespace
}  // namespace quern
