// The bounded modes keep what they promise on every kind of array, whatever the shape, and write the same bytes with
// any number of threads.
#include "tests/unit_moments/bounds.h"

#include "codecs/tensor/bounded/log_bins.h"
#include "codecs/tensor/bounded/moments.h"
#include "libcompress/core/task_runner.h"
#include "tests/support/instrumented.h"
#include "tests/unit_moments/float_cases.h"

namespace quern::testing {
namespace {

using namespace codec::tensor;
using Bytes = std::vector<std::uint8_t>;

TensorDescription describe(std::vector<std::uint64_t> extents) {
  return {ElementType::f32, Shape::make(extents).value()};
}

struct Coded {
  Bytes decoded;
  std::uint64_t bytes = 0;
};

Coded code(const TensorDescription& description, Mode mode, double bound, const TensorInputs& inputs,
           bool in_deviations = true) {
  TensorRequest request;
  request.mode = mode;
  request.bound = bound;
  request.bound_in_deviations = in_deviations;
  SerialRunner serial;
  const auto encoded = encode_tensor(description, request, inputs, serial);
  EXPECT_TRUE(encoded.ok()) << encoded.status().text();
  if (!encoded.ok()) return {};
  Execution many;
  many.threads = 3;
  RunnerHandle threads(many);
  const auto again = encode_tensor(description, request, inputs, threads.get());
  EXPECT_TRUE(again.ok());
  EXPECT_EQ(encoded.value().side, again.value().side);
  EXPECT_EQ(encoded.value().sizes, again.value().sizes);
  for (std::size_t i = 0; i < encoded.value().sizes.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(encoded.value().chunk(i), again.value().chunk(i)));
  TensorInputs known = inputs;
  known.values = {};
  Coded coded;
  coded.decoded.assign(static_cast<std::size_t>(description.bytes()), 0xee);
  coded.bytes = encoded.value().total_bytes();
  const Status status = decode_tensor(description, encoded.value(), known, coded.decoded, threads.get());
  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_LE(encoded.value().total_bytes() - encoded.value().side.size(),
            description.bytes() + kChunkSlack * description.chunks());
  return coded;
}

const std::vector<std::vector<std::uint64_t>> kShapes = {{0},          {1},       {7},       {5000}, {50, 100},
                                                         {2, 25, 100}, {1000, 5}, {5, 1000}, {}};

std::size_t elems_of(const std::vector<std::uint64_t>& extents) {
  std::size_t elems = 1;
  for (const std::uint64_t e : extents) elems *= static_cast<std::size_t>(e);
  return elems;
}

TEST(BoundedModes, AnyArray_AnyShape_KeepTheirBounds) {
  for (const auto& extents : kShapes) {
    const TensorDescription description = describe(extents);
    for (const FloatCase& c : float_cases(elems_of(extents))) {
      SCOPED_TRACE(c.name + ", " + std::to_string(elems_of(extents)) + " elements");
      const Bytes first = bytes_of_floats(c.first);
      const Bytes second = bytes_of_floats(c.second);
      for (const double bound : {0.001, 0.05, 1.5}) {
        const Coded v = code(description, Mode::logq, bound, {second, {}, {}});
        expect_log_bound(second, v.decoded, bound);
        const Coded m = code(description, Mode::updq, bound, {first, {}, v.decoded});
        expect_update_bound(first, m.decoded, v.decoded, bound);
        const Coded w = code(description, Mode::ebq, bound, {first, {}, {}}, false);
        expect_absolute_bound(first, w.decoded, static_cast<long double>(bound));
        // From a base that is another array, and from what came back itself.
        const Coded v2 = code(description, Mode::logq, bound, {second, first, {}});
        expect_log_bound(second, v2.decoded, bound);
        const Coded v3 = code(description, Mode::logq, bound, {second, v.decoded, {}});
        expect_log_bound(second, v3.decoded, bound);
        const Coded m2 = code(description, Mode::updq, bound, {first, second, v.decoded});
        expect_update_bound(first, m2.decoded, v.decoded, bound);
        Bytes direction(first.size()), base_direction(first.size());
        update_direction(m.decoded, v.decoded, direction);
        update_direction(second, v.decoded, base_direction);
        TensorInputs inputs{first, second, {}};
        inputs.direction = direction;
        inputs.base_direction = base_direction;
        expect_absolute_bound(first, code(description, Mode::ebq, bound, inputs, false).decoded,
                              static_cast<long double>(bound));
      }
      expect_deviation_bound(first, code(description, Mode::ebq, 1e-3, {first, {}, {}}).decoded, 1e-3);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(BoundedModes, SeveralChunks_KeepTheirBounds) {
  const std::uint64_t rows = kInstrumented ? 700 : 1500;
  const FloatCase c = structured_case(static_cast<std::size_t>(rows), 501, 9);
  const TensorDescription description = describe({rows, 501});
  ASSERT_GE(description.chunks(), 2u);
  const Bytes first = bytes_of_floats(c.first), second = bytes_of_floats(c.second);
  const Coded v = code(description, Mode::logq, .05, {second, {}, {}});
  expect_log_bound(second, v.decoded, .05);
  const Coded m = code(description, Mode::updq, .05, {first, {}, v.decoded});
  expect_update_bound(first, m.decoded, v.decoded, .05);
  const Coded w = code(description, Mode::ebq, 1e-2, {first, {}, {}});
  expect_deviation_bound(first, w.decoded, 1e-2);
  EXPECT_LT(8.0 * static_cast<double>(v.bytes) / static_cast<double>(description.elems()), 4.5);
  EXPECT_LT(8.0 * static_cast<double>(m.bytes) / static_cast<double>(description.elems()), 4.7);
}

TEST(BoundedModes, FrozenRows_CostNothing) {
  FloatCase c = structured_case(1000, 100, 4);
  for (std::size_t i = 20000; i < 100000; ++i) c.first[i] = c.second[i] = 0;
  const TensorDescription description = describe({1000, 100});
  const Bytes first = bytes_of_floats(c.first), second = bytes_of_floats(c.second);
  const Coded v = code(description, Mode::logq, .05, {second, {}, {}});
  const Coded m = code(description, Mode::updq, .05, {first, {}, v.decoded});
  EXPECT_LT(v.bytes, 20000u * 5 / 8 + 1000);
  EXPECT_LT(m.bytes, 20000u * 5 / 8 + 1000);
}

TEST(BoundedModes, OtherTypesAndBounds_AreRefused) {
  SerialRunner runner;
  const Bytes values(400, 1);
  TensorRequest request;
  for (const Mode mode : {Mode::ebq, Mode::updq, Mode::logq, Mode::blk8, Mode::blk4}) {
    request.mode = mode;
    request.bound = .05;
    const TensorDescription half{ElementType::bf16, Shape::make(std::vector<std::uint64_t>{200}).value()};
    EXPECT_EQ(encode_tensor(half, request, {values, {}, values, ElementType::bf16}, runner).status().code(),
              StatusCode::unsupported);
  }
  for (const Mode mode : {Mode::ebq, Mode::updq, Mode::logq})
    for (const double bound : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), 1e300}) {
      request.mode = mode;
      request.bound = bound;
      EXPECT_EQ(encode_tensor(describe({100}), request, {values, {}, values}, runner).status().code(),
                StatusCode::invalid_bound);
    }
  request.mode = Mode::updq;
  request.bound = .05;
  EXPECT_EQ(encode_tensor(describe({100}), request, {values, {}, {}}, runner).status().code(), StatusCode::unsupported);
}

TEST(LogBins, EveryBitPattern_LiesWithinReachOfItsBin) {
  for (const double r : {0.001, 0.01, 0.05, 0.3, 3.0}) {
    const LogBins bins = LogBins::covering(reach_of(r), 1, 0x7f7fffff);
    const auto again = LogBins::make(reach_of(r), bins.first(), bins.count());
    ASSERT_TRUE(again.ok());
    EXPECT_TRUE(std::equal(bins.values().begin(), bins.values().end(), again.value().values().begin()));
    std::size_t missed = 0;
    std::mt19937 random(1);
    for (std::uint64_t bits = 1; bits < 0x7f800000u; bits += 1 + random() % (kInstrumented ? 40000 : 2000)) {
      const std::uint32_t bin = bins.find(static_cast<std::uint32_t>(bits));
      if (bin == LogBins::kNone) {
        ++missed;
        ASSERT_LT(bits, 0x800000u) << "only denormal numbers may lie between bins";
        continue;
      }
      const long double v = static_cast<long double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
      const long double d = static_cast<long double>(std::bit_cast<float>(bins.value(bin)));
      ASSERT_GT(d, 0);
      ASSERT_LE(std::abs(std::log(d / v)) / 2, static_cast<long double>(r)) << bits;
    }
    if (r >= 0.05) {
      EXPECT_LT(missed, 40u) << r;
    }
    for (const std::uint32_t bits : {0u, 0x80000000u, 0x7f800000u, 0x7fc00000u, 0xbf800000u})
      EXPECT_EQ(bins.find(bits), LogBins::kNone);
  }
  // Powers against those of the mathematical library.
  for (std::uint64_t f = 0; f < std::uint64_t{1} << kReachBits; f += 7368787) {
    const long double wanted = std::exp2(static_cast<long double>(f) * 0x1p-40L) * 0x1p62L;
    ASSERT_LE(std::abs(static_cast<long double>(exp2_fixed(f)) - wanted), 256.0L) << f;
    if (kInstrumented) f += 736878700;
  }
}

TEST(BlockCodes, Moments_ComeBackWithinHalfAStepOfTheirBlocksScale) {
  const FloatCase c = structured_case(60, 100, 2);
  const TensorDescription description = describe({60, 100});
  for (const bool with_sign : {true, false})
    for (const Mode mode : {Mode::blk8, Mode::blk4}) {
      const Bytes values = bytes_of_floats(with_sign ? c.first : c.second);
      const Coded coded = code(description, mode, 0, {values, {}, {}});
      const std::size_t block = mode == Mode::blk8 ? 256 : 128;
      const std::size_t blocks = (6000 + block - 1) / block;
      EXPECT_EQ(coded.bytes, 1 + 1 + blocks * 4 + (mode == Mode::blk8 ? 6000 : 3000) + 1);
      for (std::size_t b = 0; b < blocks; ++b) {
        float scale = 0;
        for (std::size_t i = b * block; i < std::min<std::size_t>(6000, (b + 1) * block); ++i)
          scale = std::max(scale, std::abs(float_at(values, i)));
        // The widest gap of the maps, halved: 0.9 / 64 / 2 and 0.1 / 2 of 8 bits, more of 4.
        const float gap = mode == Mode::blk8 ? 0.015f : 0.22f;
        for (std::size_t i = b * block; i < std::min<std::size_t>(6000, (b + 1) * block); ++i)
          ASSERT_LE(std::abs(float_at(values, i) - float_at(coded.decoded, i)), gap * scale) << i;
      }
    }
  for (const FloatCase& any : float_cases(777)) {
    const Bytes values = bytes_of_floats(any.first);
    const Coded coded = code(describe({777}), Mode::blk8, 0, {values, {}, {}});
    for (std::size_t i = 0; i < 777; ++i)
      EXPECT_TRUE(std::isfinite(float_at(values, i)) || same_bits(values, coded.decoded, i));
  }
}

}  // namespace
}  // namespace quern::testing
