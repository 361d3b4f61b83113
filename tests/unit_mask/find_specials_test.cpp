// What is masked: non-finite and declared values always, repeated values when it pays, nothing in a clean field.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "libcompress/pipeline/mask/scan.h"
#include "tests/unit_mask/mask_samples.h"

namespace quern::mask {
namespace {

using F32 = Words<DType::f32>;
const RepeatedRule kOff{false, {}};

RepeatedRule abs_rule(double bound) { return {true, {BoundKind::abs, bound}}; }

SegmentMask found(const ConstBox3& box, DType dtype, const Vector<std::uint64_t>& fills, const RepeatedRule& rule) {
  auto mask = find_specials(box, dtype, fills, rule);
  EXPECT_TRUE(mask.ok());
  return mask.ok() ? *mask : SegmentMask{};
}

std::uint32_t bits(float v) { return std::bit_cast<std::uint32_t>(v); }

/// A smooth wave with noise far below its size.
Segment<F32> wave(const Extents& e, std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  Segment<F32> s(e);
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < e[0]; ++i) {
    for (std::uint64_t y = 0; y < e[1]; ++y) {
      for (std::uint64_t x = 0; x < e[2]; ++x) {
        const double v =
            10 + 3 * std::sin(0.05 * static_cast<double>(x + 2 * i)) * std::cos(0.07 * static_cast<double>(y));
        s.words[at++] = bits(static_cast<float>(v + 1e-4 * static_cast<double>(rng() % 1000)));
      }
    }
  }
  return s;
}

void stamp(Segment<F32>& s, Pattern pattern, float value) {
  std::mt19937_64 rng(1);
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < s.extents[0]; ++i) {
    for (std::uint64_t y = 0; y < s.extents[1]; ++y) {
      for (std::uint64_t x = 0; x < s.extents[2]; ++x, ++at) {
        if (is_special(pattern, i, y, x, rng)) s.words[at] = bits(value);
      }
    }
  }
}

template <class W>
void non_finite_and_fills_are_masked(std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  for (const Extents& e : sample_extents()) {
    Segment<W> s(e);
    set_valid(s, rng);
    const auto fill = static_cast<typename W::Word>(s.words[0]);
    std::vector<bool> special(s.words.size());
    for (std::size_t c = 0; c < s.words.size(); ++c) {
      if (rng() % 4 == 0) s.words[c] = fill;
      if (W::kFloat && rng() % 16 == 0) s.words[c] = static_cast<typename W::Word>(rng() | W::kInfinity);
      special[c] = s.words[c] == fill || !is_finite<W>(s.words[c]);
    }
    const SegmentMask mask = found(s.box(), W::kDtype, {fill}, kOff);
    ASSERT_EQ(mask.classes.size(), s.words.size());
    std::size_t next = 0;
    for (std::size_t c = 0; c < s.words.size(); ++c) {
      ASSERT_EQ(mask.classes[c] != 0, special[c]) << "cell " << c << " seed " << seed << " " << dtype_name(W::kDtype);
      if (mask.classes[c] == kVerbatimClass) {
        ASSERT_LT(next, mask.verbatim.size());
        ASSERT_EQ(mask.verbatim[next++], s.words[c]);
      } else if (special[c]) {
        ASSERT_EQ(mask.specials[mask.classes[c] - 1U], s.words[c]);
      }
    }
    EXPECT_EQ(next, mask.verbatim.size());
  }
}

TEST(FindSpecials_NonFiniteAndDeclaredFill_AreAllMasked, EveryDtype) {
  for (const DType dtype : kAllTypes) {
    with_words(dtype, [](auto words) { non_finite_and_fills_are_masked<decltype(words)>(11); });
  }
}

using kernels::ScanCounts;

template <class W>
ScanCounts scan_box(const ConstBox3& box, const std::vector<typename W::Word>& fills) {
  using Word = typename W::Word;
  return kernels::scan_segment<W>({static_cast<const Word*>(box.data), box.extents, box.strides},
                                  std::span<const Word>(fills));
}

// Cell by cell, as the words of the interface say it.
template <class W>
ScanCounts plain_scan(const Segment<W>& segment, const std::vector<typename W::Word>& fills) {
  ScanCounts counts;
  const auto& cells = segment.words;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::size_t x = i % segment.extents[2], y = i / segment.extents[2] % segment.extents[1];
    if (W::kFloat && (cells[i] & W::kMagnitude) >= W::kInfinity) counts.any_mandatory = true;
    if (std::find(fills.begin(), fills.end(), cells[i]) != fills.end()) counts.any_mandatory = true;
    counts.negative_zeros += W::kFloat && cells[i] == W::kSign;
    const bool looked_at = x % 32 != 0 && (y + x / 32) % 8 == 0;
    counts.equal_pairs += looked_at && cells[i] == cells[i - 1];
  }
  return counts;
}

template <class W>
void scan_counts_what_is_there(std::uint64_t seed) {
  using Word = typename W::Word;
  std::mt19937_64 rng(seed);
  for (const Extents& e :
       {Extents{1, 1, 1}, Extents{3, 5, 7}, Extents{2, 3, 4097}, Extents{1, 2, 12288}, Extents{3, 19, 300}}) {
    for (int round = 0; round < 8; ++round) {
      Segment<W> s(e);
      // All alike, few values, or finite numbers with one cell that is not: the last or any.
      const Word finite = W::kFloat ? static_cast<Word>(W::kInfinity - 1) : static_cast<Word>(~Word{0});
      for (Word& word : s.words)
        word = round == 0 ? Word{9} : static_cast<Word>(rng() % (round < 3 ? 3 : 100) & finite);
      if (round >= 4) s.words[rng() % s.words.size()] = static_cast<Word>(W::kSign | (round >= 5 ? W::kInfinity : 0));
      if (round >= 6) s.words.back() = static_cast<Word>(W::kSign - 1);
      const std::vector<Word> fills =
          round % 2 == 0 ? std::vector<Word>{} : std::vector<Word>{Word{101}, s.words.back()};
      const ScanCounts expected = plain_scan<W>(s, fills), got = scan_box<W>(s.box(), fills);
      EXPECT_EQ(got.any_mandatory, expected.any_mandatory) << "round " << round << ", seed " << seed;
      EXPECT_EQ(got.negative_zeros, expected.negative_zeros) << "round " << round << ", seed " << seed;
      EXPECT_EQ(got.equal_pairs, expected.equal_pairs) << "round " << round << ", seed " << seed;
      const auto pairs = scan(s.box(), W::kDtype, {}, true);
      ASSERT_TRUE(pairs.ok());
      EXPECT_EQ(pairs->equal_pairs, expected.equal_pairs) << "round " << round << ", seed " << seed;
    }
  }
}

TEST(Scan_OfAnyType_CountsWhatIsThere, EveryDtype) {
  for (const DType dtype : kAllTypes) {
    with_words(dtype, [](auto words) { scan_counts_what_is_there<decltype(words)>(41); });
  }
}

TEST(FindSpecials_CleanField_GetsNoMask, Wave) {
  for (const double bound : {0.1, 1e-2, 1e-3, 1e-5}) {
    EXPECT_TRUE(found(wave({4, 50, 60}, 1).box(), DType::f32, {bits(1e35F)}, abs_rule(bound)).empty());
  }
}

TEST(FindSpecials_ConstantSegment_GetsNoMask, AllEqual) {
  Segment<F32> s({4, 32, 32});
  std::fill(s.words.begin(), s.words.end(), bits(3.0F));
  EXPECT_TRUE(found(s.box(), DType::f32, {}, abs_rule(1e-3)).empty());
}

TEST(FindSpecials_LandStoredAsZero_IsMasked, Coast) {
  auto s = wave({6, 60, 90}, 2);
  stamp(s, Pattern::coast, 0.0F);
  for (const double bound : {1e-2, 1e-4}) {
    const SegmentMask mask = found(s.box(), DType::f32, {}, abs_rule(bound));
    ASSERT_EQ(mask.specials, Vector<std::uint64_t>{0}) << bound;
    for (std::size_t c = 0; c < s.words.size(); ++c) ASSERT_EQ(mask.classes[c] != 0, s.words[c] == 0);
  }
  for (const EnforcedBound bound : {EnforcedBound{BoundKind::lossless, 0}, EnforcedBound{BoundKind::pwrel, 1e-3}}) {
    EXPECT_EQ(found(s.box(), DType::f32, {}, {true, bound}).specials, Vector<std::uint64_t>{0});
  }
  EXPECT_TRUE(found(s.box(), DType::f32, {}, kOff).empty());
}

TEST(FindSpecials_RepeatedValueWithinTheBound_IsNotMasked, BoundTooLooseToPay) {
  auto s = wave({6, 60, 90}, 2);
  stamp(s, Pattern::coast, 10.0F);
  EXPECT_TRUE(found(s.box(), DType::f32, {}, abs_rule(20.0)).empty());
}

TEST(FindSpecials_NegativeZeros_AreMaskedWhenExceptionsCostMore, Scattered) {
  auto s = wave({2, 60, 90}, 3);
  stamp(s, Pattern::rare, -0.0F);
  const SegmentMask mask = found(s.box(), DType::f32, {}, abs_rule(1e-2));
  EXPECT_EQ(mask.specials, Vector<std::uint64_t>{bits(-0.0F)});
  auto one = wave({2, 60, 90}, 3);
  one.words[77] = bits(-0.0F);
  EXPECT_TRUE(found(one.box(), DType::f32, {}, abs_rule(1e-2)).empty());
}

TEST(FindSpecials_ZeroDeclaredAsFill_MasksBothZerosAndKeepsTheirBits, SignedZeros) {
  auto s = wave({1, 8, 8}, 4);
  s.words[3] = bits(0.0F);
  s.words[9] = bits(-0.0F);
  for (const float fill : {0.0F, -0.0F}) {
    const SegmentMask mask = found(s.box(), DType::f32, {bits(fill)}, abs_rule(1e-2));
    ASSERT_EQ(mask.masked, 2U);
    EXPECT_EQ(mask.specials[mask.classes[3] - 1U], bits(0.0F));
    EXPECT_EQ(mask.specials[mask.classes[9] - 1U], bits(-0.0F));
  }
}

TEST(FindSpecials_StridedBox_GivesTheMaskOfTheCopy, Strides) {
  auto whole = wave({5, 30, 64}, 5);
  stamp(whole, Pattern::coast, 0.0F);
  whole.words[1 * 30 * 64 + 4 * 64 + 9] = bits(std::numeric_limits<float>::quiet_NaN());
  const Extents e{3, 20, 41};
  const ConstBox3 inside{whole.words.data() + 30 * 64 + 2 * 64 + 5, e, {30 * 64, 64}};
  Segment<F32> copy(e);
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < e[0]; ++i) {
    for (std::uint64_t y = 0; y < e[1]; ++y) {
      for (std::uint64_t x = 0; x < e[2]; ++x) copy.words[at++] = whole.words[(i + 1) * 30 * 64 + (y + 2) * 64 + x + 5];
    }
  }
  const SegmentMask mask = found(inside, DType::f32, {}, abs_rule(1e-3));
  EXPECT_EQ(mask.specials.size(), 2U);
  EXPECT_TRUE(mask == found(copy.box(), DType::f32, {}, abs_rule(1e-3)));
}

TEST(FindSpecials_ManyNanPayloads_StayExactInFewClasses, Payloads) {
  Segment<F32> s({1, 64, 64});
  std::mt19937_64 rng(6);
  for (auto& w : s.words) w = static_cast<std::uint32_t>(0x7F800001U | (rng() & 0x3FFFFFU));
  const SegmentMask mask = found(s.box(), DType::f32, {}, abs_rule(1e-3));
  EXPECT_EQ(mask.masked, s.words.size());
  EXPECT_LE(mask.specials.size(), kMaxSpecials);
  EXPECT_GT(mask.verbatim.size(), s.words.size() / 2);
}

TEST(FindSpecials_EmptyBox_GivesNoMask, NoCells) {
  const ConstBox3 box{nullptr, {0, 4, 4}, {16, 4}};
  EXPECT_TRUE(found(box, DType::f32, {}, abs_rule(1)).empty());
}

TEST(FindSpecials, PartsOfAScanAddUp) {
  for (const Extents& e : {Extents{5, 19, 70}, Extents{1, 43, 300}, Extents{17, 1, 40}}) {
    Segment<F32> s = wave(e, 3);
    for (std::size_t i = 0; i < s.words.size(); i += 7)
      s.words[i] = i % 2 == 0 ? bits(-0.0F) : s.words[i > 0 ? i - 1 : 0];
    s.words[s.words.size() - 2] = bits(std::numeric_limits<float>::infinity());
    const ConstBox3 box = s.box();
    const auto whole = scan(box, DType::f32, {});
    ASSERT_TRUE(whole.ok());
    EXPECT_GT(whole->equal_pairs, 0u);
    EXPECT_GT(whole->negative_zeros, 0u);
    const std::size_t axis = e[0] > 1 ? 0 : 1;
    kernels::ScanCounts sum;
    for (std::uint64_t at = 0; at < e[axis]; at += kScanRows) {
      ConstBox3 part = box;
      part.data = static_cast<const std::uint32_t*>(box.data) + at * box.strides[axis];
      part.extents[axis] = std::min(kScanRows, e[axis] - at);
      const auto found = scan(part, DType::f32, {});
      ASSERT_TRUE(found.ok());
      sum.any_mandatory |= found->any_mandatory;
      sum.negative_zeros += found->negative_zeros;
      sum.equal_pairs += found->equal_pairs;
    }
    EXPECT_EQ(sum.any_mandatory, whole->any_mandatory);
    EXPECT_EQ(sum.negative_zeros, whole->negative_zeros);
    EXPECT_EQ(sum.equal_pairs, whole->equal_pairs);
  }
}

}  // namespace
}  // namespace quern::mask
