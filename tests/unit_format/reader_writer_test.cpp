// Reader and writers: widths, varints, ends, checksums.
#include <gtest/gtest.h>

#include <array>

#include "libcompress/format/frame/checksum.h"
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

/// Writes and reads one of everything where only constant evaluation is possible, as on a device.
constexpr bool works_in_constants() {
  std::array<std::uint8_t, 40> room{};
  ByteWriter w(room);
  w.u8(1);
  w.u16(0x0302);
  w.u32(0x07060504);
  w.u64(UINT64_C(0x0F0E0D0C0B0A0908));
  w.f64(-0.5);
  w.varint(300);
  w.unsigned_of(7, 3);
  const std::array<std::uint8_t, 2> tail{8, 9};
  w.bytes(tail);
  ByteReader r({room.data(), w.size()});
  const bool same = r.u8() == 1 && r.u16() == 0x0302 && r.u32() == 0x07060504 &&
                    r.u64() == UINT64_C(0x0F0E0D0C0B0A0908) && r.f64() == -0.5 && r.varint() == 300 &&
                    r.unsigned_of(3) == 7 && r.bytes(2)[1] == 9;
  r.expect_end();
  return same && r.ok() && w.fits() && w.size() == 30;
}
static_assert(works_in_constants());

TEST(ByteReader, AfterAFault_NothingIsReadAndTheFirstFaultStays) {
  const Bytes bytes{1, 0x80, 0x00, 4};
  ByteReader r(bytes);
  EXPECT_EQ(r.u8(), 1);
  EXPECT_EQ(r.varint(), 0u);
  EXPECT_EQ(r.fault().what, FormatFault::number_not_shortest);
  EXPECT_EQ(r.u8(), 0);
  EXPECT_TRUE(r.bytes(1).empty());
  r.skip(100);
  EXPECT_FALSE(r.require(false, FormatFault::bytes_left_over));
  EXPECT_EQ(r.position(), 1u);
  EXPECT_EQ(r.take_fault().what, FormatFault::number_not_shortest);
  EXPECT_EQ(r.u16(), 0x0080);
}

TEST(Fault, EveryKind_HasItsWordsAndNumbers) {
  EXPECT_TRUE(status_of({}).ok());
  EXPECT_EQ(status_of({FormatFault::too_few_bytes, 4, 3}).text(), "4 bytes are needed where 3 are left");
  EXPECT_EQ(status_of({FormatFault::ends_inside_number, 2}).text(), "the data ends inside a number, at byte 2");
  EXPECT_EQ(status_of({FormatFault::number_above_limit, 5, 4}).text(), "a number is 5, above its limit of 4");
  for (unsigned what = 1; what <= static_cast<unsigned>(FormatFault::index_not_the_stream); ++what) {
    const Status status = status_of({static_cast<FormatFault>(what), 1, 2});
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.code(), StatusCode::internal) << "fault " << what << " has no words";
  }
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
