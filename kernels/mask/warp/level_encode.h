// Masks that are coded by levels, written by a warp: the same bytes as one thread writes. Symbols are noted forwards,
// part by part (positions, then each bit of the classes' numbers), and put into words backwards. Over an execution model
// X (see kernels/README.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/mask/levels/head.h"
#include "kernels/mask/warp/find.h"
#include "kernels/mask/warp/level_choice.h"
#include "kernels/mask/warp/level_plane.h"
#include "kernels/mask/warp/level_symbols.h"

namespace quern::kernels {

/// Fast memory that the lanes share to find and write such masks.
struct LaneLevelMaskShared {
  LaneMaskShared mask;
  LaneLevelShared levels;
};

/// Other memory, for segments of up to those extents, and its parts.
class LaneLevelMaskLayout {
 public:
  struct Memory {
    LaneMaskMemory mask;
    LaneLevelMemory levels;
  };

  constexpr explicit LaneLevelMaskLayout(const SegmentExtents& e) : mask_(e, true), levels_(e[0] * e[1] * e[2], true) {}

  constexpr std::uint64_t bytes() const { return mask_.bytes() + levels_.bytes(); }
  constexpr Memory place(std::uint8_t* at) const { return {mask_.place(at), levels_.place(at + mask_.bytes())}; }

 private:
  LaneMaskLayout mask_;
  LaneLevelLayout levels_;
};

template <class X, class Word>
class LaneLevelWriter {
 public:
  LaneLevelWriter(const LaneLevelWriter&) = delete;
  /// A mask that has masked cells: its classes and special values are in their memory.
  constexpr LaneLevelWriter(const LaneSegment<const Word>& segment, const LaneMaskCounts& mask,
                            std::span<const MaskView> views, LaneLevelMaskShared& shared,
                            const LaneLevelMaskLayout::Memory& memory, const LevelConstants& constants)
      : segment_(segment),
        mask_(mask),
        shared_(shared),
        classes_(memory.mask),
        memory_(memory.levels),
        planes_(best_lane_level_planes<X>(segment.planes(), views, shared.mask, memory.mask).planes),
        recorder_(shared.levels, constants, memory.mask.symbols) {}

  /// Writes everything; returns the number of bytes, or any larger number than the capacity when they are too many.
  constexpr std::uint64_t write(std::uint8_t* out, std::uint64_t capacity) {
    const std::uint64_t verbatim = std::uint64_t{mask_.verbatim} * sizeof(Word), too_many = capacity + 1;
    if (verbatim > capacity) return too_many;
    distance_ = nearest_lane_distance<X>(planes_, classes_);
    look_at_planes();
    if (mask_.alphabet().size() > 2) look_at_classes();
    const std::uint64_t symbols = note_all();
    const unsigned lanes = level_lanes_for(symbols);
    const std::uint64_t end = capacity - verbatim, begin = put_words(lanes, out, end);
    if (begin > end) return too_many;
    const std::uint64_t head = from_one_lane<X>([&] { return put_head(lanes, nullptr); });
    if (head > begin) return too_many;
    in_one_lane<X>([&] { put_head(lanes, out); });
    move_down(out, begin, head, end - begin);
    if (verbatim != 0) put_verbatim(out + head + (end - begin));
    X::sync();
    return head + (end - begin) + verbatim;
  }

 private:
  constexpr std::uint32_t cells() const { return segment_.elems(); }
  constexpr std::uint32_t all_rows() const { return cells() / static_cast<std::uint32_t>(planes_.cols); }
  constexpr unsigned parts() const { return 1 + bit_length(mask_.alphabet().size() - 2); }

  constexpr LaneBits bits_of(std::uint32_t* words, std::uint32_t plane, std::uint32_t rows) const {
    return {words, plane * static_cast<std::uint32_t>(planes_.plane_cells()), rows,
            static_cast<std::uint32_t>(planes_.cols)};
  }

  /// Which cells are masked, and which planes differ from their references.
  constexpr void look_at_planes() {
    X::lanes([&](auto lane) {
      for (auto k = static_cast<std::uint32_t>(lane); k < lane_bit_words(cells()); k += kLanes) {
        const std::uint64_t both = X::load(classes_.bits + k / 2, lane);
        X::store(memory_.masked + k, lane, static_cast<std::uint32_t>(both >> (k % 2 == 0 ? 0 : 32)));
      }
    });
    const PlaneWindows windows(planes_);
    const auto count = static_cast<std::uint32_t>(planes_.count());
    const auto of_plane = static_cast<std::uint32_t>(windows.of_plane);
    for (std::uint32_t first = 0; first < count; first += kLanes) {
      std::uint32_t differs = 0;
      if (of_plane < kLanes) {  // a plane a lane
        differs = ballot_of<X>([&](auto lane) {
          const std::uint32_t i = first + static_cast<std::uint32_t>(lane);
          bool other = false;
          for (std::uint32_t k = 0; i > 0 && i < count && k < of_plane && !other; ++k)
            other = differ(windows, i, k, lane);
          return other;
        });
      } else {
        for (std::uint32_t l = first == 0 ? 1 : 0; l < kLanes && first + l < count; ++l) {
          const std::uint32_t lanes = ballot_of<X>([&](auto lane) {
            bool other = false;
            for (auto k = static_cast<std::uint32_t>(lane); k < of_plane && !other; k += kLanes)
              other = differ(windows, first + l, k, lane);
            return other;
          });
          differs |= lanes != 0 ? 1u << l : 0;
        }
      }
      in_one_lane<X>([&] { X::store(memory_.differs + first / kLanes, 0, differs); });
    }
    X::sync();
  }
  /// Whether the lowest bits of their numbers follow the rim.
  constexpr void look_at_classes() {
    const LevelClassCost cost = lane_class_cost<X>(planes_, mask_.alphabet(), 0, classes_);
    beside_rim_ = cost.beside_rim() < cost.alone();
    if (beside_rim_) load_lane_rim<X>(bits_of(memory_.masked, 0, all_rows()), memory_.rim);
  }
  template <class Lane>
  constexpr bool differ(const PlaneWindows& windows, std::uint32_t plane, std::uint32_t k, Lane lane) const {
    return windows.differ(lane_mask_bits<X>(classes_, lane), plane, k, distance_) != 0;
  }
  constexpr bool differs(std::uint32_t plane) const {
    return plane == 0 || (X::load_same(memory_.differs + plane / 32) >> plane % 32 & 1) != 0;
  }

  /// Notes each part once; the last one stays noted. Returns the number of symbols.
  constexpr std::uint64_t note_all() {
    std::uint64_t done = 0;
    for (unsigned part = 0; part < parts(); ++part) {
      in_one_lane<X>([&] { X::store(shared_.levels.done + part, 0, done); });
      note(part);
      done += recorder_.noted();
    }
    return done;
  }

  constexpr void note(unsigned part) {
    X::sync();
    recorder_.begin_part(X::load_same(shared_.levels.done + part));
    recorder_.begin_tables();
    LaneLevelPlane<X, LaneLevelRecorder<X>> walk(recorder_, shared_.levels, memory_);
    const auto planes = static_cast<std::uint32_t>(part == 0 ? planes_.count() : 1);
    if (part == 0) {
      note_differences(planes);
    } else {
      load_numbers(part - 1);
    }
    for (std::uint32_t i = 0; i < planes; ++i) {
      LaneBits plane;
      LaneLevelSurroundings beside;
      if (part == 0) {
        if (!differs(i)) continue;
        const auto rows = static_cast<std::uint32_t>(planes_.rows_of(i));
        plane = bits_of(memory_.masked, i, rows);
        if (i > 0)
          beside.reference = bits_of(memory_.masked, static_cast<std::uint32_t>(reference_plane(i, distance_)), rows);
      } else {
        plane = bits_of(memory_.numbers, 0, all_rows());
        if (part == 1 && beside_rim_) {
          beside.reference = bits_of(memory_.rim, 0, all_rows());
        } else {
          beside.among = bits_of(memory_.masked, 0, all_rows());
        }
      }
      walk.code(plane, beside);
    }
  }

  constexpr void note_differences(std::uint32_t planes) {
    std::uint32_t other = 0;
    for (std::uint32_t i = 1; i < planes; ++i) {
      recorder_.run(
          level_contexts::kDiffers + other, 1, [&](std::uint32_t, std::uint32_t) { return differs(i) ? 1u : 0u; },
          [&](std::uint32_t, std::uint32_t ones) { other = ones & 1; });
    }
  }

  /// One bit of the numbers of the classes.
  constexpr void load_numbers(unsigned bit) {
    const MaskAlphabet alphabet = mask_.alphabet();
    X::lanes([&](auto lane) {
      for (auto k = 2 * static_cast<std::uint32_t>(lane); k < lane_bit_words(cells()); k += 2 * kLanes) {
        const std::uint64_t word = lane_number_bits<X>(classes_, alphabet, bit, 32 * k, cells(), lane);
        X::store(memory_.numbers + k, lane, static_cast<std::uint32_t>(word));
        if (k + 1 < lane_bit_words(cells()))
          X::store(memory_.numbers + k + 1, lane, static_cast<std::uint32_t>(word >> 32));
      }
    });
    X::sync();
  }

  /// Writes the words of all groups so that they end at `end`; returns where they begin, or a place behind `end` where
  /// there is no room.
  constexpr std::uint64_t put_words(unsigned lanes, std::uint8_t* out, std::uint64_t end) {
    LaneLevelWords<X> words(shared_.levels, lanes, out, 0, end);
    unsigned noted = parts() - 1;
    for (unsigned g = level_groups(lanes); g-- > 0;) {
      const std::uint64_t group_end = words.at();
      words.begin_group(g);
      for (unsigned part = parts(); part-- > 0;) {
        if (part != noted) note(part);
        noted = part;
        words.put_all(recorder_);
      }
      words.end_group();
      if (!words.fits()) return end + 1;
      in_one_lane<X>([&] { X::store(shared_.levels.words + g, 0, (group_end - words.at()) / 2); });
    }
    X::sync();
    return words.at();
  }

  /// By one lane: everything before the words. Returns the number of bytes; counts alone where `out` is null.
  constexpr std::uint64_t put_head(unsigned lanes, std::uint8_t* out) const {
    std::uint64_t size = 0;
    const auto put = [&](std::uint8_t byte) {
      if (out != nullptr) out[size] = byte;
      ++size;
    };
    const auto put_number = [&](std::uint64_t value) {
      for (; value >= 0x80; value >>= 7) put(static_cast<std::uint8_t>(value | 0x80));
      put(static_cast<std::uint8_t>(value));
    };
    if (planes_ != segment_.planes()) put_view(planes_, segment_.planes(), put);
    put(kLevelMark);
    put(static_cast<std::uint8_t>(mask_.specials | (mask_.verbatim != 0 ? kLevelHasVerbatim : 0) |
                                  (beside_rim_ ? kLevelBesideRim : 0)));
    put(static_cast<std::uint8_t>(bit_length(lanes / kFewestLevelLanes) - 1));
    if (planes_.count() > 1) put_number(distance_);
    for (std::uint32_t s = 0; s < mask_.specials; ++s) {
      const std::uint64_t bits = X::load(shared_.mask.specials + s, 0);
      for (std::size_t b = 0; b < sizeof(Word); ++b) put(static_cast<std::uint8_t>(bits >> 8 * b));
    }
    for (unsigned g = 0; g < level_groups(lanes); ++g) put_number(X::load(shared_.levels.words + g, 0));
    return size;
  }

  /// Bytes from `from` on to `to`, which is not behind.
  constexpr void move_down(std::uint8_t* out, std::uint64_t from, std::uint64_t to, std::uint64_t bytes) const {
    X::sync();
    for (std::uint64_t at = 0; at < bytes; at += kLanes) {
      typename X::template vec<std::uint8_t> moved;
      X::lanes([&](auto lane) { X::set(moved, lane, at + lane < bytes ? out[from + at + lane] : std::uint8_t{0}); });
      X::sync();
      X::lanes([&](auto lane) {
        if (at + lane < bytes) out[to + at + lane] = X::get(moved, lane);
      });
      X::sync();
    }
  }

  /// Bits of the verbatim cells in C order; they are still in the array.
  constexpr void put_verbatim(std::uint8_t* out) const {
    for_pieces(segment_, 0, segment_.rows(), [&](const LanePiece(&pieces)[kPiecesAhead]) {
      unroll<kPiecesAhead>([&](auto j) {
        const LanePiece& piece = pieces[j];
        const std::uint32_t marked = ballot_of<X>([&](auto lane) {
          return lane < piece.cells && X::load(classes_.classes + piece.first + lane, lane) == kVerbatimClass;
        });
        X::lanes([&](auto lane) {
          if ((marked >> lane & 1) == 0) return;
          const auto bits = static_cast<std::uint64_t>(segment_.cells[piece.offset + lane]);
          std::uint8_t* const to =
              out + sizeof(Word) * popcount(marked & first_lanes(static_cast<std::uint32_t>(lane)));
          for (std::size_t b = 0; b < sizeof(Word); ++b) to[b] = static_cast<std::uint8_t>(bits >> 8 * b);
        });
        out += sizeof(Word) * popcount(marked);
      });
    });
  }

  const LaneSegment<const Word>& segment_;
  const LaneMaskCounts& mask_;
  LaneLevelMaskShared& shared_;
  const LaneMaskMemory& classes_;
  const LaneLevelMemory& memory_;
  MaskPlanes planes_;
  LaneLevelRecorder<X> recorder_;
  std::uint64_t distance_ = 1;
  bool beside_rim_ = false;
};

/// As mask_lanes, in the form by levels. The rules say so.
template <class X, class Word>
constexpr LaneMaskResult level_mask_lanes(const LaneSegment<const Word>& segment, const LaneMaskRules& rules,
                                          const ScanCounts& counts, LaneLevelMaskShared& shared,
                                          const LaneLevelMaskLayout::Memory& memory, const LevelConstants& constants,
                                          std::uint8_t* out, std::uint64_t capacity, Word* copy) {
  LaneMaskFinder<X, Word, MaskForms::levels> finder(segment, rules, shared.mask, memory.mask);
  find_mask<WordsOfWidth<Word>>(finder, rules.repeated, counts, segment.elems());
  LaneMaskResult result{finder.mask(), 0};
  if (result.mask.masked == 0) return result;
  LaneLevelWriter<X, Word> writer(segment, result.mask, rules.views.all(), shared, memory, constants);
  result.stored_bytes = writer.write(out, capacity);
  if (result.stored_bytes <= capacity) fill_lanes<X>(segment, memory.mask.classes, copy);
  return result;
}

}  // namespace quern::kernels
