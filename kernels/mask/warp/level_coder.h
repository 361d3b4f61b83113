// Symbols of masks that are coded by levels, as a warp reads them: 32 at a time, each from the state of its lane, with
// probabilities that change between batches alone. Over an execution model X (see kernels/README.md).
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/common/lanes.h"
#include "kernels/mask/levels/head.h"
#include "kernels/mask/levels/lanes.h"
#include "kernels/mask/levels/models.h"
#include "kernels/mask/warp/level_lattice.h"
#include "kernels/mask/warp/level_tables.h"
#include "kernels/mask/warp/memory.h"

namespace quern::kernels {

template <class X>
class LaneLevelDecoder {
 public:
  static constexpr bool kDecodes = true;

  constexpr LaneLevelDecoder(LaneLevelShared& shared, const std::uint8_t* in, const LevelConstants& constants)
      : shared_(shared), tables_(shared, constants), in_(in) {}

  /// Group g of lanes has so many words; they follow one another.
  constexpr void set_group(unsigned g, std::uint64_t words) {
    X::lanes([&](auto lane) {
      if (g == 0) {
        X::set(words_, lane, std::uint64_t{0});
        X::set(used_, lane, std::uint64_t{0});
      }
      if (lane == g) X::set(words_, lane, words);
    });
  }
  /// After the groups: the words begin at `words`, the states are read.
  constexpr void begin(std::uint64_t words, unsigned lanes) {
    lanes_ = lanes;
    begins_ = words_;
    X::inclusive_scan(begins_);
    X::lanes([&](auto lane) { X::set(begins_, lane, words + 2 * (X::get(begins_, lane) - X::get(words_, lane))); });
    typename X::template vec<bool> bad;
    X::lanes([&](auto lane) { X::set(bad, lane, false); });
    for (unsigned first = 0; first < lanes; first += kLanes) {
      const Source source = source_of(first / kLanes);
      const unsigned here = lanes - first < kLanes ? lanes - first : kLanes;
      X::lanes([&](auto lane) {
        if (lane >= here) return;
        const std::uint64_t at = 2 * static_cast<std::uint64_t>(lane);
        const std::uint32_t state = word(source, at) << 16 | word(source, at + 1);
        X::store(shared_.states + first + lane, lane, state);
        if (state < kLevelStateLow) X::set(bad, lane, true);
      });
      use(first / kLanes, 2 * here);
    }
    valid_ = !X::any(bad);
  }

  constexpr void begin_tables() { tables_.begin_tables(); }

  /// False where words were missing, or the first ones begin no state.
  constexpr bool good() const {
    return valid_ && !X::any(lanes_that([&](auto lane) { return X::get(used_, lane) > X::get(words_, lane); }));
  }
  /// All words used, all states back where an encoder began.
  constexpr bool complete() const {
    if (!good() || X::any(lanes_that([&](auto lane) { return X::get(used_, lane) < X::get(words_, lane); })))
      return false;
    return !X::any(lanes_that([&](auto lane) {
      bool other = false;
      for (auto l = static_cast<unsigned>(lane); l < lanes_; l += kLanes)
        other = other || X::load(shared_.states + l, lane) != kLevelStateLow;
      return other;
    }));
  }

  /// A list of symbols of one context. Calls sink(first, ones): of symbols from `first` on, up to 32, those that are 1.
  /// An encoder calls symbols(first, n) for the same of n symbols.
  template <class Symbols, class F>
  constexpr void run(unsigned context, std::uint32_t count, Symbols&&, F&& sink) {
    for (std::uint32_t at = 0; at < count;) {
      const std::uint32_t batch = tables_.batch_of(count - at), p = tables_.probability(context);
      std::uint32_t ones = 0;
      for (std::uint32_t b = 0; b < batch; b += width()) {
        const std::uint32_t there = std::min(batch - b, width());
        const std::uint32_t found = step(b, there, [&](auto) { return p; });
        ones += popcount(found);
        sink(at + b, found);
      }
      tables_.learn_run(context, batch, ones);
      at += batch;
    }
  }

  /// A list of symbols of several contexts, which are appended 2048 at a time at most. A symbol of 1 turns its cell
  /// over. `fine`: they have fine contexts, too.
  constexpr void begin_list(const LaneBits& cells, bool fine) {
    cells_ = cells;
    tables_.begin_list(fine);
  }
  /// The symbol that is `place` behind those that were announced; all lanes. An encoder takes the symbol.
  template <class Lane>
  [[gnu::always_inline]] constexpr void append(std::uint32_t place, unsigned context, unsigned fine_context,
                                               std::uint32_t cell, unsigned, Lane lane) {
    const std::uint32_t entry = tables_.entry_behind(place);
    tables_.set_entry(entry, context, fine_context, 0, lane);
    X::store(shared_.places + entry, lane, cell);
  }
  /// So many were appended, the last ones where `ended`. Reads whole batches, and the rest of a list that has ended.
  constexpr void appended(std::uint32_t count, bool ended) {
    tables_.appended(count, ended, [&](std::uint32_t symbols) { batch(symbols); });
  }

 private:
  template <class F>
  static constexpr auto lanes_that(F&& f) {
    typename X::template vec<bool> flags;
    X::lanes([&](auto lane) { X::set(flags, lane, f(lane)); });
    return flags;
  }

  /// Words of a group of lanes, and how many of them were used.
  struct Source {
    std::uint64_t begin;
    std::uint64_t words;
    std::uint64_t used;
  };
  constexpr Source source_of(unsigned group) const {
    return {X::broadcast(begins_, group), X::broadcast(words_, group), X::broadcast(used_, group)};
  }
  constexpr void use(unsigned group, std::uint32_t count) {
    X::lanes([&](auto lane) {
      if (lane == group) X::set(used_, lane, X::get(used_, lane) + count);
    });
  }
  /// The word that is `ahead` of the next; 0 behind the last.
  constexpr std::uint32_t word(const Source& source, std::uint64_t ahead) const {
    const std::uint64_t at = source.used + ahead;
    if (at >= source.words) return 0;
    const std::uint8_t* const bytes = in_ + source.begin + 2 * at;
    return bytes[0] | static_cast<std::uint32_t>(bytes[1]) << 8;
  }

  /// Symbols that are read at once.
  constexpr std::uint32_t width() const { return lanes_ < kLanes ? lanes_ : kLanes; }
  /// Those of `there` symbols from the b-th of a batch on that are 1.
  template <class P>
  [[gnu::always_inline]] constexpr std::uint32_t step(std::uint32_t b, std::uint32_t there, P&& probability) {
    const unsigned first = b % lanes_, group = first / kLanes;
    typename X::template vec<bool> one, hungry;
    typename X::template vec<std::uint32_t> states;
    X::lanes([&](auto lane) {
      std::uint32_t state = kLevelStateLow;
      unsigned symbol = 0;
      if (lane < there) {
        state = X::load(shared_.states + first + lane, lane);
        symbol = take_level_symbol(state, probability(lane));
      }
      X::set(one, lane, symbol != 0);
      X::set(hungry, lane, state < kLevelStateLow);
      X::set(states, lane, state);
    });
    const std::uint32_t ones = X::ballot(one), fed = X::ballot(hungry);
    const Source source = source_of(group);
    X::lanes([&](auto lane) {
      if (lane >= there) return;
      std::uint32_t state = X::get(states, lane);
      if ((fed >> lane & 1) != 0)
        state = state << 16 | word(source, popcount(fed & first_lanes(static_cast<std::uint32_t>(lane))));
      X::store(shared_.states + first + lane, lane, state);
    });
    use(group, popcount(fed));
    return ones;
  }

  constexpr void batch(std::uint32_t count) {
    for (std::uint32_t b = 0; b < count; b += width()) {
      const std::uint32_t there = std::min(count - b, width());
      const std::uint32_t ones = step(b, there, [&](auto lane) -> std::uint32_t {
        return tables_.probability_of(tables_.entry_of(b + static_cast<std::uint32_t>(lane)), lane);
      });
      X::lanes([&](auto lane) {
        if (lane >= there || (ones >> lane & 1) == 0) return;
        const std::uint32_t e = tables_.entry_of(b + static_cast<std::uint32_t>(lane));
        const std::uint32_t bit = cells_.first + X::load(shared_.places + e, lane);
        tables_.set_symbol(e, lane);
        X::flip_bits(cells_.words + bit / 32, lane, 1u << bit % 32);
      });
    }
  }

  LaneLevelShared& shared_;
  LaneLevelTables<X> tables_;
  const std::uint8_t* in_;
  unsigned lanes_ = kFewestLevelLanes;
  bool valid_ = true;
  typename X::template vec<std::uint64_t> begins_, words_, used_;  // of the group that a lane has the number of
  LaneBits cells_;
};

}  // namespace quern::kernels
