// Reader and writers: widths, varints, ends, checksums.
#include <gtest/gtest.h>

#include "libcompress/format/checksum.h"
#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern {
namespace {

using Bytes = Vector<std::uint8_t>;

TEST(ReaderWriter, EveryWidth_IsLittleEndianAndComesBack) {
  Bytes bytes;
  Writer w(bytes);
  w.u8(0x01);
  w.u16(0x0302);
  w.u32(0x07060504);
  w.u64(UINT64_C(0x0F0E0D0C0B0A0908));
  w.f64(-0.5);
  w.unsigned_of(0x121110, 3);
  for (std::size_t i = 0; i < 15; ++i) EXPECT_EQ(bytes[i], i + 1);
  Reader r(bytes);
  EXPECT_EQ(*r.u8(), 0x01);
  EXPECT_EQ(*r.u16(), 0x0302);
  EXPECT_EQ(*r.u32(), 0x07060504u);
  EXPECT_EQ(*r.u64(), UINT64_C(0x0F0E0D0C0B0A0908));
  EXPECT_EQ(*r.f64(), -0.5);
  EXPECT_EQ(*r.unsigned_of(3), 0x121110u);
  EXPECT_TRUE(r.expect_end().ok());
}

TEST(Reader, PastTheEnd_FailsAndStaysWhereItWas) {
  const Bytes bytes{1, 2, 3};
  Reader r(bytes);
  EXPECT_EQ(r.u32().status().code(), StatusCode::truncated);
  EXPECT_EQ(r.bytes(UINT64_MAX).status().code(), StatusCode::truncated);
  EXPECT_EQ(r.skip(4).code(), StatusCode::truncated);
  EXPECT_EQ(r.position(), 0u);
  EXPECT_EQ(*r.u16(), 0x0201);
  EXPECT_EQ(r.remaining(), 1u);
  EXPECT_EQ(r.expect_end().code(), StatusCode::corrupt);
}

TEST(Varint, BoundaryValues_ComeBackInTheirShortestForm) {
  for (unsigned bit = 0; bit <= 64; ++bit)
    for (int delta = -1; delta <= 1; ++delta) {
      const std::uint64_t value = (bit == 64 ? 0 : UINT64_C(1) << bit) + static_cast<std::uint64_t>(delta);
      Bytes bytes;
      Writer(bytes).varint(value);
      EXPECT_EQ(bytes.size(), varint_bytes(value));
      Reader r(bytes);
      EXPECT_EQ(*r.varint(), value);
      EXPECT_TRUE(r.at_end());
      Bytes fixed(bytes.size());
      FixedWriter f(fixed);
      f.varint(value);
      EXPECT_TRUE(f.status().ok());
      EXPECT_EQ(fixed, bytes);
    }
}

TEST(Varint, BadForms_AreRefused) {
  const auto code = [](const Bytes& bytes, std::uint64_t limit = UINT64_MAX) {
    Reader r(bytes);
    const auto result = r.varint(limit);
    EXPECT_EQ(r.position(), 0u);
    return result.status().code();
  };
  EXPECT_EQ(code({}), StatusCode::truncated);
  EXPECT_EQ(code({0x80}), StatusCode::truncated);
  EXPECT_EQ(code({0x80, 0x00}), StatusCode::corrupt) << "longer than needed";
  EXPECT_EQ(code({0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02}), StatusCode::corrupt) << "65 bits";
  EXPECT_EQ(code({0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}), StatusCode::corrupt);
  EXPECT_EQ(code({0x05}, 4), StatusCode::corrupt) << "above its limit";
}

TEST(FixedWriter, FullDestination_IsNotOverrun) {
  Bytes bytes(5, 0xEE);
  FixedWriter w({bytes.data(), 4});
  w.u16(0x1111);
  w.u32(0x22222222);
  w.u8(0x33);
  EXPECT_EQ(w.status().code(), StatusCode::destination_too_small);
  EXPECT_EQ(w.size(), 2u);
  EXPECT_EQ(bytes, (Bytes{0x11, 0x11, 0xEE, 0xEE, 0xEE}));
}

TEST(Checksum, KnownValues_AreThoseOfXxh3) {
  // From the xxHash project's own test vectors for XXH3-64 with seed 0: the empty input.
  EXPECT_EQ(checksum64({}), UINT64_C(0x2D06800538D394C2));
}

TEST(Checksum, Bound_IsTheChecksumOfBothNumbersAndTheBytes) {
  const Bytes data{9, 8, 7};
  Bytes whole;
  Writer w(whole);
  w.u64(0x0102030405060708);
  w.u64(42);
  w.bytes(data);
  EXPECT_EQ(bound_checksum64(0x0102030405060708, 42, data), checksum64(whole));
}

}  // namespace
}  // namespace quern
