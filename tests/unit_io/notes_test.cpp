// Attributes as JSON and conversions of bit patterns.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "libcompress/io/file_notes.h"
#include "libcompress/io/number.h"

namespace quern::io {
namespace {

std::uint64_t f32_bits(float value) { return std::bit_cast<std::uint32_t>(value); }
std::uint64_t f64_bits(double value) { return std::bit_cast<std::uint64_t>(value); }

FileNotes through_json(const FileNotes& notes) {
  std::string detail;
  auto back = notes_from_json(to_json(notes), detail);
  EXPECT_TRUE(back.ok()) << detail << "\n" << to_json(notes);
  return back.ok() ? back.value() : FileNotes{};
}

TEST(FileNotes, Json_EveryNumber_KeepsItsBits) {
  FileNotes notes;
  notes.kind = "hdf5";
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8, DType::i16, DType::i32,
                            DType::i64, DType::u8, DType::u16, DType::u32, DType::u64}) {
    Attribute a;
    a.name = dtype_name(dtype);
    a.dtype = dtype;
    const unsigned width = 8 * static_cast<unsigned>(dtype_bytes(dtype));
    std::uint64_t state = 1;
    for (int i = 0; i < 2000; ++i) {
      state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
      a.bits.push_back(state >> (64 - width));
    }
    a.bits.push_back(UINT64_C(1) << (width - 1));  // -0.0 or the lowest integer
    a.bits.push_back(UINT64_MAX >> (64 - width));
    a.shape = {a.bits.size()};
    notes.attributes.push_back(a);
  }
  const FileNotes back = through_json(notes);
  ASSERT_EQ(back.attributes.size(), notes.attributes.size());
  for (std::size_t i = 0; i < back.attributes.size(); ++i) {
    EXPECT_EQ(back.attributes[i].bits, notes.attributes[i].bits) << notes.attributes[i].name;
    EXPECT_EQ(back.attributes[i].dtype, notes.attributes[i].dtype);
  }
}

TEST(FileNotes, Json_EverythingElse_Survives) {
  FileNotes notes;
  notes.kind = "netcdf";
  notes.dataset = "/g/T";
  notes.fortran_order = true;
  notes.complex_names = {"r", "i"};
  notes.dimensions = {{"time", 3, true}, {"lat", 180, false}};
  notes.chunks = {1, 180};
  notes.max_shape = {std::nullopt, 180};
  notes.fill_value = number_attribute("fill", DType::f32, f32_bits(-999.0F));
  Attribute text;
  text.name = "units";
  text.type = Attribute::Type::chars;
  text.texts = {"degrees \"C\"\n"};
  Attribute raw = text;
  raw.name = "latin";
  raw.texts = {std::string("\xb0 C \xff\x80", 6)};
  Attribute list;
  list.name = "names";
  list.type = Attribute::Type::strings;
  list.shape = {2, 1};
  list.texts = {"\xc3\xa4", ""};
  list.utf8 = true;
  notes.attributes = {text, raw, list};
  notes.file_attributes = {number_attribute("n", DType::i64, UINT64_MAX)};
  notes.skipped = {"DIMENSION_LIST"};

  const FileNotes back = through_json(notes);
  EXPECT_EQ(back.kind, "netcdf");
  EXPECT_EQ(back.dataset, "/g/T");
  EXPECT_TRUE(back.fortran_order);
  EXPECT_EQ(back.complex_names, notes.complex_names);
  ASSERT_EQ(back.dimensions.size(), 2U);
  EXPECT_EQ(back.dimensions[0].name, "time");
  EXPECT_TRUE(back.dimensions[0].unlimited);
  EXPECT_EQ(back.dimensions[1].size, 180U);
  EXPECT_FALSE(back.dimensions[1].unlimited);
  EXPECT_EQ(back.chunks, notes.chunks);
  EXPECT_EQ(back.max_shape, notes.max_shape);
  ASSERT_TRUE(back.fill_value);
  EXPECT_EQ(back.fill_value->bits, notes.fill_value->bits);
  ASSERT_EQ(back.attributes.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(back.attributes[i].texts, notes.attributes[i].texts);
    EXPECT_EQ(back.attributes[i].shape, notes.attributes[i].shape);
    EXPECT_EQ(back.attributes[i].type, notes.attributes[i].type);
    EXPECT_EQ(back.attributes[i].utf8, notes.attributes[i].utf8);
  }
  EXPECT_EQ(back.file_attributes[0].bits[0], UINT64_MAX);
  EXPECT_EQ(back.skipped, notes.skipped);
}

TEST(FileNotes, FromJson_Hostile_IsRefused) {
  for (const char* json :
       {"x",
        "[]",
        "1",
        "{}",
        "{\"quern_attributes\":2}",
        "{\"quern_attributes\":1,\"kind\":3}",
        "{\"quern_attributes\":1,\"attributes\":[1]}",
        "{\"quern_attributes\":1,\"attributes\":{}}",
        "{\"quern_attributes\":1,\"attributes\":[{\"name\":\"a\",\"type\":\"f99\",\"value\":1}]}",
        "{\"quern_attributes\":1,\"attributes\":[{\"name\":\"a\",\"type\":\"u8\",\"value\":256}]}",
        "{\"quern_attributes\":1,\"attributes\":[{\"name\":\"a\",\"type\":\"u8\",\"value\":1.5}]}",
        "{\"quern_attributes\":1,\"attributes\":[{\"name\":\"a\",\"type\":\"f32\",\"value\":\"0x123456789\"}]}",
        "{\"quern_attributes\":1,\"attributes\":[{\"name\":\"a\",\"type\":\"f32\",\"value\":\"12\"}]}",
        "{\"quern_attributes\":1,\"attributes\":[{\"name\":\"a\",\"type\":\"u8\",\"shape\":[3],\"value\":[1]}]}",
        "{\"quern_attributes\":1,\"attributes\":[{\"name\":\"a\",\"type\":\"u8\",\"shape\":[18446744073709551615,"
        "18446744073709551615],\"value\":[1]}]}",
        "{\"quern_attributes\":1,\"attributes\":[{\"name\":\"a\",\"type\":\"char\",\"value\":1}]}",
        "{\"quern_attributes\":1,\"attributes\":[{\"name\":\"a\",\"type\":\"char\"}]}",
        "{\"quern_attributes\":1,\"attributes\":[{\"name\":\"a\",\"type\":\"char\",\"encoding\":\"bytes\",\"value\":"
        "\"\\u2020\"}]}",
        "{\"quern_attributes\":1,\"dimensions\":[{\"name\":\"a\"}]}",
        "{\"quern_attributes\":1,\"dimensions\":[{\"name\":\"a\",\"size\":-1}]}",
        "{\"quern_attributes\":1,\"chunks\":[\"a\"]}",
        "{\"quern_attributes\":1,\"fortran_order\":1}"}) {
    std::string detail;
    EXPECT_EQ(notes_from_json(json, detail).status().code(), StatusCode::invalid_argument) << json;
    EXPECT_FALSE(detail.empty());
  }
  std::string detail;
  EXPECT_TRUE(notes_from_json("", detail).ok());
  EXPECT_FALSE(notes_from_json(std::string(200000, '['), detail).ok());
}

TEST(FileNotes, FillAttributes_InAnotherType_AreConvertedByValue) {
  ArrayMeta meta;
  meta.dtype = DType::i16;
  Attribute list = number_attribute("missing_value", DType::f64, f64_bits(-32768.0));
  list.bits = {f64_bits(-32768.0), f64_bits(1e20), f64_bits(0.5), f64_bits(7.0)};
  add_fill_attributes({list, number_attribute("_FillValue", DType::i16, 7)}, meta);
  EXPECT_EQ(meta.fill_bits, (Vector<std::uint64_t>{7, 0x8000}));

  ArrayMeta packed;
  packed.dtype = DType::f32;
  add_fill_attributes({number_attribute("_FillValue", DType::f64, f64_bits(1e20))}, packed);
  EXPECT_EQ(packed.fill_bits, Vector<std::uint64_t>{f32_bits(1e20F)});
}

TEST(Number, ConvertBits_BetweenIntegers_KeepsValuesOrRefuses) {
  EXPECT_EQ(convert_bits(0xff, DType::i8, DType::i64), UINT64_MAX);
  EXPECT_EQ(convert_bits(0xff, DType::u8, DType::i64), 255U);
  EXPECT_EQ(convert_bits(0xff, DType::i8, DType::u64), std::nullopt);
  EXPECT_EQ(convert_bits(UINT64_MAX, DType::u64, DType::i64), std::nullopt);
  EXPECT_EQ(convert_bits(UINT64_MAX, DType::i64, DType::i16), 0xffffU);
  EXPECT_EQ(convert_bits(0x80, DType::u8, DType::i8), std::nullopt);
  EXPECT_EQ(convert_bits(300, DType::u16, DType::u8), std::nullopt);
}

TEST(Number, ConvertBits_FloatToInteger_TakesOnlyExactValues) {
  EXPECT_EQ(convert_bits(f64_bits(255.0), DType::f64, DType::u8), 255U);
  EXPECT_EQ(convert_bits(f64_bits(256.0), DType::f64, DType::u8), std::nullopt);
  EXPECT_EQ(convert_bits(f64_bits(-1.0), DType::f64, DType::u8), std::nullopt);
  EXPECT_EQ(convert_bits(f64_bits(-128.0), DType::f64, DType::i8), 0x80U);
  EXPECT_EQ(convert_bits(f64_bits(0x1p63), DType::f64, DType::i64), std::nullopt);
  EXPECT_EQ(convert_bits(f64_bits(0x1p63), DType::f64, DType::u64), UINT64_C(1) << 63);
  EXPECT_EQ(convert_bits(f64_bits(0x1p64), DType::f64, DType::u64), std::nullopt);
  EXPECT_EQ(convert_bits(f64_bits(std::nan("")), DType::f64, DType::i32), std::nullopt);
  EXPECT_EQ(convert_bits(f64_bits(1e300), DType::f64, DType::f32), std::nullopt);
}

TEST(Number, SmallFloats_EveryPattern_RoundTripsThroughDouble) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (std::uint64_t bits = 0; bits < 65536; ++bits) {
      const double value = bits_to_double(bits, dtype);
      if (std::isnan(value)) {
        EXPECT_TRUE(is_special(bits, dtype));
        continue;
      }
      ASSERT_EQ(double_to_float_bits(value, dtype), bits) << dtype_name(dtype) << " " << bits;
    }
  }
}

TEST(Number, SmallFloats_BetweenTwoValues_RoundToNearestEven) {
  EXPECT_EQ(double_to_float_bits(1.0 + 0x1p-11, DType::f16), 0x3c00U);
  EXPECT_EQ(double_to_float_bits(1.0 + 3 * 0x1p-11, DType::f16), 0x3c02U);
  EXPECT_EQ(double_to_float_bits(65519.0, DType::f16), 0x7bffU);
  EXPECT_EQ(double_to_float_bits(65520.0, DType::f16), 0x7c00U);
  EXPECT_EQ(double_to_float_bits(0x1p-25, DType::f16), 0U);
  EXPECT_EQ(double_to_float_bits(0x1.8p-25, DType::f16), 1U);
  EXPECT_EQ(double_to_float_bits(0x1.ff8p-15, DType::f16), 0x03ffU);
  EXPECT_EQ(double_to_float_bits(0x1.ffcp-15, DType::f16), 0x0400U);
  EXPECT_EQ(double_to_float_bits(1.0 + 0x1p-8, DType::bf16), 0x3f80U);
  EXPECT_EQ(double_to_float_bits(-1.0 - 3 * 0x1p-8, DType::bf16), 0xbf82U);
}

}  // namespace
}  // namespace quern::io
