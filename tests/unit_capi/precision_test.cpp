// quern_precision_of_digits and quern_precision_of_information: the numbers of the C++ functions, and what is refused.
#include <algorithm>
#include <cmath>
#include <vector>

#include <quern/precision.h>

#include "tests/unit_capi/handles.h"

namespace quern::testing {
namespace {

struct Finding {
  std::vector<float> values = std::vector<float>(20 * 30 * 40);
  quern_array array;
  ContextHandle context = make_context();
  quern_precision found = QUERN_PRECISION_INIT;

  explicit Finding(float offset) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = offset + std::sin(0.05F * static_cast<float>(i % 1200)) + 0.01F * static_cast<float>(i / 1200);
    array = make_array(QUERN_F32, {20, 30, 40}, values.data());
  }
  ArrayView view() const { return {values.data(), DType::f32, Shape::parse("20x30x40").value()}; }
};

TEST(Precision, Digits_AreTheLibrarysBound) {
  for (const float offset : {280.0F, 0.5F}) {
    Finding c(offset);
    ASSERT_EQ(quern_precision_of_digits(c.context.get(), nullptr, &c.array, 3, &c.found), QUERN_OK);
    const auto expected = bound_for_digits(c.view(), 3, {}, Execution{});
    ASSERT_TRUE(expected.ok());
    EXPECT_EQ(c.found.kind, static_cast<quern_bound_kind>(expected->bound.kind));
    EXPECT_EQ(c.found.value, expected->bound.value);
    EXPECT_EQ(c.found.mantissa_bits, -1);
    EXPECT_EQ(c.found.kind, offset > 100 ? QUERN_BOUND_ABS : QUERN_BOUND_PWREL);
  }
}

TEST(Precision, Information_SaysBitsAndAxis) {
  Finding c(280.0F);
  ASSERT_EQ(quern_precision_of_information(c.context.get(), nullptr, &c.array, 0.99, &c.found), QUERN_OK);
  const auto expected = bound_for_information(c.view(), 0.99, {}, Execution{});
  ASSERT_TRUE(expected.ok());
  ASSERT_TRUE(expected->mantissa_bits.has_value());
  EXPECT_EQ(c.found.mantissa_bits, static_cast<std::int32_t>(*expected->mantissa_bits));
  EXPECT_EQ(c.found.axis, expected->axis);
  EXPECT_EQ(c.found.value, expected->bound.value);
}

TEST(Precision, FillsOfTheParameters_AreLeftOut) {
  Finding c(280.0F);
  ASSERT_EQ(quern_precision_of_digits(c.context.get(), nullptr, &c.array, 3, &c.found), QUERN_OK);
  const double clean = c.found.value;
  const float fill = -9e33F;
  // Where a value lay that decides nothing: the bound must not change.
  const auto smallest = std::min_element(c.values.begin(), c.values.end());
  c.values[smallest == c.values.begin() + 7 ? 8 : 7] = fill;
  ParamsHandle params = make_params("");
  ASSERT_EQ(quern_params_add_fill(params.get(), QUERN_F32, &fill), QUERN_OK);
  ASSERT_EQ(quern_precision_of_digits(c.context.get(), params.get(), &c.array, 3, &c.found), QUERN_OK);
  EXPECT_EQ(c.found.kind, QUERN_BOUND_ABS);
  EXPECT_EQ(c.found.value, clean);
}

TEST(Precision, WhatCannotBeMeant_IsRefused) {
  Finding c(280.0F);
  const auto digits = [&](std::uint32_t n) {
    return quern_precision_of_digits(c.context.get(), nullptr, &c.array, n, &c.found);
  };
  EXPECT_EQ(digits(0), QUERN_ERROR_INVALID_BOUND);
  EXPECT_EQ(digits(18), QUERN_ERROR_INVALID_BOUND);
  for (const double share : {0.0, 1.0, -1.0, std::nan("")})
    EXPECT_EQ(quern_precision_of_information(c.context.get(), nullptr, &c.array, share, &c.found),
              QUERN_ERROR_INVALID_BOUND);
  EXPECT_EQ(quern_precision_of_digits(nullptr, nullptr, &c.array, 3, &c.found), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_precision_of_digits(c.context.get(), nullptr, nullptr, 3, &c.found), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_precision_of_digits(c.context.get(), nullptr, &c.array, 3, nullptr), QUERN_ERROR_INVALID_ARGUMENT);
  std::vector<std::int32_t> ints(24000, 3);
  quern_array of_ints = make_array(QUERN_I32, {20, 30, 40}, ints.data());
  EXPECT_EQ(quern_precision_of_digits(c.context.get(), nullptr, &of_ints, 3, &c.found), QUERN_ERROR_UNSUPPORTED);
}

}  // namespace
}  // namespace quern::testing
