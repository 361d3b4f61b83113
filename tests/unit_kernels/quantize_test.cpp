// Quantizers, number conversions and stored numbers against independent arithmetic, exhaustively where that is
// possible.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>

#include "kernels/common/quantizers.h"
#include "kernels/lorenzo/tile_code.h"
#include "tests/unit_kernels/bounds.h"

namespace quern::kernels {
namespace {

constexpr std::uint64_t kSeed = 977;

/// Value of a binary16 (10, 5) or bfloat16 (7, 8) pattern by the definition of the formats.
double value_of(unsigned bits, int fraction_bits, int exponent_bits) {
  const unsigned fraction = bits & ((1u << fraction_bits) - 1);
  const int exponent = static_cast<int>(bits >> fraction_bits & ((1u << exponent_bits) - 1));
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = (bits >> 15) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) return fraction != 0 ? std::nan("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(fraction + (1u << fraction_bits), exponent - bias - fraction_bits);
}

TEST(HalfFloat, EveryPattern_ConvertsExactlyAndBack) {
  for (unsigned b = 0; b < 0x10000; ++b) {
    const double expected = value_of(b, 10, 5), brain = value_of(b, 7, 8);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(half_to_float(b)));
    } else {
      ASSERT_EQ(half_to_float(b), expected);
      ASSERT_EQ(float_to_half(half_to_float(b)), b);
    }
    if (std::isnan(brain)) {
      ASSERT_TRUE(std::isnan(bfloat_to_float(b)));
      ASSERT_TRUE(std::isnan(bfloat_to_float(float_to_bfloat(bfloat_to_float(b)))));
    } else {
      ASSERT_EQ(bfloat_to_float(b), brain);
      ASSERT_EQ(float_to_bfloat(bfloat_to_float(b)), b);
    }
  }
}

TEST(HalfFloat, BetweenNeighbours_RoundsToNearestEven) {
  for (unsigned b = 0; b < 0x7bff; ++b) {
    const float low = half_to_float(b), high = half_to_float(b + 1);
    const float middle = static_cast<float>((static_cast<double>(low) + high) / 2);
    ASSERT_EQ(float_to_half(middle), b + (b & 1));
    ASSERT_EQ(float_to_half(std::nextafter(middle, 0.0f)), b);
    ASSERT_EQ(float_to_half(std::nextafter(middle, INFINITY)), b + 1);
    ASSERT_EQ(float_to_half(-middle), (b + (b & 1)) | 0x8000u);
  }
  for (unsigned b = 0; b < 0x7f7f; ++b) {
    const float middle = std::bit_cast<float>((b << 16) | 0x8000u);
    ASSERT_EQ(float_to_bfloat(middle), b + (b & 1));
    ASSERT_EQ(float_to_bfloat(std::nextafter(middle, 0.0f)), b);
    ASSERT_EQ(float_to_bfloat(std::nextafter(middle, INFINITY)), b + 1);
  }
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00u);
}

/// Every 16-bit pattern: what is accepted comes back within the bound; what is not has a reason.
template <class Format, int Fraction, int Exponent>
void check_absolute16() {
  for (const double bound : {1e-7, 1e-3, 0.01, 0.5, 1.0, 7.3, 1000.0, 60000.0}) {
    const AbsQuantizer32<Format> q(testing::float_params<float>(bound));
    unsigned accepted = 0;
    for (unsigned b = 0; b < 0x10000; ++b) {
      const auto bits = static_cast<std::uint16_t>(b);
      std::uint32_t code = 0;
      const bool fast = q.encode(bits, code);
      const bool exact = q.accepts_exactly(bits);
      ASSERT_TRUE(!fast || exact) << b;
      const double x = value_of(b, Fraction, Exponent);
      if (!exact) continue;
      ++accepted;
      const double back = value_of(q.decode(code, false), Fraction, Exponent);
      ASSERT_TRUE(std::fabs(x - back) <= bound) << "pattern " << b << " bound " << bound;
      ASSERT_NE(b, 0x8000u);
    }
    if (bound >= 0.01 && bound <= 1.0) {
      EXPECT_GT(accepted, 20000u) << bound;
    }
  }
}
TEST(AbsQuantizer, EveryBinary16_WithinBoundOrRefused) { check_absolute16<Binary16, 10, 5>(); }
TEST(AbsQuantizer, EveryBfloat16_WithinBoundOrRefused) { check_absolute16<Bfloat16, 7, 8>(); }

template <class T>
void check_integer(std::int64_t x, std::uint64_t half) {
  const IntQuantizer<T> q(testing::int_params<typename IntQuantizer<T>::Word>(half));
  typename IntQuantizer<T>::Word code = 0;
  ASSERT_TRUE(q.encode(static_cast<typename IntQuantizer<T>::Bits>(x), code));
  const auto value = static_cast<T>(x);
  const auto back = static_cast<T>(q.decode(code, false));
  const std::uint64_t distance = value > back ? static_cast<std::uint64_t>(value) - static_cast<std::uint64_t>(back)
                                              : static_cast<std::uint64_t>(back) - static_cast<std::uint64_t>(value);
  ASSERT_LE(distance, half) << +value << " came back as " << +back;
}

TEST(IntQuantizer, EverySmallInteger_WithinBound) {
  for (const std::uint64_t half : {0u, 1u, 2u, 5u, 100u, 40000u}) {
    for (std::int64_t x = -128; x < 128; ++x) check_integer<std::int8_t>(x, half);
    for (std::int64_t x = 0; x < 256; ++x) check_integer<std::uint8_t>(x, half);
    for (std::int64_t x = -32768; x < 32768; ++x) check_integer<std::int16_t>(x, half);
    for (std::int64_t x = 0; x < 65536; ++x) check_integer<std::uint16_t>(x, half);
  }
}

TEST(IntQuantizer, WideIntegers_ExtremesAndRandom_WithinBound) {
  std::mt19937_64 random(kSeed);
  for (const std::uint64_t half : {UINT64_C(0), UINT64_C(1), UINT64_C(2), UINT64_C(5), UINT64_C(1) << 20,
                                   UINT64_C(0x7ffffffe), UINT64_C(0x7fffffff)}) {
    for (int i = 0; i < 4000; ++i) {
      const std::int64_t edges[] = {0, 1, -1, INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, UINT32_MAX};
      const auto x = i < 8 ? edges[i] : static_cast<std::int64_t>(random() >> (random() % 64));
      check_integer<std::int32_t>(x, half);
      check_integer<std::uint32_t>(x, half);
      check_integer<std::int64_t>(x, half);
      check_integer<std::uint64_t>(x, half);
      check_integer<std::int64_t>(x, ~UINT64_C(0) >> 1);
      check_integer<std::uint64_t>(x, ~UINT64_C(0) >> 1);
    }
  }
}

template <class W>
void check_quotient() {
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 200000; ++i) {
    const auto half = static_cast<W>(static_cast<W>(random()) >> (1 + random() % (8 * sizeof(W) - 1)));
    const auto step = static_cast<W>(2 * half + 1);
    const auto magnitude =
        static_cast<W>(i < 4 ? static_cast<W>(~W{0} - i) : static_cast<W>(random() >> (random() % 64)));
    const W quotient = magnitude / step;
    const W expected = static_cast<W>(quotient + (magnitude % step > half ? 1 : 0));
    ASSERT_EQ(rounded_quotient<W>(magnitude, step, half, static_cast<W>(~W{0} / step)), expected)
        << "seed " << kSeed << ": " << magnitude << " / " << step;
  }
}
TEST(RoundedQuotient, Words32_MatchDivision) { check_quotient<std::uint32_t>(); }
TEST(RoundedQuotient, Words64_MatchDivision) { check_quotient<std::uint64_t>(); }

TEST(PointwiseQuantizer, Binary32_AcceptedValuesKeepTheBoundExactly) {
  std::mt19937_64 random(kSeed);
  for (const double bound : {1e-6, 1e-3, 0.01, 0.3, 1.0}) {
    const auto half = static_cast<std::uint64_t>(std::ldexp(bound, 23));
    const PointwiseQuantizer<std::uint32_t, 23> q(testing::int_params<std::uint32_t>(half));
    for (int i = 0; i < 100000; ++i) {
      const auto bits = static_cast<std::uint32_t>(random());
      std::uint32_t code = 0;
      if (!q.encode(bits, code)) {
        const std::uint32_t exponent = bits >> 23 & 0xff;
        ASSERT_TRUE(exponent == 0 || exponent == 0xff) << "a normal number was refused: " << bits;
        continue;
      }
      const auto x = static_cast<long double>(std::bit_cast<float>(bits));
      const auto back = static_cast<long double>(std::bit_cast<float>(q.decode(code, q.sign(bits))));
      ASSERT_TRUE(std::fabs(x - back) <= bound * std::fabs(x)) << "seed " << kSeed << " pattern " << bits;
    }
  }
}

TEST(ExactQuantizer, EveryBinary16Pattern_ComesBackAndKeysKeepTheOrder) {
  const ExactQuantizer<std::uint16_t, true, true> q;
  std::uint32_t before = 0;
  for (unsigned b = 0; b < 0x10000; ++b) {
    std::uint32_t code = 0;
    ASSERT_TRUE(q.encode(static_cast<std::uint16_t>(b), code));
    ASSERT_EQ(q.decode(code, false), b);
    if (b > 0 && b < 0x7c00) {
      ASSERT_GT(static_cast<std::int32_t>(code), static_cast<std::int32_t>(before));
    }
    before = code;
  }
}

TEST(Leb128, RoundTripAndMalformedForms) {
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t v = i < 2 ? 0 - static_cast<std::uint64_t>(i) : random() >> (random() % 64);
    std::uint8_t bytes[10];
    const std::uint8_t* const end = put_leb128(bytes, v);
    const std::uint8_t* at = bytes;
    std::uint64_t back = 0;
    ASSERT_TRUE(get_leb128(at, end, back));
    ASSERT_EQ(back, v) << "seed " << kSeed;
    ASSERT_EQ(at, end);
    at = bytes;
    ASSERT_FALSE(get_leb128(at, end - 1, back)) << "cut short";
    ASSERT_EQ(unzigzag64(zigzag64(v)), v);
  }
  for (const std::array<std::uint8_t, 11>& bad :
       {std::array<std::uint8_t, 11>{0x80, 0x00}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}}) {
    const std::uint8_t* at = bad.data();
    std::uint64_t v = 0;
    EXPECT_FALSE(get_leb128(at, bad.data() + bad.size(), v));
  }
}

TEST(TileHead, RandomHeads_RoundTripAndRefuseEveryCut) {
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 20000; ++i) {
    TileHead head;
    const std::uint64_t before = random() >> (random() % 64);
    head.seed = i % 3 == 0 ? before : random() >> (random() % 64);
    if (i % 4 != 0) {
      head.wide = random() % 2 != 0;
      head.planes = static_cast<std::uint8_t>(random() % (head.wide ? 65 : 33));
      head.dense = static_cast<std::uint8_t>(random() % (head.planes + 1u));
      head.predictor = static_cast<Predictor>(random() % kPredictors);
      head.exact = random() % 2 != 0;
      head.exceptions = random() % 2 != 0;
      head.signs = random() % 2 != 0;
      head.payload = 1 + static_cast<std::uint32_t>(random() % 0xffff);
    }
    std::uint8_t bytes[kMaxHeadBytes];
    const std::uint8_t* const end = put_head(bytes, head, before);
    ASSERT_LE(end, bytes + kMaxHeadBytes);
    TileHead back;
    const std::uint8_t* at = bytes;
    ASSERT_TRUE(get_head(at, end, back, before)) << "seed " << kSeed;
    ASSERT_EQ(at, end);
    ASSERT_EQ(back.seed, head.seed);
    ASSERT_EQ(back.payload, head.payload);
    ASSERT_EQ(back.planes, head.planes);
    ASSERT_EQ(back.dense, head.dense);
    ASSERT_EQ(back.predictor, head.predictor);
    ASSERT_EQ(back.exact, head.exact);
    ASSERT_EQ(back.exceptions, head.exceptions);
    ASSERT_EQ(back.wide, head.wide);
    ASSERT_EQ(back.signs, head.signs);
    for (const std::uint8_t* cut = bytes; cut != end; ++cut) {
      at = bytes;
      ASSERT_FALSE(get_head(at, cut, back, before));
    }
  }
}

}  // namespace
}  // namespace quern::kernels
