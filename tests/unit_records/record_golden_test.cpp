// Golden streams of records: what is committed decodes to what it always did, broken ones are refused, and the writer
// still writes the same bytes.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "libcompress/format/frame/header_bytes.h"
#include "libcompress/format/records/record_header.h"
#include "tests/fuzz/reseal_records.h"
#include "tests/golden/manifest.h"
#include "tests/golden/record_manifest.h"

namespace quern::golden {
namespace {

const std::string kFolder = std::string(QUERN_GOLDEN_FOLDER) + "/records/";
constexpr std::uint64_t kMostValues = std::uint64_t{1} << 20;

/// The stream with the same writer version in its header: it names the release, and nothing depends on it.
Vector<std::uint8_t> without_writer(const Vector<std::uint8_t>& stream) {
  const auto size = header_size(stream);
  if (!size.ok()) return {};
  auto header = parse_record_header(std::span(stream).first(static_cast<std::size_t>(*size)));
  if (!header.ok()) return {};
  header->writer = {};
  auto out = serialize_record_header(*header);
  if (!out.ok()) return {};
  out->insert(out->end(), stream.begin() + static_cast<std::ptrdiff_t>(*size), stream.end());
  return fuzz::reseal_records(*out);
}

std::set<std::string> streams_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".qn") names.insert(entry.path().filename().string());
  return names;
}

TEST(GoldenRecords_Manifest, NamesEveryCommittedStream) {
  std::set<std::string> listed;
  for (const RecordEntry& entry : read_record_manifest(kFolder + "manifest.json")) listed.insert(entry.file);
  EXPECT_EQ(listed, streams_in(kFolder));
  std::set<std::string> broken;
  for (const MustFailEntry& entry : read_must_fail(kFolder + "must_fail/manifest.json")) broken.insert(entry.file);
  EXPECT_EQ(broken, streams_in(kFolder + "must_fail"));
}

TEST(GoldenRecords_CommittedStreams, DecodeToTheSameBits) {
  for (const RecordEntry& entry : read_record_manifest(kFolder + "manifest.json")) {
    for (const std::size_t threads : {std::size_t{1}, std::size_t{3}}) {
      Execution execution;
      execution.threads = threads;
      const auto set = decode_records(read_bytes(kFolder + entry.file), record_codecs(), execution, kMostValues);
      ASSERT_TRUE(set.ok()) << entry.file << ": " << set.status().text();
      const RecordEntry got = expect_records(entry.file, entry.feature, *set);
      EXPECT_EQ(got.items, entry.items) << entry.file;
      EXPECT_EQ(got.frames, entry.frames) << entry.file;
      EXPECT_EQ(got.sections, entry.sections) << entry.file;
    }
  }
}

TEST(GoldenRecords_SameInput, GivesTheSameBytes) {
  for (const RecordCase& c : record_cases()) {
    const auto bytes = encode(c);
    ASSERT_TRUE(bytes.ok()) << c.name << ": " << bytes.status().text();
    const Vector<std::uint8_t> ours = without_writer(*bytes);
    EXPECT_FALSE(ours.empty()) << c.name;
    EXPECT_TRUE(ours == without_writer(read_bytes(kFolder + c.name + ".qn")))
        << c.name << ": the writer writes other bytes than it did";
  }
}

/// docs/format-records.md, chapter 6.
TEST(GoldenRecords_StreamOfTheDocument, IsWhatIsWritten) {
  const Vector<std::uint8_t> documented{
      0x89, 0x51, 0x52, 0x4E, 0x58, 0x0D, 0x0A, 0x0A, 0x2C, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01,
      0x00, 0x03, 0x02, 0x00, 0x00, 0x01, 0x01, 0x01, 0x01, 0x61, 0x00, 0x10, 0x03, 0x01, 0x00, 0x00, 0x00, 0x61, 0x27,
      0x38, 0x25, 0xEC, 0x74, 0xED, 0x5C, 0x1E, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0x1B,
      0xDC, 0x9C, 0xCA, 0x60, 0x2D, 0xF9, 0x5B, 0x07, 0x08, 0xC1, 0x3A, 0x94, 0xA6, 0x40, 0xCB, 0x08, 0xD5, 0x1D, 0x00,
      0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFA, 0xE2, 0x90, 0x71, 0x36, 0x19, 0xB0, 0x8A, 0x09,
      0x51, 0x21, 0xCA, 0xEB, 0x7B, 0xF2, 0xD9, 0x10, 0x1E, 0x1D, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x81,
      0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xBC, 0x6E, 0xF2, 0x66, 0x51, 0x45, 0x4E, 0xA8};
  RecordCase c;
  c.stored = true;
  c.set.layout.items = 3;
  c.set.layout.segment_items = 2;
  c.set.add_values("a", DType::u8, 3, 1, {}, [](std::uint64_t i) { return 7 + i; });
  const auto bytes = encode(c);
  ASSERT_TRUE(bytes.ok()) << bytes.status().text();
  EXPECT_EQ(without_writer(*bytes), without_writer(documented));
  const auto set = decode_records(documented, record_codecs(), {}, kMostValues);
  ASSERT_TRUE(set.ok()) << set.status().text();
  EXPECT_EQ(set->values[0], (Vector<std::uint8_t>{7, 8, 9}));
}

TEST(GoldenRecords_BrokenStreams, AreRefusedWithTheirStatus) {
  Execution execution;
  execution.memory_limit = UINT64_C(64) << 20;
  for (const MustFailEntry& entry : read_must_fail(kFolder + "must_fail/manifest.json")) {
    const auto bytes = read_bytes(kFolder + "must_fail/" + entry.file);
    ASSERT_GT(bytes.size(), 0u) << entry.file;
    const auto set = decode_records(bytes, record_codecs(), execution, kMostValues);
    ASSERT_FALSE(set.ok()) << entry.file << " is accepted";
    EXPECT_EQ(status_name(set.status().code()), entry.status) << entry.file << ": " << set.status().text();
    MemorySource source(bytes);
    const auto reader = RecordReader::open(source, record_codecs(), execution);
    EXPECT_FALSE(reader.ok() && (*reader)->verify().ok()) << entry.file;
  }
}

}  // namespace
}  // namespace quern::golden
