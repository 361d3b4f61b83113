// quern_estimate: the numbers of the C++ estimator, structs of older programs, and arguments that are wrong.
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <quern/codec.h>
#include <quern/estimate.h>

#include "tests/unit_capi/handles.h"

namespace quern::testing {
namespace {

constexpr double kBounds[] = {1e-2, 1e-3};

std::vector<float> wave() {
  std::vector<float> values(40 * 50 * 60);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(0.02f * static_cast<float>(i % 3000)) + 0.1f * static_cast<float>(i / 3000);
  return values;
}

struct Predicting {
  std::vector<float> values = wave();
  quern_array array = make_array(QUERN_F32, {40, 50, 60}, values.data());
  ContextHandle context = make_context();
  std::vector<quern_prediction> out = std::vector<quern_prediction>(32, quern_prediction QUERN_PREDICTION_INIT);
  std::uint32_t found = 0;

  quern_status run(const quern_params* params, quern_bound_kind kind = QUERN_BOUND_REL) {
    return quern_estimate(context.get(), params, &array, kind, kBounds, 2, out.data(),
                          static_cast<std::uint32_t>(out.size()), &found);
  }
};

TEST(Estimate, EveryCodec_AsTheLibrarySays) {
  Predicting c;
  ASSERT_EQ(c.run(nullptr), QUERN_OK) << quern_last_error(c.context.get());
  EstimateOptions options;
  for (const double bound : kBounds) options.bounds.push_back({BoundKind::rel, bound});
  const std::uint64_t extents[] = {40, 50, 60};
  const auto shape = Shape::make(extents).value();
  const auto report = builtin_estimator().estimate({c.values.data(), DType::f32, shape}, options, Execution{});
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(c.found, report->estimates.size());
  unsigned exact = 0;
  for (std::uint32_t i = 0; i < c.found; ++i) {
    const Estimate& e = report->estimates[i];
    const quern_prediction& p = c.out[i];
    EXPECT_EQ(p.struct_size, sizeof(quern_prediction));
    EXPECT_EQ(p.codec_id, builtin_codecs().by_name(e.codec)->info().id);
    EXPECT_EQ(p.bound, e.bound.value);
    EXPECT_EQ(p.absolute, e.absolute);
    EXPECT_EQ(p.ratio.low, e.ratio.low);
    EXPECT_EQ(p.ratio.value, e.ratio.value);
    EXPECT_EQ(p.ratio.high, e.ratio.high);
    EXPECT_GT(p.compress_mb_per_s.value, 0);
    EXPECT_EQ(std::isnan(p.psnr_db.value), p.kind == QUERN_BOUND_LOSSLESS);
    if (p.kind == QUERN_BOUND_LOSSLESS) {
      ++exact;
    } else {
      EXPECT_EQ(p.kind, QUERN_BOUND_REL);
      EXPECT_EQ(p.psnr_db.value, e.psnr_db->value);
      EXPECT_LE(p.psnr_db.low, p.psnr_db.high);
    }
  }
  EXPECT_EQ(exact, 1U);
}

TEST(Estimate, OneCodecAbsoluteBounds_FillValuesDoNotCount) {
  Predicting c;
  const auto params = make_params("codec=lorenzo");
  ASSERT_EQ(c.run(params.get(), QUERN_BOUND_ABS), QUERN_OK);
  ASSERT_EQ(c.found, 2U);
  EXPECT_EQ(c.out[0].absolute, 1e-2);
  const double ratio = c.out[1].ratio.value;
  for (std::size_t i = 0; i < c.values.size(); i += 7) c.values[i] = 1e30f;
  ASSERT_EQ(c.run(params.get()), QUERN_OK);
  EXPECT_GT(c.out[1].absolute, 1e20);
  const float fill = 1e30f;
  ASSERT_EQ(quern_params_add_fill(params.get(), QUERN_F32, &fill), QUERN_OK);
  ASSERT_EQ(c.run(params.get()), QUERN_OK);
  EXPECT_LT(c.out[1].absolute, 1e-1);
  EXPECT_LT(c.out[1].ratio.value, ratio * 10);
}

TEST(Estimate, StructsOfAnOlderProgram_LieAsItLaidThem) {
  Predicting whole;
  ASSERT_EQ(whole.run(nullptr), QUERN_OK);
  constexpr std::uint32_t kOld = offsetof(quern_prediction, psnr_db);
  std::vector<double> memory(kOld / sizeof(double) * 16, -5);
  auto* const first = reinterpret_cast<quern_prediction*>(memory.data());
  std::memcpy(&first->struct_size, &kOld, sizeof(kOld));
  Predicting c;
  ASSERT_EQ(quern_estimate(c.context.get(), nullptr, &c.array, QUERN_BOUND_REL, kBounds, 2, first, 16, &c.found),
            QUERN_OK);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(memory.data());
  for (std::uint32_t i = 0; i < c.found; ++i) {
    EXPECT_EQ(std::memcmp(bytes + i * kOld + 4, reinterpret_cast<const unsigned char*>(&whole.out[i]) + 4, kOld - 4),
              0);
  }
  EXPECT_EQ(memory[c.found * kOld / sizeof(double)], -5);
}

TEST(Estimate, WhatIsWrong_IsAStatus) {
  Predicting c;
  const auto call = [&](const double* bounds, std::uint32_t count, std::uint32_t room) {
    return quern_estimate(c.context.get(), nullptr, &c.array, QUERN_BOUND_REL, bounds, count, c.out.data(), room,
                          &c.found);
  };
  EXPECT_EQ(call(kBounds, 2, 1), QUERN_ERROR_DESTINATION_TOO_SMALL);
  EXPECT_GT(c.found, 1U);
  EXPECT_EQ(call(nullptr, 2, 32), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(call(kBounds, 0, 32), QUERN_ERROR_INVALID_ARGUMENT);
  for (const double bad :
       {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    EXPECT_EQ(call(&bad, 1, 32), QUERN_ERROR_INVALID_BOUND) << bad;
  EXPECT_EQ(c.run(nullptr, QUERN_BOUND_PSNR), QUERN_ERROR_INVALID_BOUND);
  quern_array none = make_array(QUERN_F32, {0, 5}, nullptr);
  EXPECT_EQ(quern_estimate(c.context.get(), nullptr, &none, QUERN_BOUND_REL, kBounds, 2, c.out.data(), 32, &c.found),
            QUERN_ERROR_INVALID_SHAPE);
  EXPECT_EQ(quern_estimate(nullptr, nullptr, &c.array, QUERN_BOUND_REL, kBounds, 2, c.out.data(), 32, &c.found),
            QUERN_ERROR_INVALID_ARGUMENT);
  c.out[0].struct_size = 0;
  EXPECT_EQ(c.run(nullptr), QUERN_ERROR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace quern::testing
