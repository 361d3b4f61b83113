// Gaps are filled by finite values and valid cells stay; specials come back bit for bit, also in parts of a segment.
#include <gtest/gtest.h>

#include "tests/unit_mask/mask_samples.h"

namespace quern::mask {
namespace {

/// Valid values everywhere but where the mask has its specials: non-finite ones for floats.
template <class W>
Segment<W> segment_with(const SegmentMask& mask, const Extents& e, std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  Segment<W> s(e);
  set_valid(s, rng);
  std::size_t next = 0;
  for (std::size_t c = 0; c < mask.classes.size(); ++c) {
    const std::uint8_t k = mask.classes[c];
    if (k == 0) continue;
    s.words[c] = static_cast<typename W::Word>(k == kVerbatimClass ? mask.verbatim[next++] : mask.specials[k - 1U]);
  }
  return s;
}

template <class W>
void fill_and_restore(const Extents& e, Pattern pattern, std::uint64_t seed) {
  SegmentMask mask = make_mask(e, pattern, 2, true, W::kDtype, seed);
  for (auto& v : mask.specials) v |= W::kInfinity;
  for (auto& v : mask.verbatim) v |= W::kInfinity;
  const Segment<W> original = segment_with<W>(mask, e, seed);
  Segment<W> filled = original;
  ASSERT_TRUE(fill_gaps(filled.mutable_box(), W::kDtype, mask).ok());
  for (std::size_t c = 0; c < filled.words.size(); ++c) {
    if (mask.classes[c] == 0) {
      ASSERT_EQ(filled.words[c], original.words[c]);
    } else {
      ASSERT_TRUE(is_finite<W>(filled.words[c])) << describe(e, pattern, W::kDtype, seed) << " cell " << c;
    }
  }
  Segment<W> again = original;
  ASSERT_TRUE(fill_gaps(again.mutable_box(), W::kDtype, mask).ok());
  EXPECT_EQ(again.words, filled.words);
  ASSERT_TRUE(restore_specials(filled.mutable_box(), W::kDtype, mask, e, {0, 0, 0}).ok());
  EXPECT_EQ(filled.words, original.words) << describe(e, pattern, W::kDtype, seed);
}

TEST(FillAndRestore_EveryDtypeAndPattern_GivesTheOriginal, RoundTrip) {
  for (const DType dtype : kAllTypes) {
    for (const Extents& e : sample_extents()) {
      for (const Pattern p : kAllPatterns) {
        with_words(dtype, [&](auto words) { fill_and_restore<decltype(words)>(e, p, 21); });
      }
    }
  }
}

TEST(FillGaps_LargestFiniteValues_NeverOverflows, Extremes) {
  using W = Words<DType::f16>;
  const Extents e{2, 6, 9};
  const SegmentMask mask = make_mask(e, Pattern::checkerboard, 1, false, DType::f16, 1);
  Segment<W> s(e);
  for (std::size_t c = 0; c < s.words.size(); ++c) s.words[c] = c % 4 < 2 ? 0x7BFF : 0xFBFF;
  ASSERT_TRUE(fill_gaps(s.mutable_box(), DType::f16, mask).ok());
  for (const auto w : s.words) EXPECT_TRUE(is_finite<W>(w));
}

TEST(FillGaps_NoValidCell_FillsZeros, AllSpecial) {
  using W = Words<DType::f64>;
  const Extents e{3, 4, 5};
  Segment<W> s(e);
  std::fill(s.words.begin(), s.words.end(), W::kInfinity);
  ASSERT_TRUE(fill_gaps(s.mutable_box(), DType::f64, make_mask(e, Pattern::all, 1, false, DType::f64, 1)).ok());
  EXPECT_EQ(s.words, std::vector<std::uint64_t>(60, 0));
}

TEST(RestoreSpecials_PartOfASegment_MatchesTheWhole, Offsets) {
  using W = Words<DType::f32>;
  const Extents e{5, 17, 65};
  std::mt19937_64 rng(31);
  const SegmentMask mask = make_mask(e, Pattern::random, 3, true, DType::f32, 31);
  const Segment<W> original = segment_with<W>(mask, e, 31);
  for (int round = 0; round < 50; ++round) {
    Extents offset{}, part{};
    for (std::size_t a = 0; a < 3; ++a) {
      offset[a] = rng() % e[a];
      part[a] = 1 + rng() % (e[a] - offset[a]);
    }
    Segment<W> out = original;
    ASSERT_TRUE(fill_gaps(out.mutable_box(), DType::f32, mask).ok());
    const std::uint64_t first = (offset[0] * e[1] + offset[1]) * e[2] + offset[2];
    ASSERT_TRUE(
        restore_specials({out.words.data() + first, part, {e[1] * e[2], e[2]}}, DType::f32, mask, e, offset).ok());
    for (std::uint64_t i = 0; i < part[0]; ++i) {
      for (std::uint64_t y = 0; y < part[1]; ++y) {
        for (std::uint64_t x = 0; x < part[2]; ++x) {
          const std::uint64_t c = first + (i * e[1] + y) * e[2] + x;
          ASSERT_EQ(out.words[c], original.words[c]) << "round " << round;
        }
      }
    }
  }
}

TEST(FillAndRestore_BoxThatDoesNotFit_IsRefused, Arguments) {
  const Extents e{2, 3, 4};
  const SegmentMask mask = make_mask(e, Pattern::stripes, 1, false, DType::f32, 1);
  std::vector<std::uint32_t> data(60);
  const MutableBox3 larger{data.data(), {3, 3, 4}, {12, 4}};
  EXPECT_EQ(fill_gaps(larger, DType::f32, mask).code(), StatusCode::invalid_argument);
  EXPECT_EQ(restore_specials(larger, DType::f32, mask, e, {0, 0, 0}).code(), StatusCode::invalid_argument);
  const MutableBox3 fits{data.data(), {1, 3, 4}, {12, 4}};
  EXPECT_EQ(restore_specials(fits, DType::f32, mask, e, {2, 0, 0}).code(), StatusCode::invalid_argument);
  EXPECT_TRUE(restore_specials(fits, DType::f32, mask, e, {1, 0, 0}).ok());
}

}  // namespace
}  // namespace quern::mask
