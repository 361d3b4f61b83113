// What the fuzz targets of masks share: the code that warps run, on the emulator.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libcompress/pipeline/mask/mask.h"
#include "libcompress/pipeline/mask/words.h"
#include "tests/emulator/lane_masks.h"
#include "tests/fuzz/fuzz_common.h"

namespace quern::fuzz {

/// Warps accept the same bytes as the host and restore the same values. `decoded`: what the host has made of them. Only
/// segments of a few thousand cells: the emulator is slow.
inline void check_lanes(std::span<const std::uint8_t> in, const Result<mask::SegmentMask>& decoded,
                        const mask::Extents& extents, DType dtype, mask::MaskForm most = mask::MaskForm::decisions) {
  constexpr std::uint64_t kMostCells = 4096;
  const std::uint64_t cells = extents[0] * extents[1] * extents[2];
  if (cells > kMostCells || in.empty()) return;
  mask::with_words(dtype, [&](auto words) {
    using Word = typename decltype(words)::Word;
    std::vector<Word> expected(cells, Word{0x5A}), got = expected;
    testing::EmulatorState::instance().reset(cells);
    const auto segment = testing::lane_segment(got.data(), extents, {extents[1] * extents[2], extents[2]});
    const kernels::MaskDamage damage = testing::restore_on_lanes(segment, in, most == mask::MaskForm::levels);
    QUERN_FUZZ_CHECK(damage == testing::damage_of(decoded.status().code()));
    QUERN_FUZZ_CHECK(testing::EmulatorState::instance().races() == 0);
    QUERN_FUZZ_CHECK(testing::EmulatorState::instance().poison_reads() == 0);
    if (!decoded.ok()) return;
    const MutableBox3 box{expected.data(), extents, {extents[1] * extents[2], extents[2]}};
    QUERN_FUZZ_CHECK(mask::restore_specials(box, dtype, *decoded, extents, {0, 0, 0}).ok());
    QUERN_FUZZ_CHECK(got == expected);
  });
}

}  // namespace quern::fuzz
