// Stored form of a mask, read by a warp: the same masks as the walk of one thread gives, the same bytes refused. One
// lane reads decisions, for each depends on those before it; all lanes find the states of reference blocks, fill blocks
// and planes that are known as a whole, and write special values back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/mask/warp/plane.h"
#include "kernels/mask/warp/restore.h"

namespace quern::kernels {

template <class X, class Word>
class LaneMaskDecoder {
 public:
  LaneMaskDecoder(const LaneMaskDecoder&) = delete;
  /// Any bytes. The segment has a cell, and fewer than kMaxLaneCells.
  constexpr LaneMaskDecoder(const LaneSegment<Word>& segment, LaneMaskShared& shared, const LaneMaskMemory& memory,
                            const std::uint8_t* in, std::uint64_t bytes)
      : segment_(segment),
        shared_(shared),
        memory_(memory),
        view_(read_view(in, bytes, segment.planes())),
        blocks_(view_.planes),
        coder_(fresh_models<X>(shared.models), in + view_.bytes, bytes - view_.bytes) {}

  /// Decodes the classes to their memory and writes the special values over the segment's cells. Where something is
  /// wrong, cells of the segment, and no others, may have any value.
  constexpr MaskDamage restore() {
    MaskDamage damage = view_.damage;
    if (damage == MaskDamage::none) damage = head();
    if (damage == MaskDamage::none) damage = classes();
    if (damage != MaskDamage::none) return damage;
    const auto class_of = [this](std::uint32_t cell, auto lane) { return X::load(memory_.classes + cell, lane); };
    const SpecialCells cells = count_special_cells<X>(segment_.elems(), class_of);
    if (has_verbatim_) {
      if (cells.verbatim == 0) return MaskDamage::corrupt;
      damage = verbatim();
      if (damage != MaskDamage::none) return damage;
    }
    damage = from_one_lane<X>([&] {
      if (!coder_.good()) return failure();
      return coder_.has_more() ? MaskDamage::trailing : MaskDamage::none;
    });
    if (damage != MaskDamage::none) return damage;
    if (cells.masked == 0) return MaskDamage::corrupt;
    write_special_values<X>(segment_, shared_.specials, class_of, [this](std::uint64_t offset, std::uint64_t bits) {
      segment_.cells[offset] = static_cast<Word>(bits);
    });
    return MaskDamage::none;
  }

  constexpr std::uint32_t specials() const { return specials_; }

 private:
  using Coder = RangeDecoder<LaneModels<X>>;
  using Symbols = MaskSymbols<Coder>;

  constexpr MaskAlphabet alphabet() const { return {specials_, has_verbatim_}; }
  /// Why the lane with the coder stopped.
  constexpr MaskDamage failure() const { return coder_.good() ? MaskDamage::corrupt : MaskDamage::truncated; }

  constexpr MaskDamage head() {
    const std::uint32_t packed = from_one_lane<X>([&] {
      MaskAlphabet alphabet;
      std::uint64_t distance = 0;
      const bool fits = code_head(coder_, alphabet, distance);
      return alphabet.specials | (alphabet.has_verbatim ? 0x100u : 0u) | (fits ? 0u : 0x200u) |
             static_cast<std::uint32_t>(distance) << 16;
    });
    if ((packed & 0x200u) != 0) return MaskDamage::corrupt;
    specials_ = packed & 0xffu;
    has_verbatim_ = (packed & 0x100u) != 0;
    reference_ = packed >> 16;
    const MaskDamage damage = from_one_lane<X>([&] {
      for (unsigned k = 0; k < specials_; ++k) {
        X::store(shared_.specials + k, 0, code_word(coder_, 0, sizeof(Word)));
      }
      return coder_.good() ? MaskDamage::none : MaskDamage::truncated;
    });
    X::sync();
    return damage;
  }

  constexpr MaskDamage classes() {
    const MaskPlanes& planes = view_.planes;
    const auto cols = static_cast<std::uint32_t>(planes.cols), whole = static_cast<std::uint32_t>(planes.plane_cells());
    const auto count = static_cast<std::uint32_t>(planes.count());
    unsigned same = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto rows = static_cast<std::uint32_t>(planes.rows_of(i));
      const std::uint32_t n = rows * cols;
      blocks_.fit(rows);
      std::uint8_t* const plane = memory_.classes + i * whole;
      const std::uint8_t* reference = nullptr;
      if (i > 0) {
        reference = memory_.classes + static_cast<std::uint32_t>(reference_plane(i, reference_)) * whole;
        same = from_one_lane<X>([&] { return Symbols(coder_, alphabet()).plane_same(same, 0); });
        if (same != 0) {
          for_plane(n, [&](std::uint32_t c, auto lane) { X::store(plane + c, lane, X::load(reference + c, lane)); });
          X::sync();
          continue;
        }
      }
      const LanePlane<X> lanes_plane{plane, rows, cols};
      MaskDamage damage = decode_blocks(lanes_plane, reference);
      if (damage != MaskDamage::none) return damage;
      fill_blocks(plane, n, reference);
      for (std::uint32_t by = 0; by < blocks_.down; ++by) {
        const std::uint32_t open = list_open<X>(memory_, blocks_, by);
        if (open == 0) continue;
        damage = decode_cells(lanes_plane, plane, reference, by, open);
        if (damage != MaskDamage::none) return damage;
      }
    }
    return MaskDamage::none;
  }

  /// Calls f(cell, lane) for the cells of a plane.
  template <class F>
  constexpr void for_plane(std::uint32_t n, F&& f) const {
    X::lanes([&](auto lane) {
      for (auto c = static_cast<std::uint32_t>(lane); c < n; c += kLanes) f(c, lane);
    });
  }

  constexpr MaskDamage decode_blocks(const LanePlane<X>& under_way, const std::uint8_t* reference) {
    if (reference != nullptr) {
      const LanePlane<X> plane{reference, under_way.rows, under_way.cols};
      X::lanes([&](auto lane) {
        for (auto block = static_cast<std::uint32_t>(lane); block < blocks_.count(); block += kLanes) {
          X::store(memory_.there + block, lane, block_states<X>(plane, nullptr, blocks_, block, lane).here);
        }
      });
      X::sync();
    }
    const MaskDamage damage = from_one_lane<X>([&] {
      Symbols symbols(coder_, alphabet());
      for (std::uint32_t block = 0; block < blocks_.count(); ++block) {
        const std::uint8_t there = reference != nullptr ? X::load(memory_.there + block, 0) : std::uint8_t{0};
        const BlockSides sides = block_sides<X>(memory_, blocks_, block, reference != nullptr, 0);
        std::uint8_t state = 0, copied = 0;
        if (!symbols.block(reference != nullptr, there, false, sides, state, copied)) return failure();
        X::store(memory_.states + block, 0, state);
        X::store(memory_.copied + block, 0, copied);
        if ((block + 1) % blocks_.along == 0 && !coder_.good()) return MaskDamage::truncated;
      }
      return MaskDamage::none;
    });
    X::sync();
    return damage;
  }

  /// Cells of blocks that are known as a whole.
  constexpr void fill_blocks(std::uint8_t* plane, std::uint32_t n, const std::uint8_t* reference) {
    const auto cols = static_cast<std::uint32_t>(view_.planes.cols);
    for_plane(n, [&](std::uint32_t c, auto lane) {
      const std::uint32_t block = c / cols / blocks_.rows * blocks_.along + c % cols / blocks_.cols;
      const std::uint8_t state = X::load(memory_.states + block, lane);
      if (X::load(memory_.copied + block, lane) != 0) {
        X::store(plane + c, lane, X::load(reference + c, lane));
      } else if (state != kMixedBlock) {
        X::store(plane + c, lane, state);
      }
    });
    X::sync();
  }

  /// Cells of the open blocks of a block row, row by row across all of them.
  constexpr MaskDamage decode_cells(const LanePlane<X>& plane, std::uint8_t* cells, const std::uint8_t* reference,
                                    std::uint32_t by, std::uint32_t open) {
    const MaskDamage damage = from_one_lane<X>([&] {
      Symbols symbols(coder_, alphabet());
      const std::uint32_t begin = by * blocks_.rows;
      const std::uint32_t end = begin + blocks_.rows < plane.rows ? begin + blocks_.rows : plane.rows;
      for (std::uint32_t y = begin; y < end; ++y) {
        for (std::uint32_t k = 0; k < open; ++k) {
          const std::uint32_t x0 = X::load(memory_.open + k, 0) * blocks_.cols;
          const std::uint32_t x1 = x0 + blocks_.cols < plane.cols ? x0 + blocks_.cols : plane.cols;
          const auto row = static_cast<std::int32_t>(y);
          std::uint8_t w = plane.at(row, static_cast<std::int32_t>(x0) - 1, 0);
          std::uint8_t ww = plane.at(row, static_cast<std::int32_t>(x0) - 2, 0);
          for (std::uint32_t x = x0; x < x1; ++x) {
            const auto column = static_cast<std::int32_t>(x);
            std::uint8_t value = 0;
            bool exists = false;
            if (reference != nullptr) {
              exists = symbols.cell(value, plane.sides({reference, plane.rows, plane.cols}, row, column, w, 0));
            } else {
              exists = symbols.cell(value, plane.sides(row, column, w, ww, 0));
            }
            if (!exists) return failure();
            X::store(cells + y * plane.cols + x, 0, value);
            ww = w;
            w = value;
          }
        }
        if (!coder_.good()) return MaskDamage::truncated;
      }
      return MaskDamage::none;
    });
    X::sync();
    return damage;
  }

  /// Reads the bits of the verbatim cells in C order; up to 32 at a time go through shared memory to their cells.
  constexpr MaskDamage verbatim() {
    std::uint64_t before = 0;  // the one lane's
    MaskDamage damage = MaskDamage::none;
    for_pieces(segment_, 0, segment_.rows(), [&](const LanePiece(&pieces)[kPiecesAhead]) {
      typename X::template vec<bool> marks[kPiecesAhead];
      X::lanes([&](auto lane) {
        unroll<kPiecesAhead>([&](auto j) {
          const bool exists = lane < pieces[j].cells;
          X::set(marks[j], lane, exists && X::load(memory_.classes + pieces[j].first + lane, lane) == kVerbatimClass);
        });
      });
      rolled(0, kPiecesAhead, [&](unsigned j) {
        const LanePiece piece = picked(pieces, j);
        const std::uint32_t marked = X::ballot(picked(marks, j));
        if (marked == 0 || damage != MaskDamage::none) return;
        damage = from_one_lane<X>([&] {
          Symbols symbols(coder_, alphabet());
          const auto count = static_cast<unsigned>(popcount(marked));
          for (unsigned k = 0; k < count; ++k) {
            before = symbols.verbatim(0, before, sizeof(Word));
            X::store(shared_.values + k, 0, before);
            if (!coder_.good()) return MaskDamage::truncated;
          }
          return MaskDamage::none;
        });
        X::sync();
        if (damage != MaskDamage::none) return;
        X::lanes([&](auto lane) {
          if ((marked >> lane & 1) == 0) return;
          const auto place = popcount(marked & first_lanes(static_cast<std::uint32_t>(lane)));
          segment_.cells[piece.offset + lane] = static_cast<Word>(X::load(shared_.values + place, lane));
        });
        X::sync();
      });
    });
    return damage;
  }

  const LaneSegment<Word>& segment_;
  LaneMaskShared& shared_;
  const LaneMaskMemory& memory_;
  StoredView view_;
  LaneBlocks blocks_;
  Coder coder_;  // one lane's
  std::uint32_t specials_ = 0;
  std::uint32_t reference_ = 1;
  bool has_verbatim_ = false;
};

}  // namespace quern::kernels
