// Masks as warps make and read them, on the emulator: masks, stored forms, working copies and restored values as the
// host functions have them, and the same bytes refused.
#include <gtest/gtest.h>

#include "kernels/mask/scan.h"
#include "libcompress/pipeline/mask/scan.h"
#include "tests/unit_mask/lane_mask_cases.h"

namespace quern::mask {
namespace {

template <class W>
kernels::LaneMaskRules rules_of(const CorpusCase<W>& c) {
  kernels::LaneMaskRules rules;
  rules.element = W::kElement;
  rules.repeated.enabled = c.rule.enabled;
  const auto kind = c.rule.bound.kind == BoundKind::lossless ? kernels::QuantizerKind::exact
                    : c.rule.bound.kind == BoundKind::pwrel  ? kernels::QuantizerKind::pointwise
                                                             : kernels::QuantizerKind::absolute;
  rules.repeated.cost = kernels::make_cost_scale<W>(kind, c.rule.bound.value);
  for (const auto word : fill_words<W>(c.fills)) rules.fills[rules.fill_count++] = word;
  for (const kernels::MaskView& view : c.rule.views) rules.views.list[rules.views.count++] = view;
  rules.by_levels = c.rule.form == MaskForm::levels;
  return rules;
}

/// The scan in two parts, as warps share it.
template <class Word>
void compare_scans(const kernels::LaneSegment<const Word>& segment, const kernels::LaneMaskRules& rules,
                   const kernels::ScanCounts& expected) {
  const std::uint32_t middle = segment.rows() / 3;
  const auto first = kernels::scan_lanes<testing::LaneEmulator>(segment, rules, 0, middle);
  const auto rest = kernels::scan_lanes<testing::LaneEmulator>(segment, rules, middle, segment.rows());
  EXPECT_EQ((first.mandatory | rest.mandatory) != 0, expected.any_mandatory);
  EXPECT_EQ(first.negative_zeros + rest.negative_zeros, expected.negative_zeros);
  EXPECT_EQ(first.equal_pairs + rest.equal_pairs, expected.equal_pairs);
}

template <class W>
void compare(const CorpusCase<W>& c) {
  using Word = typename W::Word;
  const Extents& e = c.segment.extents;
  const auto expected = find_specials(c.segment.box(), W::kDtype, c.fills, c.rule);
  ASSERT_TRUE(expected.ok());
  const Strided<W> array(c.segment);
  const auto fills = fill_words<W>(c.fills);
  const auto counts = kernels::scan_segment<W>({array.words.data(), e, array.strides}, std::span<const Word>(fills));
  const auto segment = testing::lane_segment<const Word>(array.words.data(), e, array.strides);
  compare_scans(segment, rules_of(c), counts);
  const auto got = testing::mask_on_lanes<Word>(segment, rules_of(c), counts, cells_of(e) * 12 + 1000);

  ASSERT_EQ(got.result.mask.masked, expected->masked);
  ASSERT_EQ(got.result.mask.verbatim, expected->verbatim.size());
  ASSERT_EQ(Vector<std::uint64_t>(got.specials.begin(), got.specials.end()), expected->specials);
  ASSERT_EQ(Vector<std::uint8_t>(got.classes.begin(), got.classes.end()), expected->classes);
  Vector<std::uint8_t> stored;
  ASSERT_TRUE(encode_mask(*expected, e, W::kDtype, stored, c.rule.views, c.rule.form).ok());
  ASSERT_EQ(Vector<std::uint8_t>(got.stored.begin(), got.stored.end()), stored);
  if (expected->empty()) return;
  Segment<W> filled = c.segment;
  ASSERT_TRUE(fill_gaps(filled.mutable_box(), W::kDtype, *expected).ok());
  ASSERT_EQ(got.copy, filled.words);

  Strided<W> back(filled);
  ASSERT_EQ(testing::restore_on_lanes<Word>(testing::lane_segment(back.words.data(), e, back.strides), stored,
                                            c.rule.form == MaskForm::levels),
            MaskDamage::none);
  ASSERT_EQ(back.words, array.words);
}

class LaneMaskOfType : public ::testing::TestWithParam<DType> {};

TEST_P(LaneMaskOfType, CorpusOfSegments_MaskBytesAndCopyAsOnTheHost) {
  EmulatorState::instance().reset(kSeed);
  const bool every = GetParam() == DType::f32 || GetParam() == DType::f64 || GetParam() == DType::u8;
  with_words(GetParam(), [&](auto words) {
    using W = decltype(words);
    for (unsigned scene = 0; scene < kScenes && !HasFatalFailure(); ++scene) {
      for_corpus_scene<W>(static_cast<Scene>(scene), [&](const CorpusCase<W>& c, std::uint64_t seed) {
        if (HasFatalFailure() || (!every && seed % 4 != 0)) return;
        SCOPED_TRACE("scene " + std::to_string(scene) + " seed " + std::to_string(seed));
        compare(c);
        if (HasFatalFailure()) return;
        const auto views = sample_views(c.segment.extents);
        CorpusCase<W> seen = c;
        seen.rule.form = MaskForm::levels;
        if (seed % 8 == 3) compare(seen);
        if (HasFatalFailure() || seed % 2 != 0) return;
        seen.rule.views = views;
        seen.rule.form = seed % 8 == 4 ? MaskForm::levels : MaskForm::decisions;
        compare(seen);
      });
    }
  });
  expect_clean_lanes();
}

template <class W>
void compare_stored(const MaskedSegment<W>& m) {
  std::uint64_t bytes = 0;
  const std::size_t size = m.stored.size();
  for (const std::uint64_t capacity : {size + 7, size, size - 1, size / 2}) {
    const auto out = testing::store_on_lanes<typename W::Word>(m.lanes(), m.counts(), m.mask.specials, m.mask.classes,
                                                               m.views, capacity, bytes);
    if (capacity < size) {
      ASSERT_GT(bytes, capacity);
      continue;
    }
    ASSERT_EQ(bytes, size);
    ASSERT_TRUE(
        std::equal(m.stored.begin(), m.stored.end(), out.begin(), out.begin() + static_cast<std::ptrdiff_t>(bytes)));
  }
}

TEST(LaneMask, EveryKindOfMask_IsStoredAsOnTheHost) {
  EmulatorState::instance().reset(kSeed);
  for (const Extents& e : sample_extents()) {
    for (const Pattern pattern : kAllPatterns) {
      for (const std::size_t kinds : {1, 2, 5, 30, 0}) {
        if (pattern == Pattern::none) continue;
        const MaskedSegment<Words<DType::f32>> m(e, pattern, kinds, kinds != 1, 3 * kinds + 1);
        if (m.mask.empty()) continue;
        SCOPED_TRACE(describe(e, pattern, DType::f32, 3 * kinds + 1));
        compare_stored(m);
        if (HasFatalFailure()) return;
      }
    }
  }
  expect_clean_lanes();
}

template <class W>
void compare_damaged(int rounds) {
  std::mt19937_64 rng(kSeed + W::kBytes);
  for (int round = 0; round < rounds; ++round) {
    const Extents& e = sample_extents()[rng() % sample_extents().size()];
    const Pattern pattern = kAllPatterns[1 + rng() % (std::size(kAllPatterns) - 1)];
    const std::uint64_t seed = rng();
    const MaskedSegment<W> m(e, pattern, rng() % 5, true, seed);
    if (m.mask.empty()) continue;
    Vector<std::uint8_t> bytes = m.stored;
    if (round % 8 != 0) damage(bytes, rng);
    if (bytes.empty()) continue;
    SCOPED_TRACE(describe(e, pattern, W::kDtype, seed) + " round " + std::to_string(round));
    compare_restored<W>(bytes, e);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(LaneMask, DamagedBytes_AreCheckedAsOnTheHost) {
  EmulatorState::instance().reset(kSeed);
  compare_damaged<Words<DType::u8>>(300);
  compare_damaged<Words<DType::f16>>(150);
  compare_damaged<Words<DType::f32>>(300);
  compare_damaged<Words<DType::f64>>(150);
  expect_clean_lanes();
}

TEST(LaneMask, RandomBytes_AreCheckedAsOnTheHost) {
  EmulatorState::instance().reset(kSeed);
  std::mt19937_64 rng(kSeed);
  for (int round = 0; round < 400; ++round) {
    const Extents& e = sample_extents()[rng() % sample_extents().size()];
    Vector<std::uint8_t> bytes(1 + rng() % 60);
    for (auto& b : bytes) b = static_cast<std::uint8_t>(rng() % 3 == 0 ? rng() : (rng() % 2 == 0 ? 0 : 255));
    SCOPED_TRACE("round " + std::to_string(round));
    compare_restored<Words<DType::f32>>(bytes, e);
    if (HasFatalFailure()) return;
  }
  expect_clean_lanes();
}

TEST(LaneMask, MaskedChunks_AreThoseWithoutAValidCell) {
  EmulatorState::instance().reset(kSeed);
  std::mt19937_64 rng(kSeed);
  for (int round = 0; round < 60; ++round) {
    const Extents e{1 + rng() % 5, 1 + rng() % 40, 1 + rng() % 150};
    const std::uint32_t chunk[3] = {static_cast<std::uint32_t>(1 + rng() % e[0]),
                                    static_cast<std::uint32_t>(1 + std::max(e[1] / 5, rng() % e[1])),
                                    static_cast<std::uint32_t>(1 + std::max(e[2] / 2, rng() % e[2]))};
    std::vector<std::uint8_t> classes(cells_of(e), 1);
    for (std::uint64_t valid = rng() % 12; valid > 0; --valid) classes[rng() % classes.size()] = 0;
    std::uint64_t expected = ~UINT64_C(0);
    Extents counts{};
    for (std::size_t a = 0; a < 3; ++a) counts[a] = (e[a] + chunk[a] - 1) / chunk[a];
    const std::uint64_t chunks = counts[0] * counts[1] * counts[2];
    if (chunks > 64) continue;
    if (chunks < 64) expected = (UINT64_C(1) << chunks) - 1;
    for (std::size_t cell = 0; cell < classes.size(); ++cell) {
      const std::uint64_t i = cell / e[2] / e[1], y = cell / e[2] % e[1], x = cell % e[2];
      const std::uint64_t k = (i / chunk[0] * counts[1] + y / chunk[1]) * counts[2] + x / chunk[2];
      if (classes[cell] == 0) expected &= ~(UINT64_C(1) << k);
    }
    const auto segment = testing::lane_segment<const std::uint8_t>(nullptr, e, {e[1] * e[2], e[2]});
    EXPECT_EQ((kernels::masked_chunks<testing::LaneEmulator>(segment, classes.data(), chunk)), expected) << round;
  }
}

// Memory is asked for the first segment of an array, the largest.
TEST(LaneMask, MemoryOfLargerExtents_HoldsSmallerSegments) {
  const auto needs = [](std::uint64_t planes, std::uint64_t rows, std::uint64_t cols) {
    const Extents e{planes, rows, cols};
    const kernels::BlockGrid grid(rows, cols);
    return std::array<std::uint64_t, 3>{kernels::LaneMaskLayout(e).bytes(), grid.along_y(rows) * grid.along_x(cols),
                                        grid.along_x(cols)};
  };
  for (std::uint64_t rows = 1; rows < 140; ++rows) {
    for (std::uint64_t cols = 1; cols < 140; ++cols) {
      const auto own = needs(3, rows, cols);
      for (const auto& larger : {needs(4, rows, cols), needs(3, rows + 1, cols), needs(3, rows, cols + 1)}) {
        for (std::size_t k = 0; k < own.size(); ++k) ASSERT_LE(own[k], larger[k]) << rows << " x " << cols;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryDtype, LaneMaskOfType, ::testing::ValuesIn(kAllTypes),
                         [](const auto& type) { return std::string(dtype_name(type.param)); });

}  // namespace
}  // namespace quern::mask
