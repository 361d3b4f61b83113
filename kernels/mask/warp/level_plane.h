// One plane of a mask that is coded by levels, read or written by a warp: base cells, then three phases for each
// distance, a lane 64 cells at a time. The same cells as the walk of one thread gives, and the same symbols. Over an
// execution model X (see kernels/README.md).
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/mask/levels/lattice.h"
#include "kernels/mask/levels/neighbours.h"
#include "kernels/mask/warp/level_coder.h"
#include "kernels/mask/warp/level_lattice.h"

namespace quern::kernels {

/// Other memory that the lanes share.
struct LaneLevelMemory {
  std::uint32_t* masked = nullptr;   ///< which cells of the segment are
  std::uint32_t* differs = nullptr;  ///< which planes differ from their references
  std::uint32_t* own = nullptr;      ///< lattices of the plane under way
  std::uint32_t* beside = nullptr;   ///< of its reference, or of the cells that are coded at all
  std::uint32_t* alike = nullptr;    ///< of where the reference is like its neighbours
  std::uint32_t* alike_plane = nullptr;
  std::uint32_t* equal[3]{};           ///< how many of these neighbours are, a bit of the number each
  std::uint32_t* quiet = nullptr;      ///< of a phase: cells that are coded by class
  std::uint32_t* agree = nullptr;      ///< and those whose neighbours agree
  std::uint32_t* surprises = nullptr;  ///< of a class, which of its cells are not as expected
  std::uint32_t* other = nullptr;      ///< of a phase, the same; for an encoder
  std::uint32_t* groups = nullptr;     ///< groups of 1024 that have some
  std::uint32_t* open = nullptr;       ///< and words of 32
  std::uint32_t* numbers = nullptr;    ///< lowest bits of the cells' classes; for an encoder one bit after the other
  std::uint32_t* rim = nullptr;        ///< of the mask
  std::uint64_t number_words = 0;      ///< from one bit to the next

  /// Bit j of the classes: those above the lowest are in place of `alike` and what follows it.
  constexpr std::uint32_t* numbers_of(unsigned j) const { return j == 0 ? numbers : alike + (j - 1) * number_words; }
};

/// Bytes of that memory for segments of so many cells, and its parts; an encoder's has more.
class LaneLevelLayout {
 public:
  constexpr explicit LaneLevelLayout(std::uint64_t cells, bool encodes = false) : cells_(cells), encodes_(encodes) {}

  constexpr std::uint64_t bytes() const { return (4 * words() + 15) / 16 * 16; }
  constexpr LaneLevelMemory place(std::uint8_t* at) const {
    void* const begin = at;
    auto* next = static_cast<std::uint32_t*>(begin);
    const auto take = [&](std::uint64_t count) {
      std::uint32_t* const part = next;
      next += count;
      return part;
    };
    LaneLevelMemory memory;
    memory.masked = take(plane());
    memory.differs = take(plane());
    memory.own = take(most_pyramid_words(cells_));
    memory.beside = take(most_pyramid_words(cells_));
    memory.alike = take(most_pyramid_words(cells_));
    memory.alike_plane = take(plane());
    for (std::uint32_t*& bit : memory.equal) bit = take(plane());
    memory.quiet = take(phase());
    memory.agree = take(phase());
    memory.surprises = take(phase());
    memory.groups = take(most_of_phase() / 1024 + 1);
    memory.open = take(most_of_phase() / 32 + 1);
    memory.numbers = take(plane());
    memory.rim = take(plane());
    memory.number_words = plane();
    if (encodes_) memory.other = take(phase());
    return memory;
  }

 private:
  constexpr std::uint64_t plane() const { return lane_bit_words(cells_); }
  /// A phase of a line has half of its cells.
  constexpr std::uint64_t most_of_phase() const { return cells_ / 2 + 1; }
  constexpr std::uint64_t phase() const { return lane_bit_words(most_of_phase()); }
  constexpr std::uint64_t words() const {
    return 8 * plane() + 3 * most_pyramid_words(cells_) + (encodes_ ? 4 : 3) * phase() + most_of_phase() / 1024 +
           most_of_phase() / 32 + 2;
  }

  std::uint64_t cells_;
  bool encodes_;
};

/// What a plane is coded beside; bits without words: nothing.
struct LaneLevelSurroundings {
  LaneBits reference;  ///< of the same extents
  LaneBits among;      ///< cells that are coded at all; not with a reference
};

/// `Coder`: LaneLevelDecoder or LaneLevelRecorder.
template <class X, class Coder>
class LaneLevelPlane {
 public:
  constexpr LaneLevelPlane(Coder& coder, LaneLevelShared& shared, const LaneLevelMemory& memory)
      : coder_(coder),
        shared_(shared),
        memory_(memory),
        own_(memory.own, shared.lattices),
        beside_(memory.beside, shared.lattices),
        alike_(memory.alike, shared.lattices) {}

  /// Codes all cells. A decoder's `plane` has bits that are 0. False where there are no words left.
  constexpr bool code(const LaneBits& plane, const LaneLevelSurroundings& surroundings) {
    has_reference_ = surroundings.reference.words != nullptr;
    has_among_ = surroundings.among.words != nullptr;
    const unsigned levels = bit_length(level_base(plane.rows, plane.cols, has_reference_)) - 1;
    X::sync();
    in_one_lane<X>([&] { place_lattices<X>(plane.rows, plane.cols, levels, shared_.lattices); });
    X::sync();
    own_.plane = plane;
    if constexpr (!kDecodes) own_.split(levels);
    if (has_reference_ || has_among_) {
      beside_.plane = has_reference_ ? surroundings.reference : surroundings.among;
      beside_.split(levels);
    }
    if (has_reference_) {
      look_around(plane);
      alike_.split(levels);
    }
    base_cells(levels);
    for (unsigned t = levels; t-- > 0;) {
      rolled(0, level_contexts::kPhases, [&](unsigned number) {
        if (!own_.phase(t, number).empty()) phase(t, number);
      });
      if constexpr (!kDecodes) continue;
      if (!coder_.good()) return false;
      if (t > 0) clear_lane_words<X>(own_.known(t).words, own_.known(t).cells());
      X::sync();
      own_.join(t);
    }
    return coder_.good();
  }

 private:
  static constexpr bool kDecodes = Coder::kDecodes;
  static constexpr unsigned kNeighbours = kLevelNeighbours;
  static constexpr unsigned kQuietClasses = level_contexts::kQuietClasses;
  using Words = std::uint64_t[kNeighbours];

  /// How many of the eight cells around each of the reference are like it.
  constexpr void look_around(const LaneBits& plane) {
    LaneBits numbers[3];
    unroll<3>([&](auto b) {
      numbers[b] = {memory_.equal[b], 0, plane.rows, plane.cols};
      clear_lane_words<X>(memory_.equal[b], plane.cells());
    });
    alike_.plane = {memory_.alike_plane, 0, plane.rows, plane.cols};
    clear_lane_words<X>(memory_.alike_plane, plane.cells());
    X::sync();
    const LaneBits& r = beside_.plane;
    for_lane_words<X>(plane, [&](std::uint32_t y, std::uint32_t k, auto lane) {
      const std::uint32_t above = y == 0 ? 0 : y - 1, below = y + 1 < plane.rows ? y + 1 : y;
      const auto moved = [&](std::uint32_t row, int columns) { return moved_lane_bits<X>(r, row, k, columns, lane); };
      const std::uint64_t around[8] = {moved(above, -1), moved(above, 0),  moved(above, 1), moved(y, -1),
                                       moved(y, 1),      moved(below, -1), moved(below, 0), moved(below, 1)};
      const LevelNumbers equal = equal_around(moved(y, 0), around);
      const std::uint32_t at = y * plane.cols + 64 * k;
      const std::uint64_t columns = plane.columns(k);
      unroll<3>([&](auto b) { flip_lane_bits<X>(numbers[b], at, equal.bit[b] & columns, lane); });
      flip_lane_bits<X>(alike_.plane, at, equal.bit[1] & equal.bit[2] & columns, lane);
    });
    X::sync();
  }
  /// The number of one cell, of which LevelEqual says how it is counted.
  template <class Lane>
  [[gnu::always_inline]] constexpr unsigned equal_at(std::uint32_t cell, Lane lane) const {
    unsigned number = 0;
    unroll<3>([&](auto b) {
      number |= (X::load(memory_.equal[b] + cell / 32, lane) >> cell % 32 & 1) << static_cast<unsigned>(b);
    });
    return number;
  }
  /// And as it is, for one of few cells.
  template <class Lane>
  constexpr unsigned all_equal_at(std::uint32_t y, std::uint32_t x, Lane lane) const {
    const LaneBits& r = beside_.plane;
    const auto at = [&](std::uint32_t row, std::uint32_t col) {
      const std::uint32_t bit = r.first + row * r.cols + col;
      return X::load(r.words + bit / 32, lane) >> bit % 32 & 1;
    };
    const std::uint32_t here = at(y, x);
    unsigned equal = 0;
    for (std::uint32_t i = 0; i < 9; ++i) {
      if (i == 4) continue;
      const std::uint32_t row = i / 3 == 0 ? (y == 0 ? 0 : y - 1) : std::min(y + i / 3 - 1, r.rows - 1);
      const std::uint32_t col = i % 3 == 0 ? (x == 0 ? 0 : x - 1) : std::min(x + i % 3 - 1, r.cols - 1);
      equal += at(row, col) == here ? 1 : 0;
    }
    return equal;
  }

  constexpr void base_cells(unsigned levels) {
    const LaneBits cells = own_.known(levels), there = beside_.known(levels);
    const bool has_there = has_reference_ || has_among_;
    if (kDecodes && levels > 0) clear_lane_words<X>(cells.words, cells.cells());
    X::sync();
    coder_.begin_list(cells, false);
    for (std::uint32_t first = 0; first < cells.cells(); first += kLanes) {
      typename X::template vec<bool> coded, likely;
      typename X::template vec<std::uint32_t> contexts, symbols;
      X::lanes([&](auto lane) {
        const std::uint32_t cell = first + static_cast<std::uint32_t>(lane);
        const bool exists = cell < cells.cells();
        const bool set = exists && has_there && (lane_window<X>(there, cell, lane) & 1) != 0;
        unsigned context = level_contexts::kBase;
        if (exists && has_reference_) {
          context = level_contexts::kBaseReference + (set ? 9 : 0) +
                    all_equal_at(cell / cells.cols << levels, cell % cells.cols << levels, lane);
        }
        std::uint32_t symbol = 0;
        if (!kDecodes && exists) {
          symbol =
              static_cast<std::uint32_t>(lane_window<X>(cells, cell, lane) & 1) ^ (has_reference_ && set ? 1u : 0u);
        }
        X::set(symbols, lane, symbol);
        X::set(coded, lane, exists && (!has_among_ || set));
        X::set(contexts, lane, context);
        X::set(likely, lane, has_reference_ && set);
      });
      if constexpr (kDecodes) {
        X::sync();  // a plane and its reference may share a word
        X::lanes([&](auto lane) {
          if (X::get(likely, lane)) flip_lane_bits<X>(cells, first + static_cast<std::uint32_t>(lane), 1, lane);
        });
      }
      const std::uint32_t listed = X::ballot(coded);
      X::lanes([&](auto lane) {
        if ((listed >> lane & 1) == 0) return;
        coder_.append(popcount(listed & first_lanes(static_cast<std::uint32_t>(lane))), X::get(contexts, lane), 0,
                      first + static_cast<std::uint32_t>(lane), X::get(symbols, lane), lane);
      });
      coder_.appended(popcount(listed), first + kLanes >= cells.cells());
    }
    X::sync();
  }

  /// The taps of a phase, a byte each: lattice, row and column.
  static constexpr std::uint64_t packed_taps(unsigned phase) {
    std::uint64_t packed = 0;
    for (unsigned n = 0; n < kNeighbours; ++n) {
      const LevelTap& tap = kLevelTaps[phase][n];
      packed |= (static_cast<std::uint64_t>(tap.lattice) | static_cast<std::uint64_t>(tap.row + 1) << 2 |
                 static_cast<std::uint64_t>(tap.col + 1) << 4)
                << 8 * n;
    }
    return packed;
  }
  /// The lattices that a phase at distance 2^t has neighbours in, and where they are.
  struct Around {
    LaneBits known, a, b;
    std::uint64_t taps;

    constexpr Around(const LanePyramid<X>& from, unsigned t, unsigned phase)
        : known(from.known(t + 1)), a(from.phase(t, 0)), b(from.phase(t, 1)) {
      constexpr std::uint64_t kFirst = packed_taps(0), kSecond = packed_taps(1), kThird = packed_taps(2);
      taps = phase == 0 ? kFirst : phase == 1 ? kSecond : kThird;
    }
    constexpr const LaneBits& lattice(unsigned n) const {
      const auto which = static_cast<LevelLattice>(taps >> 8 * n & 3);
      return which == LevelLattice::known ? known : which == LevelLattice::a ? a : b;
    }
    /// The neighbours of cells [64 k, 64 k + 64) of a row; bits of `elsewhere` where a neighbour is nowhere.
    template <class Lane>
    [[gnu::always_inline]] constexpr void moved(std::uint32_t row, std::uint32_t k, const Words& elsewhere, Words& v,
                                                Lane lane) const {
      unroll<kNeighbours>([&](auto n) {
        const LaneBits& from = lattice(n);
        v[n] = elsewhere[n];
        if (from.empty()) return;
        const std::uint32_t down = taps >> (8 * n + 2) & 3;  // and one up
        const std::uint32_t last = from.rows - 1, y = row + down == 0 ? 0 : row + down - 1;
        v[n] = moved_lane_bits<X>(from, y > last ? last : y, k, static_cast<int>(taps >> (8 * n + 4) & 3) - 1, lane);
      });
    }
  };

  /// 64 cells of a phase: which are coded one by one, and what decides how: the neighbours' differences, or numbers
  /// beside the reference.
  struct Looked {
    std::uint64_t loud = 0;
    std::uint64_t value = 0;
    std::uint64_t other = 0;  ///< an encoder's: cells that are not as expected
    std::uint64_t detail[7]{};
  };

  /// What is nowhere, or not coded, is like the first, and the first like the next that is somewhere.
  template <class Lane>
  [[gnu::always_inline]] constexpr void neighbours(const Around& own, const Around& beside, std::uint32_t row,
                                                   std::uint32_t k, Words& v, Lane lane) const {
    Words none{};
    own.moved(row, k, none, v, lane);
    if (!has_among_) {
      unroll<kNeighbours - 1>([&](auto i) {
        if (own.lattice(i + 1).empty()) v[i + 1] = v[0];
      });
      return;
    }
    Words there;
    beside.moved(row, k, none, there, lane);
    std::uint64_t first = 0;
    unroll<kNeighbours>([&](auto i) {
      constexpr unsigned kAt = kNeighbours - 1 - i;
      first = (v[kAt] & there[kAt]) | (first & ~there[kAt]);
    });
    unroll<kNeighbours>([&](auto n) { v[n] = (v[n] & there[n]) | (first & ~there[n]); });
  }

  /// What a lane sees of 64 cells. Notes which are quiet, and what is expected of all of them.
  template <class Lane>
  constexpr Looked look(const LaneBits& cells, const Around& own, const Around& beside, unsigned t, unsigned phase,
                        std::uint32_t row, std::uint32_t k, Lane lane) const {
    const LaneBits quiet{memory_.quiet, 0, cells.rows, cells.cols}, agree{memory_.agree, 0, cells.rows, cells.cols};
    const std::uint32_t at = row * cells.cols + 64 * k;
    std::uint64_t all = cells.columns(k), unlike = 0;
    Words v;
    neighbours(own, beside, row, k, v, lane);
    unroll<kNeighbours - 1>([&](auto i) { unlike |= v[i + 1] ^ v[0]; });
    Looked word;
    if (has_reference_) {
      Words also;
      beside.moved(row, k, v, also, lane);
      word.value = lane_window<X>(beside_.phase(t, phase), at, lane);
      const LevelSideWords sides =
          phase == 2 ? level_sides<2>(v, also, word.value) : level_sides<0>(v, also, word.value);
      const std::uint64_t like = lane_window<X>(alike_.phase(t, phase), at, lane);
      word.loud = (~like | sides.differ.bit[0] | sides.differ.bit[1]) & all;
      unroll<3>([&](auto b) { word.detail[b] = sides.near.bit[b]; });
      unroll<2>([&](auto b) {
        word.detail[3 + b] = sides.next.bit[b];
        word.detail[5 + b] = sides.differ.bit[b];
      });
      flip_lane_bits<X>(agree, at, ~unlike & all, lane);
    } else {
      if (has_among_) all &= lane_window<X>(beside_.phase(t, phase), at, lane);
      word.value = v[0];
      word.loud = unlike & all;
      unroll<kNeighbours - 1>([&](auto i) { word.detail[i] = v[i + 1] ^ v[0]; });
    }
    const std::uint64_t rest = all & ~word.loud;
    if (has_reference_) {
      unroll<kQuietClasses - 1>([&](auto c) { count(c + 1, class_of(c + 1, rest, ~unlike, word.value), lane); });
    } else {
      count(0, rest, lane);
    }
    flip_lane_bits<X>(quiet, at, rest, lane);
    if constexpr (kDecodes) {
      flip_lane_bits<X>(cells, at, word.value & all, lane);
    } else {
      word.other = (lane_window<X>(cells, at, lane) ^ word.value) & all;
      flip_lane_bits<X>(LaneBits{memory_.other, 0, cells.rows, cells.cols}, at, word.other, lane);
    }
    return word;
  }
  template <class Lane>
  [[gnu::always_inline]] constexpr void count(unsigned quiet_class, std::uint64_t members, Lane lane) const {
    if (members != 0) X::add_to(shared_.members + quiet_class, lane, static_cast<std::uint32_t>(popcount(members)));
  }

  /// One phase: cells that are coded one by one, then those that are coded by class.
  constexpr void phase(unsigned t, unsigned number) {
    const LaneBits cells = own_.phase(t, number);
    X::sync();
    clear_lane_words<X>(kDecodes ? cells.words : memory_.other, cells.cells());
    clear_lane_words<X>(memory_.quiet, cells.cells());
    if (has_reference_) clear_lane_words<X>(memory_.agree, cells.cells());
    X::lanes([&](auto lane) {
      if (lane < kQuietClasses) X::store(shared_.members + lane, lane, 0u);
    });
    X::sync();

    const Around own(own_, t, number), beside(beside_, t, number);
    const unsigned distance = level_distance(UINT64_C(1) << t);
    coder_.begin_list(cells, has_reference_);
    const std::uint32_t along = cells.along(), count = cells.rows * along;
    for (std::uint32_t first = 0; first < count; first += kLanes) {
      typename X::template vec<Looked> looked;
      typename X::template vec<std::uint32_t> places;
      X::lanes([&](auto lane) {
        const std::uint32_t item = first + static_cast<std::uint32_t>(lane);
        Looked word;
        if (item < count) word = look(cells, own, beside, t, number, item / along, item % along, lane);
        X::set(looked, lane, word);
        X::set(places, lane, static_cast<std::uint32_t>(popcount(word.loud)));
      });
      const std::uint32_t listed = X::reduce_add(places);
      X::exclusive_scan(places);
      X::lanes([&](auto lane) {
        const Looked word = X::get(looked, lane);
        std::uint32_t place = X::get(places, lane);
        const std::uint32_t item = first + static_cast<std::uint32_t>(lane), row = item / along, k = item % along;
        for (std::uint64_t left = word.loud; left != 0; left &= left - 1)
          append(word, lowest_bit(left), row, 64 * k, t, number, distance, place++, lane);
      });
      coder_.appended(listed, first + kLanes >= count);
    }
    X::sync();
    rolled(0, kQuietClasses, [&](unsigned c) {
      const std::uint32_t n = X::load_same(shared_.members + c);
      if (n == 0) return;
      const unsigned context =
          level_contexts::kQuiet + (distance * level_contexts::kPhases + number) * kQuietClasses + c;
      const LaneBits there = beside_.phase(t, number);
      if constexpr (kDecodes) {
        if (code_surprises(c, n, distance, context)) put_surprises(c, cells, there);
      } else {
        gather_surprises(c, n, cells, there);
        code_surprises(c, n, distance, context);
      }
    });
  }

  template <class Lane>
  [[gnu::always_inline]] constexpr void append(const Looked& word, unsigned bit, std::uint32_t row,
                                               std::uint32_t first_col, unsigned t, unsigned number, unsigned distance,
                                               std::uint32_t place, Lane lane) {
    const auto of = [&](unsigned i) { return static_cast<unsigned>(word.detail[i] >> bit & 1); };
    const auto symbol = static_cast<unsigned>(word.other >> bit & 1);
    const std::uint32_t col = first_col + bit, cell = row * own_.phase(t, number).cols + col;
    if (has_reference_) {
      const std::uint32_t y = (2 * row + (number != 0 ? 1 : 0)) << t, x = (2 * col + (number != 1 ? 1 : 0)) << t;
      const LevelSides sides{static_cast<unsigned>(word.value >> bit & 1), equal_at(y * own_.plane.cols + x, lane),
                             of(5) | of(6) << 1, of(0) | of(1) << 1 | of(2) << 2, of(3) | of(4) << 1};
      coder_.append(place, coarse_level_context(number, sides), fine_level_context(number, distance, sides), cell,
                    symbol, lane);
    } else {
      unsigned other = 0;
      unroll<kNeighbours - 1>([&](auto i) { other |= of(i) << static_cast<unsigned>(i); });
      coder_.append(place, flat_level_context(number, distance, other), 0, cell, symbol, lane);
    }
  }

  /// Those of quiet cells that are of a class.
  static constexpr std::uint64_t class_of(unsigned quiet_class, std::uint64_t quiet, std::uint64_t agree,
                                          std::uint64_t expected) {
    if (quiet_class == 0) return quiet;
    return quiet & (quiet_class <= 2 ? agree : ~agree) & (quiet_class % 2 == 1 ? ~expected : expected);
  }

  /// Codes which of the n cells of a class are not as expected: whether there is one in each 1024 cells; in each 32 of
  /// those; then the cells of these. False where none is.
  constexpr bool code_surprises(unsigned quiet_class, std::uint32_t n, unsigned distance, unsigned context) {
    constexpr std::uint32_t kGroup = 1024, kWord = 32;
    const unsigned of_class = quiet_class * level_contexts::kDistances + distance;
    std::uint32_t count = (n + kGroup - 1) / kGroup;
    for (unsigned stage = 0; stage < 3; ++stage) {
      // Items of a stage are places in a list of the stage before; it gives those in which there is something.
      const std::uint32_t* const before = stage == 2 ? memory_.open : memory_.groups;
      std::uint32_t* const after = stage == 0 ? memory_.groups : memory_.open;
      const auto place_of = [&](std::uint32_t item, auto lane) {
        return stage == 0 ? item : X::load(before + item / kWord, lane) * kWord + item % kWord;
      };
      std::uint32_t found = 0;
      coder_.run(
          stage == 0   ? level_contexts::kGroup + of_class
          : stage == 1 ? level_contexts::kWord + of_class
                       : context,
          count,
          [&](std::uint32_t first, std::uint32_t items) {
            return ballot_of<X>([&](auto lane) {
              if (lane >= items) return false;
              return is_surprising(stage, place_of(first + static_cast<std::uint32_t>(lane), lane), n, lane);
            });
          },
          [&](std::uint32_t first, std::uint32_t ones) {
            if (ones == 0) return;
            if (stage == 2) {
              if constexpr (kDecodes) {
                in_one_lane<X>([&] {
                  const std::uint32_t word = X::load(before + first / kWord, 0);
                  X::flip_bits(memory_.surprises + word, 0, ones << first % kWord);
                });
              }
              return;
            }
            X::lanes([&](auto lane) {
              if ((ones >> lane & 1) == 0) return;
              const std::uint32_t at = found + popcount(ones & first_lanes(static_cast<std::uint32_t>(lane)));
              X::store(after + at, lane, place_of(first + static_cast<std::uint32_t>(lane), lane));
            });
            found += popcount(ones);
          });
      X::sync();
      if (stage == 2) break;
      if (found == 0) return false;
      // Of 32 items each, the last of which may have fewer.
      const std::uint32_t last = X::load_same(after + found - 1), items = stage == 0 ? (n + kWord - 1) / kWord : n;
      const std::uint32_t of_last = items - last * kWord;
      count = (found - 1) * kWord + (of_last < kWord ? of_last : kWord);
      if (kDecodes && stage == 1) clear_lane_words<X>(memory_.surprises, n);
      X::sync();
    }
    return true;
  }
  /// Whether an encoder knows a surprise in a place of a stage: 1024 cells, 32 of them, or one.
  template <class Lane>
  constexpr bool is_surprising(unsigned stage, std::uint32_t place, std::uint32_t n, Lane lane) const {
    if (stage == 2) return (X::load(memory_.surprises + place / 32, lane) >> place % 32 & 1) != 0;
    if (stage == 1) return X::load(memory_.surprises + place, lane) != 0;
    const std::uint32_t end = std::min(32 * place + 32, (n + 31) / 32);
    std::uint32_t any = 0;
    for (std::uint32_t word = 32 * place; word < end; ++word) any |= X::load(memory_.surprises + word, lane);
    return any != 0;
  }

  /// Calls f(members, cell, place, lane) for the cells of a class, 64 a lane from `cell` on: the first of them has so
  /// many of the class before. `there`: the reference at the cells.
  template <class F>
  constexpr void for_members(unsigned quiet_class, const LaneBits& cells, const LaneBits& there, F&& f) {
    const LaneBits quiet{memory_.quiet, 0, cells.rows, cells.cols}, agree{memory_.agree, 0, cells.rows, cells.cols};
    const std::uint32_t along = cells.along(), count = cells.rows * along;
    std::uint32_t before = 0;
    for (std::uint32_t first = 0; first < count; first += kLanes) {
      typename X::template vec<std::uint64_t> members;
      typename X::template vec<std::uint32_t> places;
      const auto cell_of = [&](auto lane) {
        const std::uint32_t item = first + static_cast<std::uint32_t>(lane);
        return item / along * cells.cols + 64 * (item % along);
      };
      X::lanes([&](auto lane) {
        std::uint64_t mine = 0;
        if (first + static_cast<std::uint32_t>(lane) < count) {
          const std::uint32_t at = cell_of(lane);
          mine = lane_window<X>(quiet, at, lane) & cells.columns((first + static_cast<std::uint32_t>(lane)) % along);
          if (quiet_class != 0) {
            mine = class_of(quiet_class, mine, lane_window<X>(agree, at, lane), lane_window<X>(there, at, lane));
          }
        }
        X::set(members, lane, mine);
        X::set(places, lane, static_cast<std::uint32_t>(popcount(mine)));
      });
      const std::uint32_t all = X::reduce_add(places);
      X::exclusive_scan(places);
      X::lanes([&](auto lane) {
        const std::uint64_t mine = X::get(members, lane);
        if (mine != 0) f(mine, cell_of(lane), before + X::get(places, lane), lane);
      });
      before += all;
    }
    X::sync();
  }

  /// Turns cells over that are not as expected.
  constexpr void put_surprises(unsigned quiet_class, const LaneBits& cells, const LaneBits& there) {
    const LaneBits surprises{memory_.surprises, 0, 1, cells.cells()};
    for_members(quiet_class, cells, there, [&](std::uint64_t left, std::uint32_t cell, std::uint32_t place, auto lane) {
      std::uint64_t other = 0;
      std::uint64_t bits = lane_window<X>(surprises, place, lane);
      for (; left != 0 && bits != 0; left &= left - 1, bits >>= 1) other |= (left & (0 - left)) & (0 - (bits & 1));
      flip_lane_bits<X>(cells, cell, other, lane);
    });
  }
  /// The way back: those of the n cells of a class, side by side.
  constexpr void gather_surprises(unsigned quiet_class, std::uint32_t n, const LaneBits& cells, const LaneBits& there) {
    const LaneBits surprises{memory_.surprises, 0, 1, cells.cells()};
    const LaneBits other{memory_.other, 0, cells.rows, cells.cols};
    clear_lane_words<X>(memory_.surprises, n);
    X::sync();
    for_members(quiet_class, cells, there, [&](std::uint64_t mine, std::uint32_t cell, std::uint32_t place, auto lane) {
      std::uint64_t bits = 0;
      for (std::uint64_t left = lane_window<X>(other, cell, lane) & mine; left != 0; left &= left - 1)
        bits |= UINT64_C(1) << popcount(mine & ((left & (0 - left)) - 1));
      flip_lane_bits<X>(surprises, place, bits, lane);
    });
  }

  Coder& coder_;
  LaneLevelShared& shared_;
  const LaneLevelMemory& memory_;
  LanePyramid<X> own_;
  LanePyramid<X> beside_;
  LanePyramid<X> alike_;
  bool has_reference_ = false;
  bool has_among_ = false;
};

}  // namespace quern::kernels
