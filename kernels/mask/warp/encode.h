// Stored form of a mask, written by a warp: twin of write_mask, byte for byte. Everything an encoder knows beforehand
// is found by all lanes: which planes and blocks are equal, and what each block and cell is coded by. The decisions go
// through a queue in shared memory to one lane, which holds the coder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/common/bits.h"
#include "kernels/mask/warp/plane.h"
#include "kernels/mask/warp/view.h"

namespace quern::kernels {

/// A mask as the lanes share it; its classes and special values are in their memory.
struct LaneMaskCounts {
  std::uint32_t specials = 0;
  std::uint32_t masked = 0;
  std::uint32_t verbatim = 0;

  constexpr MaskAlphabet alphabet() const { return {specials, verbatim != 0}; }
};

/// Notes the decisions that one lane's item is coded by, in their order.
template <class X>
class LaneDecisions {
 public:
  static constexpr bool kDecodes = false;

  constexpr LaneDecisions(LaneMaskShared& shared, std::size_t lane)
      : decisions_(shared.decisions + lane * kMostDecisions), lane_(lane) {}
  constexpr unsigned bit(unsigned model, unsigned value) {
    X::store(decisions_ + count_, lane_, static_cast<std::uint16_t>(2 * model + value));
    ++count_;
    return value;
  }
  constexpr std::uint32_t count() const { return count_; }

 private:
  std::uint16_t* decisions_;
  std::size_t lane_;
  std::uint32_t count_ = 0;
};

template <class X, class Word, class Sink>
class LaneMaskEncoder {
 public:
  LaneMaskEncoder(const LaneMaskEncoder&) = delete;
  constexpr LaneMaskEncoder(const LaneSegment<Word>& segment, const LaneMaskCounts& mask,
                            std::span<const MaskView> views, LaneMaskShared& shared, const LaneMaskMemory& memory,
                            const Sink& sink)
      : segment_(segment),
        mask_(mask),
        shared_(shared),
        memory_(memory),
        planes_(best_lane_planes<X>(segment.planes(), views, shared, memory)),
        blocks_(planes_),
        coder_(fresh_models<X>(shared.models), behind_view(sink)) {}

  /// Writes everything; returns the number of bytes. Any number that the sink does not hold, when they are too many.
  constexpr std::uint64_t write() {
    reference_ = best_lane_reference<X>(planes_, shared_, memory_);
    in_one_lane<X>([&] {
      MaskAlphabet alphabet = mask_.alphabet();
      std::uint64_t distance = reference_;
      code_head(coder_, alphabet, distance);
      for (unsigned k = 0; k < alphabet.specials; ++k) {
        code_word(coder_, X::load(shared_.specials + k, 0), sizeof(Word));
      }
    });
    if (classes() && mask_.verbatim != 0) verbatim();
    return from_one_lane<X>([&] {
      coder_.finish();
      return coder_.sink().size();
    });
  }

 private:
  using Coder = RangeEncoder<LaneModels<X>, Sink>;

  /// The sink with the bytes that say that planes are not those of the box; one lane's.
  constexpr Sink behind_view(Sink sink) const {
    if (planes_ == segment_.planes()) return sink;
    in_one_lane<X>([&] { put_view(planes_, segment_.planes(), [&](std::uint8_t byte) { sink.put(byte); }); });
    return sink;
  }

  constexpr bool good() {
    return from_one_lane<X>([&] { return coder_.good(); });
  }

  constexpr bool classes() {
    LanePlane<X> plane{memory_.classes, 0, static_cast<std::uint32_t>(planes_.cols)};
    const auto whole = static_cast<std::uint32_t>(planes_.plane_cells());
    const auto count = static_cast<std::uint32_t>(planes_.count());
    unsigned before = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      plane.rows = static_cast<std::uint32_t>(planes_.rows_of(i));
      plane.cells = memory_.classes + i * whole;
      const std::uint32_t n = plane.rows * plane.cols;
      blocks_.fit(plane.rows);
      const std::uint8_t* reference = nullptr;
      if (i > 0) {
        reference = memory_.classes + static_cast<std::uint32_t>(reference_plane(i, reference_)) * whole;
        const unsigned equal = equal_planes(plane.cells, reference, n) ? 1 : 0;
        in_one_lane<X>([&] { MaskSymbols<Coder>(coder_, mask_.alphabet()).plane_same(before, equal); });
        before = equal;
        if (equal != 0) continue;
      }
      code_blocks(plane, reference);
      for (std::uint32_t by = 0; by < blocks_.down; ++by) {
        const std::uint32_t open = list_open<X>(memory_, blocks_, by);
        if (open == 0) continue;
        const std::uint32_t begin = by * blocks_.rows;
        const std::uint32_t end = begin + blocks_.rows < plane.rows ? begin + blocks_.rows : plane.rows;
        for (std::uint32_t y = begin; y < end; ++y) code_cells(plane, reference, y, open);
      }
      if (!good()) return false;
    }
    return true;
  }

  constexpr bool equal_planes(const std::uint8_t* a, const std::uint8_t* b, std::uint32_t n) const {
    for (std::uint32_t at = 0; at < n; at += kPiecesAhead * kLanes) {
      const std::uint32_t differ = ballot_of<X>([&](auto lane) {
        bool other = false;
        unroll<kPiecesAhead>([&](auto j) {
          const auto c = at + static_cast<std::uint32_t>(j * kLanes + lane);
          if (c < n) other |= X::load(a + c, lane) != X::load(b + c, lane);
        });
        return other;
      });
      if (differ != 0) return false;
    }
    return true;
  }

  /// Codes one item a lane, in the order of the lanes: `item` names its decisions, or none.
  template <class Item>
  constexpr void code_items(Item&& item) {
    X::lanes([&](auto lane) {
      LaneDecisions<X> decisions(shared_, lane);
      item(lane, decisions);
      X::store(shared_.counts + lane, lane, decisions.count());
    });
    X::sync();
    in_one_lane<X>([&] {
      for (unsigned l = 0; l < kLanes; ++l) {
        const std::uint32_t count = X::load(shared_.counts + l, 0);
        for (std::uint32_t k = 0; k < count; ++k) {
          const unsigned decision = X::load(shared_.decisions + l * kMostDecisions + k, 0);
          coder_.bit(decision / 2, decision % 2);
        }
      }
    });
    X::sync();
  }

  constexpr void code_blocks(const LanePlane<X>& plane, const std::uint8_t* reference) {
    X::lanes([&](auto lane) {
      for (auto block = static_cast<std::uint32_t>(lane); block < blocks_.count(); block += kLanes) {
        const BlockStates s = block_states<X>(plane, reference, blocks_, block, lane);
        X::store(memory_.states + block, lane, s.here);
        X::store(memory_.there + block, lane, s.there);
        X::store(memory_.copied + block, lane, static_cast<std::uint8_t>(s.equal ? 1 : 0));
      }
    });
    X::sync();
    for (std::uint32_t first = 0; first < blocks_.count(); first += kLanes) {
      code_items([&](auto lane, LaneDecisions<X>& decisions) {
        const auto block = first + static_cast<std::uint32_t>(lane);
        if (block >= blocks_.count()) return;
        std::uint8_t state = X::load(memory_.states + block, lane);
        std::uint8_t copied = X::load(memory_.copied + block, lane);
        const BlockSides sides = block_sides<X>(memory_, blocks_, block, reference != nullptr, lane);
        MaskSymbols<LaneDecisions<X>>(decisions, mask_.alphabet())
            .block(reference != nullptr, X::load(memory_.there + block, lane), copied != 0, sides, state, copied);
      });
    }
  }

  constexpr void code_cells(const LanePlane<X>& plane, const std::uint8_t* reference, std::uint32_t y,
                            std::uint32_t open) {
    const std::uint32_t cells = open * blocks_.cols;
    for (std::uint32_t first = 0; first < cells; first += kLanes) {
      code_items([&](auto lane, LaneDecisions<X>& decisions) {
        const auto cell = first + static_cast<std::uint32_t>(lane);
        if (cell >= cells) return;
        const std::uint32_t block = X::load(memory_.open + cell / blocks_.cols, lane);
        const std::uint32_t column = block * blocks_.cols + cell % blocks_.cols;
        if (column >= plane.cols) return;
        const auto row = static_cast<std::int32_t>(y), x = static_cast<std::int32_t>(column);
        std::uint8_t value = plane.at(row, x, lane);
        const std::uint8_t w = plane.at(row, x - 1, lane);
        MaskSymbols<LaneDecisions<X>> symbols(decisions, mask_.alphabet());
        if (reference != nullptr) {
          symbols.cell(value, plane.sides({reference, plane.rows, plane.cols}, row, x, w, lane));
        } else {
          symbols.cell(value, plane.sides(row, x, w, plane.at(row, x - 2, lane), lane));
        }
      });
    }
  }

  /// Bits of the verbatim cells in C order; they are still in the array.
  constexpr void verbatim() {
    std::uint64_t before = 0;  // the one lane's
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
        if (marked == 0) return;
        X::lanes([&](auto lane) {
          if ((marked >> lane & 1) == 0) return;
          const auto place = popcount(marked & first_lanes(static_cast<std::uint32_t>(lane)));
          X::store(shared_.values + place, lane, static_cast<std::uint64_t>(segment_.cells[piece.offset + lane]));
        });
        X::sync();
        in_one_lane<X>([&] {
          MaskSymbols<Coder> symbols(coder_, mask_.alphabet());
          const auto count = static_cast<unsigned>(popcount(marked));
          for (unsigned k = 0; k < count; ++k) {
            before = symbols.verbatim(X::load(shared_.values + k, 0), before, sizeof(Word));
          }
        });
        X::sync();
      });
    });
  }

  const LaneSegment<Word>& segment_;
  const LaneMaskCounts& mask_;
  LaneMaskShared& shared_;
  const LaneMaskMemory& memory_;
  MaskPlanes planes_;
  LaneBlocks blocks_;
  Coder coder_;  // one lane's
  std::uint32_t reference_ = 1;
};

}  // namespace quern::kernels
