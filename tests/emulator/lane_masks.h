// Masks of segments through the code that warps run, on the emulator: what the CUDA kernels do for one segment.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <quern/status.h>

#include "kernels/mask/levels/constants.h"
#include "kernels/mask/warp/decode.h"
#include "kernels/mask/warp/find.h"
#include "kernels/mask/warp/level_decode.h"
#include "kernels/mask/warp/level_encode.h"
#include "tests/emulator/lane_emulator.h"

namespace quern::testing {

/// Memory of a warp, shared and other, watched and full of noise.
template <class Shared, class Layout>
class LaneRoom {
 public:
  explicit LaneRoom(const Layout& layout) : layout_(layout), words_(kSharedWords + (layout_.bytes() + 7) / 8) {
    for (std::uint64_t& word : words_) word = EmulatorState::instance().random();
    EmulatorState::instance().watch(words_.data(), words_.size() * sizeof(std::uint64_t));
  }
  ~LaneRoom() { EmulatorState::instance().watch(nullptr, 0); }

  Shared& shared() { return *reinterpret_cast<Shared*>(words_.data()); }
  auto memory() { return layout_.place(reinterpret_cast<std::uint8_t*>(words_.data() + kSharedWords)); }

 private:
  static constexpr std::size_t kSharedWords = (sizeof(Shared) + 15) / 16 * 2;
  Layout layout_;
  std::vector<std::uint64_t> words_;
};

/// For one segment.
class LaneMaskRoom : public LaneRoom<kernels::LaneMaskShared, kernels::LaneMaskLayout> {
 public:
  explicit LaneMaskRoom(const kernels::SegmentExtents& e) : LaneRoom(kernels::LaneMaskLayout(e)) {}
};
/// For one mask that is coded by levels.
using LaneLevelRoom = LaneRoom<kernels::LaneLevelShared, kernels::LaneLevelLayout>;
/// And for one that is found and written.
using LaneLevelMaskRoom = LaneRoom<kernels::LaneLevelMaskShared, kernels::LaneLevelMaskLayout>;

/// A segment inside an array.
template <class Word>
kernels::LaneSegment<Word> lane_segment(Word* cells, const kernels::SegmentExtents& e,
                                        const std::array<std::uint64_t, 2>& strides) {
  kernels::LaneSegment<Word> segment;
  segment.cells = cells;
  for (std::size_t a = 0; a < 3; ++a) segment.extents[a] = static_cast<std::uint32_t>(e[a]);
  segment.strides[0] = strides[0];
  segment.strides[1] = strides[1];
  return segment;
}

/// What a warp made of a segment.
template <class Word>
struct LaneMaskOutcome {
  kernels::LaneMaskResult result;
  std::vector<std::uint64_t> specials;
  std::vector<std::uint8_t> classes;
  std::vector<std::uint8_t> stored;
  std::vector<Word> copy;
};

template <class Word>
LaneMaskOutcome<Word> mask_on_lanes(const kernels::LaneSegment<const Word>& segment,
                                    const kernels::LaneMaskRules& rules, const kernels::ScanCounts& counts,
                                    std::uint64_t capacity) {
  const kernels::SegmentExtents extents{segment.extents[0], segment.extents[1], segment.extents[2]};
  LaneMaskOutcome<Word> outcome;
  outcome.stored.assign(capacity, 0xA5);
  outcome.copy.assign(segment.elems(), static_cast<Word>(0xA5));
  const auto take = [&](const std::uint64_t* specials, const std::uint8_t* classes) {
    const kernels::LaneMaskCounts& mask = outcome.result.mask;
    outcome.specials.assign(specials, specials + mask.specials);
    if (mask.masked != 0) outcome.classes.assign(classes, classes + segment.elems());
    if (outcome.result.stored_bytes <= capacity) outcome.stored.resize(outcome.result.stored_bytes);
  };
  if (rules.by_levels) {
    LaneLevelMaskRoom room{kernels::LaneLevelMaskLayout(extents)};
    const auto memory = room.memory();
    outcome.result = kernels::level_mask_lanes<LaneEmulator, Word>(segment, rules, counts, room.shared(), memory,
                                                                   kernels::kLevelConstants, outcome.stored.data(),
                                                                   capacity, outcome.copy.data());
    take(room.shared().mask.specials, memory.mask.classes);
  } else {
    LaneMaskRoom room(extents);
    const kernels::LaneMaskMemory memory = room.memory();
    outcome.result = kernels::mask_lanes<LaneEmulator, Word>(segment, rules, counts, room.shared(), memory,
                                                             outcome.stored.data(), capacity, outcome.copy.data());
    take(room.shared().specials, memory.classes);
  }
  return outcome;
}

/// The stored form by levels of a mask that is known: its verbatim values are in the segment. `bytes` says how many it
/// has; no more than `capacity` are written.
template <class Word>
std::vector<std::uint8_t> store_levels_on_lanes(const kernels::LaneSegment<const Word>& segment,
                                                const kernels::LaneMaskCounts& mask,
                                                std::span<const std::uint64_t> specials,
                                                std::span<const std::uint8_t> classes,
                                                std::span<const kernels::MaskView> views, std::uint64_t capacity,
                                                std::uint64_t& bytes) {
  LaneLevelMaskRoom room{kernels::LaneLevelMaskLayout({segment.extents[0], segment.extents[1], segment.extents[2]})};
  const auto memory = room.memory();
  std::copy(specials.begin(), specials.end(), room.shared().mask.specials);
  std::copy(classes.begin(), classes.end(), memory.mask.classes);
  std::vector<std::uint8_t> out(capacity);
  kernels::LaneLevelWriter<LaneEmulator, Word> writer(segment, mask, views, room.shared(), memory,
                                                      kernels::kLevelConstants);
  bytes = writer.write(out.data(), capacity);
  if (bytes < capacity) out.resize(bytes);
  return out;
}

/// The stored form of a mask that is known: its verbatim values are in the segment. At most `capacity` bytes of it.
template <class Word>
std::vector<std::uint8_t> store_on_lanes(const kernels::LaneSegment<const Word>& segment,
                                         const kernels::LaneMaskCounts& mask, std::span<const std::uint64_t> specials,
                                         std::span<const std::uint8_t> classes,
                                         std::span<const kernels::MaskView> views, std::uint64_t capacity,
                                         std::uint64_t& bytes) {
  LaneMaskRoom room({segment.extents[0], segment.extents[1], segment.extents[2]});
  const kernels::LaneMaskMemory memory = room.memory();
  std::copy(specials.begin(), specials.end(), room.shared().specials);
  std::copy(classes.begin(), classes.end(), memory.classes);
  std::vector<std::uint8_t> out(capacity);
  bytes = kernels::LaneMaskEncoder<LaneEmulator, const Word, kernels::BoundedBytes>(
              segment, mask, views, room.shared(), memory, kernels::BoundedBytes(out.data(), capacity))
              .write();
  if (bytes < capacity) out.resize(bytes);
  return out;
}

/// What a warp says of bytes that the host refuses so.
inline kernels::MaskDamage damage_of(StatusCode code) {
  switch (code) {
    case StatusCode::ok: return kernels::MaskDamage::none;
    case StatusCode::truncated: return kernels::MaskDamage::truncated;
    case StatusCode::trailing_data: return kernels::MaskDamage::trailing;
    default: return kernels::MaskDamage::corrupt;
  }
}

/// Restores special values over the segment's cells, which may be strided. `may_be_levels`: the stream says so.
template <class Word>
kernels::MaskDamage restore_on_lanes(const kernels::LaneSegment<Word>& segment, std::span<const std::uint8_t> stored,
                                     bool may_be_levels = false) {
  if (may_be_levels && kernels::read_view(stored.data(), stored.size(), segment.planes(), true).by_levels) {
    LaneLevelRoom room{kernels::LaneLevelLayout(segment.elems())};
    const kernels::LaneLevelMemory memory = room.memory();
    const auto bytes = lane_segment(reinterpret_cast<std::uint8_t*>(segment.cells),
                                    {segment.extents[0], segment.extents[1], segment.extents[2]},
                                    {segment.strides[0], segment.strides[1]});
    return kernels::LaneLevelMask<LaneEmulator>(bytes, sizeof(Word), room.shared(), memory, kernels::kLevelConstants,
                                                stored.data(), stored.size())
        .restore();
  }
  LaneMaskRoom room({segment.extents[0], segment.extents[1], segment.extents[2]});
  const kernels::LaneMaskMemory memory = room.memory();
  return kernels::LaneMaskDecoder<LaneEmulator, Word>(segment, room.shared(), memory, stored.data(), stored.size())
      .restore();
}

}  // namespace quern::testing
