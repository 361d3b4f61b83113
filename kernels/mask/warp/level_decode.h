// Masks that are coded by levels, read by a warp (docs/format-mask.md, section 10): the same masks as one thread reads,
// the same bytes refused. Over an execution model X (see kernels/README.md).
#pragma once

#include <cstdint>

#include "kernels/mask/levels/head.h"
#include "kernels/mask/view.h"
#include "kernels/mask/warp/level_coder.h"
#include "kernels/mask/warp/level_plane.h"
#include "kernels/mask/warp/restore.h"

namespace quern::kernels {

/// Elements of 1, 2, 4 or 8 bytes: the segment is given as bytes, its strides in elements.
template <class X>
class LaneLevelMask {
 public:
  LaneLevelMask(const LaneLevelMask&) = delete;
  /// Any bytes. The segment has a cell, and fewer than kMaxLaneCells.
  constexpr LaneLevelMask(const LaneSegment<std::uint8_t>& segment, unsigned element_bytes, LaneLevelShared& shared,
                          const LaneLevelMemory& memory, const LevelConstants& constants, const std::uint8_t* in,
                          std::uint64_t bytes)
      : segment_(segment),
        element_bytes_(element_bytes),
        shared_(shared),
        memory_(memory),
        view_(read_view(in, bytes, segment.planes(), true)),
        in_(in + view_.bytes),
        bytes_(bytes - view_.bytes),
        coder_(shared, in_, constants) {}

  /// Decodes the classes to their memory and writes the special values over the segment's cells. Where something is
  /// wrong, cells of the segment, and no others, may have any value.
  constexpr MaskDamage restore() {
    if (view_.damage != MaskDamage::none) return view_.damage;
    const std::uint64_t planes = view_.planes.count();
    head_ = read_level_head(in_, bytes_, planes, element_bytes_,
                            [&](unsigned g, std::uint64_t words) { coder_.set_group(g, words); });
    if (head_.damage != MaskDamage::none) return head_.damage;
    X::lanes([&](auto lane) {
      if (lane < head_.alphabet.specials)
        X::store(shared_.specials + lane, lane,
                 stored_element(in_ + head_.specials + lane * element_bytes_, element_bytes_));
    });
    coder_.begin(head_.words, head_.lanes);
    if (!read() || !have_classes()) return MaskDamage::corrupt;
    const auto class_of = [this](std::uint32_t cell, auto lane) { return this->class_of(cell, lane); };
    const SpecialCells cells = count_special_cells<X>(segment_.elems(), class_of);
    if (head_.alphabet.has_verbatim && cells.verbatim == 0) return MaskDamage::corrupt;
    const std::uint64_t left = bytes_ - head_.verbatim, needed = std::uint64_t{cells.verbatim} * element_bytes_;
    if (needed != left) return needed > left ? MaskDamage::truncated : MaskDamage::trailing;
    if (cells.masked == 0) return MaskDamage::corrupt;
    if (cells.verbatim != 0) write_verbatim();
    write_special_values<X>(segment_, shared_.specials, class_of,
                            [this](std::uint64_t offset, std::uint64_t bits) { put_element(offset, bits); });
    return MaskDamage::none;
  }

 private:
  constexpr LaneBits plane_bits(std::uint32_t* words, std::uint32_t plane, std::uint32_t rows) const {
    const auto cols = static_cast<std::uint32_t>(view_.planes.cols);
    return {words, plane * static_cast<std::uint32_t>(view_.planes.plane_cells()), rows, cols};
  }

  /// Whether each plane is like its reference.
  constexpr void differences(std::uint32_t planes) {
    std::uint32_t other = 0, answers = 0;
    for (std::uint32_t i = 1; i < planes; ++i) {
      coder_.run(
          level_contexts::kDiffers + other, 1, [](std::uint32_t, std::uint32_t) { return 0u; },
          [&](std::uint32_t, std::uint32_t ones) { other = ones & 1; });
      answers |= other << i % 32;
      if (i % 32 != 31 && i + 1 != planes) continue;
      in_one_lane<X>([&] { X::store(memory_.differs + i / 32, 0, answers); });
      answers = 0;
    }
    X::sync();
  }
  constexpr bool is_like_reference(std::uint32_t plane) const {
    return plane > 0 && (X::load_same(memory_.differs + plane / 32) >> plane % 32 & 1) == 0;
  }

  /// Which cells are masked, plane by plane; then the numbers of their classes, bit by bit from the lowest, each as one
  /// plane. False where the words are not what an encoder writes.
  constexpr bool read() {
    const auto planes = static_cast<std::uint32_t>(view_.planes.count());
    const std::uint32_t cells = segment_.elems();
    const LaneBits masked = plane_bits(memory_.masked, 0, cells / static_cast<std::uint32_t>(view_.planes.cols));
    width_ = bit_length(numbers() - 1);
    clear_lane_words<X>(memory_.masked, cells);
    coder_.begin_tables();
    differences(planes);
    LaneLevelPlane<X, LaneLevelDecoder<X>> walk(coder_, shared_, memory_);
    for (std::uint32_t i = 0; i < planes + width_; ++i) {
      LaneBits plane;
      LaneLevelSurroundings beside;
      if (i < planes) {
        const auto rows = static_cast<std::uint32_t>(view_.planes.rows_of(i));
        plane = plane_bits(memory_.masked, i, rows);
        if (i > 0)
          beside.reference =
              plane_bits(memory_.masked, static_cast<std::uint32_t>(reference_plane(i, head_.distance)), rows);
        if (is_like_reference(i)) {
          copy_plane(beside.reference, plane);
          continue;
        }
      } else {
        plane = {memory_.numbers_of(i - planes), 0, masked.rows, masked.cols};
        if (i == planes && head_.beside_rim) {
          load_lane_rim<X>(masked, memory_.rim);
          beside.reference = {memory_.rim, 0, masked.rows, masked.cols};
        } else {
          beside.among = masked;
        }
        clear_lane_words<X>(plane.words, cells);
        coder_.begin_tables();
      }
      if (!walk.code(plane, beside)) return false;
      if (i == planes && head_.beside_rim) keep_masked(plane.words);
    }
    return coder_.complete();
  }

  /// Bits of cells that are not masked mean nothing.
  constexpr void keep_masked(std::uint32_t* words) const {
    X::lanes([&](auto lane) {
      for (auto k = static_cast<std::uint32_t>(lane); k < (segment_.elems() + 31) / 32; k += kLanes)
        X::store(words + k, lane, X::load(words + k, lane) & X::load(memory_.masked + k, lane));
    });
    X::sync();
  }

  constexpr void copy_plane(const LaneBits& from, const LaneBits& to) const {
    const std::uint32_t cells = to.cells();
    for (std::uint32_t first = 0; first < cells; first += 64 * kLanes) {
      typename X::template vec<std::uint64_t> words;
      X::lanes([&](auto lane) {
        const std::uint32_t at = first + 64 * static_cast<std::uint32_t>(lane);
        if (at >= cells) return;
        const std::uint64_t wanted = cells - at >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << (cells - at)) - 1;
        X::set(words, lane, lane_window<X>(from, at, lane) & wanted);
      });
      X::sync();  // both planes may share a word
      X::lanes([&](auto lane) {
        const std::uint32_t at = first + 64 * static_cast<std::uint32_t>(lane);
        if (at < cells) flip_lane_bits<X>(to, at, X::get(words, lane), lane);
      });
      X::sync();
    }
  }

  constexpr unsigned numbers() const { return head_.alphabet.size() - 1; }

  /// Whether there is a class of each number.
  constexpr bool have_classes() const {
    typename X::template vec<bool> nameless;
    X::lanes([&](auto lane) {
      bool found = false;
      for (auto cell = static_cast<std::uint32_t>(lane); cell < segment_.elems(); cell += kLanes)
        found = found || number_of(cell, lane) >= numbers();
      X::set(nameless, lane, found);
    });
    return !X::any(nameless);
  }
  template <class Lane>
  constexpr unsigned number_of(std::uint32_t cell, Lane lane) const {
    unsigned number = 0;
    for (unsigned j = 0; j < width_; ++j)
      number |= (X::load(memory_.numbers_of(j) + cell / 32, lane) >> cell % 32 & 1) << j;
    return number;
  }
  template <class Lane>
  constexpr std::uint8_t class_of(std::uint32_t cell, Lane lane) const {
    if ((X::load(memory_.masked + cell / 32, lane) >> cell % 32 & 1) == 0) return 0;
    const unsigned number = number_of(cell, lane);
    return number + 1 == numbers() ? head_.alphabet.last_class() : static_cast<std::uint8_t>(number + 1);
  }

  /// One element for each of their cells, in C order.
  constexpr void write_verbatim() const {
    const std::uint8_t* next = in_ + head_.verbatim;
    for_pieces(segment_, 0, segment_.rows(), [&](const LanePiece(&pieces)[kPiecesAhead]) {
      unroll<kPiecesAhead>([&](auto j) {
        const LanePiece& piece = pieces[j];
        const std::uint32_t marked = ballot_of<X>([&](auto lane) {
          return lane < piece.cells && class_of(piece.first + static_cast<std::uint32_t>(lane), lane) == kVerbatimClass;
        });
        X::lanes([&](auto lane) {
          if ((marked >> lane & 1) == 0) return;
          const unsigned before = popcount(marked & first_lanes(static_cast<std::uint32_t>(lane)));
          put_element(piece.offset + lane, stored_element(next + before * element_bytes_, element_bytes_));
        });
        next += popcount(marked) * element_bytes_;
      });
    });
  }

  constexpr void put_element(std::uint64_t offset, std::uint64_t bits) const {
    void* const at = segment_.cells + offset * element_bytes_;
    switch (element_bytes_) {
      case 1: *static_cast<std::uint8_t*>(at) = static_cast<std::uint8_t>(bits); break;
      case 2: *static_cast<std::uint16_t*>(at) = static_cast<std::uint16_t>(bits); break;
      case 4: *static_cast<std::uint32_t*>(at) = static_cast<std::uint32_t>(bits); break;
      default: *static_cast<std::uint64_t*>(at) = bits;
    }
  }

  const LaneSegment<std::uint8_t>& segment_;
  unsigned element_bytes_;
  LaneLevelShared& shared_;
  const LaneLevelMemory& memory_;
  StoredView view_;
  const std::uint8_t* in_;
  std::uint64_t bytes_;
  LaneLevelDecoder<X> coder_;
  LevelHead head_;
  unsigned width_ = 0;  ///< bits of a number
};

}  // namespace quern::kernels
