// What is coded of a mask and under which models: planes, blocks, cells, values. docs/format-mask.md says it in the
// same order. Coder is RangeEncoder, RangeDecoder, or whatever else takes decisions one by one; classes are read when
// it encodes and written when it decodes.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/common/bits.h"
#include "kernels/entropy/range_coder.h"
#include "kernels/mask/segment.h"

namespace quern::kernels {

/// State of a block whose cells differ; other states are the class of all cells.
inline constexpr std::uint8_t kMixedBlock = 254;

/// Numbers of the models.
namespace mask_models {
inline constexpr unsigned kBlockKinds = 3;  // valid, special, mixed
inline constexpr unsigned kPlaneSame = 0;
inline constexpr unsigned kBlockSame = kPlaneSame + 2;
inline constexpr unsigned kBlockMixed = kBlockSame + kBlockKinds * 4;
inline constexpr unsigned kHits = 12, kTree = 32;  // a choice: hits, then the tree
inline constexpr unsigned kBlockChoice = kBlockMixed + 2 * kBlockKinds * kBlockKinds;
inline constexpr unsigned kCellChoice = kBlockChoice + kHits + kTree;
inline constexpr unsigned kCell2d = kCellChoice + kHits + kTree;
inline constexpr unsigned kCell3d = kCell2d + 768;
inline constexpr unsigned kVerbatimChanged = kCell3d + 768;
inline constexpr unsigned kCount = kVerbatimChanged + 8;
}  // namespace mask_models

using MaskModels = ModelTable<mask_models::kCount>;

/// The classes that a mask has.
struct MaskAlphabet {
  unsigned specials = 0;
  bool has_verbatim = false;

  constexpr unsigned size() const { return 1 + specials + (has_verbatim ? 1U : 0U); }
  constexpr std::uint8_t last_class() const {
    return has_verbatim ? kVerbatimClass : static_cast<std::uint8_t>(specials);
  }
};

/// Of the blocks left of and above a block: their states, and 1 where they were copied. Missing ones are mixed, and
/// copied.
struct BlockSides {
  std::uint8_t left = kMixedBlock;
  std::uint8_t up = kMixedBlock;
  std::uint8_t left_copied = 1;
  std::uint8_t up_copied = 1;
};

/// Cells around a cell in a plane without reference; compass points, letters repeated for two steps.
struct CellSides2d {
  std::uint8_t w, n, nw, ne, ww, nn, nee, nne, nnw;
};
/// Cells around a cell in a plane with a reference, of which the last four are.
struct CellSides3d {
  std::uint8_t w, n, nw, ne, nn, rw, r, re, rs;
};

template <class Coder>
class MaskSymbols {
 public:
  constexpr MaskSymbols(Coder& coder, const MaskAlphabet& alphabet)
      : coder_(coder), classes_(alphabet.size()), last_class_(alphabet.last_class()) {}

  /// Whether a plane equals its reference; `before` is the answer for the plane before that had one.
  constexpr unsigned plane_same(unsigned before, unsigned equal) {
    return coder_.bit(mask_models::kPlaneSame + before, equal);
  }

  /// State of a block. With a reference, `there` is the state of the same block in it, and `equal` says that all cells
  /// agree; `copied` becomes 1 when they are taken from there. False for a class that does not exist.
  constexpr bool block(bool with_reference, std::uint8_t there, bool equal, const BlockSides& sides,
                       std::uint8_t& state, std::uint8_t& copied) {
    copied = 0;
    if (with_reference) {
      const unsigned model = mask_models::kBlockSame + (kind(there) * 2 + sides.left_copied) * 2 + sides.up_copied;
      copied = static_cast<std::uint8_t>(coder_.bit(model, equal));
      if (copied != 0) {
        state = there;
        return true;
      }
    }
    const unsigned surroundings =
        ((with_reference ? 1U : 0U) * mask_models::kBlockKinds + kind(sides.left)) * mask_models::kBlockKinds +
        kind(sides.up);
    if (coder_.bit(mask_models::kBlockMixed + surroundings, state == kMixedBlock) != 0) {
      state = kMixedBlock;
      return true;
    }
    return choice<2>({sides.left, sides.up}, mask_models::kBlockChoice, kMixedBlock, state);
  }

  constexpr bool cell(std::uint8_t& value, const CellSides2d& s) {
    const unsigned context = bits_equal(s.w, s.n, s.nw, s.ne, s.ww, s.nn, s.nee, s.nne, s.nnw);
    return cell<4>(value, mask_models::kCell2d + first_context(s.w) + context, {s.w, s.n, s.ne, s.nw});
  }
  constexpr bool cell(std::uint8_t& value, const CellSides3d& s) {
    const unsigned context = bits_equal(s.w, s.n, s.nw, s.ne, s.nn, s.rw, s.r, s.re, s.rs);
    return cell<6>(value, mask_models::kCell3d + first_context(s.w) + context, {s.w, s.r, s.n, s.ne, s.re, s.rs});
  }

  /// One verbatim value of `bytes` bytes, highest byte first: equal to that of the value before, or eight bits.
  constexpr std::uint64_t verbatim(std::uint64_t value, std::uint64_t before, std::size_t bytes) {
    std::uint64_t result = 0;
    for (std::size_t b = bytes; b-- > 0;) {
      const auto byte = static_cast<unsigned>((value >> (8 * b)) & 0xFF);
      const auto last = static_cast<unsigned>((before >> (8 * b)) & 0xFF);
      const bool changed = coder_.bit(mask_models::kVerbatimChanged + static_cast<unsigned>(b), byte != last) != 0;
      result |= static_cast<std::uint64_t>(changed ? coder_.direct(8, byte) : last) << (8 * b);
    }
    return result;
  }

 private:
  static constexpr unsigned kind(std::uint8_t state) { return state == 0 ? 0 : (state == kMixedBlock ? 2 : 1); }
  static constexpr unsigned first_context(std::uint8_t w) { return 256U * std::min<unsigned>(w, 2); }

  template <class... Sides>
  static constexpr unsigned bits_equal(std::uint8_t w, Sides... sides) {
    unsigned bits = 0;
    ((bits = 2 * bits + (sides == w ? 1U : 0U)), ...);
    return bits;
  }

  // A cell is equal to its left neighbour (candidates[0]), or one of the other candidates, or any class.
  template <std::size_t kCount>
  constexpr bool cell(std::uint8_t& value, unsigned model, const std::array<std::uint8_t, kCount>& candidates) {
    const std::uint8_t w = candidates[0];
    if (coder_.bit(model, value != w) == 0) {
      value = w;
      return true;
    }
    if (classes_ == 2) {
      value = w == 0 ? last_class_ : 0;
      return true;
    }
    return choice<kCount>(candidates, mask_models::kCellChoice, w, value);
  }

  // Finds `value` among the candidates, skipping repetitions and `excluded`; failing that, its number bit by bit.
  template <std::size_t kCount>
  constexpr bool choice(const std::array<std::uint8_t, kCount>& candidates, unsigned models, std::uint8_t excluded,
                        std::uint8_t& value) {
    const bool found = [&]<std::size_t... k>(std::index_sequence<k...>) {
      return (is_candidate<k>(candidates, models, excluded, value) || ...);
    }
    (std::make_index_sequence<kCount>{});
    return found || any_class(models + mask_models::kHits, value);
  }
  template <std::size_t k, std::size_t kCount>
  constexpr bool is_candidate(const std::array<std::uint8_t, kCount>& candidates, unsigned models,
                              std::uint8_t excluded, std::uint8_t& value) {
    const std::uint8_t c = candidates[k];
    bool skip = c == excluded || c == kMixedBlock;
    [&]<std::size_t... j>(std::index_sequence<j...>) { ((skip = skip || candidates[j] == c), ...); }
    (std::make_index_sequence<k>{});
    if (skip || coder_.bit(models + 2 * static_cast<unsigned>(k) + (c != 0 ? 1U : 0U), value != c) != 0) return false;
    value = c;
    return true;
  }
  constexpr bool any_class(unsigned tree, std::uint8_t& value) {
    const auto width = bit_length(classes_ - 1);
    const unsigned number = value == kVerbatimClass ? classes_ - 1 : value;
    unsigned node = 1;
    for (unsigned b = width; b-- > 0;) node = 2 * node + coder_.bit(tree + node, (number >> b) & 1U);
    const unsigned decoded = node - (1U << width);
    if (decoded >= classes_) return false;
    value = decoded + 1 == classes_ ? last_class_ : static_cast<std::uint8_t>(decoded);
    return true;
  }

  Coder& coder_;
  unsigned classes_;
  std::uint8_t last_class_;
};

/// Numbers of special values, whether there are verbatim ones, and the reference distance. False for numbers of special
/// values that no mask has.
template <class Coder>
constexpr bool code_head(Coder& coder, MaskAlphabet& alphabet, std::uint64_t& reference) {
  alphabet.specials = coder.direct(5, alphabet.specials);
  alphabet.has_verbatim = coder.direct(1, alphabet.has_verbatim ? 1 : 0) != 0;
  reference = coder.direct(6, static_cast<unsigned>(reference - 1)) + 1;
  return alphabet.specials <= kMaxSpecials && (alphabet.specials > 0 || alphabet.has_verbatim);
}

/// Bytes of a value, highest first, eight equiprobable bits each.
template <class Coder>
constexpr std::uint64_t code_word(Coder& coder, std::uint64_t value, std::size_t bytes) {
  std::uint64_t result = 0;
  for (std::size_t b = bytes; b-- > 0;) {
    result = (result << 8) | coder.direct(8, static_cast<unsigned>((value >> (8 * b)) & 0xFF));
  }
  return result;
}

/// How planes are cut into blocks of up to 64 cells: 8 x 8, or longer where the box is narrow.
struct BlockGrid {
  std::uint64_t rows = 8;  ///< of a block
  std::uint64_t cols = 8;

  /// Of planes of n1 x n2 cells.
  constexpr BlockGrid(std::uint64_t n1, std::uint64_t n2) {
    const auto wide = [](std::uint64_t n) {
      return n >= 64 ? UINT64_C(64) : UINT64_C(1) << bit_length(n < 2 ? UINT64_C(0) : n - 1);
    };
    rows = std::min<std::uint64_t>(8, wide(n1));
    cols = std::min<std::uint64_t>(64 / rows, wide(n2));
    rows = std::min<std::uint64_t>(64 / cols, wide(n1));
  }
  constexpr std::uint64_t along_y(std::uint64_t n1) const { return (n1 + rows - 1) / rows; }
  constexpr std::uint64_t along_x(std::uint64_t n2) const { return (n2 + cols - 1) / cols; }
};

}  // namespace quern::kernels
