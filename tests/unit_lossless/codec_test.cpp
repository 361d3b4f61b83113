// The codec through its interface: exact round trips over types, shapes and data, sizes, settings, strided boxes.
#include <algorithm>
#include <cmath>

#include "tests/unit_lossless/helpers.h"

namespace quern::codec::lossless::test {
namespace {

std::uint64_t float_bits(DType dtype, double value) {
  const auto single = static_cast<float>(value);
  std::uint32_t narrow = 0;
  std::memcpy(&narrow, &single, sizeof(narrow));
  std::uint64_t wide = 0;
  std::memcpy(&wide, &value, sizeof(wide));
  switch (dtype) {
    case DType::f64: return wide;
    case DType::f32: return narrow;
    case DType::bf16: return narrow >> 16;
    // Half: the exponent moved, the mantissa cut; good enough for data of moderate size.
    case DType::f16: return value == 0 ? 0 : (narrow >> 16 & 0x8000) | (((narrow >> 13) - (112u << 10)) & 0x7fff);
    default: return static_cast<std::uint64_t>(static_cast<std::int64_t>(std::lround(value * 64)));
  }
}

struct Kind {
  const char* name;
  std::function<std::uint64_t(DType, std::uint64_t, std::mt19937_64&)> pattern;
};

std::vector<Kind> kinds() {
  using R = std::mt19937_64;
  return {
      {"constant", [](DType t, std::uint64_t, R&) { return float_bits(t, 1.25); }},
      {"zero", [](DType, std::uint64_t, R&) { return std::uint64_t{0}; }},
      {"ramp", [](DType t, std::uint64_t i, R&) { return float_bits(t, 1 + static_cast<double>(i) / 1000); }},
      {"smooth", [](DType t, std::uint64_t i, R&) { return float_bits(t, std::sin(static_cast<double>(i) / 50)); }},
      {"noise",
       [](DType t, std::uint64_t, R& r) { return float_bits(t, static_cast<double>(r() % 1000000) / 1e6 - 0.5); }},
      {"bits", [](DType, std::uint64_t, R& r) { return r(); }},
      {"spike", [](DType t, std::uint64_t i, R&) { return i == 17 ? ~std::uint64_t{0} >> 1 : float_bits(t, 2.0); }},
      {"few values", [](DType t, std::uint64_t, R& r) { return float_bits(t, static_cast<double>(r() % 40) * 0.1); }},
      {"special",
       [](DType t, std::uint64_t i, R& r) {
         const unsigned width = 8 * static_cast<unsigned>(dtype_bytes(t));
         const std::uint64_t sign = std::uint64_t{1} << (width - 1);
         const std::uint64_t exponent = t == DType::f64   ? 0x7ffULL << 52
                                        : t == DType::f16 ? 0x7c00u
                                        : t == DType::f32 ? 0x7f800000u
                                                          : 0x7f80u;
         switch (r() % 8) {
           case 0: return sign;                               // -0
           case 1: return std::uint64_t{0};                   // 0
           case 2: return exponent;                           // Inf
           case 3: return exponent | sign;                    // -Inf
           case 4: return exponent | (1 + r() % 100);         // NaN with payload
           case 5: return exponent | sign | (1 + r() % 100);  // the same, signed
           case 6: return 1 + r() % 50;                       // denormal
           default: return float_bits(t, static_cast<double>(i % 7));
         }
       }},
  };
}

TEST(LosslessCodec, RoundTrip_EveryTypeShapeAndKind_ComesBackExactly) {
  const std::vector<Shape> shapes = {shape_of({}),           shape_of({1}),
                                     shape_of({2}),          shape_of({7}),
                                     shape_of({8}),          shape_of({9}),
                                     shape_of({1, 1, 1}),    shape_of({4099}),
                                     shape_of({5, 1}),       shape_of({31, 37}),
                                     shape_of({3, 5, 7}),    shape_of({17, 2, 3}),
                                     shape_of({13, 11, 29}), shape_of({2, 3, 4, 5, 6}),
                                     shape_of({64, 65, 3})};
  constexpr std::uint64_t kSeed = 20240611;
  for (const DType dtype : kAllTypes) {
    for (const Kind& kind : kinds()) {
      for (const Shape& shape : shapes) {
        SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + shape.text() + " " + kind.name + ", seed 20240611");
        std::mt19937_64 random(kSeed);
        const Bytes data =
            elements(dtype, shape.elems(), [&](std::uint64_t i) { return kind.pattern(dtype, i, random); });
        Coding(dtype, shape, data).round_trip();
      }
    }
  }
}

TEST(LosslessCodec, RoundTrip_AroundChunkSize_ComesBackExactly) {
  constexpr std::uint64_t kChunk = 1 << 16;
  for (const DType dtype : {DType::f32, DType::f64, DType::i16, DType::u8}) {
    const std::uint64_t full = dtype_bytes(dtype) <= 2 ? 2 * kChunk : kChunk;
    for (const std::uint64_t n : {full - 1, full, full + 1, 2 * full + 13}) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + std::to_string(n));
      const Bytes data = elements(dtype, n, [&](std::uint64_t i) {
        return float_bits(dtype, 3 * std::sin(static_cast<double>(i) / 777) + std::cos(static_cast<double>(i) / 31));
      });
      Coding(dtype, shape_of({n}), data).round_trip();
    }
  }
}

TEST(LosslessCodec, RoundTrip_SeveralChunksAlongEveryAxis_ComesBackExactly) {
  const Shape shape = shape_of({70, 61, 203});
  for (const DType dtype : {DType::f32, DType::f64, DType::u16}) {
    SCOPED_TRACE(dtype_name(dtype));
    const Bytes data = elements(dtype, shape.elems(), [&](std::uint64_t i) {
      const auto x = static_cast<double>(i % 203), y = static_cast<double>(i / 203 % 61);
      return float_bits(dtype, std::sin(x / 20) * std::cos(y / 9) + static_cast<double>(i / 12383) / 8);
    });
    const Coding coding(dtype, shape, data);
    EXPECT_GT(coding.chunks(), 4u);
    EXPECT_LT(coding.round_trip(), data.size());
  }
}

TEST(LosslessCodec, Encode_SameChunkTwice_GivesTheSameBytes) {
  std::mt19937_64 random(5);
  const Bytes data = elements(DType::f32, 40000, [&](std::uint64_t i) {
    return float_bits(DType::f32, static_cast<double>(i) / 100 + static_cast<double>(random() % 100) / 1e4);
  });
  const Coding coding(DType::f32, shape_of({200, 200}), data);
  EXPECT_EQ(coding.encode(0), coding.encode(0));
}

TEST(LosslessCodec, Encode_ScratchHoldsOldBytes_GivesTheSameBytes) {
  const Bytes data = elements(DType::f32, 5000, [](std::uint64_t i) {
    return float_bits(DType::f32, std::floor(static_cast<double>(i % 97)) / 10);
  });
  const Coding coding(DType::f32, shape_of({5000}), data);
  const MutableBox3 box = coding.box(0, const_cast<std::uint8_t*>(data.data()));
  Bytes first;
  for (const int fill : {0, 0x5A, 0xFF}) {
    const Scratch scratch(coding.encoder().scratch_bytes());
    std::memset(scratch.span().data(), fill, scratch.span().size());
    Bytes out(coding.encoder().max_chunk_bytes());
    const auto written = coding.encoder().encode({box.data, box.extents, box.strides}, out, scratch.span());
    ASSERT_TRUE(written.ok());
    out.resize(*written);
    if (first.empty()) first = out;
    EXPECT_EQ(out, first) << "fill " << fill;
  }
}

TEST(LosslessCodec, Encode_RandomBits_TakesOneByteMoreThanRaw) {
  std::mt19937_64 random(11);
  const Bytes data = elements(DType::f64, 3000, [&](std::uint64_t) { return random(); });
  const Coding coding(DType::f64, shape_of({3000}), data);
  EXPECT_EQ(coding.round_trip(), data.size() + 1);
}

TEST(LosslessCodec, Encode_Constant_TakesOneElement) {
  const Bytes data = elements(DType::f32, 9000, [](std::uint64_t) { return 0x7fc12345u; });
  EXPECT_EQ(Coding(DType::f32, shape_of({9000}), data).round_trip(), 5u);
}

TEST(LosslessCodec, Encode_IntegersStoredAsF64_TakesFarLessThanTheirMantissa) {
  std::mt19937_64 random(3);
  const Bytes data = elements(DType::f64, 60000, [&](std::uint64_t) {
    return float_bits(DType::f64, static_cast<double>(random() % 200) / 8);
  });
  // 200 equally likely values need 7.64 bits each; 8.1 with tables and dictionary.
  EXPECT_LT(Coding(DType::f64, shape_of({60000}), data).round_trip(), 60750u);
}

TEST(LosslessCodec, Encode_PackedValues_UsesADictionary) {
  std::mt19937_64 random(4);
  const Bytes data = elements(DType::f32, 60000, [&](std::uint64_t) {
    return float_bits(DType::f32, 273.15 + static_cast<double>(random() % 1000) * 0.01);
  });
  const Coding coding(DType::f32, shape_of({60000}), data);
  const Bytes stored = coding.encode(0);
  EXPECT_EQ(stored[0], 2);
  EXPECT_NE(stored[2] & 0x40, 0);
  // 1000 equally likely values need 9.97 bits each; the dictionary itself takes little.
  EXPECT_LT(coding.round_trip(), 60000u * 106 / 80);
}

TEST(LosslessCodec, Decode_IntoAStridedBox_LeavesTheRestAlone) {
  const Bytes data = elements(DType::f32, 60, [](std::uint64_t i) { return static_cast<std::uint64_t>(i * i * 3); });
  const Coding coding(DType::f32, shape_of({3, 4, 5}), data);
  const Bytes stored = coding.encode(0);
  std::vector<std::uint32_t> wide(3 * 6 * 9, 0xDEADBEEF);
  const ChunkGrid& grid = coding.decoder().grid();
  ASSERT_EQ(grid.extents[0] * grid.extents[1] * grid.extents[2], 60u);
  const std::uint64_t row = grid.extents[2] + 4;
  const std::uint64_t plane = row * (grid.extents[1] + 2);
  wide.assign(plane * grid.extents[0], 0xDEADBEEF);
  const Scratch scratch(coding.decoder().scratch_bytes());
  ASSERT_TRUE(coding.decoder().decode(stored, {wide.data(), grid.extents, {plane, row}}, scratch.span()).ok());
  std::uint64_t next = 0;
  for (std::uint64_t i = 0; i < wide.size(); ++i) {
    const bool inside = i % row < grid.extents[2] && i % plane / row < grid.extents[1];
    const auto expected = inside ? static_cast<std::uint32_t>(next * next * 3) : 0xDEADBEEFu;
    next += inside ? 1 : 0;
    ASSERT_EQ(wide[i], expected) << i;
  }
}

TEST(LosslessCodec, RoundTrip_UnalignedArray_ComesBackExactly) {
  const Bytes source = elements(DType::f64, 500, [](std::uint64_t i) { return i << 40; });
  const Coding coding(DType::f64, shape_of({500}), source);
  Bytes shifted(source.size() + 1);
  std::memcpy(shifted.data() + 1, source.data(), source.size());
  Bytes out(coding.encoder().max_chunk_bytes());
  const Scratch scratch(coding.encoder().scratch_bytes());
  const auto written = coding.encoder().encode({shifted.data() + 1, {1, 1, 500}, {500, 500}}, out, scratch.span());
  ASSERT_TRUE(written.ok());
  Bytes back(source.size() + 1);
  const Scratch more(coding.decoder().scratch_bytes());
  const MutableBox3 box{back.data() + 1, {1, 1, 500}, {500, 500}};
  ASSERT_TRUE(coding.decoder().decode({out.data(), *written}, box, more.span()).ok());
  EXPECT_EQ(std::memcmp(back.data() + 1, source.data(), source.size()), 0);
}

TEST(LosslessCodec, Zstd_WhenAskedFor_IsNeverLargerAndComesBack) {
  std::mt19937_64 random(8);
  Bytes period(4096);
  for (auto& byte : period) byte = static_cast<std::uint8_t>(random());
  // Random bytes that repeat: nothing for differences, everything for a dictionary coder.
  const Bytes data = elements(DType::u32, 16384, [&](std::uint64_t i) {
    std::uint32_t word = 0;
    std::memcpy(&word, period.data() + i % 1024 * 4, sizeof(word));
    return word;
  });
  const std::size_t plain = Coding(DType::u32, shape_of({16384}), data).round_trip();
  const std::size_t packed = Coding(DType::u32, shape_of({16384}), data, {{"zstd", "3"}}).round_trip();
  EXPECT_LT(packed, plain / 3);
}

TEST(LosslessCodec, Settings_UnknownOrOutOfRange_AreRefused) {
  const Bytes data(40);
  PlanRequest request;
  request.shape = shape_of({10});
  const PlainSample sample(data.data(), DType::f32, request.shape.elems());
  SerialRunner serial;
  request.sample = &sample;
  request.runner = &serial;
  const auto code_of = [&](const char* key, const char* value) {
    request.settings = {{key, value}};
    return lossless_codec().plan(request).status().code();
  };
  EXPECT_EQ(code_of("level", "3"), StatusCode::unknown_setting);
  for (const char* value : {"0", "20", "-1", "", "3x", " 3", "99999999999999999999"}) {
    EXPECT_EQ(code_of("zstd", value), StatusCode::invalid_argument) << '"' << value << '"';
  }
  EXPECT_EQ(code_of("zstd", "19"), StatusCode::ok);
}

TEST(LosslessCodec, Plan_WithABound_IsRefusedUnlessItIsZero) {
  const Bytes data(40);
  PlanRequest request;
  request.shape = shape_of({10});
  const PlainSample sample(data.data(), DType::f32, request.shape.elems());
  SerialRunner serial;
  request.sample = &sample;
  request.runner = &serial;
  request.bound = {BoundKind::abs, 0.0};
  EXPECT_TRUE(lossless_codec().plan(request).ok());
  request.bound = {BoundKind::abs, 1e-3};
  EXPECT_EQ(lossless_codec().plan(request).status().code(), StatusCode::unsupported);
  EXPECT_FALSE(lossless_codec().supports(DType::f32, BoundKind::pwrel));
  EXPECT_FALSE(lossless_codec().supports(DType::f32, BoundKind::abs));
  EXPECT_TRUE(lossless_codec().supports(DType::f32, BoundKind::lossless));
  request.bound = {};
  request.shape = shape_of({0});
  const PlainSample nothing(data.data(), DType::f32, 0);
  request.sample = &nothing;
  EXPECT_EQ(lossless_codec().plan(request).status().code(), StatusCode::invalid_shape);
}

}  // namespace
}  // namespace quern::codec::lossless::test
