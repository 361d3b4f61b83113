// Damage to every golden stream: each single bit flipped, each length cut, and the same behind repaired checksums.
#include <gtest/gtest.h>

#include <iostream>

#include "libcompress/format/grid/header.h"
#include "tests/fuzz/reseal.h"
#include "tests/golden/manifest.h"
#include "tests/malformed/trial.h"

namespace quern::malformed {
namespace {

const std::string kFolder = std::string(QUERN_GOLDEN_FOLDER) + "/v0/";
/// One flip in five takes the other paths as well.
constexpr std::size_t kOtherPathsStride = 5;
/// Entropy coded chunks take most of the time, and most of their bytes are alike: behind repaired checksums they get
/// one trial in so many. It shares no factor with the bits of a byte or with the trials of one.
constexpr std::size_t kSlowCodecStride = 23;
constexpr std::string_view kSlowCodec = "stencil";

struct Golden {
  std::string name;
  Vector<std::uint8_t> bytes;
  Vector<StreamSpan> streams;
  bool slow = false;  ///< of kSlowCodec

  std::size_t repaired_stride() const { return limits().stride * (slow ? kSlowCodecStride : 1); }
};

std::vector<Golden> golden_streams() {
  std::vector<Golden> all;
  for (const auto& entry : golden::read_manifest(kFolder + "manifest.json")) {
    Golden g{entry.file, golden::read_bytes(kFolder + entry.file), {}, false};
    MemorySource source(g.bytes);
    auto spans = list_streams(source);
    EXPECT_TRUE(spans.ok()) << g.name;
    if (spans.ok()) g.streams = std::move(spans).value();
    MemorySource again(g.bytes);
    const auto info = inspect(again, builtin_codecs());
    EXPECT_TRUE(info.ok()) << g.name;
    g.slow = info.ok() && info->codec_name == kSlowCodec;
    all.push_back(std::move(g));
  }
  EXPECT_GT(all.size(), 50u);
  return all;
}

std::string at_bit(const Golden& g, std::size_t bit) { return g.name + ", bit " + std::to_string(bit); }

TEST(Malformed_EverySingleBit, IsRefused) {
  Tally tally;
  std::size_t count = 0;
  for (const Golden& g : golden_streams()) {
    Vector<std::uint8_t> bytes = g.bytes;
    Tally whole;
    EXPECT_TRUE(decode_strictly(g.name, bytes, whole).ok()) << g.name << " is refused without damage";
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      if (++count % limits().stride != 0) continue;
      const auto mask = static_cast<std::uint8_t>(1u << (bit % 8));
      bytes[bit / 8] ^= mask;
      const auto strict = decode_strictly(at_bit(g, bit), bytes, tally);
      EXPECT_FALSE(strict.ok()) << at_bit(g, bit) << " is accepted";
      if (count / limits().stride % kOtherPathsStride == 0) try_other_paths(at_bit(g, bit), bytes, strict);
      bytes[bit / 8] ^= mask;
    }
  }
  EXPECT_EQ(tally.accepted, 0u);
  std::cout << "single bits: " << tally.text() << "\n";
}

TEST(Malformed_EveryTruncation, IsRefused) {
  Tally tally;
  std::size_t count = 0;
  for (const Golden& g : golden_streams()) {
    std::size_t end_of_stream = 0;  // of those that are wholly there
    for (std::size_t size = 0; size < g.bytes.size(); ++size) {
      if (++count % limits().stride != 0) continue;
      while (end_of_stream < g.streams.size() &&
             g.streams[end_of_stream].offset + g.streams[end_of_stream].bytes <= size)
        ++end_of_stream;
      const auto cut = std::span(g.bytes).first(size);
      const std::string name = g.name + ", first " + std::to_string(size) + " bytes";
      const auto strict = decode_strictly(name, cut, tally);
      // A file of several streams may be cut between two of them: that is a whole file of fewer streams.
      const bool whole = end_of_stream > 0 && g.streams[end_of_stream].offset == size;
      EXPECT_EQ(strict.ok(), whole) << name;
      if (strict.ok()) {
        EXPECT_EQ(strict.value().size(), end_of_stream) << name;
      }
      try_other_paths(name, cut, strict);
    }
  }
  std::cout << "truncations: " << tally.text() << "\n";
}

/// Flips behind repaired checksums reach the decoders of header, mask and chunks. What they return is not known; that
/// all paths agree, and end, is.
TEST(Malformed_EverySingleBit_ChecksumsRepaired, GivesDataOrStatus) {
  Tally tally;
  std::size_t count = 0;
  for (const Golden& g : golden_streams()) {
    if (g.streams.size() != 1) continue;
    for (std::size_t bit = 8 * kHeaderPrefixBytes; bit < 8 * g.bytes.size(); ++bit) {
      if (++count % g.repaired_stride() != 0) continue;
      Vector<std::uint8_t> bytes = g.bytes;
      bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
      bytes = fuzz::reseal(bytes);
      const auto strict = decode_strictly(at_bit(g, bit), bytes, tally);
      if (count / g.repaired_stride() % kOtherPathsStride == 0) try_other_paths(at_bit(g, bit), bytes, strict);
    }
  }
  EXPECT_GT(tally.refused, 0u);
  EXPECT_GT(tally.accepted, 0u);
  std::cout << "repaired single bits: " << tally.text() << "\n";
}

/// Whole bytes set to extremes: large sizes and counts, which one flipped bit rarely makes.
TEST(Malformed_ExtremeBytes_ChecksumsRepaired, GiveDataOrStatus) {
  Tally tally;
  std::size_t count = 0;
  for (const Golden& g : golden_streams()) {
    if (g.streams.size() != 1) continue;
    for (std::size_t at = kHeaderPrefixBytes; at < g.bytes.size(); ++at) {
      for (const std::size_t length : {std::size_t{1}, std::size_t{2}, std::size_t{4}}) {
        for (const unsigned value : {0x00u, 0x7Fu, 0x80u, 0xFFu}) {
          if (++count % g.repaired_stride() != 0 || at + length > g.bytes.size()) continue;
          Vector<std::uint8_t> bytes = g.bytes;
          for (std::size_t i = 0; i < length; ++i) bytes[at + i] = static_cast<std::uint8_t>(value);
          bytes = fuzz::reseal(bytes);
          const std::string name = g.name + ", " + std::to_string(length) + " bytes of " + std::to_string(value) +
                                   " at " + std::to_string(at);
          const auto strict = decode_strictly(name, bytes, tally);
          if (count / g.repaired_stride() % kOtherPathsStride == 0) try_other_paths(name, bytes, strict);
        }
      }
    }
  }
  EXPECT_GT(tally.refused, 0u);
  std::cout << "repaired extreme bytes: " << tally.text() << "\n";
}

}  // namespace
}  // namespace quern::malformed
