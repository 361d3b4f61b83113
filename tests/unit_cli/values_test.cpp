// Numbers, sizes and fill values as users write them.
#include "cli/args/values.h"

#include <bit>

#include <gtest/gtest.h>

#include "cli/args/exit_codes.h"

namespace quern::cli {
namespace {

TEST(Sizes, Suffixes_ArePowersOf1024) {
  EXPECT_EQ(parse_size("100000", "x"), 100000u);
  EXPECT_EQ(parse_size("64K", "x"), 65536u);
  EXPECT_EQ(parse_size("64k", "x"), 65536u);
  EXPECT_EQ(parse_size("512M", "x"), UINT64_C(512) << 20);
  EXPECT_EQ(parse_size("1GiB", "x"), UINT64_C(1) << 30);
  EXPECT_EQ(parse_size("2TB", "x"), UINT64_C(2) << 40);
}

TEST(Sizes, Nonsense_IsRefused) {
  for (const char* text : {"", "0", "-1", "1.5G", "G", "1Q", "99999999999T", "1 G", "B"})
    EXPECT_THROW(parse_size(text, "x"), CliError) << text;
}

TEST(Sizes, Text_IsShort) {
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(size_text(1023), "1023 B");
  EXPECT_EQ(size_text(1536), "1.5 KiB");
  EXPECT_EQ(size_text(UINT64_C(3) << 30), "3.0 GiB");
}

TEST(Fill, Floats_AreRoundedOnceToTheirType) {
  EXPECT_EQ(parse_fill("1e20", DType::f32), std::bit_cast<std::uint32_t>(1e20f));
  EXPECT_EQ(parse_fill("1e+20", DType::f64), std::bit_cast<std::uint64_t>(1e20));
  EXPECT_EQ(parse_fill("-999", DType::f32), std::bit_cast<std::uint32_t>(-999.0f));
  EXPECT_EQ(parse_fill("0.1", DType::f32), std::bit_cast<std::uint32_t>(0.1f));
  // Just above the middle between two binary32 values: rounding by way of binary64 would go down to even.
  EXPECT_EQ(parse_fill("1.00000005960464477539062500001", DType::f32), std::bit_cast<std::uint32_t>(1.0000001f));
  EXPECT_EQ(parse_fill("nan", DType::f32), 0x7fc00000u);
  EXPECT_EQ(parse_fill("nan", DType::f64), UINT64_C(0x7ff8000000000000));
  EXPECT_EQ(parse_fill("1e-60", DType::f32), 0u);
  EXPECT_THROW(parse_fill("1e39", DType::f32), CliError);
  EXPECT_THROW(parse_fill("1e999", DType::f64), CliError);
}

TEST(Fill, HalfPrecision_IsRoundedToEven) {
  EXPECT_EQ(parse_fill("1", DType::f16), 0x3c00u);
  EXPECT_EQ(parse_fill("-2", DType::f16), 0xc000u);
  EXPECT_EQ(parse_fill("65504", DType::f16), 0x7bffu);
  EXPECT_EQ(parse_fill("65519", DType::f16), 0x7bffu);
  EXPECT_THROW(parse_fill("65520", DType::f16), CliError);
  EXPECT_EQ(parse_fill("2049", DType::f16), 0x6800u);
  EXPECT_EQ(parse_fill("2051", DType::f16), 0x6802u);
  EXPECT_EQ(parse_fill("5.960464477539063e-08", DType::f16), 0x0001u);
  EXPECT_EQ(parse_fill("2.9e-08", DType::f16), 0x0000u);
  EXPECT_EQ(parse_fill("6.103515625e-05", DType::f16), 0x0400u);
  EXPECT_EQ(parse_fill("-0.0", DType::f16), 0x8000u);
  EXPECT_EQ(parse_fill("nan", DType::f16), 0x7e00u);
  EXPECT_EQ(parse_fill("1", DType::bf16), 0x3f80u);
  EXPECT_EQ(parse_fill("-9999", DType::bf16), 0xc61cu);
  EXPECT_EQ(parse_fill("3.3895313892515355e+38", DType::bf16), 0x7f7fu);
}

TEST(Fill, Integers_MustFit) {
  EXPECT_EQ(parse_fill("255", DType::u8), 255u);
  EXPECT_EQ(parse_fill("255.0", DType::u8), 255u);
  EXPECT_EQ(parse_fill("-1", DType::i8), 0xffu);
  EXPECT_EQ(parse_fill("-32768", DType::i16), 0x8000u);
  EXPECT_EQ(parse_fill("18446744073709551615", DType::u64), UINT64_MAX);
  EXPECT_EQ(parse_fill("-9223372036854775808", DType::i64), UINT64_C(1) << 63);
  for (const char* text : {"256", "-1", "0.5", "nan", "1e30"})
    EXPECT_THROW(parse_fill(text, DType::u8), CliError) << text;
  EXPECT_THROW(parse_fill("32768", DType::i16), CliError);
  EXPECT_THROW(parse_fill("-32769", DType::i16), CliError);
  EXPECT_THROW(parse_fill("9223372036854775808", DType::i64), CliError);
}

TEST(Lists, EmptyPieces_AreRefused) {
  EXPECT_EQ(split_list("a,b", "x"), (std::vector<std::string>{"a", "b"}));
  for (const char* text : {"", ",", "a,", ",a", "a,,b"}) EXPECT_THROW(split_list(text, "x"), CliError) << text;
}

}  // namespace
}  // namespace quern::cli
