// The walk of one thread over the planes, blocks and cells of a mask, for encoder and decoder alike. Allocates nothing;
// the twin for warps is in kernels/mask/warp/encode.h and kernels/mask/warp/decode.h.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/mask/symbols.h"
#include "kernels/mask/view.h"
#include "kernels/mask/view_choice.h"

namespace quern::kernels {

/// What both sides know before the walk begins.
struct MaskShape {
  MaskPlanes planes;
  BlockGrid block;
  std::uint64_t reference = 1;  ///< distance of the reference plane
  MaskAlphabet alphabet;

  constexpr explicit MaskShape(const MaskPlanes& p) : planes(p), block(p.rows, p.cols) {}
  constexpr std::uint64_t grid_rows() const { return block.along_y(planes.rows); }
  constexpr std::uint64_t grid_cols() const { return block.along_x(planes.cols); }
};

/// Memory of a walk. Only `plane` must be zero before the first plane.
struct MaskWalkMemory {
  std::uint8_t* states = nullptr;  ///< of the blocks of the plane under way
  std::uint8_t* copied = nullptr;  ///< 1: taken from the reference plane
  std::uint8_t* plane = nullptr;   ///< the plane under way with padding
  std::uint64_t* open = nullptr;   ///< mixed blocks of the block row under way
};

/// Columns left and right of the plane under way, rows above it.
inline constexpr std::uint64_t kWalkPad = 2;

/// Elements of each part of the memory.
struct MaskWalkSizes {
  std::uint64_t blocks;  ///< of states, and of copied
  std::uint64_t plane;
  std::uint64_t open;

  constexpr explicit MaskWalkSizes(const MaskShape& shape)
      : blocks(shape.grid_rows() * shape.grid_cols()),
        plane((shape.planes.rows + kWalkPad) * (shape.planes.cols + 2 * kWalkPad)),
        open(shape.grid_cols()) {}
  constexpr std::uint64_t bytes() const { return 2 * blocks + plane + open * sizeof(std::uint64_t); }
  /// Enough for any view of that many cells: each axis of its planes has kLeastViewExtent places or more.
  static constexpr std::uint64_t bytes_of_views(std::uint64_t cells) {
    return 2 * most_view_blocks(cells) + cells * 15 / 8 + most_view_columns(cells) * sizeof(std::uint64_t);
  }
};

template <class Coder>
class MaskWalk {
 public:
  using Cell = std::conditional_t<Coder::kDecodes, std::uint8_t, const std::uint8_t>;

  MaskWalk(Coder& coder, const MaskShape& shape, const MaskWalkMemory& memory)
      : coder_(coder),
        symbols_(coder, shape.alphabet),
        shape_(shape),
        memory_(memory),
        pitch_(shape.planes.cols + 2 * kWalkPad),
        grid_cols_(shape.grid_cols()),
        rows_(shape.planes.rows) {}

  /// Codes all classes. False when a decoder meets a class that does not exist or the coder is no longer good.
  [[gnu::flatten]] bool classes(Cell* cells) {
    const std::uint64_t n = shape_.planes.plane_cells();
    for (std::uint64_t i = 0; i < shape_.planes.count(); ++i) {
      rows_ = shape_.planes.rows_of(i);
      const std::uint8_t* reference = nullptr;
      if (i > 0) reference = cells + reference_plane(i, shape_.reference) * n;
      if (!plane(cells + i * n, reference)) return false;
    }
    return true;
  }

 private:
  std::uint8_t* row(std::uint64_t y) { return memory_.plane + (y + kWalkPad) * pitch_ + kWalkPad; }

  bool plane(Cell* cells, const std::uint8_t* reference) {
    const std::uint64_t rows = rows_, cols = shape_.planes.cols;
    if (reference != nullptr) {
      const unsigned equal = Coder::kDecodes ? 0 : std::memcmp(cells, reference, rows * cols) == 0;
      last_plane_same_ = symbols_.plane_same(last_plane_same_, equal);
      if (last_plane_same_ != 0) {
        if constexpr (Coder::kDecodes) std::memcpy(cells, reference, rows * cols);
        return true;
      }
    }
    if (!Coder::kDecodes) {
      for (std::uint64_t y = 0; y < rows; ++y) std::memcpy(row(y), cells + y * cols, cols);
    }
    if (!blocks(reference)) return false;
    for (std::uint64_t by = 0; by * shape_.block.rows < rows_; ++by) {
      if (!block_row_cells(by, reference)) return false;
    }
    if constexpr (Coder::kDecodes) {
      for (std::uint64_t y = 0; y < rows; ++y) std::memcpy(cells + y * cols, row(y), cols);
    }
    return true;
  }

  struct BlockBox {
    std::uint64_t y0, y1, x0, x1;
  };
  BlockBox box_of(std::uint64_t by, std::uint64_t bx) const {
    const std::uint64_t y0 = by * shape_.block.rows, x0 = bx * shape_.block.cols;
    return {y0, std::min(y0 + shape_.block.rows, rows_), x0, std::min(x0 + shape_.block.cols, shape_.planes.cols)};
  }

  // States of all blocks of a plane; uniform blocks and blocks copied from the reference plane are then known.
  bool blocks(const std::uint8_t* reference) {
    for (std::uint64_t by = 0; by * shape_.block.rows < rows_; ++by) {
      for (std::uint64_t bx = 0; bx < grid_cols_; ++bx) {
        if (!block(by, bx, reference)) return false;
      }
      if (!coder_.good()) return false;
    }
    return true;
  }

  bool block(std::uint64_t by, std::uint64_t bx, const std::uint8_t* reference) {
    const BlockBox box = box_of(by, bx);
    const std::size_t at = by * grid_cols_ + bx;
    std::uint8_t state = Coder::kDecodes ? 0 : state_in_plane(box);
    std::uint8_t there = 0;
    bool equal = false;
    BlockSides sides;
    if (bx > 0) sides.left = memory_.states[at - 1];
    if (by > 0) sides.up = memory_.states[at - grid_cols_];
    if (reference != nullptr) {
      there = state_in(reference, box);
      if (!Coder::kDecodes) equal = state == there && equals(reference, box);
      if (bx > 0) sides.left_copied = memory_.copied[at - 1];
      if (by > 0) sides.up_copied = memory_.copied[at - grid_cols_];
    }
    std::uint8_t copied = 0;
    if (!symbols_.block(reference != nullptr, there, equal, sides, state, copied)) return false;
    memory_.states[at] = state;
    memory_.copied[at] = copied;
    if constexpr (Coder::kDecodes) {
      if (copied != 0) {
        copy(reference, box);
      } else if (state != kMixedBlock) {
        for (std::uint64_t y = box.y0; y < box.y1; ++y) std::memset(row(y) + box.x0, state, box.x1 - box.x0);
      }
    }
    return true;
  }

  // Cells of the mixed blocks of one block row, row by row across all of them: what lies above is always known.
  bool block_row_cells(std::uint64_t by, const std::uint8_t* reference) {
    const std::uint8_t* states = memory_.states + by * grid_cols_;
    const std::uint8_t* copied = memory_.copied + by * grid_cols_;
    std::uint64_t* end = memory_.open;
    for (std::uint64_t bx = 0; bx < grid_cols_; ++bx) {
      if (states[bx] == kMixedBlock && copied[bx] == 0) *end++ = bx;
    }
    if (end == memory_.open) return true;
    const std::uint64_t y1 = box_of(by, 0).y1;
    for (std::uint64_t y = by * shape_.block.rows; y < y1; ++y) {
      pad_around(y);
      for (const std::uint64_t* bx = memory_.open; bx != end; ++bx) {
        const BlockBox box = box_of(by, *bx);
        const bool good = reference != nullptr ? cells_3d(y, box.x0, box.x1, reference) : cells_2d(y, box.x0, box.x1);
        if (!good) return false;
      }
      if (!coder_.good()) return false;
    }
    return true;
  }

  // Cells outside the box: left of a row, the first cell of the row above; right of a row, its last cell; above, 0.
  void pad_around(std::uint64_t y) {
    const std::uint64_t cols = shape_.planes.cols;
    for (std::uint64_t r = y >= 2 ? y - 2 : 0; r <= y; ++r) {
      std::memset(row(r) - kWalkPad, r > 0 ? *row(r - 1) : 0, kWalkPad);
      if (r < y) std::memset(row(r) + cols, row(r)[cols - 1], kWalkPad);
    }
  }

  bool cells_2d(std::uint64_t y, std::uint64_t x0, std::uint64_t x1) {
    std::uint8_t* p = row(y);
    const std::uint8_t* n = p - pitch_;
    const std::uint8_t* nn = n - pitch_;
    for (auto x = static_cast<std::ptrdiff_t>(x0); x < static_cast<std::ptrdiff_t>(x1); ++x) {
      const CellSides2d sides{p[x - 1], n[x], n[x - 1], n[x + 1], p[x - 2], nn[x], n[x + 2], nn[x + 1], nn[x - 1]};
      if (!symbols_.cell(p[x], sides)) return false;
    }
    return true;
  }

  bool cells_3d(std::uint64_t y, std::uint64_t x0, std::uint64_t x1, const std::uint8_t* reference) {
    const auto cols = static_cast<std::ptrdiff_t>(shape_.planes.cols);
    std::uint8_t* p = row(y);
    const std::uint8_t* n = p - pitch_;
    const std::uint8_t* nn = n - pitch_;
    const std::uint8_t* r = reference + y * shape_.planes.cols;
    const std::uint8_t* rs = y + 1 < rows_ ? r + cols : r;
    for (auto x = static_cast<std::ptrdiff_t>(x0); x < static_cast<std::ptrdiff_t>(x1); ++x) {
      const CellSides3d sides{
          p[x - 1], n[x], n[x - 1], n[x + 1], nn[x], r[x > 0 ? x - 1 : x], r[x], r[x + 1 < cols ? x + 1 : x], rs[x]};
      if (!symbols_.cell(p[x], sides)) return false;
    }
    return true;
  }

  std::uint8_t state_in_plane(const BlockBox& box) { return state_of(row(box.y0) + box.x0, pitch_, box); }
  std::uint8_t state_in(const std::uint8_t* plane, const BlockBox& box) const {
    return state_of(plane + box.y0 * shape_.planes.cols + box.x0, shape_.planes.cols, box);
  }
  static std::uint8_t state_of(const std::uint8_t* p, std::uint64_t pitch, const BlockBox& box) {
    const std::uint8_t first = *p;
    std::array<std::uint8_t, 64> same;
    std::memset(same.data(), first, same.size());
    for (std::uint64_t y = box.y0; y < box.y1; ++y, p += pitch) {
      if (std::memcmp(p, same.data(), box.x1 - box.x0) != 0) return kMixedBlock;
    }
    return first;
  }
  bool equals(const std::uint8_t* plane, const BlockBox& box) {
    for (std::uint64_t y = box.y0; y < box.y1; ++y) {
      if (std::memcmp(row(y) + box.x0, plane + y * shape_.planes.cols + box.x0, box.x1 - box.x0) != 0) return false;
    }
    return true;
  }
  void copy(const std::uint8_t* plane, const BlockBox& box) {
    for (std::uint64_t y = box.y0; y < box.y1; ++y) {
      std::memcpy(row(y) + box.x0, plane + y * shape_.planes.cols + box.x0, box.x1 - box.x0);
    }
  }

  Coder& coder_;
  MaskSymbols<Coder> symbols_;
  const MaskShape& shape_;
  const MaskWalkMemory memory_;
  std::uint64_t pitch_;
  std::uint64_t grid_cols_;
  std::uint64_t rows_;  // of the plane under way
  unsigned last_plane_same_ = 0;
};

/// A mask as an encoder reads it.
struct MaskContents {
  const std::uint64_t* specials = nullptr;
  const std::uint8_t* classes = nullptr;
  const std::uint64_t* verbatim = nullptr;
  std::uint64_t verbatim_count = 0;
  std::size_t element_bytes = 0;
};

/// Writes a mask's stored form behind its view; stops where the coder is no longer good.
template <class Coder>
void write_mask(Coder& coder, const MaskShape& shape, const MaskWalkMemory& memory, const MaskContents& mask) {
  MaskAlphabet alphabet = shape.alphabet;
  std::uint64_t reference = shape.reference;
  code_head(coder, alphabet, reference);
  for (unsigned k = 0; k < alphabet.specials; ++k) code_word(coder, mask.specials[k], mask.element_bytes);
  MaskWalk<Coder> walk(coder, shape, memory);
  if (!walk.classes(mask.classes)) return;
  MaskSymbols<Coder> symbols(coder, alphabet);
  std::uint64_t before = 0;
  for (std::uint64_t i = 0; i < mask.verbatim_count && coder.good(); ++i) {
    before = symbols.verbatim(mask.verbatim[i], before, mask.element_bytes);
  }
  coder.finish();
}

/// Hash of the classes of a plane.
inline std::uint64_t plane_hash(const std::uint8_t* cells, std::uint64_t n) {
  std::uint64_t hash = 0, at = 0;
  for (; at + 8 <= n; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, cells + at, 8);
    hash += hashed_cells(word, at);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, cells + at, n - at);
  return hash + hashed_cells(rest, at);
}

/// The distance at which most planes are repeated; 1 unless another is better. `hashes` is memory for one a plane.
inline std::uint64_t best_reference(const std::uint8_t* classes, const MaskPlanes& planes, std::uint64_t* hashes) {
  const std::uint64_t count = planes.count(), plane_cells = planes.plane_cells();
  if (count < 3) return 1;
  for (std::uint64_t i = 0; i < count; ++i) {
    hashes[i] = plane_hash(classes + i * plane_cells, planes.rows_of(i) * planes.cols);
  }
  return most_equal_distance(hashes, count);
}

}  // namespace quern::kernels
