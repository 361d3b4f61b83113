// Rounding by an addition against the C library's rounding, and the vector forms against the scalar ones, bit for bit.
#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/common/cpu/round_vectors.h"
#include "kernels/common/round_to_integer.h"

namespace quern::kernels {
namespace {

constexpr std::uint64_t kSeed = 20241;

/// Ties, their neighbours and the ends of the range, and random numbers of every size in it.
std::vector<double> numbers_below_2_51() {
  std::vector<double> values{0.0, -0.0, 0x1p51 - 0.5, -0x1p51 + 0.5, 0x1p51 - 1, -0x1p51 + 1, 5e-324, -5e-324};
  const auto add_around = [&](double v) {
    for (const double near : {v, std::nextafter(v, -INFINITY), std::nextafter(v, INFINITY)})
      if (std::fabs(near) < 0x1p51) values.insert(values.end(), {near, -near});
  };
  for (int k = 0; k < 4096; ++k) add_around(k + 0.5);
  for (int e = 0; e < 51; ++e) {
    add_around(std::ldexp(1, e));
    add_around(std::ldexp(1, e) + 0.5);
  }
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 200000; ++i) {
    const int exponent = static_cast<int>(random() % 80) - 81;
    values.push_back(std::ldexp(static_cast<double>(static_cast<std::int64_t>(random()) >> 11), exponent + 51 - 23));
  }
  std::erase_if(values, [](double v) { return !(std::fabs(v) < 0x1p51); });
  return values;
}

TEST(RoundToInteger, Binary64_RoundsAsTheCLibrary) {
  ASSERT_EQ(std::fegetround(), FE_TONEAREST);
  for (const double v : numbers_below_2_51()) {
    ASSERT_EQ(nearest(v), std::nearbyint(v)) << v;
    ASSERT_EQ(nearest_integer(v), static_cast<std::int64_t>(std::nearbyint(v))) << v;
    ASSERT_EQ(number_of(nearest_integer(v)), std::nearbyint(v)) << v;
  }
  static_assert(nearest_integer(2.5) == 2 && nearest_integer(3.5) == 4 && nearest_integer(-2.5) == -2);
}

TEST(RoundToInteger, Binary32_RoundsAsTheCLibrary) {
  ASSERT_EQ(std::fegetround(), FE_TONEAREST);
  const auto check = [](float v) { return nearest_integer(v) == static_cast<std::int32_t>(std::nearbyint(v)); };
  for (std::int32_t k = -(1 << 22) + 1; k < 1 << 22; ++k) {
    ASSERT_TRUE(check(static_cast<float>(k))) << k;
    ASSERT_TRUE(check(static_cast<float>(k) - 0.5f)) << k;  // all ties
  }
  const std::uint32_t end = std::bit_cast<std::uint32_t>(0x1p22f);
  for (std::uint32_t bits = 0; bits < end; bits += 331) {
    ASSERT_TRUE(check(std::bit_cast<float>(bits))) << bits;
    ASSERT_TRUE(check(-std::bit_cast<float>(bits))) << bits;
  }
}

TEST(RoundToInteger, NumberOf_IsExactBelow2To51) {
  std::mt19937_64 random(kSeed);
  for (const std::int64_t v : {INT64_C(0), INT64_C(-1), (INT64_C(1) << 51) - 1, -(INT64_C(1) << 51)})
    ASSERT_EQ(number_of(v), static_cast<double>(v));
  for (int i = 0; i < 200000; ++i) {
    const std::int64_t v = static_cast<std::int64_t>(random()) >> (12 + random() % 52);
    ASSERT_EQ(number_of(v), static_cast<double>(v)) << v;
  }
}

struct Bytes16 {
  using Doubles = double __attribute__((vector_size(16)));
  using Longs = std::uint64_t __attribute__((vector_size(16)));
};
struct Bytes32 {
  using Doubles = double __attribute__((vector_size(32)));
  using Longs = std::uint64_t __attribute__((vector_size(32)));
};
struct Bytes64 {
  using Doubles = double __attribute__((vector_size(64)));
  using Longs = std::uint64_t __attribute__((vector_size(64)));
};

/// All bit patterns of results, as of a number that is none or too large vectors and scalars give the same, too.
template <class Vectors>
void expect_vectors_agree(std::vector<double> values) {
  using Doubles = typename Vectors::Doubles;
  using Longs = typename Vectors::Longs;
  constexpr std::size_t kWidth = sizeof(Doubles) / sizeof(double);
  values.insert(values.end(), {INFINITY, -INFINITY, 0x1p52, 0x1p51, -0x1p60, 1e300});
  values.resize((values.size() + kWidth - 1) / kWidth * kWidth, 0.5);
  for (std::size_t i = 0; i < values.size(); i += kWidth) {
    Doubles v;
    std::memcpy(&v, values.data() + i, sizeof v);
    Doubles rounded;
    Longs integers;
    Doubles numbers;
    round_vector(v, rounded);
    round_to_integers(v, integers);
    integers_to_numbers(integers, numbers);
    for (std::size_t k = 0; k < kWidth; ++k) {
      const double scalar = values[i + k];
      ASSERT_EQ(std::bit_cast<std::uint64_t>(double{rounded[k]}), std::bit_cast<std::uint64_t>(nearest(scalar)))
          << scalar;
      ASSERT_EQ(static_cast<std::int64_t>(integers[k]), nearest_integer(scalar)) << scalar;
      ASSERT_EQ(std::bit_cast<std::uint64_t>(double{numbers[k]}),
                std::bit_cast<std::uint64_t>(number_of(nearest_integer(scalar))))
          << scalar;
    }
  }
}

TEST(RoundToInteger, Vectors_GiveWhatScalarsGive) {
  const std::vector<double> values = numbers_below_2_51();
  expect_vectors_agree<Bytes16>(values);
  expect_vectors_agree<Bytes32>(values);
  expect_vectors_agree<Bytes64>(values);
}

}  // namespace
}  // namespace quern::kernels
