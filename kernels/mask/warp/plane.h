// A plane of a mask as the lanes of a warp see it while it is coded: cells and what surrounds them, blocks, and the
// models that lie in shared memory.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/mask/warp/memory.h"

namespace quern::kernels {

/// Cells of a plane and around it, as the coder of a mask sees them.
template <class X>
struct LanePlane {
  const std::uint8_t* cells = nullptr;
  std::uint32_t rows = 0;
  std::uint32_t cols = 0;

  /// Above the plane 0; left of it the first cell of the row above; right of it the last cell of the row.
  [[gnu::always_inline]] constexpr std::uint8_t at(std::int32_t y, std::int32_t x, std::size_t lane) const {
    if (x < 0) {
      x = 0;
      --y;
    }
    if (y < 0) return 0;
    const auto last = static_cast<std::int32_t>(cols) - 1;
    const auto column = static_cast<std::uint32_t>(x > last ? last : x);
    return X::load(cells + static_cast<std::uint32_t>(y) * cols + column, lane);
  }
  /// Coordinates clamped to the plane.
  [[gnu::always_inline]] constexpr std::uint8_t clamped(std::int32_t y, std::int32_t x, std::size_t lane) const {
    const auto last_y = static_cast<std::int32_t>(rows) - 1, last_x = static_cast<std::int32_t>(cols) - 1;
    const auto row = static_cast<std::uint32_t>(y > last_y ? last_y : y);
    const auto column = static_cast<std::uint32_t>(x < 0 ? 0 : x > last_x ? last_x : x);
    return X::load(cells + row * cols + column, lane);
  }

  /// What surrounds cell (y, x), the two cells before it being known.
  [[gnu::always_inline]] constexpr CellSides2d sides(std::int32_t y, std::int32_t x, std::uint8_t w, std::uint8_t ww,
                                                     std::size_t lane) const {
    return {w,
            at(y - 1, x, lane),
            at(y - 1, x - 1, lane),
            at(y - 1, x + 1, lane),
            ww,
            at(y - 2, x, lane),
            at(y - 1, x + 2, lane),
            at(y - 2, x + 1, lane),
            at(y - 2, x - 1, lane)};
  }
  [[gnu::always_inline]] constexpr CellSides3d sides(const LanePlane& reference, std::int32_t y, std::int32_t x,
                                                     std::uint8_t w, std::size_t lane) const {
    return {w,
            at(y - 1, x, lane),
            at(y - 1, x - 1, lane),
            at(y - 1, x + 1, lane),
            at(y - 2, x, lane),
            reference.clamped(y, x - 1, lane),
            reference.clamped(y, x, lane),
            reference.clamped(y, x + 1, lane),
            reference.clamped(y + 1, x, lane)};
  }
};

/// How a plane is cut into blocks, in 32 bits.
struct LaneBlocks {
  std::uint32_t rows;   ///< of a block
  std::uint32_t cols;   ///< of a block; a power of two
  std::uint32_t down;   ///< blocks of a plane along y
  std::uint32_t along;  ///< and along x

  constexpr explicit LaneBlocks(const MaskPlanes& planes) {
    const BlockGrid grid(planes.rows, planes.cols);
    rows = static_cast<std::uint32_t>(grid.rows);
    cols = static_cast<std::uint32_t>(grid.cols);
    down = static_cast<std::uint32_t>(grid.along_y(planes.rows));
    along = static_cast<std::uint32_t>(grid.along_x(planes.cols));
  }
  /// Of a plane that may have fewer rows than others.
  constexpr void fit(std::uint32_t plane_rows) { down = (plane_rows + rows - 1) / rows; }
  constexpr std::uint32_t count() const { return down * along; }
};

/// Models in memory that lanes share, as one lane reaches them.
template <class X>
class LaneModels {
 public:
  constexpr explicit LaneModels(MaskModels& table) : table_(&table) {}
  [[gnu::always_inline]] constexpr BitModel load(unsigned model) const { return X::load(table_->models + model, 0); }
  [[gnu::always_inline]] constexpr void store(unsigned model, BitModel value) const {
    X::store(table_->models + model, 0, value);
  }
  [[gnu::always_inline]] constexpr std::uint32_t rate(unsigned age) const { return X::load(table_->rates + age, 0); }

 private:
  MaskModels* table_;
};

/// The same, all of them fresh.
template <class X>
constexpr LaneModels<X> fresh_models(MaskModels& table) {
  X::sync();
  X::lanes([&](auto lane) {
    for (auto k = static_cast<unsigned>(lane); k < MaskModels::kModels; k += kLanes) {
      X::store(table.models + k, lane, kFreshModel);
    }
    for (auto age = static_cast<unsigned>(lane); age < kModelAges; age += kLanes) {
      X::store(table.rates + age, lane, model_rate(age));
    }
  });
  X::sync();
  return LaneModels<X>(table);
}

/// What a block is in a plane and in its reference.
struct BlockStates {
  std::uint8_t here = 0;
  std::uint8_t there = 0;
  bool equal = false;  ///< all cells agree
};

/// As one lane finds out. `reference` may be null.
template <class X>
constexpr BlockStates block_states(const LanePlane<X>& plane, const std::uint8_t* reference, const LaneBlocks& blocks,
                                   std::uint32_t block, std::size_t lane) {
  const std::uint32_t y0 = block / blocks.along * blocks.rows, x0 = block % blocks.along * blocks.cols;
  const std::uint32_t y1 = y0 + blocks.rows < plane.rows ? y0 + blocks.rows : plane.rows;
  const std::uint32_t x1 = x0 + blocks.cols < plane.cols ? x0 + blocks.cols : plane.cols;
  const std::uint32_t first = y0 * plane.cols + x0;
  BlockStates s;
  s.here = X::load(plane.cells + first, lane);
  if (reference != nullptr) s.there = X::load(reference + first, lane);
  bool mixed_here = false, mixed_there = false, differ = reference == nullptr;
  for (std::uint32_t y = y0; y < y1; ++y) {
    for (std::uint32_t x = x0; x < x1; ++x) {
      const std::uint32_t at = y * plane.cols + x;
      const std::uint8_t here = X::load(plane.cells + at, lane);
      mixed_here |= here != s.here;
      if (reference == nullptr) continue;
      const std::uint8_t there = X::load(reference + at, lane);
      mixed_there |= there != s.there;
      differ |= here != there;
    }
  }
  if (mixed_here) s.here = kMixedBlock;
  if (mixed_there) s.there = kMixedBlock;
  s.equal = !differ;
  return s;
}

/// States and copies of the blocks left of and above a block.
template <class X>
[[gnu::always_inline]] constexpr BlockSides block_sides(const LaneMaskMemory& memory, const LaneBlocks& blocks,
                                                        std::uint32_t block, bool with_reference, std::size_t lane) {
  BlockSides sides;
  const bool left = block % blocks.along > 0, up = block >= blocks.along;
  if (left) sides.left = X::load(memory.states + block - 1, lane);
  if (up) sides.up = X::load(memory.states + block - blocks.along, lane);
  if (with_reference) {
    if (left) sides.left_copied = X::load(memory.copied + block - 1, lane);
    if (up) sides.up_copied = X::load(memory.copied + block - blocks.along, lane);
  }
  return sides;
}

/// Lists the blocks of block row `by` whose cells are coded one by one; returns their number.
template <class X>
constexpr std::uint32_t list_open(const LaneMaskMemory& memory, const LaneBlocks& blocks, std::uint32_t by) {
  std::uint32_t count = 0;
  for (std::uint32_t bx = 0; bx < blocks.along; bx += kLanes) {
    const std::uint32_t open = ballot_of<X>([&](auto lane) {
      const auto b = bx + static_cast<std::uint32_t>(lane);
      if (b >= blocks.along) return false;
      const std::uint32_t at = by * blocks.along + b;
      return X::load(memory.states + at, lane) == kMixedBlock && X::load(memory.copied + at, lane) == 0;
    });
    X::lanes([&](auto lane) {
      if ((open >> lane & 1) == 0) return;
      const auto place =
          count + static_cast<std::uint32_t>(popcount(open & first_lanes(static_cast<std::uint32_t>(lane))));
      X::store(memory.open + place, lane, bx + static_cast<std::uint32_t>(lane));
    });
    count += static_cast<std::uint32_t>(popcount(open));
  }
  X::sync();
  return count;
}

}  // namespace quern::kernels
