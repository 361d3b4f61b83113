// Masks that are coded by levels, as warps read them, on the emulator: the values that the host restores, and the same
// bytes refused.
#include <gtest/gtest.h>

#include "kernels/mask/warp/level_lattice.h"
#include "tests/unit_mask/lane_mask_cases.h"

namespace quern::mask {
namespace {

/// Whether warps write the same bytes, where there is room for them, and say so where there is none.
template <class W>
void compare_stored(const MaskedSegment<W>& m) {
  std::uint64_t bytes = 0;
  const std::size_t size = m.stored.size();
  for (const std::uint64_t capacity : {size + m.mask.masked % 2, m.mask.masked % 4 == 0 ? size / 2 : size - 1}) {
    const auto out = testing::store_levels_on_lanes<typename W::Word>(m.lanes(), m.counts(), m.mask.specials,
                                                                      m.mask.classes, m.views, capacity, bytes);
    if (capacity < size) {
      ASSERT_GT(bytes, capacity);
      continue;
    }
    ASSERT_EQ(bytes, size);
    ASSERT_TRUE(std::equal(m.stored.begin(), m.stored.end(), out.begin()));
  }
}

template <class W>
void compare_sample(const Extents& e, Pattern pattern, std::size_t kinds, bool verbatim, std::uint64_t seed) {
  const MaskedSegment<W> m(e, pattern, kinds, verbatim, seed, MaskForm::levels);
  if (m.mask.empty()) return;
  SCOPED_TRACE(describe(e, pattern, W::kDtype, seed));
  ASSERT_TRUE(is_by_levels(m.stored, e));
  compare_restored<W>(m.stored, e, MaskForm::levels);
  if (!::testing::Test::HasFatalFailure()) compare_stored(m);
}

TEST(LaneLevels, EveryKindOfMask_IsRestoredAsOnTheHost) {
  EmulatorState::instance().reset(kSeed);
  for (const Extents& e : sample_extents()) {
    for (const Pattern pattern : kAllPatterns) {
      for (const std::size_t kinds : {1, 2, 5, 30, 0}) {
        compare_sample<Words<DType::f32>>(e, pattern, kinds, kinds != 1, 3 * kinds + 1);
        if (HasFatalFailure()) return;
      }
    }
  }
  expect_clean_lanes();
}

TEST(LaneLevels, EveryTypeOfElement_IsRestored) {
  EmulatorState::instance().reset(kSeed);
  for (const DType dtype : kAllTypes) {
    with_words(dtype, [&](auto words) {
      using W = decltype(words);
      for (const std::uint64_t seed : {4, 5}) compare_sample<W>({3, 20, 70}, Pattern::coast, 2, true, seed);
    });
    if (HasFatalFailure()) return;
  }
  expect_clean_lanes();
}

TEST(LaneLevels, EveryBorder_IsRestored) {
  EmulatorState::instance().reset(kSeed);
  for (std::uint64_t planes = 1; planes < 4; ++planes) {
    for (std::uint64_t rows = 1; rows < 10; ++rows) {
      for (std::uint64_t cols = 1; cols < 10; ++cols) {
        compare_sample<Words<DType::u8>>({planes, rows, cols}, Pattern::random, 1, false, rows * 16 + cols);
        if (HasFatalFailure()) return;
      }
    }
  }
  for (const std::uint64_t cols : {63, 64, 65, 127, 128, 129, 130, 200}) {
    for (const std::uint64_t rows : {1, 2, 33}) {
      compare_sample<Words<DType::u8>>({2, rows, cols}, Pattern::random, 2, true, 2 * cols);
      compare_sample<Words<DType::u8>>({1, cols, rows}, Pattern::coast, 2, true, 2 * cols);
      if (HasFatalFailure()) return;
    }
  }
  expect_clean_lanes();
}

/// Two kinds of values: one along the rim. Four and verbatim ones: two along the rim.
void compare_along_rim(const Extents& e, std::size_t kinds, bool verbatim, std::uint64_t seed) {
  using W = Words<DType::f32>;
  MaskedSegment<W> m(e, Pattern::blocks, kinds, verbatim, seed, MaskForm::levels);
  put_classes_along_rim(m.mask, e);
  m.store(MaskForm::levels);
  SCOPED_TRACE(describe(e, Pattern::blocks, W::kDtype, seed) + " kinds " + std::to_string(kinds));
  const auto view = kernels::read_view(m.stored.data(), m.stored.size(), kernels::MaskPlanes(e), true);
  const auto head = kernels::read_level_head(m.stored.data() + view.bytes, m.stored.size() - view.bytes,
                                             view.planes.count(), 4, [](unsigned, std::uint64_t) {});
  ASSERT_EQ(head.damage, MaskDamage::none);
  ASSERT_EQ(head.alphabet.has_verbatim, verbatim);
  EXPECT_TRUE(head.beside_rim || !m.views.empty() || e[1] == 1);
  const auto back = decode_mask(m.stored, e, W::kDtype, kPlenty, MaskForm::levels);
  ASSERT_TRUE(back.ok() && *back == m.mask);
  compare_restored<W>(m.stored, e, MaskForm::levels);
  compare_stored(m);
  std::mt19937_64 rng(seed);
  for (int round = 0; round < 10 && !::testing::Test::HasFatalFailure(); ++round) {
    Vector<std::uint8_t> bytes = m.stored;
    damage(bytes, rng);
    if (!bytes.empty() && is_by_levels(bytes, e)) compare_restored<W>(bytes, e, MaskForm::levels);
  }
}

TEST(LaneLevels, ValuesAlongTheRim_AreCodedBesideIt) {
  EmulatorState::instance().reset(kSeed);
  for (const Extents& e : {Extents{1, 70, 129}, {3, 40, 64}, {2, 9, 200}, {1, 1, 300}}) {
    for (const std::uint64_t seed : {4, 5}) {
      compare_along_rim(e, 2, false, seed);
      compare_along_rim(e, 4, true, seed);
      if (HasFatalFailure()) return;
    }
  }
  expect_clean_lanes();
}

// From 262145 symbols on a writer takes 64 lanes, which are two groups with words of their own.
TEST(LaneLevels, MoreLanesThanAWarpHas_AreReadInTurns) {
  EmulatorState::instance().reset(kSeed);
  const Extents e{1, 600, 700};
  const MaskedSegment<Words<DType::u8>> m(e, Pattern::random, 1, false, 7, MaskForm::levels);
  const auto head = kernels::read_level_head(m.stored.data(), m.stored.size(), 1, 1, [](unsigned, std::uint64_t) {});
  ASSERT_EQ(head.damage, MaskDamage::none);
  ASSERT_GE(head.lanes, 64U);
  compare_restored<Words<DType::u8>>(m.stored, e, MaskForm::levels);
  compare_stored(m);
  expect_clean_lanes();
}

TEST(LaneLevels, DamagedBytes_AreRefusedAsOnTheHost) {
  EmulatorState::instance().reset(kSeed);
  std::mt19937_64 rng(kSeed);
  for (int round = 0; round < 400; ++round) {
    const Extents& e = sample_extents()[rng() % sample_extents().size()];
    if (cells_of(e) > 20000) continue;
    const Pattern pattern = kAllPatterns[1 + rng() % (std::size(kAllPatterns) - 1)];
    const MaskedSegment<Words<DType::i16>> m(e, pattern, rng() % 5, true, rng(), MaskForm::levels);
    if (m.mask.empty()) continue;
    Vector<std::uint8_t> bytes = m.stored;
    damage(bytes, rng);
    if (bytes.empty() || !is_by_levels(bytes, e)) continue;
    SCOPED_TRACE(describe(e, pattern, DType::i16, 0) + " round " + std::to_string(round));
    compare_restored<Words<DType::i16>>(bytes, e, MaskForm::levels);
    if (HasFatalFailure()) return;
  }
  expect_clean_lanes();
}

TEST(LaneLevels, LatticesOfAnyPlane_FitTheirMemory) {
  for (const std::uint64_t rows : {1, 2, 3, 5, 9, 17, 33, 100, 1000, 30000}) {
    for (const std::uint64_t cols : {1, 2, 3, 5, 7, 8, 9, 65, 129, 500, 30001}) {
      for (unsigned levels = 0; levels < 24; ++levels) {
        kernels::LevelPlace places[kernels::kLatticesOfLevel * (kernels::kMostLaneLevels + 1)] = {};
        kernels::place_lattices<testing::LaneEmulator>(static_cast<std::uint32_t>(rows),
                                                       static_cast<std::uint32_t>(cols), levels, places);
        const kernels::LevelPlace& last = places[kernels::kLatticesOfLevel * levels];
        ASSERT_LE(last.word + kernels::lane_bit_words(std::uint64_t{last.rows} * last.cols),
                  kernels::most_pyramid_words(rows * cols));
      }
    }
  }
}

}  // namespace
}  // namespace quern::mask
