// Counts and probabilities of masks that are coded by levels, and the symbols that wait for their batch, as a warp keeps
// them: the same for its decoder and its encoder. Over an execution model X (see kernels/README.md).
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

/// Parts of a mask whose tables begin anew: its positions, and each bit of its classes' numbers.
inline constexpr unsigned kMostLevelParts = 6;

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
  std::uint64_t done[kMostLevelParts + 1];               ///< an encoder's: symbols before each part of a mask
  std::uint64_t words[kMostLevelGroups];                 ///< and words of each group of lanes
  LevelPlace lattices[kLatticesOfLevel * (kMostLaneLevels + 1)];
};

/// A list of symbols of several contexts goes through a ring of entries: whoever walks over the cells appends them, and
/// whoever codes them takes whole batches.
template <class X>
class LaneLevelTables {
 public:
  constexpr LaneLevelTables(LaneLevelShared& shared, const LevelConstants& constants)
      : shared_(shared), constants_(constants) {}

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

  constexpr const LevelBatches& batches() const { return batches_; }
  /// Begins batches as they are behind that many symbols.
  constexpr void begin_batches(std::uint64_t done) {
    batches_ = {};
    batches_.took(done);
  }

  /// Of a one in a context, for all lanes.
  constexpr std::uint32_t probability(unsigned context) const { return X::load_same(shared_.probabilities + context); }
  /// Symbols of one context in the batch that is to begin, of a list that has so many left.
  constexpr std::uint32_t batch_of(std::uint32_t left) const {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(left, batches_.next()));
  }
  /// The batch had so many symbols of one context, of which some were ones.
  constexpr void learn_run(unsigned context, std::uint32_t batch, std::uint32_t ones) {
    X::sync();
    in_one_lane<X>([&] {
      const LevelCounts counts = learnt(X::load(shared_.counts + context, 0), batch - ones, ones);
      X::store(shared_.counts + context, 0, packed(counts));
      X::store(shared_.probabilities + context, 0, static_cast<std::uint16_t>(level_probability(counts)));
    });
    X::sync();
    batches_.took(batch);
  }

  constexpr void begin_list(bool fine) {
    fine_ = fine;
    from_ = 0;
    to_ = 0;
  }
  /// The entry of the symbol that is `place` behind those that were announced.
  constexpr std::uint32_t entry_behind(std::uint32_t place) const { return (to_ + place) % LaneLevelShared::kListed; }
  /// The entry of a symbol of the batch under way.
  constexpr std::uint32_t entry_of(std::uint32_t symbol) const { return (from_ + symbol) % LaneLevelShared::kListed; }
  /// Contexts of an entry; `symbol` may be set later.
  template <class Lane>
  [[gnu::always_inline]] constexpr void set_entry(std::uint32_t entry, unsigned context, unsigned fine_context,
                                                  unsigned symbol, Lane lane) {
    X::store(shared_.contexts + entry, lane, static_cast<std::uint16_t>(context | (symbol != 0 ? kSymbol : 0)));
    X::store(shared_.fine_contexts + entry, lane, static_cast<std::uint16_t>(fine_context));
  }
  template <class Lane>
  [[gnu::always_inline]] constexpr void set_symbol(std::uint32_t entry, Lane lane) {
    X::store(shared_.contexts + entry, lane,
             static_cast<std::uint16_t>(X::load(shared_.contexts + entry, lane) | kSymbol));
  }
  template <class Lane>
  [[gnu::always_inline]] constexpr unsigned symbol_of(std::uint32_t entry, Lane lane) const {
    return X::load(shared_.contexts + entry, lane) >= kSymbol ? 1 : 0;
  }
  template <class Lane>
  [[gnu::always_inline]] constexpr std::uint32_t probability_of(std::uint32_t entry, Lane lane) const {
    const std::uint32_t context = X::load(shared_.contexts + entry, lane) % kSymbol;
    const std::uint32_t p = X::load(shared_.probabilities + context, lane);
    if (!fine_) return p;
    return fine_probability(unpacked(X::load(shared_.fine + X::load(shared_.fine_contexts + entry, lane), lane)), p);
  }
  /// So many were appended, the last ones where `ended`. Calls batch(count) for whole batches, and for the rest of a
  /// list that has ended; their symbols are known then, and learnt.
  template <class F>
  constexpr void appended(std::uint32_t count, bool ended, F&& batch) {
    to_ += count;
    X::sync();
    for (;;) {
      const std::uint32_t waiting = to_ - from_;
      const auto wanted = static_cast<std::uint32_t>(batches_.next());
      if (waiting == 0 || (waiting < wanted && !ended)) break;
      const std::uint32_t symbols = std::min(waiting, wanted);
      batch(symbols);
      X::sync();
      learn(symbols);
      batches_.took(symbols);
      from_ += symbols;
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
  LevelBatches batches_;
  bool fine_ = false;
  std::uint32_t from_ = 0;
  std::uint32_t to_ = 0;
};

}  // namespace quern::kernels
