// Golden streams: what is committed decodes to what it always did, and the encoder still writes the same bytes.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "libcompress/format/grid/header.h"
#include "tests/fuzz/reseal.h"
#include "tests/golden/golden_cases.h"
#include "tests/golden/manifest.h"

namespace quern::golden {
namespace {

const std::string kFolder = std::string(QUERN_GOLDEN_FOLDER) + "/v0/";
const std::string kFormerFolder = std::string(QUERN_GOLDEN_FOLDER) + "/former/";
const std::string kMustFailFolder = std::string(QUERN_GOLDEN_FOLDER) + "/must_fail/";
constexpr std::size_t kMostBytes = 4096;
constexpr std::uint64_t kMostValues = std::uint64_t{16} << 20;

/// Every stream of a file with the same writer version in its header: it names the release, and nothing depends on it.
Result<Vector<std::uint8_t>> without_writer(std::span<const std::uint8_t> bytes) {
  MemorySource source(bytes);
  QUERN_ASSIGN_OR_RETURN(const auto spans, list_streams(source));
  Vector<std::uint8_t> out;
  for (const StreamSpan& span : spans) {
    const auto stream = bytes.subspan(span.offset, span.bytes);
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t size, header_size(stream.first(kHeaderPrefixBytes)));
    QUERN_ASSIGN_OR_RETURN(Header header, parse_header(stream.first(size)));
    header.writer = {};
    QUERN_ASSIGN_OR_RETURN(Vector<std::uint8_t> changed, serialize_header(header));
    changed.insert(changed.end(), stream.begin() + static_cast<std::ptrdiff_t>(size), stream.end());
    const auto sealed = fuzz::reseal(changed);
    out.insert(out.end(), sealed.begin(), sealed.end());
  }
  return out;
}

std::set<std::string> streams_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".qn") names.insert(entry.path().filename().string());
  return names;
}

void expect_arrays(const std::vector<testing::OwnedArray>& arrays, const ManifestEntry& entry) {
  ASSERT_EQ(arrays.size(), entry.streams.size()) << entry.file;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const ExpectedArray got = expect(arrays[i]);
    EXPECT_EQ(got.dtype, entry.streams[i].dtype) << entry.file << ", stream " << i;
    EXPECT_EQ(got.shape, entry.streams[i].shape) << entry.file << ", stream " << i;
    EXPECT_EQ(got.hash, entry.streams[i].hash) << entry.file << ", stream " << i;
  }
}

TEST(Golden_Manifest, NamesEveryCommittedStream) {
  for (const std::string& folder : {kFolder, kFormerFolder}) {
    std::set<std::string> listed;
    for (const ManifestEntry& entry : read_manifest(folder + "manifest.json")) listed.insert(entry.file);
    EXPECT_EQ(listed, streams_in(folder));
  }
  std::set<std::string> broken;
  for (const MustFailEntry& entry : read_must_fail(kMustFailFolder + "manifest.json")) broken.insert(entry.file);
  EXPECT_EQ(broken, streams_in(kMustFailFolder));
}

void expect_decodes(const std::string& folder) {
  for (const ManifestEntry& entry : read_manifest(folder + "manifest.json")) {
    const auto bytes = read_bytes(folder + entry.file);
    EXPECT_GT(bytes.size(), 0u) << entry.file;
    EXPECT_LE(bytes.size(), kMostBytes) << entry.file;
    for (const std::size_t threads : {std::size_t{1}, std::size_t{3}}) {
      Execution execution;
      execution.threads = threads;
      const auto arrays = decode(bytes, execution, {}, kMostValues);
      ASSERT_TRUE(arrays.ok()) << entry.file << ": " << arrays.status().text();
      expect_arrays(*arrays, entry);
    }
  }
}

TEST(Golden_CommittedStreams, DecodeToTheSameBits) { expect_decodes(kFolder); }

TEST(Golden_StreamsOfFormerEncoders, DecodeToTheSameBits) { expect_decodes(kFormerFolder); }

TEST(Golden_SameInput, GivesTheSameBytes) {
  std::map<std::string, ManifestEntry> entries;
  for (const ManifestEntry& entry : read_manifest(kFolder + "manifest.json")) entries[entry.file] = entry;
  std::size_t compared = 0;
  for (const GoldenFile& file : golden_files()) {
    const auto found = entries.find(file.name + ".qn");
    ASSERT_NE(found, entries.end()) << file.name << " is not committed; run make_golden";
    EXPECT_EQ(found->second.reproducible, file.reproducible) << file.name;
    const auto bytes = encode(file);
    ASSERT_TRUE(bytes.ok()) << file.name << ": " << bytes.status().text();
    if (!file.reproducible) {
      const auto arrays = decode(*bytes, {}, {}, kMostValues);
      ASSERT_TRUE(arrays.ok()) << file.name << ": " << arrays.status().text();
      expect_arrays(*arrays, found->second);
      continue;
    }
    const auto ours = without_writer(*bytes);
    const auto committed = without_writer(read_bytes(kFolder + found->first));
    ASSERT_TRUE(ours.ok()) << file.name << ": " << ours.status().text();
    ASSERT_TRUE(committed.ok()) << file.name << ": " << committed.status().text();
    EXPECT_TRUE(*ours == *committed) << file.name << ": the encoder writes other bytes than it did";
    ++compared;
  }
  EXPECT_GT(compared, 50u);
}

TEST(Golden_BrokenStreams, AreRefusedWithTheirStatus) {
  for (const MustFailEntry& entry : read_must_fail(kMustFailFolder + "manifest.json")) {
    const auto bytes = read_bytes(kMustFailFolder + entry.file);
    ASSERT_GT(bytes.size(), 0u) << entry.file;
    Execution execution;
    execution.memory_limit = UINT64_C(64) << 20;
    const auto arrays = decode(bytes, execution, {}, kMostValues);
    EXPECT_FALSE(arrays.ok()) << entry.file << ": " << entry.why;
    EXPECT_EQ(status_name(arrays.status().code()), entry.status)
        << entry.file << " (" << entry.why << "): " << arrays.status().text();
  }
}

/// Whether the coarsest level of a stream decodes; nothing where it has no levels.
std::optional<Status> coarsest_level(const std::string& file) {
  const auto bytes = read_bytes(kMustFailFolder + file);
  MemorySource source(bytes);
  const auto info = inspect(source, builtin_codecs());
  if (!info.ok() || info->levels.empty()) return std::nullopt;
  DecompressOptions options;
  options.level = static_cast<unsigned>(info->levels.size());
  const Shape& shape = info->levels.back();
  Vector<std::uint8_t> points(shape.elems() * dtype_bytes(info->dtype));
  MemorySource again(bytes);
  return decompress(again, {points.data(), info->dtype, shape}, builtin_codecs(), {}, options).status();
}

TEST(Golden_BrokenStreams, WhoseFirstSectionIsBroken_HaveNoCoarseLevels) {
  for (const char* file :
       {"stencil_levels_kind.qn", "stencil_levels_weights.qn", "stencil_levels_no_distribution.qn",
        "stencil_levels_sections.qn", "stencil_levels_section_size.qn", "stencil_levels_lane_bits.qn",
        "stencil_levels_lane_state.qn", "stencil_levels_lane_state_low.qn", "stencil_levels_lane_short.qn",
        "stencil_levels_exception_outside.qn"}) {
    const auto status = coarsest_level(file);
    ASSERT_TRUE(status.has_value()) << file;
    EXPECT_FALSE(status->ok()) << file;
  }
  // Where finer levels are missing, the coarsest is there.
  const auto cut = coarsest_level("stencil_levels_cut.qn");
  ASSERT_TRUE(cut.has_value());
  EXPECT_TRUE(cut->ok()) << cut->text();
}

}  // namespace
}  // namespace quern::golden
