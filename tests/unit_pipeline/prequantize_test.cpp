// Prequantized elements are fixed points within their bound, and streams of them come back bit for bit from another
// encoding, in whatever mixture with others.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "libcompress/core/quantizer_rules.h"
#include "libcompress/core/task_runner.h"
#include "libcompress/pipeline/encode/prequantize.h"
#include "tests/support/array_cases.h"
#include "tests/unit_pipeline/support.h"

namespace quern::testing {
namespace {

using Bits = std::vector<std::uint64_t>;

Array array_of(DType dtype, const Bits& bits) {
  const std::uint64_t elems = bits.size();
  Array a(dtype, Shape::make({&elems, 1}).value());
  const std::size_t width = dtype_bytes(dtype);
  for (std::size_t i = 0; i < bits.size(); ++i) std::memcpy(a.bytes.data() + i * width, &bits[i], width);
  return a;
}

std::uint64_t bits_at(const Array& a, std::uint64_t i) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, a.bytes.data() + i * dtype_bytes(a.dtype), dtype_bytes(a.dtype));
  return bits;
}

double value_at(const Array& a, std::uint64_t i) {
  return load_element(OwnedArray{Vector<std::uint8_t>(a.bytes.begin(), a.bytes.end()), a.dtype, a.shape}, i);
}

std::vector<double> values_of(const Array& a) {
  const OwnedArray owned{Vector<std::uint8_t>(a.bytes.begin(), a.bytes.end()), a.dtype, a.shape};
  std::vector<double> out(a.shape.elems());
  for (std::uint64_t i = 0; i < out.size(); ++i) out[i] = load_element(owned, i);
  return out;
}

Array prequantized(Array a, const EnforcedBound& bound, const std::vector<std::uint64_t>& fills = {}) {
  RunnerHandle runner(Execution{});
  EXPECT_TRUE(prequantize(a.dtype, bound, fills, a.bytes.data(), a.shape.elems(), runner.get()).ok());
  return a;
}

/// The element as a number: long double has all of them exactly.
std::vector<long double> exact_values(const Array& a) {
  std::vector<long double> out;
  if (a.dtype == DType::i64 || a.dtype == DType::u64) {
    for (std::uint64_t i = 0; i < a.shape.elems(); ++i) {
      const std::uint64_t bits = bits_at(a, i);
      out.push_back(a.dtype == DType::u64 ? static_cast<long double>(bits)
                                          : static_cast<long double>(static_cast<std::int64_t>(bits)));
    }
    return out;
  }
  for (const double value : values_of(a)) out.push_back(value);
  return out;
}

void expect_kept(const Array& a, const Array& b, const EnforcedBound& bound) {
  static_assert(std::numeric_limits<long double>::digits >= 64);
  const auto x = exact_values(a), y = exact_values(b);
  for (std::uint64_t i = 0; i < x.size(); ++i) {
    if (bits_at(a, i) == bits_at(b, i)) continue;
    ASSERT_TRUE(std::isfinite(x[i]) && std::isfinite(y[i])) << i;
    ASSERT_FALSE(x[i] == 0 && std::signbit(x[i])) << "a -0 changed";
    const long double allowed = bound.kind == BoundKind::pwrel ? bound.value * std::fabs(x[i]) : bound.value;
    ASSERT_LE(std::fabs(x[i] - y[i]), allowed)
        << dtype_name(a.dtype) << " bound " << bound.value << " element " << static_cast<double>(x[i]);
  }
}

void expect_fixed_point(const Array& a, const EnforcedBound& bound) {
  SCOPED_TRACE(std::string(dtype_name(a.dtype)) + " " + bound_kind_name(bound.kind) + " " +
               std::to_string(bound.value));
  const Array once = prequantized(a, bound);
  const Array twice = prequantized(once, bound);
  ASSERT_EQ(once.bytes, twice.bytes);
  expect_kept(a, once, bound);
}

const double kBounds[] = {0x1p-24, 1e-7, 3e-5, 0x1p-12, 1e-3, 0.0078125, 0.01, 0.1, 0.3,
                          0.5,     1,    1.5,  2.9,     7,    100,       4e3,  1e5};

TEST(Prequantize, EveryPatternOfSmallTypes_IsAFixedPointWithinTheBound) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::i8, DType::u8, DType::i16, DType::u16}) {
    Bits all(std::size_t{1} << (8 * dtype_bytes(dtype)));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    const Array a = array_of(dtype, all);
    for (const double bound : kBounds) expect_fixed_point(a, {BoundKind::abs, bound});
    if (!is_float(dtype)) continue;
    for (const double bound : {1e-3, 0.01, 0.1, 0.7}) expect_fixed_point(a, {BoundKind::pwrel, bound});
  }
}

TEST(Prequantize, MultiplesOfTheStepAndTheirNeighbours_AreFixedPointsUpToTheLastCode) {
  std::mt19937_64 rng(11);
  for (const double bound : {1e-30, 1e-7, 3.3e-5, 0x1p-12, 1e-3, 0.1, 0.3, 7.7, 1e5, 1e30}) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      const QuantizerRules rules = quantizer_rules(dtype, {BoundKind::abs, bound});
      Bits bits;
      for (int i = 0; i < 40000; ++i) {
        const int most = dtype == DType::f32 ? 23 : 52;
        const double code = std::floor(std::ldexp(1.0, static_cast<int>(rng() % (most + 1))) *
                                       (1 + 1e-9 * static_cast<double>(rng() % 1000000000)));
        const double halves = (static_cast<double>(rng() % 5) - 2) * 0.25;
        const double value = (code + halves) * rules.params.step * (rng() % 2 != 0 ? 1 : -1);
        const std::uint64_t off = rng() % 5 - 2;
        if (dtype == DType::f32) {
          bits.push_back((std::bit_cast<std::uint32_t>(static_cast<float>(value)) + off) & 0xffffffff);
        } else {
          bits.push_back(std::bit_cast<std::uint64_t>(value) + off);
        }
      }
      expect_fixed_point(array_of(dtype, bits), {BoundKind::abs, bound});
    }
  }
}

TEST(Prequantize, RandomPatterns_AreFixedPointsWithinTheBound) {
  for (const DType dtype : all_dtypes()) {
    const Array a = random_bits(dtype, shape_of(Vector<std::uint64_t>{30000}), 5);
    for (const double bound : kBounds) expect_fixed_point(a, {BoundKind::abs, bound});
    if (is_float(dtype)) expect_fixed_point(a, {BoundKind::pwrel, 1e-3});
    const Array same = prequantized(a, {BoundKind::lossless, 0});
    EXPECT_EQ(same.bytes, a.bytes);
  }
}

TEST(Prequantize, FillValues_StayBitForBit) {
  const auto fill = std::bit_cast<std::uint32_t>(-999.1F);
  Bits bits(5000);
  for (std::size_t i = 0; i < bits.size(); ++i)
    bits[i] = i % 7 == 0 ? fill : std::bit_cast<std::uint32_t>(static_cast<float>(i) * 0.37F);
  const Array a = array_of(DType::f32, bits);
  const Array out = prequantized(a, {BoundKind::abs, 0.5}, {fill});
  for (std::uint64_t i = 0; i < bits.size(); i += 7) ASSERT_EQ(bits_at(out, i), fill);
  EXPECT_NE(value_at(out, 1), value_at(a, 1));
}

CompressOptions idempotent(BoundKind kind, double bound, const char* codec = "auto", const char* goal = "ratio") {
  CompressOptions options = with_bound(kind, bound);
  options.codec = codec;
  options.goal = goal;
  options.idempotent = true;
  return options;
}

Array round_trip(const Array& a, const CompressOptions& options, std::size_t* bytes = nullptr) {
  const auto stream = compress_ok(a, options, builtin_codecs());
  if (bytes != nullptr) *bytes = stream.size();
  return decompress_ok(stream, a.dtype, a.shape, builtin_codecs());
}

struct Bound {
  BoundKind kind;
  double value;
};

std::vector<Bound> bounds_of(DType dtype) {
  std::vector<Bound> out{{BoundKind::abs, 0.003}, {BoundKind::abs, 2.6}, {BoundKind::lossless, 0}};
  if (is_float(dtype)) out.push_back({BoundKind::pwrel, 0.01});
  return out;
}

TEST(IdempotentStreams, DecodedValues_ComeBackBitForBitFromAnyMixture) {
  for (const DType dtype : all_dtypes()) {
    for (const Data data : all_data()) {
      const auto made = make_array(dtype, testing::shape_of({6, 14, 25}), data);
      const auto other = make_array(dtype, testing::shape_of({6, 14, 25}), Data::noise);
      Array a(dtype, made.shape);
      a.bytes = made.bytes;
      for (const Bound& bound : bounds_of(dtype)) {
        for (const char* codec : {"auto", "lorenzo", "stencil", "lossless"}) {
          const bool stencil = std::string(codec) == "stencil";
          if (std::string(codec) == "auto" && dtype != DType::f32 && dtype != DType::i16) continue;
          if (stencil && (bound.kind != BoundKind::abs || dtype == DType::i64 || dtype == DType::u64)) continue;
          if (std::string(codec) == "lossless" && bound.kind != BoundKind::lossless) continue;
          SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + data_name(data) + " " + codec + " " +
                       bound_kind_name(bound.kind) + " " + std::to_string(bound.value));
          const CompressOptions options = idempotent(bound.kind, bound.value, codec);
          const Array once = round_trip(a, options);
          if (bound.kind == BoundKind::lossless) {
            ASSERT_EQ(once.bytes, a.bytes);
            continue;
          }
          // Some rows are new, and the axes are cut differently.
          Array mixed(dtype, shape_of(Vector<std::uint64_t>{12, 7, 25}));
          mixed.bytes = once.bytes;
          const std::size_t row = 25 * dtype_bytes(dtype);
          for (std::size_t r = 0; r < 12 * 7; r += 3)
            std::memcpy(mixed.bytes.data() + r * row, other.bytes.data() + r * row, row);
          const Array twice = round_trip(mixed, options);
          for (std::size_t r = 0; r < 12 * 7; ++r)
            ASSERT_TRUE(r % 3 == 0 || std::memcmp(twice.bytes.data() + r * row, once.bytes.data() + r * row, row) == 0)
                << "row " << r;
          ASSERT_EQ(round_trip(twice, options).bytes, twice.bytes);
        }
      }
    }
  }
}

TEST(IdempotentStreams, Auto_IsNeverLargerThanLorenzo) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i16, DType::f16}) {
    for (const Data data : all_data()) {
      const auto made = make_array(dtype, testing::shape_of({6, 14, 25}), data);
      Array a(dtype, made.shape);
      a.bytes = made.bytes;
      std::size_t best = 0, lorenzo = 0;
      round_trip(a, idempotent(BoundKind::abs, 1.2), &best);
      round_trip(a, idempotent(BoundKind::abs, 1.2, "lorenzo"), &lorenzo);
      EXPECT_LE(best, lorenzo) << dtype_name(dtype) << " " << data_name(data);
    }
  }
}

TEST(IdempotentStreams, PushedElements_GiveTheSameBytes) {
  const Array a = smooth(DType::f32, shape_of(Vector<std::uint64_t>{20, 50, 60}));
  const CompressOptions options = idempotent(BoundKind::abs, 0.01);
  Vector<std::uint8_t> pushed;
  VectorSink sink(pushed);
  auto encoder = Encoder::create(a.dtype, a.shape, options, builtin_codecs(), {}, sink);
  ASSERT_TRUE(encoder.ok());
  for (std::size_t at = 0; at < a.bytes.size(); at += 12000)
    ASSERT_TRUE((*encoder)->push({a.bytes.data() + at, std::min<std::size_t>(12000, a.bytes.size() - at)}).ok());
  ASSERT_TRUE((*encoder)->finish().ok());
  EXPECT_EQ(pushed, compress_ok(a, options, builtin_codecs()));
}

TEST(IdempotentStreams, CoarseLevels_HaveTheValuesOfTheWhole) {
  const Array a = smooth(DType::f32, shape_of(Vector<std::uint64_t>{16, 32, 48}));
  CompressOptions options = idempotent(BoundKind::abs, 0.01, "stencil");
  options.settings = {{"layout", "levels"}};
  const auto stream = compress_ok(a, options, builtin_codecs());
  const Array whole = decompress_ok(stream, a.dtype, a.shape, builtin_codecs());
  Array coarse(a.dtype, shape_of(Vector<std::uint64_t>{8, 16, 24}));
  MemorySource source(stream);
  DecompressOptions level;
  level.level = 1;
  ASSERT_TRUE(decompress(source, coarse.target(), builtin_codecs(), {}, level).ok());
  for (std::uint64_t z = 0; z < 8; ++z)
    for (std::uint64_t y = 0; y < 16; ++y)
      for (std::uint64_t x = 0; x < 24; ++x)
        ASSERT_EQ(bits_at(coarse, (z * 16 + y) * 24 + x), bits_at(whole, (z * 2 * 32 + y * 2) * 48 + x * 2));
}

TEST(IdempotentStreams, BoundsThatDependOnTheData_AreRefused) {
  const Array a = smooth(DType::f32, shape_of(Vector<std::uint64_t>{100}));
  Vector<std::uint8_t> out;
  VectorSink sink(out);
  for (const BoundKind kind : {BoundKind::rel, BoundKind::psnr, BoundKind::ratio}) {
    const auto result =
        compress(a.view(), idempotent(kind, kind == BoundKind::rel ? 0.1 : 30), builtin_codecs(), {}, sink);
    EXPECT_EQ(result.status().code(), StatusCode::invalid_argument);
  }
  CompressOptions ranged = idempotent(BoundKind::rel, 0.01);
  ranged.range = ValueRange{-50, 51};
  const Array once = round_trip(a, ranged);
  EXPECT_EQ(round_trip(once, ranged).bytes, once.bytes);
}

TEST(IdempotentStreams, ACopyOfTheArray_CountsTowardsTheMemoryLimit) {
  const Array a = smooth(DType::f32, shape_of(Vector<std::uint64_t>{400000}));
  Execution execution;
  execution.memory_limit = a.bytes.size() / 2;
  Vector<std::uint8_t> out;
  VectorSink sink(out);
  const auto result = compress(a.view(), idempotent(BoundKind::abs, 0.1, "lorenzo"), builtin_codecs(), execution, sink);
  EXPECT_EQ(result.status().code(), StatusCode::memory_limit);
}

}  // namespace
}  // namespace quern::testing
