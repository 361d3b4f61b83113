// Quantizer numbers and stored parameters: against the mathematical library, there and back, and everything a reader
// must refuse.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "codecs/lorenzo/rules.h"

namespace quern::codec::lorenzo {
namespace {

using kernels::ChunkRules;
using kernels::QuantizerKind;
using kernels::TileShape;

constexpr DType kTypes[] = {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8,  DType::i16,
                            DType::i32, DType::i64,  DType::u8,  DType::u16, DType::u32, DType::u64};

/// A plan and its parameters where only constant evaluation is possible, as on a device.
constexpr bool works_in_constants() {
  constexpr std::array<std::uint64_t, 3> kExtents{50, 100, 200};
  const Shape shape = *Shape::try_make(kExtents);
  const Layout layout{TileShape::block, 1, 2};
  const ChunkGrid grid = make_grid(shape, layout, DType::f32);
  const ChunkRules rules = make_rules(DType::f32, {BoundKind::abs, 0.1}, layout);
  std::array<std::uint8_t, kMaxStoredRules> room{};
  ByteWriter out(room);
  put_params(out, rules, layout);
  ChunkRules back;
  Layout back_layout;
  ByteReader in({room.data(), out.size()});
  return get_params(in, DType::f32, shape, back, back_layout) == ParamsFault::none && back_layout == layout &&
         back.params.step == rules.params.step && grid.extents[0] == 50 && grid.chunk[2] == 64;
}
static_assert(works_in_constants());

template <class F>
F round_down_by_nextafter(double bound) {
  F f = static_cast<F>(bound);
  if (static_cast<double>(f) > bound) f = std::nextafter(f, F{0});
  return f;
}

template <class F>
void expect_float_rules(double bound, const ChunkRules& rules) {
  const F largest = std::min(round_down_by_nextafter<F>(bound), std::numeric_limits<F>::max() / 2);
  const F step = 2 * largest;
  const F reciprocal = 1 / step;
  if (!(step > 0) || !std::isfinite(reciprocal)) {
    ASSERT_EQ(rules.quantizer, QuantizerKind::exact);
    return;
  }
  ASSERT_EQ(rules.quantizer, QuantizerKind::absolute);
  ASSERT_EQ(rules.params.bound, bound);
  ASSERT_EQ(rules.params.strict, static_cast<double>(largest));
  ASSERT_EQ(rules.params.step, static_cast<double>(step));
  ASSERT_EQ(rules.params.reciprocal, static_cast<double>(reciprocal));
}

std::uint64_t floor_of(double v) { return v >= 0x1p63 ? ~UINT64_C(0) : static_cast<std::uint64_t>(v); }

void expect_rules(DType dtype, const EnforcedBound& bound) {
  const ChunkRules rules = make_rules(dtype, bound, {});
  ASSERT_EQ(rules.element, static_cast<kernels::Element>(dtype));
  const bool wide = dtype_bytes(dtype) == 8;
  const std::uint64_t word = wide ? UINT64_MAX : UINT32_MAX;
  std::uint64_t half = 0;
  if (bound.kind == BoundKind::pwrel) {
    const int bits = dtype == DType::f16 ? 10 : dtype == DType::bf16 ? 7 : dtype == DType::f32 ? 23 : 52;
    half = floor_of(std::ldexp(bound.value, bits));
    ASSERT_EQ(rules.quantizer, QuantizerKind::pointwise);
  } else if (is_integer(dtype)) {
    half = std::min(floor_of(bound.value), word >> 1);
    ASSERT_EQ(rules.quantizer, QuantizerKind::absolute);
  } else if (dtype == DType::f64) {
    return expect_float_rules<double>(bound.value, rules);
  } else {
    return expect_float_rules<float>(bound.value, rules);
  }
  ASSERT_EQ(rules.params.int_half, half);
  ASSERT_EQ(rules.params.int_step, 2 * half + 1);
  ASSERT_EQ(rules.params.int_reciprocal, word / (2 * half + 1));
}

TEST(Rules, RandomBounds_GiveTheNumbersOfTheLibrary) {
  std::mt19937_64 random(51);
  for (int i = 0; i < 1000000; ++i) {
    SCOPED_TRACE(::testing::Message() << "seed 51, round " << i);
    const DType dtype = kTypes[random() % std::size(kTypes)];
    // Of every exponent; every other one where binary32 ends.
    std::uint64_t exponent = random() % 2047;
    if (i % 2 == 1) exponent = 1023 + random() % 6 + (random() % 2 == 0 ? 125 : -152);
    const double value = std::bit_cast<double>(exponent << 52 | random() >> 12);
    expect_rules(dtype, {BoundKind::abs, value});
    if (is_float(dtype)) expect_rules(dtype, {BoundKind::pwrel, std::ldexp(value, -1074)});
    if (is_float(dtype) && i % 2 == 1)
      expect_rules(dtype, {BoundKind::pwrel, std::bit_cast<double>((1023 - 1 - random() % 70) << 52 | random() >> 12)});
    if (HasFatalFailure()) return;
  }
}

TEST(Rules, BoundsAtTheEnds_GiveTheNumbersOfTheLibrary) {
  for (const DType dtype : kTypes)
    for (const double value :
         {0.0, DBL_TRUE_MIN, DBL_MIN, DBL_MAX, DBL_MAX / 2, double{FLT_MAX}, FLT_MAX / 2.0, double{FLT_TRUE_MIN},
          FLT_TRUE_MIN / 2.0, double{FLT_MIN}, 0x1p63, 0x1p64, 0x1p31, 0x1p32, 0.5, 1.0, 1.5, 2147483647.0}) {
      SCOPED_TRACE(::testing::Message() << dtype_name(dtype) << " " << value);
      expect_rules(dtype, {BoundKind::abs, value});
      if (is_float(dtype) && value < 1) expect_rules(dtype, {BoundKind::pwrel, value});
      if (HasFatalFailure()) return;
    }
}

Shape cube() { return Shape::make(std::array<std::uint64_t, 3>{4, 5, 6}).value(); }

TEST(Params, EveryTypeAndKind_ComeBackAndFitTheirRoom) {
  for (const DType dtype : kTypes)
    for (const EnforcedBound bound : {EnforcedBound{}, EnforcedBound{BoundKind::abs, 3.7},
                                      EnforcedBound{BoundKind::abs, 1e300}, EnforcedBound{BoundKind::pwrel, 0.9}})
      for (const Layout layout : {Layout{}, Layout{TileShape::plane, 0, 1}, Layout{TileShape::block, 1, 2}}) {
        if (bound.kind == BoundKind::pwrel && is_integer(dtype)) continue;
        const ChunkRules rules = make_rules(dtype, bound, layout);
        const auto bytes = write_params(rules, layout);
        ASSERT_LE(bytes.size(), kMaxStoredRules);
        ChunkRules back;
        Layout back_layout;
        ASSERT_TRUE(read_params(bytes, dtype, cube(), back, back_layout).ok());
        EXPECT_EQ(back_layout, layout);
        EXPECT_EQ(back.quantizer, rules.quantizer);
        EXPECT_EQ(back.element, rules.element);
        EXPECT_EQ(back.params.step, rules.params.step);
        EXPECT_EQ(back.params.int_step, rules.params.int_step);
        for (std::size_t n = 0; n < bytes.size(); ++n)
          EXPECT_EQ(read_params({bytes.data(), n}, dtype, cube(), back, back_layout).code(), StatusCode::truncated);
      }
}

std::string text_of(DType dtype, const Vector<std::uint8_t>& bytes) {
  ChunkRules rules;
  Layout layout;
  const Status status = read_params(bytes, dtype, cube(), rules, layout);
  EXPECT_EQ(status.code(), StatusCode::corrupt);
  return status.text();
}

TEST(Params, BrokenRules_AreRefusedInWords) {
  EXPECT_EQ(text_of(DType::f32, {3, 0, 0, 0}), "lorenzo: quantizer 3 or tile 0 is unknown");
  EXPECT_EQ(text_of(DType::f32, {2, 3, 0, 0}), "lorenzo: quantizer 2 or tile 3 is unknown");
  EXPECT_EQ(text_of(DType::f32, {2, 2, 2, 1}), "lorenzo: axes cannot be merged at 2 and 1");
  EXPECT_EQ(text_of(DType::f32, {2, 2, 1, 4}), "lorenzo: axes cannot be merged at 1 and 4");
  EXPECT_EQ(text_of(DType::i8, {1, 2, 1, 2, 1}), "lorenzo: a point-wise bound on integers");
  EXPECT_EQ(text_of(DType::f32, {2, 0, 0, 1}), "lorenzo: line tiles on more than one axis");
  EXPECT_EQ(text_of(DType::f32, {2, 1, 1, 1}), "lorenzo: plane tiles on more than two axes");
  EXPECT_EQ(text_of(DType::f32, {2, 0, 0, 0, 7}), "1 bytes are left over");
  EXPECT_EQ(text_of(DType::i8, {0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x08}),
            "a number is 2415919103, above its limit of 2147483647");
  // 0.1 is no binary32 number; a step of 0, below 0, infinite or NaN is none at all.
  for (const double step : {0.1, 0.0, -1.0, HUGE_VAL, std::nan(""), 1e300}) {
    Vector<std::uint8_t> bytes{0, 0, 0, 0};
    for (unsigned i = 0; i < 8; ++i)
      bytes.push_back(static_cast<std::uint8_t>(std::bit_cast<std::uint64_t>(step) >> (8 * i)));
    EXPECT_EQ(text_of(DType::f32, bytes), "lorenzo: the step is not a positive number of the working type");
  }
}

}  // namespace
}  // namespace quern::codec::lorenzo
