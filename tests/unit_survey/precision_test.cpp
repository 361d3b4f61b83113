// Digits and information: what a bound keeps, and what counts as information, checked by other code.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include <quern/precision.h>

#include "libcompress/core/task_runner.h"
#include "libcompress/survey/bit_information.h"

namespace quern {
namespace {

Shape shape_of(const char* text) { return *Shape::parse(text); }

ArrayView view(const std::vector<float>& values, const char* shape) {
  return {values.data(), DType::f32, shape_of(shape)};
}

TEST(Digits, NarrowMagnitudes_GiveAnAbsoluteBound) {
  const std::vector<float> values{250.5F, 301.25F, -280.0F, 999.0F, NAN};
  const auto found = bound_for_digits(view(values, "5"), 4, {}, Execution{});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->bound.kind, BoundKind::abs);
  EXPECT_LE(found->bound.value, 250.5 * 5e-5);
  EXPECT_GT(found->bound.value, 250.5 * 4.99999e-5);
}

TEST(Digits, ZerosAndWideMagnitudes_GiveAPointwiseBound) {
  for (const std::vector<float>& values :
       {std::vector<float>{1.0F, 2.0F, 0.0F}, std::vector<float>{1.0F, 2.0F, 9.0F}}) {
    const auto found = bound_for_digits(view(values, "3"), 3, {}, Execution{});
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->bound.kind, BoundKind::pwrel);
    EXPECT_LE(found->bound.value, 5e-4);
    EXPECT_GT(found->bound.value, 4.99999e-4);
  }
}

// 5e-2 times the least of these is 1.6 of the smallest numbers, and no bound lies between 1 and 2 of them.
TEST(Digits, SmallestNumbers_KeepTheirDigits) {
  const double unit = 0x1p-1074;
  const std::vector<double> values{32 * unit, 33 * unit, 40 * unit};
  const auto found = bound_for_digits({values.data(), DType::f64, shape_of("3")}, 1, {}, Execution{});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->bound.kind, BoundKind::abs);
  EXPECT_EQ(found->bound.value, unit);
}

TEST(Digits, FillValues_DoNotCount) {
  const std::vector<float> values{1.0F, 2.0F, 1e30F};
  std::uint32_t bits = 0;
  std::memcpy(&bits, &values[2], 4);
  const std::uint64_t fill = bits;
  const auto found = bound_for_digits(view(values, "3"), 3, {&fill, 1}, Execution{});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->bound.kind, BoundKind::abs);
}

TEST(Digits, BadRequests_AreRefused) {
  const std::vector<float> values{1.0F, 2.0F};
  EXPECT_EQ(bound_for_digits(view(values, "2"), 0, {}, Execution{}).status().code(), StatusCode::invalid_bound);
  EXPECT_EQ(bound_for_digits(view(values, "2"), 18, {}, Execution{}).status().code(), StatusCode::invalid_bound);
  EXPECT_EQ(bound_for_information(view(values, "2"), 1.0, {}, Execution{}).status().code(), StatusCode::invalid_bound);
  EXPECT_EQ(bound_for_information(view(values, "2"), NAN, {}, Execution{}).status().code(), StatusCode::invalid_bound);
  const ArrayView integers{values.data(), DType::i32, shape_of("2")};
  EXPECT_EQ(bound_for_digits(integers, 3, {}, Execution{}).status().code(), StatusCode::unsupported);
  EXPECT_EQ(bound_for_information(integers, 0.9, {}, Execution{}).status().code(), StatusCode::unsupported);
}

TEST(Digits, NothingToLose_IsLossless) {
  for (const std::vector<float>& values : {std::vector<float>{0.0F, -0.0F}, std::vector<float>{NAN, INFINITY}}) {
    EXPECT_EQ(bound_for_digits(view(values, "2"), 3, {}, Execution{})->bound.kind, BoundKind::lossless);
    EXPECT_EQ(bound_for_information(view(values, "2"), 0.9, {}, Execution{})->bound.kind, BoundKind::lossless);
  }
  EXPECT_EQ(bound_for_information(view({1.0F}, "1"), 0.9, {}, Execution{})->bound.kind, BoundKind::lossless);
  EXPECT_EQ(bound_for_information(ArrayView{nullptr, DType::f32, shape_of("0x3")}, 0.9, {}, Execution{})->bound.kind,
            BoundKind::lossless);
}

/// By definition, from pairs of bits in a map, with the C library's frexp for exponents.
double information_of(const std::vector<float>& values, std::size_t stride, std::size_t extent, unsigned bit) {
  std::map<std::pair<unsigned, unsigned>, double> joint;
  std::map<unsigned, double> left, right;
  double n = 0;
  const auto bit_of = [bit](float x) -> unsigned {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &x, 4);
    if (bit == 0) return bits >> 31;
    if (bit > 8) return bits >> (31 - bit) & 1;
    int exponent = -127;
    if (std::fabs(x) >= 0x1p-126F) exponent = std::ilogb(x);
    const auto magnitude = static_cast<unsigned>(std::abs(exponent));
    return bit == 1 ? static_cast<unsigned>(exponent < 0) : magnitude >> (8 - bit) & 1;
  };
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i / stride % extent == extent - 1) continue;
    const float a = values[i], b = values[i + stride];
    if (!std::isfinite(a) || !std::isfinite(b)) continue;
    const unsigned x = bit_of(a), y = bit_of(b);
    ++joint[{x, y}];
    ++left[x];
    ++right[y];
    ++n;
  }
  double out = 0;
  for (const auto& [pair, count] : joint)
    out += count / n * std::log2(count * n / (left[pair.first] * right[pair.second]));
  return out;
}

std::vector<float> noisy_field() {
  std::mt19937 rng(4);
  std::vector<float> values;
  for (unsigned z = 0; z < 7; ++z)
    for (unsigned y = 0; y < 90; ++y)
      for (unsigned x = 0; x < 110; ++x)
        values.push_back(static_cast<float>(3 * std::sin(0.02 * x + 0.4 * z) * std::cos(0.05 * y) +
                                            1e-2 * (static_cast<double>(rng() % 1000) / 1000)));
  for (std::size_t i = 0; i < values.size(); i += 37) values[i] = NAN;
  return values;
}

TEST(Information, OfEachBitAndAxis_IsByDefinition) {
  const std::vector<float> values = noisy_field();
  const ArrayView array = view(values, "7x90x110");
  Execution execution;
  execution.threads = 3;
  RunnerHandle runner(execution);
  const std::size_t strides[] = {9900, 110, 1};
  const std::size_t extents[] = {7, 90, 110};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto found = bit_information(array, axis, {}, runner.get());
    ASSERT_TRUE(found.ok());
    for (unsigned bit = 0; bit < 32; ++bit)
      EXPECT_NEAR(found->bits[bit], information_of(values, strides[axis], extents[axis], bit), 1e-9)
          << axis << " " << bit;
  }
}

TEST(Information, MoreOfIt_TakesMoreBits) {
  const std::vector<float> values = noisy_field();
  const ArrayView array = view(values, "7x90x110");
  unsigned before = 0;
  for (const double share : {0.5, 0.9, 0.99, 0.9999}) {
    const auto found = bound_for_information(array, share, {}, Execution{});
    ASSERT_TRUE(found.ok());
    EXPECT_GE(*found->mantissa_bits, before) << share;
    EXPECT_LT(*found->mantissa_bits, 16u) << share;  // noise of 1e-2 hides the rest
    EXPECT_EQ(found->bound.kind, BoundKind::pwrel);
    EXPECT_EQ(found->bound.value, std::ldexp(1.0, -static_cast<int>(*found->mantissa_bits) - 1));
    before = *found->mantissa_bits;
  }
}

// Nothing is known of such an array that says which bits are noise.
TEST(Information, PureNoise_KeepsAllBits) {
  std::mt19937 rng(9);
  std::vector<float> values(20000);
  for (float& v : values) {
    const std::uint32_t bits = 0x3F800000U | (rng() & 0x7FFFFFU);
    std::memcpy(&v, &bits, 4);
  }
  EXPECT_EQ(*bound_for_information(view(values, "20000"), 0.99, {}, Execution{})->mantissa_bits, 23u);
}

TEST(Information, Chance_IsRare) {
  EXPECT_EQ(chance_information(0), 1);
  EXPECT_EQ(chance_information(1), 1);
  // 1 - H(1/2 + d) is about 2 d^2 / ln 2.
  const double d = 2.5758293035489004 / 2 / 1000;
  EXPECT_NEAR(chance_information(1000000), 2 * d * d / std::log(2.0), 1e-9);
}

}  // namespace
}  // namespace quern
