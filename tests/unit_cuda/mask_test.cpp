// The mask kernels of kernels/mask/cuda on the simulator, whatever order blocks and threads run in, and what becomes of
// damaged bytes.
#include "tests/unit_cuda/cuda_masks.h"

namespace quern::mask {
namespace {

class MaskCuda : public MaskCudaTest {};

TEST_F(MaskCuda, EveryTypeAndGrid_MasksBytesAndCopiesAsOnTheHost) {
  simt::Options options;
  for (const DType dtype : kAllTypes) {
    for (const SegmentGrid& grid : mask_grids()) {
      simt::reset(options);
      with_words(dtype, [&](auto words) {
        round_trip<decltype(words)>(grid, static_cast<unsigned>(options.seed % kScenes), options.seed);
      });
      if (HasFatalFailure()) return;
      ++options.seed;
    }
  }
}

MaskDamage damage_of(StatusCode code) {
  switch (code) {
    case StatusCode::ok: return MaskDamage::none;
    case StatusCode::truncated: return MaskDamage::truncated;
    case StatusCode::trailing_data: return MaskDamage::trailing;
    default: return MaskDamage::corrupt;
  }
}

TEST_F(MaskCuda, DamagedMasks_AreCheckedAsOnTheHostAndStayInTheirSegments) {
  using W = Words<DType::f32>;
  std::mt19937_64 rng(17);
  simt::Options options;
  for (int round = 0; round < 150; ++round, ++options.seed) {
    simt::reset(options);
    const SegmentGrid& grid = mask_grids()[rng() % mask_grids().size()];
    const MaskedArray<W> array(grid, static_cast<unsigned>(rng() % kScenes), rng());
    std::vector<std::uint8_t> bytes;
    std::vector<kernels::StoredMask> masks;
    std::vector<MaskDamage> expected;
    auto words = array.words;
    std::vector<bool> undefined(words.size());
    for (std::uint32_t s = 0; s < grid.segments(); ++s) {
      const SegmentMask mask = make_mask(array.box(s).extents, kAllPatterns[1 + rng() % (std::size(kAllPatterns) - 1)],
                                         rng() % 4, true, W::kDtype, rng());
      Vector<std::uint8_t> stored;
      const auto views = round % 2 == 0 ? sample_views(array.box(s).extents) : Vector<kernels::MaskView>();
      const MaskForm form = round % 3 == 0 ? MaskForm::levels : MaskForm::decisions;
      ASSERT_TRUE(encode_mask(mask, array.box(s).extents, W::kDtype, stored, views, form).ok());
      if (!stored.empty() && rng() % 4 != 0) damage(stored, rng);
      masks.push_back({bytes.size(), stored.size(), s});
      bytes.insert(bytes.end(), stored.begin(), stored.end());
      const auto decoded = decode_mask(stored, array.box(s).extents, W::kDtype, UINT64_C(1) << 32, MaskForm::levels);
      expected.push_back(damage_of(decoded.status().code()));
      const auto segment = kernels::lane_segment(grid, words.data(), s);
      if (decoded.ok()) {
        const MutableBox3 box{segment.cells, array.box(s).extents, array.box(s).strides};
        ASSERT_TRUE(restore_specials(box, W::kDtype, *decoded, box.extents, {0, 0, 0}).ok());
        continue;
      }
      for (std::uint32_t cell = 0; cell < segment.elems(); ++cell)
        undefined[static_cast<std::size_t>(segment.row(cell / segment.cols()) + cell % segment.cols() - words.data())] =
            true;
    }
    if (bytes.empty()) continue;
    // Places and segments that no stream has.
    for (const kernels::StoredMask& wrong :
         {kernels::StoredMask{bytes.size(), 1, 0}, {~UINT64_C(0), 5, 0}, {1, bytes.size(), 0}, {0, 4, 0xffffffffu}}) {
      masks.push_back(wrong);
      expected.push_back(MaskDamage::corrupt);
    }
    auto got = array.words;
    const auto statuses = decode<W>(grid, bytes, masks, got);
    ASSERT_EQ(simt::failure(), "");
    for (std::size_t k = 0; k < masks.size(); ++k) {
      ASSERT_EQ(statuses[k], expected[k]) << "round " << round << ", mask " << k;
    }
    for (std::size_t cell = 0; cell < words.size(); ++cell) {
      if (!undefined[cell]) {
        ASSERT_EQ(got[cell], words[cell]) << "round " << round << ", cell " << cell;
      }
    }
  }
}

TEST_F(MaskCuda, WrongArguments_AreRefused) {
  const SegmentGrid grid{{4, 40, 64}, {4, 8, 32}, {1, 5, 2}};
  kernels::LaneMaskRules rules;
  std::size_t bytes = 0;
  EXPECT_EQ(kernels::mask_workspace(kernels::Element::f32, grid, 0, 1, false, bytes), cudaErrorInvalidValue);
  EXPECT_EQ(kernels::mask_workspace(static_cast<kernels::Element>(7), grid, 1, 1, false, bytes), cudaErrorInvalidValue);
  ASSERT_EQ(kernels::mask_workspace(kernels::Element::f32, grid, 2, 0, false, bytes), cudaSuccess);
  kernels::MaskSlots slots;
  slots.count = 1;
  EXPECT_EQ(kernels::mask_encode_async(rules, grid, nullptr, nullptr, nullptr, nullptr, 0, slots, 2, nullptr, bytes - 1,
                                       nullptr),
            cudaErrorInvalidValue);
  rules.fill_count = kernels::kMaxFillWords + 1;
  EXPECT_EQ(kernels::mask_scan_async(rules, grid, nullptr, nullptr, nullptr), cudaErrorInvalidValue);
  EXPECT_FALSE(kernels::mask_cuda_serves(kernels::Element::f32, {{1, 1, 8}, {1, 1, 0}, {1, 1, 1}}));
  EXPECT_FALSE(kernels::mask_cuda_serves(kernels::Element::f32, {{1, 1, 8}, {1, 1, 1}, {1, 1, 65}}));
  const std::uint64_t wide = UINT64_C(1) << 26;
  EXPECT_FALSE(kernels::mask_cuda_serves(kernels::Element::u8, {{1, 1, 64 * wide}, {1, 1, wide}, {1, 1, 64}}));
  EXPECT_TRUE(kernels::mask_cuda_serves(kernels::Element::u8, {{1, 1, 64 * wide}, {1, 1, wide}, {1, 1, 16}}));
}

}  // namespace
}  // namespace quern::mask
