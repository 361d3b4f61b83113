// Bounds that depend on the data: ranges, numbers that are rounded down, searches for PSNR and ratio, choice of codec.
#include <cfloat>

#include "libcompress/core/task_runner.h"
#include "libcompress/pipeline/elements.h"
#include "libcompress/pipeline/encode/bound_resolution.h"
#include "libcompress/pipeline/range.h"
#include "tests/unit_pipeline/support.h"

namespace quern::testing {
namespace {

template <class T>
Array array_of(DType dtype, const std::vector<T>& values) {
  Array a(dtype, shape_of({values.size()}));
  std::memcpy(a.bytes.data(), values.data(), a.bytes.size());
  return a;
}

TEST(ValueRange, SpecialAndFillValues_DoNotCount) {
  const Array a = array_of<float>(DType::f32, {3.0f, NAN, -INFINITY, 1e30f, -2.5f, INFINITY, 0.0f});
  const Vector<std::uint64_t> fill{std::bit_cast<std::uint32_t>(1e30f)};
  const auto range = value_range(a.view(), fill, {});
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->min, -2.5);
  EXPECT_EQ(range->max, 3.0);
  EXPECT_EQ(value_range(a.view(), {}, {})->max, static_cast<double>(1e30f));
  EXPECT_FALSE(value_range(array_of<float>(DType::f32, {NAN, INFINITY}).view(), {}, {}).has_value());
}

TEST(ValueRange, FillOfZero_MatchesBothSigns) {
  const Array a = array_of<double>(DType::f64, {-0.0, 0.0, 4.0, 9.0});
  const Vector<std::uint64_t> fill{0};
  EXPECT_EQ(value_range(a.view(), fill, {})->min, 4.0);
}

TEST(ValueRange, HalfTypes_AreReadExactly) {
  const Array half = array_of<std::uint16_t>(DType::f16, {0x3C00, 0xC500, 0x0001, 0x7BFF, 0x7C00, 0xFE00});
  EXPECT_EQ(value_range(half.view(), {}, {})->min, -5.0);
  EXPECT_EQ(value_range(half.view(), {}, {})->max, 65504.0);
  const Array denormal = array_of<std::uint16_t>(DType::f16, {0x0001});
  EXPECT_EQ(value_range(denormal.view(), {}, {})->max, 0x1p-24);
  const Array brain = array_of<std::uint16_t>(DType::bf16, {0x3F80, 0xC040});
  EXPECT_EQ(value_range(brain.view(), {}, {})->min, -3.0);
}

TEST(ValueRange, WideIntegers_AreRoundedOutwards) {
  const Array a = array_of<std::int64_t>(DType::i64, {INT64_MIN + 1, INT64_MAX});
  const auto range = value_range(a.view(), {}, {});
  EXPECT_EQ(range->min, -0x1p63);
  EXPECT_EQ(range->max, 0x1p63);
  struct Inline final : TaskRunner {
    void run(std::size_t n, const TaskBody& body) override {
      for (std::size_t i = n; i-- > 0;) body(i);
    }
    std::size_t width() const override { return 3; }
  } runner;
  // The true width, 2^64 - 2, rounded down.
  EXPECT_EQ(exact_range(a.view(), {}, runner)->width_down, 0x1.fffffffffffffp63);
}

TEST(EnforcedBoundOf, RelativeBound_IsThatOfTheStream) {
  const Array a = array_of<std::int64_t>(DType::i64, {INT64_MAX - 1000, INT64_MAX - 500, INT64_MAX});
  EXPECT_EQ(enforced_bound(a.view(), {BoundKind::rel, 0.5}, {}, {}), (EnforcedBound{BoundKind::abs, 500}));
  const Array f = array_of<double>(DType::f64, {0.1, 0.7, NAN});
  const double bound = enforced_bound(f.view(), {BoundKind::rel, 0.1}, {}, {}).value;
  EXPECT_LT(bound, 0.06);
  EXPECT_GT(bound, 0.06 - 1e-16);
  EXPECT_EQ(enforced_bound(f.view(), {BoundKind::abs, 0.25}, {}, {}), (EnforcedBound{BoundKind::abs, 0.25}));
  EXPECT_EQ(enforced_bound(array_of<float>(DType::f32, {NAN}).view(), {BoundKind::rel, 0.1}, {}, {}).kind,
            BoundKind::lossless);
}

// Element by element, without any short cut.
template <class Element>
std::optional<ValueRange> plain_range(const Array& a, const Vector<std::uint64_t>& fills) {
  std::optional<ValueRange> range;
  for (std::uint64_t i = 0; i < a.shape.elems(); ++i) {
    const auto bits = load_bits<Element>(a.bytes.data(), i);
    if (!is_valid<Element>(bits, fills)) continue;
    const double v = Element::value(bits) + 0.0;
    range = range ? ValueRange{std::min(range->min, v), std::max(range->max, v)} : ValueRange{v, v};
  }
  return range;
}

// Nothing that a mask could be wanted for.
template <class Element>
bool plainly_ordinary(const Array& a, const Vector<std::uint64_t>& fills) {
  bool ordinary = fills.empty();
  for (std::uint64_t i = 0; i < a.shape.elems(); ++i) {
    const auto bits = load_bits<Element>(a.bytes.data(), i);
    const double v = Element::value(bits);
    ordinary = ordinary && Element::finite(bits) && !(is_float(a.dtype) && v == 0 && std::signbit(v));
  }
  return ordinary;
}

void expect_plain_range(const Array& a, const Vector<std::uint64_t>& fills) {
  const auto expected = with_element(a.dtype, [&](auto element) { return plain_range<decltype(element)>(a, fills); });
  const bool ordinary =
      with_element(a.dtype, [&](auto element) { return plainly_ordinary<decltype(element)>(a, fills); });
  for (const std::size_t threads : {1, 3}) {
    const auto got = value_range(a.view(), fills, with_threads(threads));
    ASSERT_EQ(got.has_value(), expected.has_value());
    if (!got) continue;
    EXPECT_EQ(got->min, expected->min);
    EXPECT_EQ(got->max, expected->max);
    RunnerHandle runner(with_threads(threads));
    EXPECT_EQ(exact_range(a.view(), fills, runner.get())->all_ordinary, ordinary);
  }
}

TEST(ValueRange, ExtremesAnywhereAmongSpecialValues_AreFound) {
  std::mt19937_64 rng(71);
  const std::uint64_t elems = 150001;
  for (const DType dtype :
       {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8, DType::i16, DType::i32, DType::u16, DType::u32}) {
    const std::size_t w = dtype_bytes(dtype);
    SCOPED_TRACE(std::string(dtype_name(dtype)) + ", seed 71");
    for (int round = 0; round < 6; ++round) {
      // Values within a narrow band, a few outside, special and fill values among them.
      Array a(dtype, shape_of({elems}));
      const std::uint64_t base = rng() >> 2;
      const auto put = [&](std::uint64_t i, std::uint64_t bits) { std::memcpy(a.bytes.data() + i * w, &bits, w); };
      for (std::uint64_t i = 0; i < elems; ++i) put(i, base + rng() % 50);
      for (int extremes = 0; extremes < 3; ++extremes) put(rng() % elems, rng());
      put(elems - 1, round % 2 == 0 ? base - 1 : base + 50);
      Vector<std::uint64_t> fills;
      if (round >= 2) {
        fills.push_back((base + 60) & (w == 8 ? ~UINT64_C(0) : (UINT64_C(1) << 8 * w) - 1));
        for (std::uint64_t i = 0; i < elems; i += 1 + rng() % 3000) put(i, fills[0]);
      }
      if (round >= 4) fills.push_back(0);
      expect_plain_range(a, fills);
    }
  }
}

TEST(ExactRange, OneElementThatIsNotOrdinary_IsSeen) {
  std::mt19937_64 rng(72);
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    SCOPED_TRACE(std::string(dtype_name(dtype)) + ", seed 72");
    const std::size_t w = dtype_bytes(dtype);
    const std::uint64_t sign = UINT64_C(1) << (8 * w - 1);
    const std::uint64_t infinity = dtype == DType::f16    ? 0x7C00
                                   : dtype == DType::bf16 ? 0x7F80
                                   : dtype == DType::f32  ? 0x7F800000
                                                          : UINT64_C(0x7FF0000000000000);
    const std::uint64_t elems = 70001;
    // Numbers of either sign, of both, and tiny ones, whose upper halves are those of zeros.
    for (const std::uint64_t signs : {UINT64_C(0), sign, UINT64_C(3)}) {
      for (const std::uint64_t most : {infinity - 1, UINT64_C(2000)}) {
        Array a(dtype, shape_of({elems}));
        const auto put = [&](std::uint64_t i, std::uint64_t bits) { std::memcpy(a.bytes.data() + i * w, &bits, w); };
        for (std::uint64_t i = 0; i < elems; ++i)
          put(i, (1 + rng() % most) | (signs == 3 ? (rng() % 2) * sign : signs));
        expect_plain_range(a, {});
        for (const std::uint64_t odd : {sign, infinity, sign | infinity, infinity + 1}) {
          const std::uint64_t at = rng() % elems;
          std::uint64_t before = 0;
          std::memcpy(&before, a.bytes.data() + at * w, w);
          put(at, odd);
          expect_plain_range(a, {});
          put(at, before);
        }
      }
    }
  }
}

TEST(ValueRange, NothingValidButOneElement_IsThatElement) {
  Array a(DType::f32, shape_of({5000}));
  std::fill(a.bytes.begin(), a.bytes.end(), std::uint8_t{0xFF});  // NaN
  expect_plain_range(a, {});
  const float value = -7.0f;
  std::memcpy(a.bytes.data() + 4 * 4999, &value, 4);
  expect_plain_range(a, {});
  EXPECT_EQ(value_range(a.view(), {}, {})->max, -7.0);
}

// Device code has nothing but constant evaluation's means.
using Half = FloatElement<std::uint16_t, 5>;
static_assert(range_of_keys<Half>(Half::key(0xC000), Half::key(0x3C01)).width_down == 3.0009765625);
static_assert(resolve_bound({BoundKind::rel, 0.5}, ExactRange{{1, 3}, 2}).enforced == EnforcedBound{BoundKind::abs, 1});

TEST(Element, HalfPrecisionValues_AreThoseOfTheLibrary) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
    const double value = (bits & 0x8000) != 0 ? -magnitude : magnitude;
    ASSERT_EQ(std::bit_cast<std::uint64_t>(Half::value(static_cast<std::uint16_t>(bits))),
              std::bit_cast<std::uint64_t>(value))
        << bits;
  }
}

TEST(RoundedDown, ProductsAndDifferences_NeverExceedTheRealOnes) {
  std::mt19937_64 rng(23);
  std::uniform_real_distribution<double> mantissa(1, 2);
  for (int i = 0; i < 20000; ++i) {
    const double a = std::ldexp(mantissa(rng), static_cast<int>(rng() % 40) - 20);
    const double b = std::ldexp(mantissa(rng), static_cast<int>(rng() % 40) - 20);
    const double p = product_down(a, b);
    EXPECT_LE(static_cast<long double>(p), static_cast<long double>(a) * b) << "seed 23, round " << i;
    EXPECT_GE(p, std::nextafter(a * b, 0.0));
    const double d = difference_down(std::max(a, b), std::min(a, b));
    EXPECT_LE(static_cast<long double>(d), static_cast<long double>(std::max(a, b)) - std::min(a, b));
  }
  EXPECT_EQ(difference_down(DBL_MAX, -DBL_MAX), DBL_MAX);
  EXPECT_EQ(product_down(5e-324, 0.5), 0.0);
}

TEST(RelativeBound, ConstantArray_IsLossless) {
  const ToyRegistry toys({1, 1, 4096});
  const Array a = array_of<float>(DType::f32, std::vector<float>(3000, 2.5f));
  CompressReport report;
  const auto stream = compress_ok(a, with_bound(BoundKind::rel, 1e-2), toys.registry, {}, &report);
  EXPECT_EQ(report.enforced.kind, BoundKind::lossless);
  EXPECT_EQ(report.codec, "lossless");
  EXPECT_TRUE(decompress_ok(stream, a.dtype, a.shape, toys.registry).bytes == a.bytes);
}

TEST(RelativeBound, GivenRange_IsUsedAndStored) {
  const ToyRegistry toys({1, 1, 4096});
  const Array a = smooth(DType::f32, shape_of({3000}));
  CompressOptions options = with_bound(BoundKind::rel, 0.25);
  options.range = ValueRange{-1, 3};
  CompressReport report;
  compress_ok(a, options, toys.registry, {}, &report);
  EXPECT_EQ(report.enforced.value, 1.0);
  ASSERT_TRUE(report.range.has_value());
  EXPECT_EQ(report.range->max, 3.0);
}

TEST(CodecChoice, ExplicitCodecUnderZeroBound_FallsBackToLosslessWithoutItsSettings) {
  const ToyRegistry toys({1, 1, 4096});
  const Array a = smooth(DType::f32, shape_of({3000}));
  CompressOptions options = with_bound(BoundKind::abs, 0);
  options.codec = "lorenzo";
  options.settings = {{"order", "2"}};
  CompressReport report;
  compress_ok(a, options, toys.registry, {}, &report);
  EXPECT_EQ(report.codec, "lossless");
  options.bound.value = 0.1;
  Vector<std::uint8_t> out;
  VectorSink sink(out);
  EXPECT_EQ(compress(a.view(), options, toys.registry, {}, sink).status().code(), StatusCode::unknown_setting);
  options.codec = "none";
  EXPECT_EQ(compress(a.view(), options, toys.registry, {}, sink).status().code(), StatusCode::unknown_codec);
}

double psnr_of(const Array& a, const Array& b) {
  double sum = 0, lo = 1e300, hi = -1e300;
  for (std::size_t i = 0; i < a.bytes.size(); i += 4) {
    float x = 0, y = 0;
    std::memcpy(&x, a.bytes.data() + i, 4);
    std::memcpy(&y, b.bytes.data() + i, 4);
    lo = std::min<double>(lo, x);
    hi = std::max<double>(hi, x);
    sum += (static_cast<double>(x) - y) * (static_cast<double>(x) - y);
  }
  return 20 * std::log10(hi - lo) - 10 * std::log10(sum / static_cast<double>(a.shape.elems()));
}

TEST(PsnrBound, Target_IsMetAndNotByFar) {
  const ToyRegistry toys;
  const Array a = smooth(DType::f32, shape_of({20, 50, 60}));
  for (const double target : {30.0, 60.0, 90.0}) {
    CompressReport report;
    const auto stream = compress_ok(a, with_bound(BoundKind::psnr, target), toys.registry, {}, &report);
    const Array b = decompress_ok(stream, a.dtype, a.shape, toys.registry);
    EXPECT_GE(psnr_of(a, b), target);
    // The toy's streams are at places smaller at a higher PSNR.
    EXPECT_LE(psnr_of(a, b), target + 1.2);
    ASSERT_TRUE(report.psnr_db.has_value());
    EXPECT_NEAR(*report.psnr_db, psnr_of(a, b), 1e-6);
    EXPECT_TRUE(compress_ok(a, with_bound(BoundKind::psnr, target), toys.registry, with_threads(3)) == stream);
  }
}

TEST(PsnrBound, OutOfReach_IsLossless) {
  const ToyRegistry toys({1, 1, 4096});
  const Array a = smooth(DType::f32, shape_of({3000}));
  CompressReport report;
  const auto stream = compress_ok(a, with_bound(BoundKind::psnr, 9000), toys.registry, {}, &report);
  EXPECT_EQ(report.enforced.kind, BoundKind::lossless);
  EXPECT_TRUE(decompress_ok(stream, a.dtype, a.shape, toys.registry).bytes == a.bytes);
}

TEST(RatioBound, Target_IsReachedWithASmallBound) {
  const ToyRegistry toys;
  const Array a = smooth(DType::f32, shape_of({20, 50, 60}));
  CompressReport report;
  compress_ok(a, with_bound(BoundKind::ratio, 2.5), toys.registry, {}, &report);
  const double ratio = static_cast<double>(report.input_bytes) / static_cast<double>(report.output_bytes);
  EXPECT_GE(ratio, 2.5);
  EXPECT_LE(ratio, 2.9);  // the toy's sizes do not grow evenly: a smaller bound at a larger ratio is better in both
  EXPECT_EQ(report.enforced.kind, BoundKind::abs);
}

TEST(RatioBound, OutOfReach_SaysHowFarItGot) {
  const ToyRegistry toys;
  const Array a = smooth(DType::f32, shape_of({20, 50, 60}));
  Vector<std::uint8_t> out;
  VectorSink sink(out);
  const auto result = compress(a.view(), with_bound(BoundKind::ratio, 1000), toys.registry, {}, sink);
  EXPECT_EQ(result.status().code(), StatusCode::bound_not_met);
  EXPECT_GT(result.status().first(), 3000);
  EXPECT_EQ(result.status().second(), 1000000);
  EXPECT_TRUE(out.empty());
}

TEST(Encoder, BoundsThatNeedTheWholeArray_AreRefused) {
  const ToyRegistry toys;
  Vector<std::uint8_t> out;
  VectorSink sink(out);
  for (const BoundKind kind : {BoundKind::rel, BoundKind::psnr, BoundKind::ratio})
    EXPECT_EQ(
        Encoder::create(DType::f32, shape_of({10}), with_bound(kind, 1.5), toys.registry, {}, sink).status().code(),
        StatusCode::invalid_argument);
}

TEST(Encoder, WrongAmountOfData_IsRefused) {
  const ToyRegistry toys;
  const Vector<std::uint8_t> data(44);
  Vector<std::uint8_t> out;
  VectorSink sink(out);
  auto few = Encoder::create(DType::f32, shape_of({10}), with_bound(BoundKind::lossless), toys.registry, {}, sink);
  ASSERT_TRUE((*few)->push({data.data(), 36}).ok());
  EXPECT_EQ((*few)->finish().status().code(), StatusCode::invalid_argument);
  auto many = Encoder::create(DType::f32, shape_of({10}), with_bound(BoundKind::lossless), toys.registry, {}, sink);
  EXPECT_EQ((*many)->push(data).code(), StatusCode::invalid_argument);
  auto split = Encoder::create(DType::f32, shape_of({10}), with_bound(BoundKind::lossless), toys.registry, {}, sink);
  EXPECT_EQ((*split)->push({data.data(), 3}).code(), StatusCode::invalid_argument);
}

// More than the 64 MiB that the plan is made from: the bands behind it go through the moving window.
TEST(Encoder, ArrayLargerThanTheSample_EqualsOneShot) {
  const ToyRegistry toys({16, 64, 64});
  const Array a = smooth(DType::u8, shape_of({280, 500, 503}));
  const CompressOptions options = with_bound(BoundKind::lossless);
  const auto expected = compress_ok(a, options, toys.registry);
  Vector<std::uint8_t> out;
  VectorSink sink(out);
  Execution execution = with_threads(2);
  execution.memory_limit = UINT64_C(160) << 20;
  auto encoder = Encoder::create(a.dtype, a.shape, options, toys.registry, execution, sink);
  ASSERT_TRUE(encoder.ok()) << encoder.status().text();
  for (std::size_t at = 0; at < a.bytes.size(); at += 9999991) {
    const Status status = (*encoder)->push({a.bytes.data() + at, std::min<std::size_t>(9999991, a.bytes.size() - at)});
    ASSERT_TRUE(status.ok()) << status.text();
  }
  ASSERT_TRUE((*encoder)->finish().ok());
  EXPECT_TRUE(out == expected);
}

}  // namespace
}  // namespace quern::testing
