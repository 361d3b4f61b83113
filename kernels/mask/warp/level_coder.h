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
#include "kernels/mask/warp/memory.h"

namespace quern::kernels {

/// Fast memory that the lanes share.
struct LaneLevelShared {
  static constexpr unsigned kMarks = (level_contexts::kCount + 31) / 32;
  static constexpr unsigned kFineMarks = (level_contexts::kFineCount + 31) / 32;
  /// Of symbols that wait for their batch: the most in one, and those of 32 words of cells.
  static constexpr std::uint32_t kListed = 4096;

  std::uint32_t counts[level_contexts::kCount];    ///< zeros, and ones above them; in sixteenths of a symbol
  std::uint32_t fine[level_contexts::kFineCount];  ///< the same
  std::uint16_t probabilities[level_contexts::kCount];
  std::uint32_t marks[kMarks];  ///< contexts that symbols of the batch have
  std::uint32_t fine_marks[kFineMarks];
  std::uint16_t contexts[kListed];  ///< and the symbol, in the highest bit
  std::uint16_t fine_contexts[kListed];
  std::uint32_t places[kListed];
  std::uint32_t states[kMostLevelLanes];
  std::uint64_t specials[kMaxSpecials];
  std::uint32_t members[level_contexts::kQuietClasses];  ///< cells of each class of a phase
  LevelPlace lattices[kLatticesOfLevel * (kMostLaneLevels + 1)];
};

template <class X>
class LaneLevelDecoder {
 public:
  static constexpr std::uint32_t kMostOfBatch = 2048;

  constexpr LaneLevelDecoder(LaneLevelShared& shared, const std::uint8_t* in, const LevelConstants& constants)
      : shared_(shared), constants_(constants), in_(in) {}

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

  /// Contexts are what they are at the beginning.
  constexpr void begin_tables() {
    X::lanes([&](auto lane) {
      for (auto c = static_cast<unsigned>(lane); c < level_contexts::kCount; c += kLanes) {
        const LevelCounts counts = constants_.of(c);
        X::store(shared_.counts + c, lane, packed(counts));
        X::store(shared_.probabilities + c, lane, static_cast<std::uint16_t>(level_probability(counts)));
      }
      for (auto f = static_cast<unsigned>(lane); f < level_contexts::kFineCount; f += kLanes)
        X::store(shared_.fine + f, lane, 0u);
      for (auto k = static_cast<unsigned>(lane); k < LaneLevelShared::kMarks; k += kLanes)
        X::store(shared_.marks + k, lane, 0u);
      for (auto k = static_cast<unsigned>(lane); k < LaneLevelShared::kFineMarks; k += kLanes)
        X::store(shared_.fine_marks + k, lane, 0u);
    });
    X::sync();
  }

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
  template <class F>
  constexpr void run(unsigned context, std::uint32_t count, F&& sink) {
    for (std::uint32_t at = 0; at < count;) {
      const auto batch = static_cast<std::uint32_t>(std::min<std::uint64_t>(count - at, batches_.next()));
      const std::uint32_t p = X::load_same(shared_.probabilities + context);
      std::uint32_t ones = 0;
      for (std::uint32_t b = 0; b < batch; b += width()) {
        const std::uint32_t there = std::min(batch - b, width());
        const std::uint32_t found = step(b, there, [&](auto) { return p; });
        ones += popcount(found);
        sink(at + b, found);
      }
      X::sync();
      in_one_lane<X>([&] {
        const LevelCounts counts = learnt(X::load(shared_.counts + context, 0), batch - ones, ones);
        X::store(shared_.counts + context, 0, packed(counts));
        X::store(shared_.probabilities + context, 0, static_cast<std::uint16_t>(level_probability(counts)));
      });
      X::sync();
      batches_.took(batch);
      at += batch;
    }
  }

  /// A list of symbols of several contexts, which are appended 2048 at a time at most. A symbol of 1 turns its cell
  /// over. `fine`: they have fine contexts, too.
  constexpr void begin_list(const LaneBits& cells, bool fine) {
    cells_ = cells;
    fine_ = fine;
    from_ = 0;
    to_ = 0;
  }
  /// The symbol that is `place` behind those that were announced; all lanes.
  template <class Lane>
  [[gnu::always_inline]] constexpr void append(std::uint32_t place, unsigned context, unsigned fine_context,
                                               std::uint32_t cell, Lane lane) {
    const std::uint32_t entry = (to_ + place) % LaneLevelShared::kListed;
    X::store(shared_.contexts + entry, lane, static_cast<std::uint16_t>(context));
    X::store(shared_.fine_contexts + entry, lane, static_cast<std::uint16_t>(fine_context));
    X::store(shared_.places + entry, lane, cell);
  }
  /// So many were appended, the last ones where `ended`. Reads whole batches, and the rest of a list that has ended.
  constexpr void appended(std::uint32_t count, bool ended) {
    to_ += count;
    X::sync();
    for (;;) {
      const std::uint32_t waiting = to_ - from_;
      const auto wanted = static_cast<std::uint32_t>(batches_.next());
      if (waiting == 0 || (waiting < wanted && !ended)) break;
      batch(std::min(waiting, wanted));
    }
  }

 private:
  static constexpr std::uint16_t kSymbol = 0x8000;

  static constexpr std::uint32_t packed(const LevelCounts& counts) { return counts.zeros | counts.ones << 16; }
  static constexpr LevelCounts unpacked(std::uint32_t word) {
    return {static_cast<std::uint16_t>(word), static_cast<std::uint16_t>(word >> 16)};
  }
  /// After symbols that may be in the word already.
  static constexpr LevelCounts learnt(std::uint32_t word, unsigned zeros = 0, unsigned ones = 0) {
    LevelCounts counts = unpacked(word);
    counts.add(zeros, ones);
    return counts;
  }

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
      const auto entry = [&](auto lane) {
        return (from_ + b + static_cast<std::uint32_t>(lane)) % LaneLevelShared::kListed;
      };
      const std::uint32_t ones = step(b, there, [&](auto lane) -> std::uint32_t {
        const std::uint32_t e = entry(lane);
        const std::uint32_t p = X::load(shared_.probabilities + X::load(shared_.contexts + e, lane), lane);
        if (!fine_) return p;
        return fine_probability(unpacked(X::load(shared_.fine + X::load(shared_.fine_contexts + e, lane), lane)), p);
      });
      X::lanes([&](auto lane) {
        if (lane >= there || (ones >> lane & 1) == 0) return;
        const std::uint32_t e = entry(lane), bit = cells_.first + X::load(shared_.places + e, lane);
        X::store(shared_.contexts + e, lane, static_cast<std::uint16_t>(X::load(shared_.contexts + e, lane) | kSymbol));
        X::flip_bits(cells_.words + bit / 32, lane, 1u << bit % 32);
      });
    }
    X::sync();
    learn(count);
    batches_.took(count);
    from_ += count;
  }

  /// Counts the symbols of the batch.
  constexpr void learn(std::uint32_t count) {
    X::lanes([&](auto lane) {
      for (auto b = static_cast<std::uint32_t>(lane); b < count; b += kLanes) {
        const std::uint32_t e = (from_ + b) % LaneLevelShared::kListed;
        const std::uint32_t context = X::load(shared_.contexts + e, lane);
        const std::uint32_t c = context % kSymbol;
        const std::uint32_t more = context >= kSymbol ? LevelCounts::kSymbol << 16 : LevelCounts::kSymbol;
        X::add_to(shared_.counts + c, lane, more);
        X::set_bits(shared_.marks + c / 32, lane, 1u << c % 32);
        if (fine_) {
          const std::uint32_t f = X::load(shared_.fine_contexts + e, lane);
          X::add_to(shared_.fine + f, lane, more);
          X::set_bits(shared_.fine_marks + f / 32, lane, 1u << f % 32);
        }
      }
    });
    X::sync();
    for_marked(shared_.marks, LaneLevelShared::kMarks, [&](std::uint32_t c, auto lane) {
      const LevelCounts counts = learnt(X::load(shared_.counts + c, lane));
      X::store(shared_.counts + c, lane, packed(counts));
      X::store(shared_.probabilities + c, lane, static_cast<std::uint16_t>(level_probability(counts)));
    });
    if (fine_) {
      for_marked(shared_.fine_marks, LaneLevelShared::kFineMarks, [&](std::uint32_t f, auto lane) {
        X::store(shared_.fine + f, lane, packed(learnt(X::load(shared_.fine + f, lane))));
      });
    }
    X::sync();
  }
  template <class F>
  static constexpr void for_marked(std::uint32_t* marks, unsigned words, F&& f) {
    X::lanes([&](auto lane) {
      for (auto k = static_cast<unsigned>(lane); k < words; k += kLanes) {
        std::uint32_t left = X::load(marks + k, lane);
        if (left == 0) continue;
        X::store(marks + k, lane, 0u);
        for (; left != 0; left &= left - 1) f(32 * k + lowest_bit(left), lane);
      }
    });
  }

  LaneLevelShared& shared_;
  const LevelConstants& constants_;
  const std::uint8_t* in_;
  unsigned lanes_ = kFewestLevelLanes;
  bool valid_ = true;
  LevelBatches batches_;
  typename X::template vec<std::uint64_t> begins_, words_, used_;  // of the group that a lane has the number of
  LaneBits cells_;
  bool fine_ = false;
  std::uint32_t from_ = 0;
  std::uint32_t to_ = 0;
};

}  // namespace quern::kernels
