// What the mask stage makes of a fixed corpus, byte for byte: hashes of masks, stored forms, working copies and
// what is said of damaged bytes. A hash that changes says that streams change.
#include <gtest/gtest.h>

#include <array>
#include <cinttypes>
#include <cstdio>

#include "tests/unit_mask/mask_corpus.h"
#include "tests/unit_mask/mask_hashes.h"

namespace quern::mask {
namespace {

constexpr std::uint64_t kPlenty = UINT64_C(1) << 32;

std::string hex(std::uint64_t value) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "0x%016" PRIX64, value);
  return text.data();
}

Vector<std::uint8_t> stored(const SegmentMask& mask, const Extents& e, DType dtype) {
  Vector<std::uint8_t> bytes;
  EXPECT_TRUE(encode_mask(mask, e, dtype, bytes).ok());
  return bytes;
}

void add_mask(Hash& hash, const SegmentMask& mask) {
  hash.add_all(mask.specials);
  hash.add_all(mask.classes);
  hash.add_all(mask.verbatim);
  hash.add(mask.masked);
}

/// Mask, stored form and working copy of one segment; decoding and restoring must lead back.
template <class W>
void add_case(Hash& hash, const CorpusCase<W>& c) {
  const Extents& e = c.segment.extents;
  const auto found = find_specials(c.segment.box(), W::kDtype, c.fills, c.rule);
  ASSERT_TRUE(found.ok());
  add_mask(hash, *found);
  const auto bytes = stored(*found, e, W::kDtype);
  hash.add_all(bytes);
  Segment<W> copy = c.segment;
  ASSERT_TRUE(fill_gaps(copy.mutable_box(), W::kDtype, *found).ok());
  hash.add_all(copy.words);
  const auto back = decode_mask(bytes, e, W::kDtype, kPlenty);
  ASSERT_TRUE(back.ok());
  ASSERT_TRUE(found->empty() ? back->empty() : *back == *found);
  ASSERT_TRUE(restore_specials(copy.mutable_box(), W::kDtype, *back, e, {0, 0, 0}).ok());
  ASSERT_EQ(copy.words, c.segment.words);
}

TEST(MaskBytes, CorpusOfSegments_GivesTheMasksOfOldStreams) {
  std::size_t row = 0;
  for (const DType dtype : kAllTypes) {
    for (unsigned scene = 0; scene < kScenes; ++scene) {
      Hash hash;
      with_words(dtype, [&](auto words) {
        for_corpus_scene<decltype(words)>(static_cast<Scene>(scene),
                                          [&](const auto& c, std::uint64_t) { add_case(hash, c); });
      });
      EXPECT_EQ(hex(hash.value()), hex(kSegmentHashes[row][scene])) << dtype_name(dtype) << ", scene " << scene;
    }
    ++row;
  }
}

constexpr DType kWidths[] = {DType::u8, DType::f16, DType::f32, DType::f64};

TEST(MaskBytes, EveryKindOfMask_IsStoredAsInOldStreams) {
  std::size_t row = 0;
  for (const DType dtype : kWidths) {
    for (const Pattern pattern : kAllPatterns) {
      Hash hash;
      for (const Extents& e : corpus_extents()) {
        for (const std::size_t kinds : {1, 2, 5, 30, 0}) {
          for (const bool verbatim : {false, true}) {
            if (kinds == 0 && !verbatim) continue;
            hash.add_all(stored(make_mask(e, pattern, kinds, verbatim, dtype, 5 * kinds + 3), e, dtype));
          }
        }
      }
      EXPECT_EQ(hex(hash.value()), hex(kMaskHashes[row][static_cast<std::size_t>(pattern)]))
          << dtype_name(dtype) << ", pattern " << static_cast<int>(pattern);
    }
    ++row;
  }
}

TEST(MaskBytes, DamagedMask_IsCheckedAsBefore) {
  std::size_t row = 0;
  for (const DType dtype : kWidths) {
    Hash hash;
    std::mt19937_64 rng(91 + static_cast<unsigned>(dtype));
    for (int round = 0; round < 3000; ++round) {
      const Extents& e = corpus_extents()[rng() % corpus_extents().size()];
      const Pattern pattern = kAllPatterns[1 + rng() % (std::size(kAllPatterns) - 1)];
      const SegmentMask mask = make_mask(e, pattern, 1 + rng() % 4, rng() % 2 == 0, dtype, rng());
      if (mask.empty()) continue;
      Vector<std::uint8_t> bytes = stored(mask, e, dtype);
      damage(bytes, rng);
      const std::uint64_t limit = rng() % 8 == 0 ? rng() % (decode_bytes(e) + 1) : kPlenty;
      const auto result = decode_mask(bytes, e, dtype, limit);
      if (result.ok()) {
        add_mask(hash, *result);
      } else {
        hash.add(static_cast<std::uint32_t>(result.status().code()));
        const std::string text = result.status().text();
        hash.add_all(std::vector<std::uint8_t>(text.begin(), text.end()));
      }
    }
    EXPECT_EQ(hex(hash.value()), hex(kDamageHashes[row])) << dtype_name(dtype);
    ++row;
  }
}

}  // namespace
}  // namespace quern::mask
