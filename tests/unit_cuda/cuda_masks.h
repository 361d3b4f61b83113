// Arrays through the mask kernels of kernels/mask/cuda on the simulator, held against the host functions segment by
// segment: scans, masks, stored forms, working copies and restored arrays.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/mask/cuda/entry_points.h"
#include "libcompress/pipeline/mask/scan.h"
#include "tests/simt/cuda_test.h"
#include "tests/unit_mask/mask_corpus.h"

namespace quern::mask {

using kernels::MaskDamage;
using kernels::SegmentGrid;
using quern::testing::DeviceBuffer;
using quern::testing::Stream;

inline constexpr std::uint32_t kWarps = 3;

/// An array whose segments show one scene each, by turns.
template <class W>
struct MaskedArray {
  using Word = typename W::Word;
  SegmentGrid grid;
  std::vector<Word> words;
  Vector<std::uint64_t> fills;
  RepeatedRule rule;
  kernels::LaneMaskRules rules;

  MaskedArray(const SegmentGrid& g, unsigned first_scene, std::uint64_t seed) : grid(g) {
    words.resize(g.extents[0] * g.extents[1] * g.extents[2]);
    const std::array<std::uint64_t, 3> full{g.chunk[0] * g.per_segment[0], g.chunk[1] * g.per_segment[1],
                                            g.chunk[2] * g.per_segment[2]};
    std::uint64_t at = 0;
    for (std::uint64_t i = 0; i < g.extents[0]; ++i) {
      for (std::uint64_t y = 0; y < g.extents[1]; ++y) {
        for (std::uint64_t x = 0; x < g.extents[2]; ++x, ++at) {
          const std::uint64_t segment = (i / full[0] * g.along(1) + y / full[1]) * g.along(2) + x / full[2];
          const auto scene = static_cast<Scene>((first_scene + segment) % kScenes);
          words[at] = detail::scene_word<W>(scene, i, y, x, at, seed);
        }
      }
    }
    const Word fill = W::kFloat ? static_cast<Word>(W::kInfinity - 3) : static_cast<Word>(~Word{0});
    fills = {fill};
    if (seed % 3 == 0) fills.push_back(0);
    rule = {true, {BoundKind::abs, 0.0625}};
    rule.form = seed / 2 % 2 == 0 ? MaskForm::decisions : MaskForm::levels;
    rules.by_levels = rule.form == MaskForm::levels;
    rules.element = W::kElement;
    rules.repeated = {true, kernels::make_cost_scale<W>(kernels::QuantizerKind::absolute, rule.bound.value)};
    for (const auto word : fill_words<W>(fills)) rules.fills[rules.fill_count++] = word;
    if (seed % 2 == 0) return;
    for (const kernels::MaskView& view : sample_views(grid.segment_extents())) {
      rules.views.list[rules.views.count++] = view;
    }
  }

  ConstBox3 box(std::uint64_t segment) const {
    const auto s = kernels::lane_segment(grid, words.data(), segment);
    return {s.cells, {s.extents[0], s.extents[1], s.extents[2]}, {s.strides[0], s.strides[1]}};
  }
  kernels::ScanCounts scan(std::uint64_t segment) const {
    const ConstBox3 b = box(segment);
    const auto words_of_fills = fill_words<W>(fills);
    return kernels::scan_segment<W>({static_cast<const Word*>(b.data), b.extents, b.strides},
                                    std::span<const Word>(words_of_fills));
  }
};

/// Every kind of grid: one segment, ragged ones along every axis, lines.
inline const std::vector<SegmentGrid>& mask_grids() {
  static const std::vector<SegmentGrid> all = {
      {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}},      {{3, 40, 70}, {4, 32, 64}, {1, 2, 2}},
      {{1, 1, 5000}, {1, 1, 512}, {1, 1, 4}}, {{9, 37, 130}, {4, 8, 64}, {1, 2, 3}},
      {{20, 6, 33}, {4, 6, 32}, {2, 1, 2}},   {{2, 150, 90}, {1, 32, 32}, {1, 2, 3}},
      {{64, 1, 40}, {16, 1, 40}, {1, 1, 1}},
  };
  return all;
}

/// What the host functions make of a segment.
template <class W>
struct Expected {
  SegmentMask mask;
  Vector<std::uint8_t> stored;
  std::vector<typename W::Word> copy;

  Expected(const MaskedArray<W>& array, std::uint64_t segment) {
    const ConstBox3 box = array.box(segment);
    RepeatedRule rule = array.rule;
    rule.views = array.rules.views.all();
    auto found = find_specials(box, W::kDtype, array.fills, rule);
    EXPECT_TRUE(found.ok());
    mask = std::move(found).value();
    EXPECT_TRUE(encode_mask(mask, box.extents, W::kDtype, stored, rule.views, rule.form).ok());
    copy.resize(box.elems());
    const auto strides = std::array<std::uint64_t, 2>{box.extents[1] * box.extents[2], box.extents[2]};
    std::size_t at = 0;
    for (std::uint64_t i = 0; i < box.extents[0]; ++i) {
      for (std::uint64_t y = 0; y < box.extents[1]; ++y) {
        const auto* row = static_cast<const typename W::Word*>(box.data) + i * box.strides[0] + y * box.strides[1];
        std::copy(row, row + box.extents[2], copy.data() + at);
        at += box.extents[2];
      }
    }
    EXPECT_TRUE(fill_gaps({copy.data(), box.extents, strides}, W::kDtype, mask).ok());
  }
};

class MaskCudaTest : public quern::testing::CudaTest {
 protected:
  /// Scans, lists, masks in rounds of a few slots; compares everything and gives the masks that pay, back to back.
  template <class W>
  void encode(const MaskedArray<W>& array, std::vector<kernels::StoredMask>& masks, std::vector<std::uint8_t>& bytes) {
    using Word = typename W::Word;
    constexpr std::uint32_t kSlots = 4;
    const auto segments = static_cast<std::uint32_t>(array.grid.segments());
    ASSERT_TRUE(kernels::mask_cuda_serves(W::kElement, array.grid));
    const std::size_t slot_bytes = kernels::mask_slot_bytes(W::kElement, array.grid);
    std::size_t workspace_bytes = 0;
    ASSERT_EQ(kernels::mask_workspace(W::kElement, array.grid, kWarps, kSlots, array.rules.by_levels, workspace_bytes),
              cudaSuccess);
    Stream stream;
    DeviceBuffer<Word> in(array.words);
    DeviceBuffer<kernels::SegmentScan> scans(segments);
    DeviceBuffer<std::uint32_t> list(segments), listed(1);
    DeviceBuffer<kernels::MaskSlotInfo> infos(kSlots);
    DeviceBuffer<std::uint8_t> stored(kSlots * slot_bytes), copies(kSlots * slot_bytes), workspace(workspace_bytes);
    const kernels::MaskSlots slots{kSlots, infos.data(), stored.data(), copies.data()};
    ASSERT_EQ(kernels::mask_scan_async(array.rules, array.grid, in.data(), scans.data(), stream), cudaSuccess);
    ASSERT_EQ(kernels::mask_list_async(array.rules, array.grid, scans.data(), list.data(), listed.data(), stream),
              cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    std::vector<std::uint32_t> wanted;
    const auto found = scans.get();
    for (std::uint32_t s = 0; s < segments; ++s) {
      const kernels::ScanCounts counts = array.scan(s);
      EXPECT_EQ(found[s].mandatory != 0, counts.any_mandatory);
      EXPECT_EQ(found[s].negative_zeros, counts.negative_zeros);
      EXPECT_EQ(found[s].equal_pairs, counts.equal_pairs);
      if (counts.any_mandatory || may_have_repeated(array.rules.repeated, counts, array.box(s).elems()))
        wanted.push_back(s);
    }
    ASSERT_EQ(listed.get()[0], wanted.size());
    ASSERT_EQ(list.get(wanted.size()), wanted);

    for (std::uint32_t first = 0; first < segments; first += kSlots) {
      ASSERT_EQ(kernels::mask_encode_async(array.rules, array.grid, in.data(), scans.data(), list.data(), listed.data(),
                                           first, slots, kWarps, workspace.data(), workspace_bytes, stream),
                cudaSuccess);
      ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      const auto info = infos.get();
      const auto all_stored = stored.get();
      const auto all_copies = copies.get();
      for (std::uint32_t k = 0; k < kSlots; ++k) {
        if (first + k >= wanted.size()) {
          ASSERT_EQ(info[k].segment, kernels::kNoSegment);
          continue;
        }
        SCOPED_TRACE("segment " + std::to_string(wanted[first + k]));
        ASSERT_EQ(info[k].segment, wanted[first + k]);
        const Expected<W> expected(array, info[k].segment);
        ASSERT_EQ(info[k].masked, expected.mask.masked);
        const std::uint64_t raw = expected.copy.size() * sizeof(Word);
        if (expected.stored.size() > raw) {
          ASSERT_GT(info[k].stored_bytes, raw);
          continue;
        }
        ASSERT_EQ(info[k].stored_bytes, expected.stored.size());
        const auto* own = all_stored.data() + k * slot_bytes;
        ASSERT_TRUE(std::equal(expected.stored.begin(), expected.stored.end(), own));
        if (expected.mask.empty()) continue;
        std::vector<Word> copy(expected.copy.size());
        std::memcpy(copy.data(), all_copies.data() + k * slot_bytes, raw);
        ASSERT_EQ(copy, expected.copy);
        ASSERT_EQ(info[k].masked_chunks, chunks_without_valid(array, info[k].segment, expected.mask));
        masks.push_back({bytes.size(), expected.stored.size(), info[k].segment});
        bytes.insert(bytes.end(), expected.stored.begin(), expected.stored.end());
      }
    }
  }

  template <class W>
  static std::uint64_t chunks_without_valid(const MaskedArray<W>& array, std::uint32_t segment,
                                            const SegmentMask& mask) {
    const auto e = array.box(segment).extents;
    const auto& chunk = array.grid.chunk;
    const std::uint64_t along_y = (e[1] + chunk[1] - 1) / chunk[1], along_x = (e[2] + chunk[2] - 1) / chunk[2];
    std::uint64_t chunks = (e[0] + chunk[0] - 1) / chunk[0] * along_y * along_x;
    std::uint64_t without = chunks == 64 ? ~UINT64_C(0) : (UINT64_C(1) << chunks) - 1;
    for (std::uint64_t cell = 0; cell < mask.classes.size(); ++cell) {
      const std::uint64_t k =
          (cell / e[2] / e[1] / chunk[0] * along_y + cell / e[2] % e[1] / chunk[1]) * along_x + cell % e[2] / chunk[2];
      if (mask.classes[cell] == 0) without &= ~(UINT64_C(1) << k);
    }
    return without;
  }

  template <class W>
  std::vector<MaskDamage> decode(const SegmentGrid& grid, const std::vector<std::uint8_t>& bytes,
                                 const std::vector<kernels::StoredMask>& masks, std::vector<typename W::Word>& words) {
    std::size_t workspace_bytes = 0;
    EXPECT_EQ(kernels::mask_workspace(W::kElement, grid, kWarps, static_cast<std::uint32_t>(masks.size()), true,
                                      workspace_bytes),
              cudaSuccess);
    Stream stream;
    DeviceBuffer<typename W::Word> out(words);
    DeviceBuffer<std::uint8_t> in(bytes), workspace(workspace_bytes);
    DeviceBuffer<kernels::StoredMask> device_masks(masks);
    DeviceBuffer<MaskDamage> damage(masks.size());
    EXPECT_EQ(kernels::mask_decode_async(W::kElement, grid, in.data(), bytes.size(), device_masks.data(),
                                         static_cast<std::uint32_t>(masks.size()), true, out.data(), damage.data(),
                                         kWarps, workspace.data(), workspace_bytes, stream),
              cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    words = out.get();
    return damage.get();
  }

  template <class W>
  void round_trip(const SegmentGrid& grid, unsigned first_scene, std::uint64_t seed) {
    SCOPED_TRACE("scene " + std::to_string(first_scene) + " seed " + std::to_string(seed) + " " +
                 dtype_name(W::kDtype));
    const MaskedArray<W> array(grid, first_scene, seed);
    std::vector<kernels::StoredMask> masks;
    std::vector<std::uint8_t> bytes;
    encode(array, masks, bytes);
    ASSERT_EQ(simt::failure(), "");
    if (HasFatalFailure() || masks.empty()) return;
    auto words = array.words;  // special values are lost where there is a mask
    for (const auto& m : masks) {
      const Expected<W> expected(array, m.segment);
      const auto s = kernels::lane_segment(grid, words.data(), m.segment);
      for (std::size_t cell = 0; cell < expected.copy.size(); ++cell)
        s.row(static_cast<std::uint32_t>(cell / s.cols()))[cell % s.cols()] = expected.copy[cell];
    }
    for (const MaskDamage damage : decode<W>(grid, bytes, masks, words)) ASSERT_EQ(damage, MaskDamage::none);
    ASSERT_EQ(words, array.words);
    ASSERT_EQ(simt::failure(), "");
  }
};

}  // namespace quern::mask
