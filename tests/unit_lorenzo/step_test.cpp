// The step with slack: no binary32 number near a middle of two codes misses the bound, for every bound and every code
// that is served; without slack some do.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>

#include "codecs/lorenzo/rules.h"
#include "codecs/lorenzo/step.h"

namespace quern::codec::lorenzo {
namespace {

using Quantizer = kernels::AbsQuantizer32<kernels::Binary32>;

constexpr std::uint64_t kServed[] = {2, 96, 768, 6144, 65536, kMaxServedCode};

struct Counts {
  std::uint64_t values = 0;
  std::uint64_t refused = 0;
};

/// Values within 4 units in the last place of the middle above code n, of both signs.
void try_middle(const kernels::QuantizerParams& params, std::uint64_t n, Counts& counts) {
  const Quantizer quantizer(params);
  const double middle = (static_cast<double>(n) + 0.5) * params.step;
  float x = static_cast<float>(middle);
  for (int i = 0; i < 4; ++i) x = std::nextafter(x, 0.0f);
  for (int i = 0; i < 9; ++i, x = std::nextafter(x, INFINITY))
    for (const float value : {x, -x}) {
      std::uint32_t code = 0;
      ++counts.values;
      if (!quantizer.encode(std::bit_cast<std::uint32_t>(value), code)) {
        ++counts.refused;
        continue;
      }
      // Both numbers have 24 bits and almost the same exponent: their difference is exact.
      const auto back = std::bit_cast<float>(quantizer.decode(code, false));
      ASSERT_LE(std::fabs(static_cast<double>(value) - static_cast<double>(back)), params.bound);
    }
}

/// Every code up to a few thousand, and some thousands of the others; the last middle is the one below `served`.
Counts try_codes(const kernels::QuantizerParams& params, std::uint64_t served, std::mt19937_64& random) {
  Counts counts;
  constexpr std::uint64_t kAll = 300;
  for (std::uint64_t n = 0; n < std::min(served, kAll); ++n) try_middle(params, n, counts);
  for (std::uint64_t i = 0; served > kAll && i < kAll; ++i) {
    try_middle(params, random() % served, counts);
    try_middle(params, served - 1 - i, counts);
  }
  return counts;
}

double random_bound(std::mt19937_64& random) {
  const auto exponent = static_cast<int>(random() % 160) - 80;
  return std::ldexp(1 + static_cast<double>(random() >> 12) * 0x1p-52, exponent);
}

TEST(Step, NumbersNearMiddles_KeepTheBoundWithoutExceptions) {
  std::mt19937_64 random(25);
  std::uint64_t refused_without = 0;
  for (int round = 0; round < 400; ++round) {
    const double bound = random_bound(random);
    SCOPED_TRACE(::testing::Message() << "seed 25, round " << round << ", bound " << bound);
    for (const std::uint64_t served : kServed) {
      const auto plain = quantizer_rules(DType::f32, {BoundKind::abs, bound}).params;
      auto params = plain;
      take_slack(served, params);
      ASSERT_LT(params.step, plain.step);
      ASSERT_EQ(params.strict, plain.strict);
      ASSERT_EQ(plain.promised, 0u);
      ASSERT_EQ(params.promised, served);
      const Counts with = try_codes(params, served, random);
      ASSERT_GT(with.values, 0u);
      ASSERT_EQ(with.refused, 0u) << "codes up to " << served;
      refused_without += try_codes(plain, served, random).refused;
    }
  }
  EXPECT_GT(refused_without, 100000u);
}

TEST(Step, EndsOfItsRange_KeepThePlainStep) {
  for (const double bound : {0x1p-110, 0x1p-102, 0x1p100, 0x1p120}) {
    auto params = quantizer_rules(DType::f32, {BoundKind::abs, bound}).params;
    const double step = params.step;
    take_slack(1000, params);
    EXPECT_EQ(params.step, step);
    EXPECT_EQ(params.promised, 0u);
  }
}

TEST(Step, ServedCodes_CoverThePeakAndArePlain) {
  for (std::uint64_t code = 0; code < 200000; ++code) {
    const std::uint64_t rounded = rounded_code(code);
    ASSERT_GE(rounded, code);
    ASSERT_LE(2 * rounded, 3 * std::max<std::uint64_t>(code, 2));
    ASSERT_TRUE(std::has_single_bit(rounded) || (rounded % 3 == 0 && std::has_single_bit(rounded / 3)));
  }
  EXPECT_EQ(served_code(0, 1), 2u);
  EXPECT_EQ(served_code(8, 1), 8u);  // 5 + 2, and to a power of two
  EXPECT_EQ(served_code(0x1p127, 0x1p-120), kMaxServedCode);
  for (double peak = 1; peak < 2e5; peak *= 1.01)
    ASSERT_GE(static_cast<double>(served_code(peak, 0.5)), std::min(peak, static_cast<double>(kMaxServedCode)));
}

TEST(Step, OnlyBinary32UnderAbsoluteBounds_WantsThePeak) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i32, DType::u8})
    EXPECT_EQ(wants_peak(make_rules(dtype, {BoundKind::abs, 2.5}, {})), dtype == DType::f32);
  EXPECT_FALSE(wants_peak(make_rules(DType::f32, {BoundKind::pwrel, 0.1}, {})));
  EXPECT_FALSE(wants_peak(make_rules(DType::f32, {}, {})));
}

}  // namespace
}  // namespace quern::codec::lorenzo
