// Damage to every golden stream of records: each bit flipped, each length cut, the same behind repaired checksums, and
// counts that promise more than there is.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>

#include "libcompress/format/frame/header_bytes.h"
#include "libcompress/format/frame/trailer.h"
#include "libcompress/format/records/limits.h"
#include "libcompress/format/records/record_header.h"
#include "tests/fuzz/reseal_records.h"
#include "tests/golden/manifest.h"
#include "tests/golden/record_cases.h"
#include "tests/malformed/trial.h"

namespace quern::malformed {
namespace {

using golden::RecordSet;

struct Stream {
  std::string name;
  Vector<std::uint8_t> bytes;
};

Execution limited() {
  Execution execution;
  execution.memory_limit = kMemoryLimit;
  return execution;
}

const std::vector<Stream>& streams() {
  static const std::vector<Stream> all = [] {
    std::vector<Stream> out;
    for (const golden::RecordCase& c : golden::record_cases()) {
      const std::string file = c.name + ".qn";
      out.push_back({file, golden::read_bytes(std::string(QUERN_GOLDEN_FOLDER) + "/records/" + file)});
    }
    return out;
  }();
  return all;
}

Result<RecordCheck> verify(std::span<const std::uint8_t> bytes) {
  MemorySource source(bytes);
  QUERN_ASSIGN_OR_RETURN(const auto reader, RecordReader::open(source, golden::record_codecs(), limited()));
  return reader->verify();
}

Result<RecordSet> decode(std::span<const std::uint8_t> bytes) {
  const auto begin = std::chrono::steady_clock::now();
  auto set = golden::decode_records(bytes, golden::record_codecs(), limited(), kMostValues);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(seconds.count(), limits().seconds);
  return set;
}

TEST(MalformedRecords_EverySingleBit, IsRefusedByVerify) {
  std::size_t trials = 0;
  for (const Stream& stream : streams()) {
    ASSERT_TRUE(verify(stream.bytes).ok()) << stream.name << " is refused without damage";
    Vector<std::uint8_t> bytes = stream.bytes;
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      if (++trials % limits().stride != 0) continue;
      const auto mask = static_cast<std::uint8_t>(1u << bit % 8);
      bytes[bit / 8] ^= mask;
      EXPECT_FALSE(verify(bytes).ok()) << stream.name << ", bit " << bit << " is accepted";
      bytes[bit / 8] ^= mask;
    }
  }
  EXPECT_GT(trials, 10000u);
}

/// Reading items checks the parts it reads by their own checks: damage gives a status or no change.
TEST(MalformedRecords_EverySingleBit, NeverChangesWhatIsRead) {
  std::size_t trials = 0;
  for (const Stream& stream : streams()) {
    const auto whole = decode(stream.bytes);
    ASSERT_TRUE(whole.ok()) << stream.name << ": " << whole.status().text();
    Vector<std::uint8_t> bytes = stream.bytes;
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      if (++trials % limits().stride != 0) continue;
      const auto mask = static_cast<std::uint8_t>(1u << bit % 8);
      bytes[bit / 8] ^= mask;
      const auto read = decode(bytes);
      if (read.ok()) {
        EXPECT_EQ(read->values, whole->values) << stream.name << ", bit " << bit;
        EXPECT_EQ(read->strings, whole->strings) << stream.name << ", bit " << bit;
      }
      bytes[bit / 8] ^= mask;
    }
  }
}

TEST(MalformedRecords_EveryTruncation, IsRefused) {
  for (const Stream& stream : streams())
    for (std::size_t size = 0; size < stream.bytes.size(); ++size) {
      const auto cut = std::span(stream.bytes).first(size);
      EXPECT_FALSE(decode(cut).ok()) << stream.name << ", first " << size << " bytes";
      EXPECT_FALSE(verify(cut).ok()) << stream.name << ", first " << size << " bytes";
    }
}

/// Behind repaired checksums damage reaches header, heads and codec. What comes out is not known; that it comes to an
/// end within memory and time, and that both ways of reading agree, is.
TEST(MalformedRecords_EverySingleBit_ChecksumsRepaired, GivesDataOrStatus) {
  std::size_t trials = 0;
  std::size_t accepted = 0;
  for (const Stream& stream : streams())
    for (std::size_t bit = 8 * kHeaderPrefixBytes; bit < 8 * stream.bytes.size(); ++bit) {
      if (++trials % limits().stride != 0) continue;
      Vector<std::uint8_t> bytes = stream.bytes;
      bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
      const auto sealed = fuzz::reseal_records(bytes);
      const auto read = decode(sealed);
      const auto checked = verify(sealed);
      if (read.ok()) ++accepted;
      if (checked.ok() && checked->decoded && !read.ok()) {
        EXPECT_EQ(read.status().code(), StatusCode::destination_too_small)
            << stream.name << ", bit " << bit << ": " << read.status().text();
      }
    }
  EXPECT_GT(accepted, trials / limits().stride / 100);
}

/// A stream whose header was changed, with right checksums.
Vector<std::uint8_t> with_header(const Vector<std::uint8_t>& stream, const std::function<void(RecordHeader&)>& change) {
  const auto size = static_cast<std::size_t>(*header_size(stream));
  auto header = parse_record_header(std::span(stream).first(size));
  EXPECT_TRUE(header.ok());
  change(*header);
  auto bytes = serialize_record_header(*header);
  EXPECT_TRUE(bytes.ok());
  bytes->insert(bytes->end(), stream.begin() + static_cast<std::ptrdiff_t>(size), stream.end());
  return fuzz::reseal_records(*bytes);
}

/// What reading such a stream ends in; verify() must come to the same conclusion.
StatusCode code_with_header(const std::function<void(RecordHeader&)>& change) {
  const Vector<std::uint8_t> bytes = with_header(streams().front().bytes, change);
  const auto read = decode(bytes);
  const auto checked = verify(bytes);
  EXPECT_EQ(read.ok(), checked.ok());
  return read.status().code();
}

/// Where the header is possible in itself and what follows is not what it promises.
void expect_refused(const std::function<void(RecordHeader&)>& change) {
  const StatusCode code = code_with_header(change);
  EXPECT_TRUE(code == StatusCode::corrupt || code == StatusCode::truncated || code == StatusCode::checksum_mismatch)
      << status_name(code);
}

TEST(MalformedRecords_HostileCounts, AreRefusedBeforeMemoryIsTaken) {
  constexpr auto kCorrupt = StatusCode::corrupt;
  const auto all_items = [](std::uint64_t items) {
    return [items](RecordHeader& h) {
      h.layout.items = items;
      h.layout.frames.clear();
    };
  };
  expect_refused(all_items(kMaxElems));
  EXPECT_EQ(code_with_header(all_items(kMaxElems + 1)), kCorrupt);
  EXPECT_EQ(code_with_header(all_items(1)), kCorrupt);
  EXPECT_EQ(code_with_header([](RecordHeader& h) { h.layout.segment_items = 0; }), kCorrupt);
  EXPECT_EQ(code_with_header([](RecordHeader& h) { h.layout.segment_items = kMaxSegmentItems + 1; }), kCorrupt);
  expect_refused([](RecordHeader& h) { h.layout.segment_items = kMaxSegmentItems; });
  expect_refused([](RecordHeader& h) { h.layout.segment_items = 1; });
  EXPECT_EQ(code_with_header([](RecordHeader& h) { h.layout.sections[0].items = 301; }), kCorrupt);
  EXPECT_EQ(code_with_header([](RecordHeader& h) { h.layout.sections[0].item_elems = 0; }), kCorrupt);
  EXPECT_EQ(code_with_header([](RecordHeader& h) { h.layout.sections[0].item_elems = kMaxElems; }), kCorrupt);
  EXPECT_EQ(code_with_header([](RecordHeader& h) { h.layout.sections[0].item_elems = UINT64_C(1) << 23; }), kCorrupt);
  EXPECT_EQ(code_with_header([](RecordHeader& h) { h.layout.sections.clear(); }), kCorrupt);
  EXPECT_EQ(code_with_header([](RecordHeader& h) { h.layout.sections.resize(kMaxSections + 1); }), kCorrupt);
  EXPECT_EQ(code_with_header([](RecordHeader& h) { h.layout.sections[1].name = h.layout.sections[0].name; }), kCorrupt);
  EXPECT_EQ(code_with_header([](RecordHeader& h) { h.layout.sections[1].name = ""; }), kCorrupt);
  EXPECT_EQ(code_with_header([](RecordHeader& h) { h.layout.frames[0] += 1; }), kCorrupt);
  EXPECT_EQ(code_with_header([](RecordHeader& h) { h.layout.frames[0] = UINT64_MAX >> 5; }), kCorrupt);
  EXPECT_EQ(code_with_header([](RecordHeader& h) { h.params[0] = 13; }), kCorrupt);
  EXPECT_EQ(code_with_header([](RecordHeader& h) { h.params.push_back(1); }), kCorrupt);
  EXPECT_EQ(code_with_header([](RecordHeader& h) { h.codec_version = 2; }), StatusCode::unsupported_version);
}

/// Values of 16 MiB in a few bytes: under a limit of less, a status, not the memory.
TEST(MalformedRecords_LargeParts, NeedTheCallersLimit) {
  RecordSet set;
  set.layout.items = UINT64_C(1) << 22;
  set.layout.segment_items = set.layout.items;
  set.add_values("zeros", DType::f32, set.layout.items, 1, {}, [](std::uint64_t) { return std::uint64_t{0}; });
  const auto stream = golden::encode({"", "", std::move(set), false, {}});
  ASSERT_TRUE(stream.ok()) << stream.status().text();
  EXPECT_LT(stream->size(), 100000u);
  MemorySource source(*stream);
  Execution small;
  small.memory_limit = UINT64_C(8) << 20;
  const auto reader = RecordReader::open(source, golden::record_codecs(), small);
  ASSERT_TRUE(reader.ok());
  std::uint8_t four[4];
  EXPECT_EQ((*reader)->read_items(0, 7, 1, four).code(), StatusCode::memory_limit);
  EXPECT_EQ((*reader)->verify().status().code(), StatusCode::memory_limit);
}

}  // namespace
}  // namespace quern::malformed
