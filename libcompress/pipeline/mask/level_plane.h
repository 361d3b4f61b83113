// The walk over one plane of a mask that is coded by levels, for encoder and decoder alike: 64 cells at a time where
// neighbours agree, cell by cell where they do not.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <quern/memory.h>

#include "kernels/mask/levels/lattice.h"
#include "kernels/mask/levels/neighbours.h"
#include "libcompress/pipeline/mask/level_bits.h"
#include "libcompress/pipeline/mask/level_coder.h"

namespace quern::mask {

/// What a plane is coded beside. `reference`: a plane of the same rows or more, or null. `among`: of the same rows;
/// cells that are coded at all, the others being 0; null: all.
struct LevelSurroundings {
  const LevelBits* reference = nullptr;
  const LevelBits* among = nullptr;
};

template <class Coder>
class LevelPlaneWalk {
 public:
  LevelPlaneWalk(Coder& coder, LevelTables& tables) : coder_(coder), tables_(tables) {}

  /// What a decoder allocates at most for planes of so many rows: without a reference and with all cells, beside a
  /// reference as well, or among cells.
  static constexpr std::uint64_t bytes(std::uint64_t rows, std::uint64_t cols, bool with_reference, bool with_among) {
    // Symbols and contexts of a phase, which grow by doubling; then surprises of the quiet classes and their groups.
    constexpr std::uint64_t kBytesOfCell = 15, kMoreCells = 64;
    const auto pyramid = [&](bool beside) { return LevelPyramid::bytes(rows, cols, levels_of(rows, cols, beside)); };
    std::uint64_t sum = pyramid(false) + most_found(rows, cols) * sizeof(Found);
    if (with_reference) sum += 2 * pyramid(true) + LevelEqual::bytes(rows, cols);
    if (with_among) sum += pyramid(false);
    const std::uint64_t cells = std::max((rows + 1) / 2 * (cols / 2), rows / 2 * ((cols + 1) / 2));
    return sum + kBytesOfCell * (cells + kMoreCells);
  }

  /// Codes all cells. `plane` has its extents; an encoder reads its bits, a decoder sets them. False where a decoder has
  /// no words left.
  bool plane(LevelBits& plane, const LevelSurroundings& beside) {
    has_reference_ = beside.reference != nullptr;
    has_among_ = beside.among != nullptr;
    const unsigned levels = levels_of(plane.rows(), plane.cols(), has_reference_);
    found_.reserve(static_cast<std::size_t>(most_found(plane.rows(), plane.cols())));
    own_.resize(plane.rows(), plane.cols(), levels);
    if (!Coder::kDecodes) take(plane, own_);
    if (has_reference_) {
      reference_.resize(plane.rows(), plane.cols(), levels);
      alike_.resize(plane.rows(), plane.cols(), levels);
      take(*beside.reference, reference_);
      equal_.look(reference_.plane(), alike_.plane());
      alike_.split();
    }
    if (has_among_) {
      among_.resize(plane.rows(), plane.cols(), levels);
      take(*beside.among, among_);
    }
    base_cells(levels);
    for (unsigned t = levels; t-- > 0;) {
      Phase<0>(*this, t).code();
      Phase<1>(*this, t).code();
      Phase<2>(*this, t).code();
      if (!coder_.good()) return false;
      if (Coder::kDecodes) own_.join(t);
    }
    if (Coder::kDecodes) put(own_.plane(), plane);
    return coder_.good();
  }

 private:
  static constexpr unsigned kNeighbours = kernels::kLevelNeighbours;
  static constexpr unsigned kQuietClasses = kernels::level_contexts::kQuietClasses;

  /// 64 cells of a phase: which are coded one by one and which by class, what each of them is expected to be, and where
  /// all neighbours agree.
  struct Found {
    std::uint64_t loud;
    std::uint64_t quiet;
    std::uint64_t expected;
    std::uint64_t agree;
  };

  static constexpr unsigned levels_of(std::uint64_t rows, std::uint64_t cols, bool with_reference) {
    return static_cast<unsigned>(std::countr_zero(kernels::level_base(rows, cols, with_reference)));
  }
  /// Words of the cells of a phase at most.
  static constexpr std::uint64_t most_found(std::uint64_t rows, std::uint64_t cols) {
    return std::max((rows + 1) / 2 * LevelBits::words_of(cols / 2), rows / 2 * LevelBits::words_of((cols + 1) / 2));
  }

  static void put(const LevelBits& from, LevelBits& to) {
    for (std::uint64_t y = 0; y < to.rows(); ++y) std::copy_n(from.row(y), to.words() + 1, to.row(y));
  }
  static void take(const LevelBits& from, LevelPyramid& to) {
    put(from, to.plane());
    to.split();
  }

  void base_cells(unsigned levels) {
    LevelBits& cells = own_.known(levels);
    if (Coder::kDecodes) cells.clear();
    list_.clear();
    list_.make_room(cells.rows() * cells.cols(), false);
    const auto for_coded = [&](auto&& body) {
      for (std::uint64_t y = 0; y < cells.rows(); ++y) {
        for (std::uint64_t x = 0; x < cells.cols(); ++x) {
          if (!has_among_ || among_.known(levels).get(y, x)) body(y, x);
        }
      }
    };
    for_coded([&](std::uint64_t y, std::uint64_t x) {
      unsigned context = kernels::level_contexts::kBase, expected = 0;
      if (has_reference_) {
        expected = reference_.known(levels).get(y, x) ? 1 : 0;
        context = kernels::level_contexts::kBaseReference + expected * 9 + equal_around(y << levels, x << levels);
      }
      list_.add(context, Coder::kDecodes ? 0 : (cells.get(y, x) ? 1U : 0U) ^ expected);
    });
    coder_.code(tables_, list_);
    if constexpr (!Coder::kDecodes) return;
    std::size_t next = 0;
    for_coded([&](std::uint64_t y, std::uint64_t x) {
      const unsigned expected = has_reference_ && reference_.known(levels).get(y, x) ? 1 : 0;
      cells.set(y, x, list_.symbols[next++] ^ expected);
    });
    for (std::uint64_t y = 0; y < cells.rows(); ++y) cells.pad(y);
  }

  /// Cells of the reference plane around one that are like it; beyond the plane its border goes on.
  unsigned equal_around(std::uint64_t y, std::uint64_t x) const {
    const LevelBits& r = reference_.plane();
    const std::uint64_t k = x / 64;
    const unsigned shift = x % 64;
    const auto three = [&](std::uint64_t at) -> unsigned {  // the cells left of x, at x and right of it
      const std::uint64_t* const row = r.row(at);
      const std::uint64_t left = kernels::moved_word(row, k, -1) >> shift & 1, here = row[k] >> shift & 1;
      return static_cast<unsigned>(left | here << 1 | (kernels::moved_word(row, k, 1) >> shift & 1) << 2);
    };
    const unsigned middle = three(y);
    const unsigned nine = three(y == 0 ? 0 : y - 1) | middle << 3 | three(y + 1 < r.rows() ? y + 1 : y) << 6;
    const unsigned ones = (kOnesOfThree >> 2 * (nine & 7) & 3) + (kOnesOfThree >> 2 * (nine >> 3 & 7) & 3) +
                          (kOnesOfThree >> 2 * (nine >> 6) & 3);
    return (middle & 2) != 0 ? ones - 1 : 8 - ones;
  }
  static constexpr unsigned kOnesOfThree = 0xE994;  // two bits for each number below 8: how many bits it has

  /// The cells of one phase at distance 2^t.
  template <unsigned kPhase>
  class Phase {
   public:
    Phase(LevelPlaneWalk& walk, unsigned t) : walk_(walk), t_(t), cells_(walk.own_.phase(t, kPhase)) {}

    void code() {
      if (cells_.empty()) return;
      walk_.list_.clear();
      walk_.found_.resize(cells_.rows() * cells_.words());
      for (unsigned c = 0; c < kQuietClasses; ++c) {
        walk_.quiet_[c] = 0;
        if (!Coder::kDecodes) walk_.surprises_[c].assign(cells_.rows() * cells_.words() + 1, 0);
      }
      Found* found = walk_.found_.data();
      for (std::uint64_t i = 0; i < cells_.rows(); ++i) {
        fetch(i, walk_.own_, own_rows_);
        if (walk_.has_reference_) fetch(i, walk_.reference_, reference_rows_);
        if (walk_.has_among_) fetch(i, walk_.among_, among_rows_);
        for (std::uint64_t k = 0; k < cells_.words(); ++k) {
          if (walk_.has_reference_) {
            look_beside_reference(i, k, *found++);
          } else {
            look(i, k, *found++);
          }
        }
      }
      walk_.coder_.code(walk_.tables_, walk_.list_);
      if (Coder::kDecodes) put_loud();
      for (unsigned c = 0; c < kQuietClasses; ++c) {
        if (walk_.quiet_[c] != 0) code_quiet(c);
      }
      if constexpr (!Coder::kDecodes) return;
      for (std::uint64_t i = 0; i < cells_.rows(); ++i) cells_.pad(i);
    }

   private:
    /// Rows of the neighbours; null where their lattice has no cell.
    using Rows = std::array<const std::uint64_t*, kNeighbours>;
    using Words = std::uint64_t[kNeighbours];

    static constexpr kernels::LevelTap tap(unsigned n) { return kernels::kLevelTaps[kPhase][n]; }

    void fetch(std::uint64_t i, const LevelPyramid& from, Rows& rows) const {
      for (unsigned n = 0; n < kNeighbours; ++n) {
        const LevelBits& lattice = from.lattice(t_, tap(n).lattice);
        const auto last = std::max<std::int64_t>(static_cast<std::int64_t>(lattice.rows()) - 1, 0);
        const auto y = std::clamp<std::int64_t>(static_cast<std::int64_t>(i) + tap(n).row, 0, last);
        rows[n] = lattice.empty() ? nullptr : lattice.row(static_cast<std::uint64_t>(y));
      }
    }
    /// Bits of the neighbours; those of `elsewhere` where a neighbour is nowhere.
    static void moved(const Rows& rows, std::uint64_t k, const Words& elsewhere, Words& v) {
#pragma GCC unroll 8
      for (unsigned n = 0; n < kNeighbours; ++n)
        v[n] = rows[n] == nullptr ? elsewhere[n] : kernels::moved_word(rows[n], k, tap(n).col);
    }
    /// What is nowhere, or not coded, is like the first, and the first like the next that is somewhere.
    void neighbours(std::uint64_t k, Words& v) const {
      constexpr Words kNone{};
      moved(own_rows_, k, kNone, v);
      if (!walk_.has_among_) {
        for (unsigned n = 1; n < kNeighbours; ++n) v[n] = own_rows_[n] == nullptr ? v[0] : v[n];
        return;
      }
      Words there;
      moved(among_rows_, k, kNone, there);
      std::uint64_t first = 0;
      for (unsigned n = kNeighbours; n-- > 0;) first = (v[n] & there[n]) | (first & ~there[n]);
      for (unsigned n = 0; n < kNeighbours; ++n) v[n] = (v[n] & there[n]) | (first & ~there[n]);
    }

    /// What 64 cells without a reference are; lists those that are loud.
    void look(std::uint64_t i, std::uint64_t k, Found& found) {
      const std::uint64_t all =
          walk_.has_among_ ? walk_.among_.phase(t_, kPhase).row(i)[k] & cells_.columns(k) : cells_.columns(k);
      Words v;
      neighbours(k, v);
      std::uint64_t loud = 0;
      Words other;
      for (unsigned n = 1; n < kNeighbours; ++n) loud |= other[n] = v[n] ^ v[0];
      found = {loud & all, all & ~loud, v[0], ~std::uint64_t{0}};
      const std::uint64_t symbols = symbols_of(i, k, found);
      walk_.list_.make_room(64, false);
      const unsigned contexts = kernels::flat_level_context(kPhase, distance(), 0);
      for (std::uint64_t m = found.loud; m != 0; m &= m - 1) {
        const unsigned bit = static_cast<unsigned>(std::countr_zero(m));
        unsigned f = 0;
        for (unsigned n = 1; n < kNeighbours; ++n) f |= static_cast<unsigned>(other[n] >> bit & 1) << (n - 1);
        walk_.list_.add(contexts + f, static_cast<unsigned>(symbols >> bit & 1));
      }
      count_quiet(found.quiet, symbols, 0);
    }

    /// And beside one.
    void look_beside_reference(std::uint64_t i, std::uint64_t k, Found& found) {
      Words v, there;
      neighbours(k, v);
      moved(reference_rows_, k, v, there);
      const std::uint64_t all = cells_.columns(k);
      const std::uint64_t r = walk_.reference_.phase(t_, kPhase).row(i)[k];
      const kernels::LevelSideWords sides = kernels::level_sides<kPhase>(v, there, r);
      const std::uint64_t loud = ~walk_.alike_.phase(t_, kPhase).row(i)[k] | sides.differ.bit[0] | sides.differ.bit[1];
      std::uint64_t unlike = 0;
      for (unsigned n = 1; n < kNeighbours; ++n) unlike |= v[n] ^ v[0];
      found = {loud & all, all & ~loud, r, ~unlike};
      const std::uint64_t symbols = symbols_of(i, k, found);
      walk_.list_.make_room(64, true);
      const kernels::LevelPhase& phase = kernels::kLevelPhases[kPhase];
      for (std::uint64_t m = found.loud; m != 0; m &= m - 1) {
        const unsigned bit = static_cast<unsigned>(std::countr_zero(m));
        const kernels::LevelSides cell{static_cast<unsigned>(r >> bit & 1),
                                       walk_.equal_.of((2 * i + phase.y0) << t_, (2 * (64 * k + bit) + phase.x0) << t_),
                                       sides.differ.of(bit), sides.near.of(bit), sides.next.of(bit)};
        walk_.list_.add(kernels::coarse_level_context(kPhase, cell), static_cast<unsigned>(symbols >> bit & 1),
                        kernels::fine_level_context(kPhase, distance(), cell));
      }
      for (unsigned c = 1; c < kQuietClasses; ++c) count_quiet(class_of(found, c), symbols, c);
    }

    /// Which cells are not as expected; a decoder supposes none.
    std::uint64_t symbols_of(std::uint64_t i, std::uint64_t k, const Found& found) {
      std::uint64_t& word = cells_.row(i)[k];
      if constexpr (!Coder::kDecodes) return word ^ found.expected;
      word = found.expected & (found.loud | found.quiet);
      return 0;
    }
    void count_quiet(std::uint64_t members, std::uint64_t symbols, unsigned quiet_class) {
      if (members == 0) return;
      if constexpr (!Coder::kDecodes) {
        for (std::uint64_t m = members & symbols; m != 0; m &= m - 1) {
          const std::uint64_t at =
              walk_.quiet_[quiet_class] + static_cast<unsigned>(std::popcount(members & ((m & (0 - m)) - 1)));
          walk_.surprises_[quiet_class][at / 64] |= UINT64_C(1) << at % 64;
        }
      }
      walk_.quiet_[quiet_class] += static_cast<unsigned>(std::popcount(members));
    }
    static std::uint64_t class_of(const Found& found, unsigned quiet_class) {
      if (quiet_class == 0) return found.quiet;
      return found.quiet & (quiet_class <= 2 ? found.agree : ~found.agree) &
             (quiet_class % 2 == 1 ? ~found.expected : found.expected);
    }
    unsigned distance() const { return kernels::level_distance(UINT64_C(1) << t_); }

    void put_loud() {
      const std::uint8_t* symbol = walk_.list_.symbols.data();
      const Found* found = walk_.found_.data();
      for (std::uint64_t i = 0; i < cells_.rows(); ++i) {
        std::uint64_t* const row = cells_.row(i);
        for (std::uint64_t k = 0; k < cells_.words(); ++k, ++found) {
          std::uint64_t other = 0;
          for (std::uint64_t m = found->loud; m != 0; m &= m - 1)
            other |= (m & (0 - m)) & (0 - std::uint64_t{*symbol++});
          row[k] ^= other;
        }
      }
    }

    /// Whether there is a surprise in each 1024 cells; in each 32 of those; then the cells of these.
    void code_quiet(unsigned quiet_class) {
      namespace contexts = kernels::level_contexts;
      constexpr std::uint64_t kGroup = 1024, kWord = 32;
      const std::uint64_t n = walk_.quiet_[quiet_class];
      Vector<std::uint64_t>& surprises = walk_.surprises_[quiet_class];
      if (Coder::kDecodes) surprises.assign(n / 64 + 1, 0);
      LevelList& list = walk_.list_;
      const auto word_of = [&](std::uint64_t at) { return static_cast<std::uint32_t>(surprises[at / 64] >> at % 64); };
      list.clear();
      list.make_room(n / kGroup + 1, false);
      for (std::uint64_t at = 0; at < n; at += kGroup) {
        bool any = false;
        if (!Coder::kDecodes) {
          for (std::uint64_t a = at; a < std::min(at + kGroup, n); a += 64) any = any || surprises[a / 64] != 0;
        }
        list.add(contexts::kGroup + quiet_class * contexts::kDistances + distance(), any ? 1 : 0);
      }
      walk_.coder_.code(walk_.tables_, list);
      Vector<std::uint64_t>& open = walk_.open_;
      open.clear();
      for (std::size_t g = 0; g < list.count; ++g) {
        for (std::uint64_t at = g * kGroup; list.symbols[g] != 0 && at < std::min(n, (g + 1) * kGroup); at += kWord)
          open.push_back(at);
      }
      if (open.empty()) return;
      list.clear();
      list.make_room(open.size(), false);
      for (const std::uint64_t at : open)
        list.add(contexts::kWord + quiet_class * contexts::kDistances + distance(),
                 !Coder::kDecodes && word_of(at) != 0 ? 1 : 0);
      walk_.coder_.code(walk_.tables_, list);
      std::size_t kept = 0;
      for (std::size_t w = 0; w < open.size(); ++w) {
        if (list.symbols[w] != 0) open[kept++] = open[w];
      }
      open.resize(kept);
      list.clear();
      list.make_room(kept * kWord, false);
      const unsigned context =
          contexts::kQuiet + (distance() * contexts::kPhases + kPhase) * contexts::kQuietClasses + quiet_class;
      for (const std::uint64_t at : open) {
        for (std::uint64_t j = at; j < std::min(n, at + kWord); ++j)
          list.add(context, static_cast<unsigned>(surprises[j / 64] >> j % 64 & 1));
      }
      walk_.coder_.code(walk_.tables_, list);
      if constexpr (!Coder::kDecodes) return;
      std::size_t next = 0;
      for (const std::uint64_t at : open) {
        for (std::uint64_t j = at; j < std::min(n, at + kWord); ++j)
          surprises[j / 64] |= std::uint64_t{list.symbols[next++]} << j % 64;
      }
      if (kept != 0) put_surprises(quiet_class);
    }

    void put_surprises(unsigned quiet_class) {
      const Vector<std::uint64_t>& surprises = walk_.surprises_[quiet_class];
      const auto window = [&](std::uint64_t at) {
        const std::uint64_t low = surprises[at / 64] >> at % 64;
        return at % 64 == 0 || at / 64 + 1 >= surprises.size() ? low : low | surprises[at / 64 + 1] << (64 - at % 64);
      };
      const Found* found = walk_.found_.data();
      std::uint64_t before = 0;
      for (std::uint64_t i = 0; i < cells_.rows(); ++i) {
        for (std::uint64_t k = 0; k < cells_.words(); ++k, ++found) {
          const std::uint64_t members = class_of(*found, quiet_class);
          if (members == 0) continue;
          std::uint64_t bits = window(before), other = 0;
          before += static_cast<unsigned>(std::popcount(members));
          for (std::uint64_t m = members; m != 0 && bits != 0; m &= m - 1, bits >>= 1)
            other |= (m & (0 - m)) & (0 - (bits & 1));
          cells_.row(i)[k] ^= other;
        }
      }
    }

    LevelPlaneWalk& walk_;
    const unsigned t_;
    LevelBits& cells_;
    Rows own_rows_{};
    Rows reference_rows_{};
    Rows among_rows_{};
  };

  Coder& coder_;
  LevelTables& tables_;
  bool has_reference_ = false;
  bool has_among_ = false;
  LevelPyramid own_;
  LevelPyramid reference_;
  LevelEqual equal_;    // of the reference
  LevelPyramid alike_;  // where all are
  LevelPyramid among_;
  LevelList list_;
  Vector<Found> found_;
  std::array<std::uint64_t, kQuietClasses> quiet_{};            // cells of each class
  std::array<Vector<std::uint64_t>, kQuietClasses> surprises_;  // which of them are not as expected
  Vector<std::uint64_t> open_;
};

}  // namespace quern::mask
