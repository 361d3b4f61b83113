// The header: golden bytes, round trips, limits, and everything a reader must reject.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "libcompress/format/frame/checksum.h"
#include "libcompress/format/grid/header.h"
#include "libcompress/format/grid/limits.h"
#include "libcompress/format/writer.h"

namespace quern {
namespace {

using Bytes = Vector<std::uint8_t>;

Header example() {
  Header header;
  header.dtype = DType::f32;
  const std::array<std::uint64_t, 3> extents{50, 100, 200};
  header.shape = Shape::make(extents).value();
  header.requested = {BoundKind::rel, 0.001};
  header.enforced = {BoundKind::abs, 0.5};
  header.range = ValueRange{-100, 400};
  header.codec_id = 1;
  header.codec_version = 1;
  header.writer = {1, 0, 1, 0};
  header.grid = {{50, 100, 200}, {4, 16, 128}};
  header.fill_bits = {0x7149F2CA};
  header.params = {0xAA, 0xBB};
  header.metadata = {'h', 'i'};
  return header;
}

std::string hex(const Bytes& bytes) {
  std::string out;
  for (const std::uint8_t b : bytes) {
    const char* digits = "0123456789abcdef";
    out += digits[b >> 4];
    out += digits[b & 15];
  }
  return out;
}

/// Replaces the checksum by the right one.
Bytes sealed(Bytes bytes) {
  bytes.resize(bytes.size() - 8);
  Writer(bytes).u64(checksum64(bytes));
  return bytes;
}

/// The example composed and parsed where only constant evaluation is possible, as on a device.
constexpr std::size_t kExampleBytes = 88;
constexpr std::array<std::uint8_t, kExampleBytes> constant_example() {
  constexpr std::array<std::uint64_t, 3> kExtents{50, 100, 200};
  const std::array<std::uint8_t, 4> fill{0xCA, 0xF2, 0x49, 0x71};
  const std::array<std::uint8_t, 2> params{0xAA, 0xBB}, metadata{'h', 'i'};
  HeaderView header;
  header.shape = *Shape::try_make(kExtents);
  header.requested = {BoundKind::rel, 0.001};
  header.enforced = {BoundKind::abs, 0.5};
  header.range = ValueRange{-100, 400};
  header.codec_id = 1;
  header.codec_version = 1;
  header.writer = {1, 0, 1, 0};
  header.grid = {{50, 100, 200}, {4, 16, 128}};
  header.fills = fill;
  header.params = params;
  header.metadata = {metadata, 2, false};
  std::array<std::uint8_t, kExampleBytes> out{};
  if (header_bytes(header) != out.size() || compose_header(header, out) != out.size()) return {};
  return out;
}
constexpr auto kConstantExample = constant_example();
constexpr bool parses_in_constants() {
  HeaderView header;
  return view_header(kConstantExample, header).ok() && header.fill_count() == 1 && header.params[1] == 0xBB &&
         header.metadata.stored[0] == 'h' && header.range->max == 400;
}
static_assert(parses_in_constants());

TEST(Header, ConstantExample_IsTheSame) {
  Header header = example();
  const Bytes bytes = serialize_header(header).value();
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), kConstantExample.begin(), kConstantExample.end()));
}

TEST(HeaderView, EveryRoomThatIsTooSmall_GivesNothing) {
  HeaderView header;
  ASSERT_TRUE(view_header(kConstantExample, header).ok());
  for (std::size_t n = 0; n < kExampleBytes; ++n) {
    Bytes room(n + 1, 0xEE);
    EXPECT_EQ(compose_header(header, {room.data(), n}), 0u);
    EXPECT_EQ(room[n], 0xEE);
  }
  header.checksum = 0;
  Bytes room(kExampleBytes + 3);
  ASSERT_EQ(compose_header(header, room), kExampleBytes);
  EXPECT_TRUE(std::equal(kConstantExample.begin(), kConstantExample.end(), room.begin()));
  EXPECT_EQ(header.checksum, checksum64({room.data(), kExampleBytes - 8}));
}

TEST(HeaderView, PackedMetadata_IsTakenAndGivenAsItLies) {
  Header packed = example();
  packed.metadata.assign(5000, 'y');
  const Bytes bytes = serialize_header(packed).value();
  HeaderView view;
  ASSERT_TRUE(view_header(bytes, view).ok());
  EXPECT_TRUE(view.metadata.is_packed);
  EXPECT_EQ(view.metadata.bytes, 5000u);
  Bytes again(static_cast<std::size_t>(header_bytes(view)));
  ASSERT_EQ(compose_header(view, again), bytes.size());
  EXPECT_EQ(again, bytes);
}

TEST(Header, Example_HasTheGoldenBytes) {
  Header header = example();
  const auto bytes = serialize_header(header);
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(hex(*bytes),
            "8951524e580d0a0a580000000001000003033264c801cafca9f1d24d62503f000000000000e03f00"
            "000000000059c000000000000079400101010001003264c8010410800101caf2497102aabb046869"
            "5a8bf1f00d0ac597");
}

TEST(Header, EveryField_ComesBack) {
  Header header = example();
  const Bytes bytes = serialize_header(header).value();
  const auto back = parse_header(bytes);
  ASSERT_TRUE(back.ok()) << back.status().text();
  EXPECT_EQ(back->dtype, header.dtype);
  EXPECT_EQ(back->shape, header.shape);
  EXPECT_EQ(back->requested.kind, header.requested.kind);
  EXPECT_EQ(back->requested.value, header.requested.value);
  EXPECT_EQ(back->enforced.kind, header.enforced.kind);
  EXPECT_EQ(back->enforced.value, header.enforced.value);
  ASSERT_TRUE(back->range.has_value());
  EXPECT_EQ(back->range->min, -100);
  EXPECT_EQ(back->range->max, 400);
  EXPECT_EQ(back->codec_id, header.codec_id);
  EXPECT_EQ(back->codec_version, header.codec_version);
  EXPECT_EQ(back->writer.minor, 1);
  EXPECT_EQ(back->grid.chunk, header.grid.chunk);
  EXPECT_EQ(back->fill_bits, header.fill_bits);
  EXPECT_EQ(back->params, header.params);
  EXPECT_EQ(back->metadata, header.metadata);
  EXPECT_EQ(back->checksum, header.checksum);
}

TEST(Header, LongMetadata_IsPackedWhenThatIsSmaller) {
  Header header = example();
  const std::size_t plain = serialize_header(header)->size();
  header.metadata.assign(100000, 'x');
  const Bytes bytes = serialize_header(header).value();
  EXPECT_LT(bytes.size(), plain + 100);
  EXPECT_EQ(parse_header(bytes)->metadata, header.metadata);
}

TEST(Header, ChangedLineEndings_AreBadMagic) {
  Header header = example();
  const Bytes bytes = serialize_header(header).value();
  Bytes unix_text, dos_text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == 0x0D && bytes[i + 1] == 0x0A) continue;
    unix_text.push_back(bytes[i]);
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == 0x0A && bytes[i - 1] != 0x0D) dos_text.push_back(0x0D);
    dos_text.push_back(bytes[i]);
  }
  EXPECT_EQ(parse_header(unix_text).status().code(), StatusCode::bad_magic);
  EXPECT_EQ(parse_header(dos_text).status().code(), StatusCode::bad_magic);
}

TEST(Header, OtherVersions_AreUnsupported) {
  for (const std::size_t at : {12, 13}) {
    Header header = example();
    Bytes bytes = serialize_header(header).value();
    bytes[at] += 1;
    EXPECT_EQ(parse_header(sealed(bytes)).status().code(), StatusCode::unsupported_version);
  }
}

TEST(Header, FeatureBits_MustBeKnownOrIgnorable) {
  Header header = example();
  header.may_ignore = 0x1234;
  EXPECT_TRUE(parse_header(serialize_header(header).value()).ok());
  for (const std::uint64_t bits : {2u, 3u, 1u << 20}) {
    header.must_understand = bits;
    EXPECT_EQ(parse_header(serialize_header(header).value()).status().code(), StatusCode::unsupported);
  }
  header.must_understand = kLevelTables;
  const auto known = parse_header(serialize_header(header).value());
  ASSERT_TRUE(known.ok());
  EXPECT_TRUE(known->has_level_tables());
}

template <class Change>
StatusCode code_after(const Change& change) {
  Header header = example();
  change(header);
  const auto bytes = serialize_header(header);
  if (!bytes.ok()) return bytes.status().code();
  return parse_header(*bytes).status().code();
}

TEST(Header, ImpossibleFields_AreCorruptThoughTheChecksumHolds) {
  const auto corrupt = StatusCode::corrupt;
  EXPECT_EQ(code_after([](Header& h) { h.dtype = static_cast<DType>(5); }), corrupt);
  EXPECT_EQ(code_after([](Header& h) { h.grid.extents = {50, 100, 199}; }), corrupt);
  EXPECT_EQ(code_after([](Header& h) { h.grid.extents = {UINT64_C(1) << 40, UINT64_C(1) << 40, 1}; }), corrupt);
  EXPECT_EQ(code_after([](Header& h) { h.grid.chunk = {0, 16, 16}; }), corrupt);
  EXPECT_EQ(code_after([](Header& h) { h.grid.chunk = {51, 1, 1}; }), corrupt);
  EXPECT_EQ(code_after([](Header& h) { h.requested = {BoundKind::rel, -1}; }), corrupt);
  EXPECT_EQ(code_after([](Header& h) { h.requested = {static_cast<BoundKind>(6), 1}; }), corrupt);
  EXPECT_EQ(code_after([](Header& h) { h.enforced = {BoundKind::rel, 0.001}; }), corrupt);
  EXPECT_EQ(code_after([](Header& h) { h.enforced = {BoundKind::abs, 0}; }), corrupt);
  EXPECT_EQ(code_after([](Header& h) { h.enforced = {BoundKind::abs, 1.0 / 0.0}; }), corrupt);
  EXPECT_EQ(code_after([](Header& h) { h.range = ValueRange{2, 1}; }), corrupt);
  EXPECT_EQ(code_after([](Header& h) {
              h.requested = h.range ? ErrorBound{BoundKind::pwrel, 1.5} : h.requested;
            }),
            corrupt);
}

TEST(Header, ChunkAboveItsLimit_IsCorrupt) {
  Header header = example();
  const std::array<std::uint64_t, 1> extents{(UINT64_C(1) << 26) * 2};
  header.shape = Shape::make(extents).value();
  header.grid = {{1, 2, UINT64_C(1) << 26}, {1, 2, UINT64_C(1) << 26}};
  EXPECT_EQ(parse_header(serialize_header(header).value()).status().code(), StatusCode::corrupt);
  header.grid.chunk = {1, 1, UINT64_C(1) << 26};
  EXPECT_TRUE(parse_header(serialize_header(header).value()).ok());
}

TEST(Header, LimitsOnWriting_AreErrorsOfTheCaller) {
  EXPECT_EQ(code_after([](Header& h) { h.fill_bits.resize(kMaxFillValues + 1); }), StatusCode::invalid_argument);
  EXPECT_EQ(code_after([](Header& h) { h.metadata.resize(kMaxMetadataBytes + 1); }), StatusCode::invalid_argument);
  EXPECT_EQ(code_after([](Header& h) { h.params.resize(kMaxParamsBytes + 1); }), StatusCode::internal);
}

TEST(Header, EveryPrefixResealed_IsRefused) {
  Header header = example();
  const Bytes bytes = serialize_header(header).value();
  for (std::size_t n = kHeaderPrefixBytes + 8; n < bytes.size(); ++n) {
    Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
    cut[8] = static_cast<std::uint8_t>(n);
    EXPECT_EQ(parse_header(sealed(cut)).status().code(), StatusCode::corrupt) << n << " bytes";
  }
}

TEST(Header, EveryByteChangedAndResealed_GivesAHeaderOrAStatus) {
  Header header = example();
  const Bytes bytes = serialize_header(header).value();
  for (std::size_t at = 0; at < bytes.size(); ++at)
    for (unsigned value = 0; value < 256; ++value) {
      Bytes changed = bytes;
      changed[at] = static_cast<std::uint8_t>(value);
      const auto parsed = parse_header(sealed(changed));
      EXPECT_TRUE(!parsed.ok() || check_grid(parsed->grid, parsed->shape).ok());
    }
}

TEST(Header, PackedMetadataThatLies_IsRefused) {
  Header header = example();
  header.metadata.assign(5000, 'y');
  const Bytes bytes = serialize_header(header).value();
  // The unpacked size stands right after the two-byte stored size... found by its value, 5000 = 88 27 as a varint.
  const Bytes needle{0x88, 0x27};
  const auto found = std::search(bytes.begin(), bytes.end(), needle.begin(), needle.end());
  ASSERT_NE(found, bytes.end());
  Bytes changed = bytes;
  changed[static_cast<std::size_t>(found - bytes.begin())] = 0x87;
  EXPECT_EQ(parse_header(sealed(changed)).status().code(), StatusCode::corrupt);
}

TEST(Header, FromAnEmptySource_IsTruncatedAtZero) {
  MemorySource source({});
  const auto header = read_header(source);
  EXPECT_EQ(header.status().code(), StatusCode::truncated);
  EXPECT_EQ(header.status().first(), 0);
}

}  // namespace
}  // namespace quern
