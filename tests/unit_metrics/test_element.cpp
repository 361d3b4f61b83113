// Conversions of every 16-bit pattern, and distances in units in the last place, against definitions.
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>

#include "kernels/metrics/element.h"

namespace quern::verifier {
namespace {

/// Straight from IEEE 754: sign, exponent and mantissa as numbers.
double by_definition(std::uint16_t bits, int mantissa_bits, int bias) {
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int exponent_bits = 15 - mantissa_bits;
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) return mantissa != 0 ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

template <class E>
void expect_all(int mantissa_bits, int bias) {
  for (std::uint32_t i = 0; i <= 0xffff; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const double expected = by_definition(bits, mantissa_bits, bias);
    const double value = E::value(bits);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << i;
      continue;
    }
    EXPECT_EQ(value, expected) << i;
    EXPECT_EQ(std::signbit(value), std::signbit(expected)) << i;
  }
}

TEST(F16, EveryPattern_HasTheValueOfTheDefinition) { expect_all<F16>(10, 15); }
TEST(Bf16, EveryPattern_HasTheValueOfTheDefinition) { expect_all<Bf16>(7, 127); }

TEST(UlpDistance, CountsSteps) {
  const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
  EXPECT_EQ(ulp_distance<F32>(bits(1.0f), bits(std::nextafter(1.0f, 2.0f))), 1u);
  EXPECT_EQ(ulp_distance<F32>(bits(0.0f), bits(-0.0f)), 0u);
  EXPECT_EQ(ulp_distance<F32>(bits(-1e-45f), bits(1e-45f)), 2u);
  EXPECT_EQ(ulp_distance<F32>(bits(FLT_MAX), bits(HUGE_VALF)), 1u);
  EXPECT_EQ(ulp_distance<F32>(bits(-FLT_MAX), bits(FLT_MAX)), 2u * 0x7f7fffffu);
  EXPECT_EQ(ulp_distance<F32>(bits(1.0f), 0x7fc00000u), UINT64_MAX);
}

TEST(IntegerDistance, OfTheEndsOfTheType_DoesNotOverflow) {
  using I64 = Integer<std::int64_t>;
  const auto low = static_cast<std::uint64_t>(INT64_MIN);
  const auto high = static_cast<std::uint64_t>(INT64_MAX);
  EXPECT_EQ(I64::distance(low, high), UINT64_MAX);
  EXPECT_EQ(I64::distance(high, low), UINT64_MAX);
  EXPECT_EQ(Integer<std::int8_t>::distance(0x80, 0x7f), 255u);
  EXPECT_EQ(Integer<std::uint8_t>::distance(0x80, 0x7f), 1u);
  EXPECT_EQ(difference<I64>(low, high), -0x1p64);
}

}  // namespace
}  // namespace quern::verifier
