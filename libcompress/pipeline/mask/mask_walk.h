// The one walk over a mask that encoder and decoder share: planes, blocks, cells, then verbatim values.
// `Coder` is BinaryEncoder or BinaryDecoder; the walk reads classes when it encodes and writes them when it decodes.
// docs/format-mask.md describes what is coded here, in the same order.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

#include <quern/memory.h>

#include "libcompress/pipeline/mask/binary_coder.h"
#include "libcompress/pipeline/mask/mask.h"

namespace quern::mask {

/// What both sides know before the walk begins.
struct WalkShape {
  Extents extents{1, 1, 1};
  std::uint64_t block_rows = 8;
  std::uint64_t block_cols = 8;
  std::uint64_t reference = 1;  ///< distance of the reference plane
  std::size_t specials = 0;
  bool has_verbatim = false;

  /// Blocks hold up to 64 cells: 8 x 8, or longer where the box is narrow.
  void set_extents(const Extents& e) {
    extents = e;
    const auto wide = [](std::uint64_t n) {
      return n >= 64 ? UINT64_C(64) : std::bit_ceil(std::max<std::uint64_t>(n, 1));
    };
    block_rows = std::min<std::uint64_t>(8, wide(e[1]));
    block_cols = std::min<std::uint64_t>(64 / block_rows, wide(e[2]));
    block_rows = std::min<std::uint64_t>(64 / block_cols, wide(e[1]));
  }
  std::uint64_t grid_rows() const { return (extents[1] + block_rows - 1) / block_rows; }
  std::uint64_t grid_cols() const { return (extents[2] + block_cols - 1) / block_cols; }
  std::uint64_t plane_cells() const { return extents[1] * extents[2]; }
};

template <class Coder>
class Walk {
 public:
  using Cell = std::conditional_t<Coder::kDecodes, std::uint8_t, const std::uint8_t>;

  Walk(Coder& coder, const WalkShape& shape)
      : coder_(coder),
        shape_(shape),
        alphabet_(static_cast<unsigned>(1 + shape.specials + (shape.has_verbatim ? 1 : 0))),
        pitch_(shape.extents[2] + 2 * kPad),
        grid_cols_(shape.grid_cols()),
        states_(shape.grid_rows() * grid_cols_),
        copied_(states_.size()),
        plane_((shape.extents[1] + kPad) * pitch_) {
    open_.reserve(grid_cols_);
  }

  /// Bytes that the walk allocates.
  static std::uint64_t scratch_bytes(const WalkShape& shape) {
    return (shape.extents[1] + kPad) * (shape.extents[2] + 2 * kPad) + 2 * shape.grid_rows() * shape.grid_cols() +
           8 * shape.grid_cols();
  }

  /// Codes all classes. False when a decoder meets a class that does not exist or runs out of bytes.
  bool classes(std::span<Cell> cells) {
    const std::uint64_t n = shape_.plane_cells();
    for (std::uint64_t i = 0; i < shape_.extents[0]; ++i) {
      const std::uint8_t* reference = nullptr;
      if (i > 0) reference = cells.data() + (i - (i >= shape_.reference ? shape_.reference : 1)) * n;
      if (!plane(cells.data() + i * n, reference)) return false;
    }
    return true;
  }

  /// Codes one verbatim value of `bytes` bytes, highest byte first: equal to the one before, or eight bits.
  std::uint64_t verbatim(std::uint64_t value, std::size_t bytes) {
    std::uint64_t result = 0;
    for (std::size_t b = bytes; b-- > 0;) {
      const auto byte = static_cast<unsigned>((value >> (8 * b)) & 0xFF);
      const auto last = static_cast<unsigned>((last_verbatim_ >> (8 * b)) & 0xFF);
      const bool changed = coder_.bit(verbatim_changed_[b], byte != last) != 0;
      result |= static_cast<std::uint64_t>(changed ? coder_.direct(8, byte) : last) << (8 * b);
    }
    last_verbatim_ = result;
    return result;
  }

 private:
  static constexpr std::uint64_t kPad = 2;        // columns left and right, rows above
  static constexpr std::uint8_t kMixed = 254;     // block state; others are the class of all cells
  static constexpr std::uint8_t kBlockKinds = 3;  // valid, special, mixed

  static unsigned kind(std::uint8_t state) { return state == 0 ? 0 : (state == kMixed ? 2 : 1); }
  std::uint8_t* row(std::uint64_t y) { return plane_.data() + (y + kPad) * pitch_ + kPad; }

  bool plane(Cell* cells, const std::uint8_t* reference) {
    const std::uint64_t rows = shape_.extents[1], cols = shape_.extents[2];
    if (reference != nullptr) {
      const unsigned equal = Coder::kDecodes ? 0 : std::memcmp(cells, reference, rows * cols) == 0;
      last_plane_same_ = coder_.bit(plane_same_[last_plane_same_], equal);
      if (last_plane_same_ != 0) {
        if constexpr (Coder::kDecodes) std::memcpy(cells, reference, rows * cols);
        return true;
      }
    }
    if (!Coder::kDecodes) {
      for (std::uint64_t y = 0; y < rows; ++y) std::memcpy(row(y), cells + y * cols, cols);
    }
    if (!blocks(reference)) return false;
    for (std::uint64_t by = 0; by < shape_.grid_rows(); ++by) {
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
    const std::uint64_t y0 = by * shape_.block_rows, x0 = bx * shape_.block_cols;
    return {y0, std::min(y0 + shape_.block_rows, shape_.extents[1]), x0,
            std::min(x0 + shape_.block_cols, shape_.extents[2])};
  }

  // States of all blocks of a plane; uniform blocks and blocks copied from the reference plane are then known.
  bool blocks(const std::uint8_t* reference) {
    for (std::uint64_t by = 0; by < shape_.grid_rows(); ++by) {
      for (std::uint64_t bx = 0; bx < grid_cols_; ++bx) {
        if (!block(by, bx, reference)) return false;
      }
      if (Coder::kDecodes && !coder_in_bounds()) return false;
    }
    return true;
  }

  bool block(std::uint64_t by, std::uint64_t bx, const std::uint8_t* reference) {
    const BlockBox box = box_of(by, bx);
    const std::size_t at = by * grid_cols_ + bx;
    std::uint8_t state = Coder::kDecodes ? 0 : state_in_plane(box);
    copied_[at] = 0;
    if (reference != nullptr) {
      const std::uint8_t there = state_in(reference, box);
      const unsigned left = bx > 0 ? copied_[at - 1] : 1, up = by > 0 ? copied_[at - grid_cols_] : 1;
      const unsigned equal = Coder::kDecodes ? 0 : (state == there && equals(reference, box));
      copied_[at] = static_cast<std::uint8_t>(coder_.bit(block_same_[kind(there)][left][up], equal));
      if (copied_[at] != 0) {
        states_[at] = there;
        if (Coder::kDecodes) copy(reference, box);
        return true;
      }
    }
    const std::uint8_t left = bx > 0 ? states_[at - 1] : kMixed;
    const std::uint8_t up = by > 0 ? states_[at - grid_cols_] : kMixed;
    const unsigned mixed = coder_.bit(block_mixed_[reference != nullptr][kind(left)][kind(up)], state == kMixed);
    if (mixed != 0) {
      state = kMixed;
    } else if (!one_of({left, up}, block_class_, kMixed, state)) {
      return false;
    } else if (Coder::kDecodes) {
      for (std::uint64_t y = box.y0; y < box.y1; ++y) std::memset(row(y) + box.x0, state, box.x1 - box.x0);
    }
    states_[at] = state;
    return true;
  }

  // Cells of the mixed blocks of one block row, row by row across all of them: what lies above is always known.
  bool block_row_cells(std::uint64_t by, const std::uint8_t* reference) {
    const std::uint8_t* states = states_.data() + by * grid_cols_;
    const std::uint8_t* copied = copied_.data() + by * grid_cols_;
    open_.clear();
    for (std::uint64_t bx = 0; bx < grid_cols_; ++bx) {
      if (states[bx] == kMixed && copied[bx] == 0) open_.push_back(bx);
    }
    if (open_.empty()) return true;
    const std::uint64_t y1 = box_of(by, 0).y1;
    for (std::uint64_t y = by * shape_.block_rows; y < y1; ++y) {
      pad_around(y);
      for (const std::uint64_t bx : open_) {
        const BlockBox box = box_of(by, bx);
        const bool good = reference != nullptr ? cells_3d(y, box.x0, box.x1, reference) : cells_2d(y, box.x0, box.x1);
        if (!good) return false;
      }
      if (Coder::kDecodes && !coder_in_bounds()) return false;
    }
    return true;
  }

  // Cells outside the box: left of a row, the first cell of the row above; right of a row, its last cell; above, 0.
  void pad_around(std::uint64_t y) {
    const std::uint64_t cols = shape_.extents[2];
    for (std::uint64_t r = y >= 2 ? y - 2 : 0; r <= y; ++r) {
      std::memset(row(r) - kPad, r > 0 ? *row(r - 1) : 0, kPad);
      if (r < y) std::memset(row(r) + cols, row(r)[cols - 1], kPad);
    }
  }

  bool cells_2d(std::uint64_t y, std::uint64_t x0, std::uint64_t x1) {
    std::uint8_t* p = row(y);
    const std::uint8_t* n = p - pitch_;
    const std::uint8_t* nn = n - pitch_;
    for (auto x = static_cast<std::ptrdiff_t>(x0); x < static_cast<std::ptrdiff_t>(x1); ++x) {
      const std::uint8_t w = p[x - 1];
      const unsigned context = bits_equal(w, n[x], n[x - 1], n[x + 1], p[x - 2], nn[x], n[x + 2], nn[x + 1], nn[x - 1]);
      if (!cell(p[x], cell_2d_[first_context(w) + context], {w, n[x], n[x + 1], n[x - 1]})) return false;
    }
    return true;
  }

  bool cells_3d(std::uint64_t y, std::uint64_t x0, std::uint64_t x1, const std::uint8_t* reference) {
    const auto cols = static_cast<std::ptrdiff_t>(shape_.extents[2]);
    std::uint8_t* p = row(y);
    const std::uint8_t* n = p - pitch_;
    const std::uint8_t* nn = n - pitch_;
    const std::uint8_t* r = reference + y * shape_.extents[2];
    const std::uint8_t* rs = y + 1 < shape_.extents[1] ? r + cols : r;
    for (auto x = static_cast<std::ptrdiff_t>(x0); x < static_cast<std::ptrdiff_t>(x1); ++x) {
      const std::uint8_t w = p[x - 1], rw = r[x > 0 ? x - 1 : x], re = r[x + 1 < cols ? x + 1 : x];
      const unsigned context = bits_equal(w, n[x], n[x - 1], n[x + 1], nn[x], rw, r[x], re, rs[x]);
      if (!cell(p[x], cell_3d_[first_context(w) + context], {w, r[x], n[x], n[x + 1], re, rs[x]})) return false;
    }
    return true;
  }

  static unsigned first_context(std::uint8_t w) { return 256U * std::min<unsigned>(w, 2); }

  template <class... Neighbours>
  static unsigned bits_equal(std::uint8_t w, Neighbours... neighbours) {
    unsigned bits = 0;
    ((bits = 2 * bits + (neighbours == w ? 1U : 0U)), ...);
    return bits;
  }

  // A cell is equal to its left neighbour (candidates[0]), or one of the other candidates, or any class.
  template <std::size_t Count>
  bool cell(std::uint8_t& value, BitModel& model, const std::uint8_t (&candidates)[Count]) {
    const std::uint8_t w = candidates[0];
    if (coder_.bit(model, value != w) == 0) {
      value = w;
      return true;
    }
    if (alphabet_ == 2) {
      value = w == 0 ? last_class() : 0;
      return true;
    }
    return one_of(candidates, cell_class_, w, value);
  }

  // Finds `value` among the candidates, skipping repetitions and `excluded`; failing that, its number bit by bit.
  struct ChoiceModels {
    std::array<std::array<BitModel, 2>, 6> hit;
    std::array<BitModel, 32> tree;
  };
  template <std::size_t Count>
  bool one_of(const std::uint8_t (&candidates)[Count], ChoiceModels& models, std::uint8_t excluded,
              std::uint8_t& value) {
    for (std::size_t k = 0; k < Count; ++k) {
      const std::uint8_t c = candidates[k];
      bool skip = c == excluded || c == kMixed;
      for (std::size_t j = 0; j < k; ++j) skip = skip || candidates[j] == c;
      if (skip) continue;
      if (coder_.bit(models.hit[k][c != 0], value != c) == 0) {
        value = c;
        return true;
      }
    }
    const auto width = static_cast<unsigned>(std::bit_width(alphabet_ - 1));
    const unsigned number = value == kVerbatimClass ? alphabet_ - 1 : value;
    unsigned node = 1;
    for (unsigned b = width; b-- > 0;) node = 2 * node + coder_.bit(models.tree[node], (number >> b) & 1U);
    const unsigned decoded = node - (1U << width);
    if (decoded >= alphabet_) return false;
    value = decoded + 1 == alphabet_ ? last_class() : static_cast<std::uint8_t>(decoded);
    return true;
  }
  std::uint8_t last_class() const {
    return shape_.has_verbatim ? kVerbatimClass : static_cast<std::uint8_t>(alphabet_ - 1);
  }

  bool coder_in_bounds() const {
    if constexpr (Coder::kDecodes) return coder_.in_bounds();
    return true;
  }

  std::uint8_t state_in_plane(const BlockBox& box) { return state_of(row(box.y0) + box.x0, pitch_, box); }
  std::uint8_t state_in(const std::uint8_t* plane, const BlockBox& box) const {
    return state_of(plane + box.y0 * shape_.extents[2] + box.x0, shape_.extents[2], box);
  }
  static std::uint8_t state_of(const std::uint8_t* p, std::uint64_t pitch, const BlockBox& box) {
    const std::uint8_t first = *p;
    std::array<std::uint8_t, 64> same;
    std::memset(same.data(), first, same.size());
    for (std::uint64_t y = box.y0; y < box.y1; ++y, p += pitch) {
      if (std::memcmp(p, same.data(), box.x1 - box.x0) != 0) return kMixed;
    }
    return first;
  }
  bool equals(const std::uint8_t* plane, const BlockBox& box) {
    for (std::uint64_t y = box.y0; y < box.y1; ++y) {
      if (std::memcmp(row(y) + box.x0, plane + y * shape_.extents[2] + box.x0, box.x1 - box.x0) != 0) return false;
    }
    return true;
  }
  void copy(const std::uint8_t* plane, const BlockBox& box) {
    for (std::uint64_t y = box.y0; y < box.y1; ++y) {
      std::memcpy(row(y) + box.x0, plane + y * shape_.extents[2] + box.x0, box.x1 - box.x0);
    }
  }

  Coder& coder_;
  const WalkShape& shape_;
  unsigned alphabet_;
  std::uint64_t pitch_;
  std::uint64_t grid_cols_;
  Vector<std::uint8_t> states_;  // of the blocks of the plane under way
  Vector<std::uint8_t> copied_;  // 1: taken from the reference plane
  Vector<std::uint8_t> plane_;   // the plane under way with padding
  Vector<std::uint64_t> open_;   // mixed blocks of the block row under way
  unsigned last_plane_same_ = 0;
  std::uint64_t last_verbatim_ = 0;

  std::array<BitModel, 2> plane_same_;
  std::array<std::array<std::array<BitModel, 2>, 2>, kBlockKinds> block_same_;
  std::array<std::array<std::array<BitModel, kBlockKinds>, kBlockKinds>, 2> block_mixed_;
  ChoiceModels block_class_;
  ChoiceModels cell_class_;
  std::array<BitModel, 768> cell_2d_;
  std::array<BitModel, 768> cell_3d_;
  std::array<BitModel, 8> verbatim_changed_;
};

}  // namespace quern::mask
