// Elements at the very edge of the bound, zeros of both signs, and values that predictions overshoot, in every layout.
#include "tests/unit_stencil/helpers.h"

#include <algorithm>
#include <bit>

#include "kernels/common/bits.h"

namespace quern::codec::stencil::test {
namespace {

constexpr const char* kLayouts[] = {"raster", "levels", "planes", "wavelet"};

template <class T>
void expect_kept(DType dtype, const Shape& shape, const std::vector<double>& values, double bound) {
  for (const char* layout : kLayouts) {
    SCOPED_TRACE(std::string(layout) + " " + std::string(dtype_name(dtype)) + " " + shape.text());
    const Coding coding(dtype, shape, as_bytes<T>(values), bound, {{"layout", layout}});
    Bytes back;
    coding.round_trip(back);
    EXPECT_EQ(count_missed<T>(coding, back, bound), 0u);
  }
}

/// Whole numbers that a transform misses by all that it may miss them by, and more.
TEST(Stencil_Bound, JustBelowAWholeNumber_IsNotReached) {
  const Shape shape = shape_of({60, 70});
  std::mt19937 random(91);
  std::vector<double> values(shape.elems());
  for (double& v : values) v = static_cast<double>(random() % 61);
  for (const double whole : {3.0, 7.0, 11.0}) {
    expect_kept<std::int16_t>(DType::i16, shape, values, whole * (1 - 0x1p-22));
    expect_kept<std::int32_t>(DType::i32, shape, values, whole * (1 - 0x1p-30));
    expect_kept<std::uint8_t>(DType::u8, shape, values, whole * (1 - 0x1p-22));
  }
}

/// A few elements so large that rounding to their type carries them to just beyond the bound.
TEST(Stencil_Bound, JustBelowTheSpacingOfAFewElements_IsNotReached) {
  const Shape shape = shape_of({64, 64});
  for (unsigned seed = 0; seed < 6; ++seed) {
    std::mt19937 random(seed);
    std::vector<double> values(shape.elems());
    for (double& v : values) v = static_cast<double>(random() % 1000);
    for (int i = 0; i < 4; ++i) values[random() % values.size()] = 0x1p24 + 2 * static_cast<double>(random() % 4000);
    expect_kept<float>(DType::f32, shape, values, 2 * (1 - 0x1p-22));
    for (double& v : values) v = v * 0x1p29;  // what binary64 spaces like that
    expect_kept<double>(DType::f64, shape, values, 0x1p30 * (1 - 0x1p-22));
  }
}

/// A field that Lorenzo's weights predict exactly, but for neighbours at opposite ends of what a format holds: eight of
/// them add up in a residual larger than there may be.
TEST(Stencil_Bound, SpikesThatPredictionsOvershoot_AreKept) {
  constexpr double kFar = 0x1.fp28;
  const Shape shape = shape_of({16, 17, 19});
  std::vector<double> values(shape.elems());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto x = static_cast<double>(i % 19);
    const auto y = static_cast<double>(i / 19 % 17);
    const auto z = static_cast<double>(i / (19 * 17));
    values[i] = 40 * z * y + 30 * y * x + 20 * z * x + 1.25 * x * y * z;
  }
  for (const std::size_t z : {8u, 9u})
    for (const std::size_t y : {8u, 9u})
      for (const std::size_t x : {8u, 9u, 10u}) values[(z * 17 + y) * 19 + x] = (x + y + z) % 2 == 0 ? kFar : -kFar;
  expect_kept<double>(DType::f64, shape, values, 1);
}

/// Under bounds so tight that no code reaches across the range: values come near their elements code by code, and from
/// there on a smooth field takes a fraction of its own size, in raster order and in levels, with gaps or without.
TEST(Stencil_Bound, WhereNoCodeReachesAcrossTheRange_FieldsAreStillCoded) {
  const Shape shape = shape_of({24, 30, 36});
  const std::vector<double> values = waves(shape, 5);
  for (const double share : {7e-10, 1e-10, 2e-11}) {
    const double bound = 6 * share;
    for (const char* layout : kLayouts) {
      for (const bool gaps : {false, true}) {
        SCOPED_TRACE(std::string(layout) + " " + std::to_string(share) + (gaps ? " with gaps" : ""));
        Bytes special(gaps ? shape.elems() : 0);
        for (std::size_t i = 0; i < special.size(); ++i) special[i] = i / 36 % 5 == 2 ? 1 : 0;
        const Coding coding(DType::f64, shape, as_bytes<double>(values), bound, {{"layout", layout}}, special);
        Bytes back;
        coding.round_trip(back);
        EXPECT_EQ(count_missed<double>(coding, back, bound), 0u);
        EXPECT_LT(coding.encode(0).size(), 5 * values.size()) << "of " << 8 * values.size();
      }
    }
  }
}

/// The same with neighbours at opposite ends of the range, from which predictions go far astray: what comes back is
/// within the bound, of every layout, also where sums would not be exact.
TEST(Stencil_Bound, WherePredictionsGoAstrayByMoreThanCodes_TheBoundHolds) {
  std::mt19937 random(17);
  const Shape shape = shape_of({9, 20, 31});
  std::vector<double> values(shape.elems());
  for (const double far : {0x1.fp28, 0x1.fp31, 0x1.fp34}) {
    for (const unsigned every : {1u, 2u, 3u, 40u}) {
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = i % every == 0 ? (random() % 2 == 0 ? far : -far) : 0.3 * static_cast<double>(i);
      expect_kept<double>(DType::f64, shape, values, 1);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = i / every % 2 == 0 ? far : -far;
      expect_kept<double>(DType::f64, shape, values, 1);
    }
  }
}

/// Zeros keep their sign: what was +0 may become another number but no -0, what was -0 stays it.
TEST(Stencil_Zeros, OfBothSigns_AreToldApart) {
  const Shape shape = shape_of({20, 31});
  struct Type {
    DType dtype;
    std::uint64_t sign;
    std::uint64_t (*bits)(double);
  };
  const Type types[] = {
      {DType::f16, 0x8000, [](double v) { return std::uint64_t{kernels::float_to_half(static_cast<float>(v))}; }},
      {DType::bf16, 0x8000, [](double v) { return std::uint64_t{kernels::float_to_bfloat(static_cast<float>(v))}; }},
      {DType::f32, 0x80000000,
       [](double v) { return std::uint64_t{std::bit_cast<std::uint32_t>(static_cast<float>(v))}; }},
      {DType::f64, UINT64_C(1) << 63, [](double v) { return std::bit_cast<std::uint64_t>(v); }}};
  for (const Type& type : types) {
    const std::size_t width = dtype_bytes(type.dtype);
    for (const double size : {0.01, 0.25, 3.0}) {  // small against the bound, near it, and above
      std::mt19937 random(92);
      Bytes data(shape.elems() * width);
      for (std::size_t i = 0; i < shape.elems(); ++i) {
        const unsigned kind = random() % 4;
        const double v = size * (static_cast<double>(random() % 1000) / 500 - 1);
        const std::uint64_t bits = kind == 0 ? 0 : kind == 1 ? type.sign : type.bits(v);
        std::memcpy(data.data() + i * width, &bits, width);
      }
      for (const char* layout : kLayouts) {
        SCOPED_TRACE(std::string(layout) + " " + std::string(dtype_name(type.dtype)) + " " + std::to_string(size));
        const Coding coding(type.dtype, shape, data, 0.2, {{"layout", layout}});
        Bytes back;
        coding.round_trip(back);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < shape.elems(); ++i) {
          std::uint64_t was = 0;
          std::uint64_t is = 0;
          std::memcpy(&was, data.data() + i * width, width);
          std::memcpy(&is, back.data() + i * width, width);
          wrong += (was == 0 && is == type.sign) || (was == type.sign && is != type.sign) ? 1 : 0;
        }
        EXPECT_EQ(wrong, 0u);
      }
    }
  }
}

}  // namespace
}  // namespace quern::codec::stencil::test
