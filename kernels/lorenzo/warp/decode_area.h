// Memory of one tile in the decoder, over an execution model X: stored bytes, then planes without their gaps, then
// codes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/lorenzo/tile_code.h"
#include "kernels/lorenzo/warp/tile.h"

namespace quern::kernels {

/// Codes lie in the order of the array: element `element` of run `run` of a tile. Runs begin at multiples of 16 bytes,
/// and lanes that reach 16 bytes of a run each, or a word of one run, meet no bank conflict.
inline constexpr unsigned kRunPitch = kLanes + 4;
inline constexpr unsigned kCodeCells = kRows * kRunPitch;
[[gnu::always_inline]] constexpr unsigned code_cell(unsigned run, unsigned element) {
  return run * kRunPitch + element;
}

/// Planes of a group of eight, plane 0 and the one behind.
inline constexpr unsigned kPlaneSlots = 10;
/// Bytes of a plane in sparse form, at most.
inline constexpr std::uint32_t kMaxSparseBytes = 2 + 16 + static_cast<std::uint32_t>(kPlaneBytes);
inline constexpr std::uint32_t kMaxStagedBytes = 32 * kMaxSparseBytes;

/// N values that are stored or loaded at once.
template <class T, unsigned N>
struct alignas(N * sizeof(T)) LanePack {
  T at[N];
};
using LaneQuad = LanePack<std::uint32_t, 4>;

template <class Word>
struct alignas(16) LaneDecodeArea {
  /// Staged bytes begin anywhere in their first 16, and words behind their end are read.
  static constexpr unsigned kStageWords = (kMaxStagedBytes + 32) / 4;
  static constexpr unsigned kCells = sizeof(Word) / 4 * kCodeCells;
  std::uint32_t cells[kCells > kStageWords ? kCells : kStageWords];
  std::uint32_t slots[kPlaneSlots * kLanes];
};

}  // namespace quern::kernels
