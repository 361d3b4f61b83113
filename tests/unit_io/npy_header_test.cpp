// The .npy header parser against what numpy writes and against hostile bytes.
#include "libcompress/io/npy_header.h"

#include <gtest/gtest.h>

#include <random>

namespace quern::io {
namespace {

StatusCode code_of(const std::string& text) {
  std::string what;
  const auto header = parse_npy_header(text, what);
  EXPECT_EQ(header.ok(), what.empty()) << text;
  return header.ok() ? StatusCode::ok : header.status().code();
}

TEST(NpyHeader, Parse_AsNumpyWrites_IsRead) {
  std::string what;
  const auto header = parse_npy_header("{'descr': '<f8', 'fortran_order': True, 'shape': (3, 4), }      \n", what);
  ASSERT_TRUE(header.ok()) << what;
  EXPECT_EQ(header.value().descr, "<f8");
  EXPECT_TRUE(header.value().fortran_order);
  EXPECT_EQ(header.value().shape, (std::vector<std::uint64_t>{3, 4}));
}

TEST(NpyHeader, Parse_OtherLegalForms_AreRead) {
  EXPECT_EQ(code_of("{'shape': (), 'fortran_order': False, 'descr': '|u1'}"), StatusCode::ok);
  EXPECT_EQ(code_of("{\"descr\":\"<i2\",\"fortran_order\":False,\"shape\":(7,)}"), StatusCode::ok);
  EXPECT_EQ(code_of("{'descr': '<i2', 'fortran_order': False, 'shape': (7L, 8L)}"), StatusCode::ok);
}

TEST(NpyHeader, Parse_Damaged_IsRefusedWithAReason) {
  for (const char* text :
       {"", "{", "}", "{}", "[]", "{'descr': '<f8'}", "{'descr': '<f8', 'fortran_order': Maybe, 'shape': (3,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': 3}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-3,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999999,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4}",
        "{'descr': '<f8, 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), 'extra': 1}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3,)} x",
        "{'descr': '\\x3cf8', 'fortran_order': False, 'shape': (3,)}", "{'descr' '<f8'}", "{'shape': (3,,)}"})
    EXPECT_EQ(code_of(text), StatusCode::corrupt) << text;
  EXPECT_EQ(code_of("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,)}"), StatusCode::unsupported);
  EXPECT_EQ(code_of("{'descr': '<f8', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}"),
            StatusCode::invalid_shape);
}

TEST(NpyHeader, Parse_RandomlyChangedHeaders_NeverGoWrong) {
  const std::string good = "{'descr': '<f8', 'fortran_order': False, 'shape': (12, 345), }";
  const std::string letters = "{}()[]'\",: \\0123456789TrueFalsLdx\n\t-<>|";
  constexpr std::uint32_t kSeed = 20240;
  std::mt19937 engine(kSeed);
  for (int round = 0; round < 20000; ++round) {
    std::string text = good;
    const unsigned changes = 1 + engine() % 4;
    for (unsigned c = 0; c < changes; ++c) {
      const std::size_t at = engine() % text.size();
      const char letter = letters[engine() % letters.size()];
      switch (engine() % 3) {
        case 0: text[at] = letter; break;
        case 1: text.insert(at, 1, letter); break;
        default: text.erase(at, 1 + engine() % 5); break;
      }
      if (text.empty()) break;
    }
    std::string what;
    const auto header = parse_npy_header(text, what);
    ASSERT_EQ(header.ok(), what.empty()) << "seed " << kSeed << ": " << text;
    if (header.ok()) {
      ASSERT_LE(header.value().shape.size(), kMaxRank);
    }
  }
}

TEST(NpyHeader, Prefix_VersionsAndLengths_AreBounded) {
  std::string what;
  const auto parse = [&](std::vector<std::uint8_t> tail) {
    std::vector<std::uint8_t> bytes{0x93, 'N', 'U', 'M', 'P', 'Y'};
    bytes.insert(bytes.end(), tail.begin(), tail.end());
    return parse_npy_prefix(bytes, what);
  };
  EXPECT_EQ(parse({1, 0, 0x76, 0}).value().text_bytes, 0x76U);
  EXPECT_EQ(parse({1, 0, 0x76, 0}).value().prefix_bytes, 10U);
  EXPECT_EQ(parse({2, 0, 0x76, 1, 0, 0}).value().text_bytes, 0x176U);
  EXPECT_EQ(parse({3, 0, 0x76, 1, 0, 0}).value().prefix_bytes, 12U);
  EXPECT_EQ(parse({2, 0, 0xff, 0xff, 0xff, 0xff}).status().code(), StatusCode::corrupt);
  EXPECT_EQ(parse({2, 0, 0, 0}).status().code(), StatusCode::truncated);
  EXPECT_EQ(parse({4, 0, 0, 0, 0, 0}).status().code(), StatusCode::unsupported);
  EXPECT_EQ(parse({0, 0, 0, 0, 0, 0}).status().code(), StatusCode::unsupported);
  EXPECT_EQ(parse({1}).status().code(), StatusCode::bad_magic);
}

TEST(NpyHeader, Descr_EveryKnownType_RoundTrips) {
  std::string what;
  for (const DType dtype : {DType::f16, DType::f32, DType::f64, DType::i8, DType::i16, DType::i32, DType::i64,
                            DType::u8, DType::u16, DType::u32, DType::u64}) {
    const auto type = parse_npy_descr(npy_descr(dtype, false), what);
    ASSERT_TRUE(type.ok()) << what;
    EXPECT_EQ(type.value().dtype, dtype);
  }
  EXPECT_TRUE(parse_npy_descr(">c16", what).value().big_endian);
  EXPECT_TRUE(parse_npy_descr(npy_descr(DType::f32, true), what).value().is_complex);
  for (const char* bad : {"", "<", "f", "<f3", "<f16", "<c4", "<i16", "|b1", "<U5", "|S4", "O", "<M8[ns]", "<f4x",
                          "<V3", "<f99999999999", "<<f4", "<i0"})
    EXPECT_EQ(parse_npy_descr(bad, what).status().code(), StatusCode::unsupported) << bad;
}

TEST(NpyHeader, Build_ThenParse_GivesTheSame) {
  for (const std::vector<std::uint64_t>& shape :
       {std::vector<std::uint64_t>{}, {5}, {0, 3}, {1, 2, 3, 4, 5, 6, 7, 18446744073709551615U}}) {
    const NpyHeader header{"<f4", true, shape};
    const auto bytes = build_npy_header(header);
    EXPECT_EQ(bytes.size() % 64, 0U);
    std::string what;
    const auto prefix = parse_npy_prefix(bytes, what);
    ASSERT_TRUE(prefix.ok()) << what;
    ASSERT_EQ(prefix.value().prefix_bytes + prefix.value().text_bytes, bytes.size());
    const auto back = parse_npy_header({reinterpret_cast<const char*>(bytes.data()) + 10, bytes.size() - 10}, what);
    ASSERT_TRUE(back.ok()) << what;
    EXPECT_EQ(back.value().shape, shape);
    EXPECT_TRUE(back.value().fortran_order);
  }
}

}  // namespace
}  // namespace quern::io
