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

kernels::QuantizerParams with_slack(double bound, std::uint64_t served) {
  auto params = quantizer_rules(DType::f32, {BoundKind::abs, bound}).params;
  set_slack(served, params);
  return params;
}

/// Of many bounds, the one whose reciprocal is rounded most: the proof needs all of its slack there.
double hardest_bound(std::uint64_t served, std::mt19937_64& random) {
  double hardest = 1;
  double most = 0;
  for (int i = 0; i < 30000; ++i) {
    const double bound = 1 / (1 - slack_of(served)) * (1 - static_cast<double>(random() >> 11) * 0x1p-53 / 256);
    const auto params = with_slack(bound, served);
    const double error = std::fabs(params.reciprocal * params.step - 1);  // 48 bits
    if (error <= most) continue;
    most = error;
    hardest = bound;
  }
  return hardest;
}

TEST(Step, BoundsWithRoundedReciprocals_KeepTheBoundWithoutExceptions) {
  std::mt19937_64 random(29);
  // Codes a little above a power of two: there all three products are rounded most.
  for (const std::uint64_t served : {67, 1040, 4200, 66500})
    for (int round = 0; round < 4; ++round) {
      const double bound = hardest_bound(served, random);
      SCOPED_TRACE(::testing::Message() << "seed 29, bound " << bound << ", codes up to " << served);
      const auto params = with_slack(bound, served);
      Counts counts;
      for (std::uint64_t n = served - std::min<std::uint64_t>(served, 20000); n < served; ++n)
        try_middle(params, n, counts);
      ASSERT_EQ(counts.refused, 0u);
    }
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
      set_slack(served, params);
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

/// 1000 elements, of magnitudes up to `peak`, half of them exceptions.
StepSample refusing(float peak) { return {1000, 500, std::bit_cast<std::uint32_t>(peak)}; }

TEST(Step, EndsOfItsRange_KeepThePlainStep) {
  for (const double bound : {0x1p-110, 0x1p-102, 0x1p-101, 0x1p99, 0x1p100, 0x1p120}) {
    auto params = quantizer_rules(DType::f32, {BoundKind::abs, bound}).params;
    const double step = params.step;
    choose_step(refusing(static_cast<float>(1000 * bound)), params);
    const bool outside = step < kLeastSlackStep || step > kMostSlackStep;
    EXPECT_EQ(params.step == step, outside) << bound;
    EXPECT_EQ(params.promised, outside ? 0u : 768u) << bound;
  }
}

TEST(Step, Slack_IsTakenWhereExceptionsCostMore) {
  const auto plain = quantizer_rules(DType::f32, {BoundKind::abs, 0.3}).params;
  for (const std::uint64_t served : kServed) {
    const auto peak = static_cast<float>((static_cast<double>(served) - 2) * 0.6 / kPeakReserve);
    // An array of which one element in `apart` is an exception pays 80 bits for each.
    const double apart = 80 / -std::log2(1 - slack_of(served));
    for (const double factor : {0.5, 0.9, 1.1, 2.0}) {
      auto params = plain;
      StepSample sample{1u << 16, 0, std::bit_cast<std::uint32_t>(peak)};
      sample.saved = static_cast<std::uint32_t>(std::lround(65536 / apart * factor));
      if (sample.saved < 10) continue;
      choose_step(sample, params);
      EXPECT_EQ(params.promised, factor > 1 ? served : 0) << served << ", factor " << factor;
      EXPECT_EQ(params.step<plain.step, factor> 1);
    }
    auto params = plain;
    choose_step({1u << 16, 0, std::bit_cast<std::uint32_t>(peak)}, params);
    EXPECT_EQ(params.step, plain.step) << "no exception";
  }
}

TEST(Step, Samples_CountWhatASlackSavesInAnyOrder) {
  const auto params = quantizer_rules(DType::f32, {BoundKind::abs, 0.3}).params;
  const StepLook look(params);
  const Quantizer plain(params);
  std::mt19937_64 random(26);
  StepSample all;
  std::uint32_t refused = 0;
  for (int i = 0; i < 20000; ++i) {
    const float value = static_cast<float>(0.6 * (static_cast<double>(random() % 10000) - 4999.5));
    std::uint32_t code = 0;
    const auto bits = std::bit_cast<std::uint32_t>(value);
    refused += !plain.encode(bits, code) && !plain.accepts_exactly(bits) ? 1 : 0;
    StepSample one;
    look.add(bits, one);
    if (i % 2 == 0) {
      add_sample(all, one);
    } else {
      add_sample(one, all);
      all = one;
    }
  }
  EXPECT_EQ(all.elems, 20000u);
  EXPECT_EQ(all.saved, refused);
  EXPECT_GT(refused, 1000u);
  EXPECT_LE(std::bit_cast<float>(all.peak), 3000);
  EXPECT_GT(std::bit_cast<float>(all.peak), 2990);
  // What no step helps, and what is no number, does not count; ties that are exact are no exceptions.
  const StepLook one(quantizer_rules(DType::f32, {BoundKind::abs, 1}).params);
  for (const float value : {-0.0f, 0.0f, INFINITY, -INFINITY, NAN, 1e30f, 0x1p22f + 1, 3.0f, -1001.0f}) {
    StepSample sample;
    one.add(std::bit_cast<std::uint32_t>(value), sample);
    EXPECT_EQ(sample.elems, 1u);
    EXPECT_EQ(sample.saved, 0u) << value;
  }
}

TEST(Step, CodesBeyondAllThatAreServed_CountWhereTheLargestSlackSaves) {
  auto params = quantizer_rules(DType::f32, {BoundKind::abs, 0.3}).params;
  const StepLook look(params);
  std::mt19937_64 random(30);
  StepSample sample;
  std::uint32_t refused = 0;
  for (int i = 0; i < 5000; ++i) {
    const auto bits =
        std::bit_cast<std::uint32_t>(static_cast<float>(250000 + static_cast<double>(random() % 1000000) / 50));
    refused += look.accepts(bits) ? 0 : 1;
    look.add(bits, sample);
  }
  EXPECT_GT(sample.saved, 20u);
  EXPECT_LE(sample.saved, refused);
  choose_step(sample, params);
  EXPECT_EQ(params.promised, kMaxServedCode);
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

TEST(Step, OnlyBinary32UnderAbsoluteBounds_WantsAStep) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i32, DType::u8})
    EXPECT_EQ(wants_step(make_rules(dtype, {BoundKind::abs, 2.5}, {})), dtype == DType::f32);
  EXPECT_FALSE(wants_step(make_rules(DType::f32, {BoundKind::pwrel, 0.1}, {})));
  EXPECT_FALSE(wants_step(make_rules(DType::f32, {}, {})));
}

}  // namespace
}  // namespace quern::codec::lorenzo
