// The walk over one plane of a mask that is coded by levels, for encoder and decoder alike.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <quern/memory.h>

#include "kernels/mask/levels/neighbours.h"
#include "libcompress/pipeline/mask/level_coder.h"

namespace quern::mask {

/// A plane of bits, one a byte. `reference`: of the same rows, or null. `among`: cells that are coded at all, the others
/// being 0; null: all.
struct LevelCells {
  std::uint8_t* bits = nullptr;
  std::uint64_t rows = 0;
  std::uint64_t cols = 0;
  const std::uint8_t* reference = nullptr;
  const std::uint8_t* among = nullptr;
};

template <class Coder>
class LevelPlaneWalk {
 public:
  LevelPlaneWalk(Coder& coder, LevelTables& tables) : coder_(coder), tables_(tables) {}

  /// Codes all cells. False where a decoder has no words left.
  bool plane(const LevelCells& cells) {
    cells_ = cells;
    const std::uint64_t base = kernels::level_base(cells.rows, cells.cols, cells.reference != nullptr);
    base_cells(base);
    for (std::uint64_t s = base / 2; s >= 1; s /= 2) {
      for (unsigned phase = 0; phase < kernels::level_contexts::kPhases; ++phase) {
        distance_ = kernels::level_distance(s);
        phase_cells(phase, s);
        if (!coder_.good()) return false;
      }
    }
    return coder_.good();
  }

 private:
  using Neighbours = std::uint8_t[kernels::kLevelNeighbours];

  struct Quiet {
    Vector<std::uint64_t> at;
    Vector<std::uint8_t> expected;
    Vector<std::uint8_t> other;  // 1: the cell is something else
  };

  std::uint64_t index(std::uint64_t y, std::uint64_t x) const { return y * cells_.cols + x; }
  bool is_coded(std::uint64_t at) const { return cells_.among == nullptr || cells_.among[at] != 0; }

  void base_cells(std::uint64_t base) {
    list_.clear();
    at_.clear();
    expected_.clear();
    for (std::uint64_t y = 0; y < cells_.rows; y += base) {
      for (std::uint64_t x = 0; x < cells_.cols; x += base) {
        const std::uint64_t at = index(y, x);
        if (!is_coded(at)) continue;
        unsigned context = kernels::level_contexts::kBase, expected = 0;
        if (cells_.reference != nullptr) {
          expected = cells_.reference[at];
          context = kernels::level_contexts::kBaseReference + expected * 9 + equal_around(y, x);
        }
        add(at, context, expected);
      }
    }
    code_list();
  }

  void add(std::uint64_t at, unsigned context, unsigned expected) {
    list_.add(context, Coder::kDecodes ? 0 : cells_.bits[at] ^ expected);
    at_.push_back(at);
    expected_.push_back(static_cast<std::uint8_t>(expected));
  }
  void code_list() {
    coder_.code(tables_, list_);
    if constexpr (!Coder::kDecodes) return;
    for (std::size_t i = 0; i < at_.size(); ++i)
      cells_.bits[at_[i]] = static_cast<std::uint8_t>(list_.symbols[i] ^ expected_[i]);
  }

  /// Cells of the reference plane around one that are like it; beyond the plane its border goes on.
  unsigned equal_around(std::uint64_t y, std::uint64_t x) const {
    const std::uint64_t up = y == 0 ? 0 : y - 1, down = y + 1 < cells_.rows ? y + 1 : y;
    const std::uint64_t left = x == 0 ? 0 : x - 1, right = x + 1 < cells_.cols ? x + 1 : x;
    const std::uint8_t* r = cells_.reference;
    const std::uint8_t value = r[index(y, x)];
    unsigned n = 0;
    for (const std::uint64_t v : {up, y, down}) {
      for (const std::uint64_t u : {left, x, right}) n += r[index(v, u)] == value ? 1 : 0;
    }
    return n - 1;
  }

  /// Where neighbour i is, or no place.
  static constexpr std::uint64_t kNowhere = UINT64_MAX;
  std::uint64_t neighbour(const kernels::LevelPhase& phase, unsigned i, std::uint64_t y, std::uint64_t x,
                          std::uint64_t s) const {
    const auto step = static_cast<std::int64_t>(s);
    const auto rows = static_cast<std::int64_t>(cells_.rows), cols = static_cast<std::int64_t>(cells_.cols);
    const std::int64_t v = kernels::level_coordinate(static_cast<std::int64_t>(y) + phase.dy[i] * step, rows, step);
    const std::int64_t u = kernels::level_coordinate(static_cast<std::int64_t>(x) + phase.dx[i] * step, cols, step);
    if (v < 0 || u < 0 || v >= rows || u >= cols) return kNowhere;
    return index(static_cast<std::uint64_t>(v), static_cast<std::uint64_t>(u));
  }

  void phase_cells(unsigned number, std::uint64_t s) {
    const kernels::LevelPhase& phase = kernels::kLevelPhases[number];
    list_.clear();
    at_.clear();
    expected_.clear();
    for (Quiet& quiet : quiet_) {
      quiet.at.clear();
      quiet.expected.clear();
      quiet.other.clear();
    }
    for (std::uint64_t y = phase.y0 * s; y < cells_.rows; y += 2 * s) {
      const bool inner_row = y >= 3 * s && y + 3 * s < cells_.rows;
      for (std::uint64_t x = phase.x0 * s; x < cells_.cols; x += 2 * s) {
        const std::uint64_t at = index(y, x);
        if (!is_coded(at)) continue;
        std::uint64_t places[kernels::kLevelNeighbours];
        if (inner_row && x >= 3 * s && x + 3 * s < cells_.cols && cells_.among == nullptr) {
          for (unsigned i = 0; i < kernels::kLevelNeighbours; ++i)
            places[i] = at + static_cast<std::uint64_t>(phase.dy[i]) * s * cells_.cols +
                        static_cast<std::uint64_t>(phase.dx[i]) * s;
        } else {
          for (unsigned i = 0; i < kernels::kLevelNeighbours; ++i) places[i] = neighbour(phase, i, y, x, s);
        }
        cell(number, at, y, x, places);
      }
    }
    code_list();
    for (unsigned c = 0; c < kernels::level_contexts::kQuietClasses; ++c) {
      if (!quiet_[c].at.empty()) code_quiet(number, c);
    }
  }

  void cell(unsigned phase, std::uint64_t at, std::uint64_t y, std::uint64_t x,
            const std::uint64_t (&places)[kernels::kLevelNeighbours]) {
    Neighbours v;
    take_neighbours(places, v);
    kernels::LevelChoice choice;
    if (cells_.reference == nullptr) {
      choice = kernels::flat_level_choice(phase, distance_, v);
    } else {
      kernels::LevelReference reference;
      reference.value = cells_.reference[at];
      reference.equal = static_cast<std::uint8_t>(equal_around(y, x));
      const unsigned looked_at = phase + 1 == kernels::level_contexts::kPhases ? 8 : 6;
      for (unsigned i = 0; i < looked_at; ++i) {
        if (places[i] != kNowhere && cells_.reference[places[i]] != v[i]) ++reference.differ;
      }
      choice = kernels::reference_level_choice(phase, distance_, v, reference);
    }
    if (choice.quiet) {
      Quiet& quiet = quiet_[choice.context];
      quiet.at.push_back(at);
      quiet.expected.push_back(choice.expected);
      quiet.other.push_back(Coder::kDecodes ? 0 : cells_.bits[at] ^ choice.expected);
    } else {
      add(at, choice.context, choice.expected);
      if (choice.fine != kernels::kNoFine) list_.fine.push_back(choice.fine);
    }
  }

  /// Values of the neighbours; one that is nowhere, or not coded, is like the first, and the first like the next that
  /// is somewhere.
  void take_neighbours(const std::uint64_t (&places)[kernels::kLevelNeighbours], Neighbours& v) const {
    const auto is_there = [&](std::uint64_t at) { return at != kNowhere && is_coded(at); };
    std::uint8_t first = 0;
    for (unsigned i = 0; i < kernels::kLevelNeighbours; ++i) {
      if (!is_there(places[i])) continue;
      first = cells_.bits[places[i]];
      break;
    }
    for (unsigned i = 0; i < kernels::kLevelNeighbours; ++i)
      v[i] = is_there(places[i]) ? cells_.bits[places[i]] : first;
  }

  /// Whether there is a surprise in each 1024 cells; in each 32 of those; then the cells of these.
  void code_quiet(unsigned phase, unsigned quiet_class) {
    namespace contexts = kernels::level_contexts;
    constexpr std::size_t kGroup = 1024, kWord = 32;
    Quiet& quiet = quiet_[quiet_class];
    const std::size_t n = quiet.at.size();
    const auto any = [&](std::size_t begin, std::size_t size) -> unsigned {
      const auto first = quiet.other.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto last = quiet.other.begin() + static_cast<std::ptrdiff_t>(std::min(begin + size, n));
      return !Coder::kDecodes && std::find(first, last, 1) != last ? 1 : 0;
    };
    list_.clear();
    for (std::size_t a = 0; a < n; a += kGroup)
      list_.add(contexts::kGroup + quiet_class * contexts::kDistances + distance_, any(a, kGroup));
    coder_.code(tables_, list_);
    open_.clear();
    for (std::size_t k = 0; k < list_.size(); ++k) {
      for (std::size_t a = k * kGroup; list_.symbols[k] != 0 && a < std::min(n, (k + 1) * kGroup); a += kWord)
        open_.push_back(a);
    }
    list_.clear();
    for (const std::size_t a : open_)
      list_.add(contexts::kWord + quiet_class * contexts::kDistances + distance_, any(a, kWord));
    coder_.code(tables_, list_);
    std::size_t kept = 0;
    for (std::size_t k = 0; k < open_.size(); ++k) {
      if (list_.symbols[k] != 0) open_[kept++] = open_[k];
    }
    open_.resize(kept);
    list_.clear();
    const unsigned context =
        contexts::kQuiet + (distance_ * contexts::kPhases + phase) * contexts::kQuietClasses + quiet_class;
    for (const std::size_t a : open_) {
      for (std::size_t i = a; i < std::min(n, a + kWord); ++i) list_.add(context, quiet.other[i]);
    }
    coder_.code(tables_, list_);
    if constexpr (!Coder::kDecodes) return;
    std::size_t next = 0;
    for (const std::size_t a : open_) {
      for (std::size_t i = a; i < std::min(n, a + kWord); ++i) quiet.other[i] = list_.symbols[next++];
    }
    for (std::size_t i = 0; i < n; ++i)
      cells_.bits[quiet.at[i]] = static_cast<std::uint8_t>(quiet.expected[i] ^ quiet.other[i]);
  }

  Coder& coder_;
  LevelTables& tables_;
  LevelCells cells_;
  unsigned distance_ = 0;
  LevelList list_;
  Vector<std::uint64_t> at_;
  Vector<std::uint8_t> expected_;
  Quiet quiet_[kernels::level_contexts::kQuietClasses];
  Vector<std::size_t> open_;
};

}  // namespace quern::mask
