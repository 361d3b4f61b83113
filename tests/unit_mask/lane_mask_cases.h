// What tests of masks on lanes share: segments inside larger arrays, masks with the segments that have their values,
// and the comparison of what the host and a warp make of stored bytes.
#pragma once

#include <gtest/gtest.h>

#include "libcompress/pipeline/mask/mask.h"
#include "tests/emulator/lane_masks.h"
#include "tests/unit_mask/mask_corpus.h"

namespace quern::mask {

using kernels::MaskDamage;
using testing::damage_of;
using testing::EmulatorState;

inline constexpr std::uint64_t kPlenty = UINT64_C(1) << 32;
inline constexpr std::uint64_t kSeed = 20260731;

/// The case inside a larger array, so that rows and planes do not touch.
template <class W>
struct Strided {
  std::vector<typename W::Word> words;
  std::array<std::uint64_t, 2> strides;
  Extents extents;

  explicit Strided(const Segment<W>& s)
      : words(s.extents[0] * (s.extents[1] + 1) * (s.extents[2] + 3), typename W::Word{0x5A}),
        strides{(s.extents[1] + 1) * (s.extents[2] + 3), s.extents[2] + 3},
        extents(s.extents) {
    std::size_t at = 0;
    for_cells([&](std::size_t cell) { words[cell] = s.words[at++]; });
  }
  template <class F>
  void for_cells(F&& f) const {
    for (std::uint64_t i = 0; i < extents[0]; ++i) {
      for (std::uint64_t y = 0; y < extents[1]; ++y) {
        for (std::uint64_t x = 0; x < extents[2]; ++x) f(i * strides[0] + y * strides[1] + x);
      }
    }
  }
  ConstBox3 box() const { return {words.data(), extents, strides}; }
  MutableBox3 mutable_box() { return {words.data(), extents, strides}; }
};

inline void expect_clean_lanes() {
  EXPECT_EQ(EmulatorState::instance().poison_reads(), 0U);
  EXPECT_EQ(EmulatorState::instance().races(), 0U);
}

/// A mask as find_specials could have made it, with the segment that has its values.
template <class W>
struct MaskedSegment {
  SegmentMask mask;
  Segment<W> segment;
  Vector<kernels::MaskView> views;  // of every other mask
  Vector<std::uint8_t> stored;

  MaskedSegment(const Extents& e, Pattern pattern, std::size_t kinds, bool verbatim, std::uint64_t seed,
                MaskForm form = MaskForm::decisions)
      : mask(make_mask(e, pattern, kinds, verbatim, W::kDtype, seed)),
        segment(e),
        views(seed % 2 == 0 ? sample_views(e) : Vector<kernels::MaskView>()) {
    store(form);
  }
  /// Puts the values of the mask into the segment, and codes the mask.
  void store(MaskForm form) {
    std::size_t next = 0;
    for (std::size_t cell = 0; cell < mask.classes.size(); ++cell) {
      const std::uint8_t c = mask.classes[cell];
      const std::uint64_t bits = c == 0 ? cell : (c == kVerbatimClass ? mask.verbatim[next++] : mask.specials[c - 1U]);
      segment.words[cell] = static_cast<typename W::Word>(bits);
    }
    stored.clear();
    EXPECT_TRUE(encode_mask(mask, segment.extents, W::kDtype, stored, views, form).ok());
  }
  kernels::LaneMaskCounts counts() const {
    return {static_cast<std::uint32_t>(mask.specials.size()), static_cast<std::uint32_t>(mask.masked),
            static_cast<std::uint32_t>(mask.verbatim.size())};
  }
  kernels::LaneSegment<const typename W::Word> lanes() const {
    return testing::lane_segment<const typename W::Word>(segment.words.data(), segment.extents, segment.box().strides);
  }
};

/// Whether bytes that may be damaged become the same: refused for the same reason, or the same cells, none of them
/// outside.
template <class W>
void compare_restored(const Vector<std::uint8_t>& bytes, const Extents& e, MaskForm most = MaskForm::decisions) {
  Segment<W> noise(e);
  std::mt19937_64 rng(5);
  for (auto& word : noise.words) word = static_cast<typename W::Word>(rng());
  Strided<W> expected(noise), got(noise);
  const auto mask = decode_mask(bytes, e, W::kDtype, kPlenty, most);
  const MaskDamage damage = testing::restore_on_lanes<typename W::Word>(
      testing::lane_segment(got.words.data(), e, got.strides), bytes, most == MaskForm::levels);
  ASSERT_EQ(damage, damage_of(mask.status().code())) << mask.status().text();
  if (mask.ok()) {
    ASSERT_TRUE(restore_specials(expected.mutable_box(), W::kDtype, *mask, e, {0, 0, 0}).ok());
  } else {  // cells of the segment may have any value
    expected.for_cells([&](std::size_t cell) { got.words[cell] = expected.words[cell]; });
  }
  ASSERT_EQ(got.words, expected.words);
}

}  // namespace quern::mask
