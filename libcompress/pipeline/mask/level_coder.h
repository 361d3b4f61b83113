// Coders of symbols of masks that are coded by levels: lists of symbols in, batches of interleaved rANS out, and back.
// Encoder and decoder have the same member functions, so that one walk serves both directions.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/memory.h>

#include "kernels/mask/levels/constants.h"
#include "kernels/mask/levels/lanes.h"
#include "kernels/mask/levels/models.h"

namespace quern::mask {

/// Symbols that do not depend on each other, with their contexts. An encoder is given the symbols, a decoder gives
/// them.
struct LevelList {
  std::size_t count = 0;
  bool has_fine = false;  ///< all of them have a fine context, or none
  Vector<std::uint16_t> contexts;
  Vector<std::uint16_t> fine;
  Vector<std::uint8_t> symbols;

  void clear() {
    count = 0;
    has_fine = false;
  }
  /// For so many symbols more.
  void make_room(std::uint64_t more, bool with_fine) {
    has_fine = with_fine;
    const std::size_t wanted = count + static_cast<std::size_t>(more);
    if (contexts.size() < wanted) grow(contexts, wanted);
    if (symbols.size() < wanted) grow(symbols, wanted);
    if (with_fine && fine.size() < wanted) grow(fine, wanted);
  }
  void add(unsigned context, unsigned symbol) {
    contexts[count] = static_cast<std::uint16_t>(context);
    symbols[count++] = static_cast<std::uint8_t>(symbol);
  }
  void add(unsigned context, unsigned symbol, unsigned fine_context) {
    fine[count] = static_cast<std::uint16_t>(fine_context);
    add(context, symbol);
  }

 private:
  template <class T>
  static void grow(Vector<T>& items, std::size_t wanted) {
    items.resize(std::max(wanted, items.size() + items.size() / 2));
  }
};

/// Counts and probabilities of one set of tables: of a mask, or of one bit of its classes.
class LevelTables {
 public:
  LevelTables() {
    for (unsigned c = 0; c < counts_.size(); ++c) {
      counts_[c] = kernels::kLevelConstants.of(c);
      probabilities_[c] = static_cast<std::uint16_t>(kernels::level_probability(counts_[c]));
    }
  }

  /// Of a one, at the start of the batch under way.
  template <bool kFine>
  std::uint32_t probability(const LevelList& list, std::size_t i) const {
    const std::uint32_t p = probabilities_[list.contexts[i]];
    if constexpr (!kFine) return p;
    return kernels::fine_probability(fine_[list.fine[i]], p);
  }
  /// Notes a symbol of the batch under way.
  template <bool kFine>
  void note(const LevelList& list, std::size_t i, unsigned symbol) {
    seen_.note(list.contexts[i], symbol);
    if constexpr (kFine) seen_fine_.note(list.fine[i], symbol);
  }
  /// The batch is over.
  void learn() {
    seen_.take([&](std::uint16_t c, unsigned zeros, unsigned ones) {
      counts_[c].add(zeros, ones);
      probabilities_[c] = static_cast<std::uint16_t>(kernels::level_probability(counts_[c]));
    });
    seen_fine_.take([&](std::uint16_t f, unsigned zeros, unsigned ones) { fine_[f].add(zeros, ones); });
  }

 private:
  /// Symbols of a batch by their contexts.
  template <unsigned kCount>
  class Seen {
   public:
    void note(std::uint16_t context, unsigned symbol) {
      std::uint32_t& seen = symbols_[context];
      touched_[size_] = context;
      size_ += seen == 0 ? 1 : 0;
      seen += symbol == 0 ? 1 : kOne;
    }
    template <class F>
    void take(F&& f) {
      for (unsigned k = 0; k < size_; ++k) {
        const std::uint16_t context = touched_[k];
        f(context, symbols_[context] % kOne, symbols_[context] / kOne);
        symbols_[context] = 0;
      }
      size_ = 0;
    }

   private:
    static constexpr std::uint32_t kOne = 1U << 16;  // more than a batch has
    std::array<std::uint32_t, kCount> symbols_{};
    std::array<std::uint16_t, kCount + 1> touched_;
    unsigned size_ = 0;
  };

  std::array<kernels::LevelCounts, kernels::level_contexts::kCount> counts_;
  std::array<std::uint16_t, kernels::level_contexts::kCount> probabilities_{};
  std::array<kernels::LevelCounts, kernels::level_contexts::kFineCount> fine_{};
  Seen<kernels::level_contexts::kCount> seen_;
  Seen<kernels::level_contexts::kFineCount> seen_fine_;
};

/// Collects all symbols; they are put into words from the last one on.
class LevelEncoder {
 public:
  static constexpr bool kDecodes = false;

  /// The symbols of a list, in batches of which the last one ends with the list.
  void code(LevelTables& tables, LevelList& list) {
    if (list.has_fine) {
      code<true>(tables, list);
    } else {
      code<false>(tables, list);
    }
  }
  static constexpr bool good() { return true; }

  unsigned lanes() const { return kernels::level_lanes_for(batches_.done()); }
  /// Words of a group of lanes, in the order in which a decoder takes them.
  Vector<Vector<std::uint16_t>> words() const;

 private:
  static constexpr unsigned kOne = kernels::kLevelOne;  // above a probability: the symbol

  template <bool kFine>
  void code(LevelTables& tables, const LevelList& list) {
    std::size_t to = symbols_.size();
    symbols_.resize(to + list.count);
    for (std::size_t at = 0; at < list.count;) {
      const std::size_t end = at + static_cast<std::size_t>(std::min<std::uint64_t>(list.count - at, batches_.next()));
      for (std::size_t i = at; i < end; ++i) {
        const unsigned symbol = list.symbols[i];
        symbols_[to++] = static_cast<std::uint16_t>(tables.probability<kFine>(list, i) | symbol * kOne);
        tables.note<kFine>(list, i, symbol);
      }
      tables.learn();
      sizes_.push_back(static_cast<std::uint16_t>(end - at));
      batches_.took(end - at);
      at = end;
    }
  }

  kernels::LevelBatches batches_;
  Vector<std::uint16_t> symbols_;
  Vector<std::uint16_t> sizes_;  // of batches
};

/// Reads any words: past the end of a group zeros are read.
class LevelDecoder {
 public:
  static constexpr bool kDecodes = true;

  /// Of each group its words, two bytes each, little-endian.
  LevelDecoder(unsigned lanes, std::span<const std::span<const std::uint8_t>> groups) : lanes_(lanes) {
    for (unsigned g = 0; g < groups.size(); ++g) sources_[g] = {groups[g].data(), groups[g].size() / 2, 0};
    for (unsigned lane = 0; lane < lanes; ++lane) {
      Source& source = sources_[lane / kernels::kLevelGroupLanes];
      const std::uint32_t high = source.next();
      states_[lane] = high << 16 | source.next();
      valid_ = valid_ && states_[lane] >= kernels::kLevelStateLow;
    }
  }

  void code(LevelTables& tables, LevelList& list) {
    if (list.has_fine) {
      code<true>(tables, list);
    } else {
      code<false>(tables, list);
    }
  }
  /// False where words were missing, or the first ones begin no state.
  bool good() const {
    bool enough = valid_;
    for (const Source& source : sources_) enough = enough && source.at <= source.count;
    return enough;
  }
  /// All words used, all states back where an encoder began.
  bool complete() const {
    bool whole = good();
    for (const Source& source : sources_) whole = whole && source.at == source.count;
    for (unsigned lane = 0; lane < lanes_; ++lane) whole = whole && states_[lane] == kernels::kLevelStateLow;
    return whole;
  }

 private:
  struct Source {
    const std::uint8_t* bytes = nullptr;
    std::size_t count = 0;
    std::size_t at = 0;

    std::uint32_t next() {
      const std::size_t i = at++;
      return i < count ? bytes[2 * i] | static_cast<std::uint32_t>(bytes[2 * i + 1]) << 8 : 0;
    }
  };

  template <bool kFine>
  void code(LevelTables& tables, LevelList& list) {
    for (std::size_t at = 0; at < list.count;) {
      const std::size_t end = at + static_cast<std::size_t>(std::min<std::uint64_t>(list.count - at, batches_.next()));
      unsigned lane = 0;
      for (std::size_t i = at; i < end; ++i) {
        std::uint32_t state = states_[lane];
        const unsigned symbol = kernels::take_level_symbol(state, tables.probability<kFine>(list, i));
        list.symbols[i] = static_cast<std::uint8_t>(symbol);
        if (state < kernels::kLevelStateLow) state = state << 16 | sources_[lane / kernels::kLevelGroupLanes].next();
        states_[lane] = state;
        tables.note<kFine>(list, i, symbol);
        lane = lane + 1 == lanes_ ? 0 : lane + 1;
      }
      tables.learn();
      batches_.took(end - at);
      at = end;
    }
  }

  unsigned lanes_;
  bool valid_ = true;
  kernels::LevelBatches batches_;
  std::array<std::uint32_t, kernels::kMostLevelLanes> states_{};
  std::array<Source, kernels::level_groups(kernels::kMostLevelLanes)> sources_{};
};

inline Vector<Vector<std::uint16_t>> LevelEncoder::words() const {
  const unsigned count = lanes();
  Vector<Vector<std::uint16_t>> groups(kernels::level_groups(count));
  std::array<std::uint32_t, kernels::kMostLevelLanes> states{};
  states.fill(kernels::kLevelStateLow);
  std::size_t end = symbols_.size();
  for (std::size_t b = sizes_.size(); b-- > 0; end -= sizes_[b]) {
    const std::size_t begin = end - sizes_[b];
    for (std::size_t i = end; i-- > begin;) {
      const unsigned lane = static_cast<unsigned>(i - begin) % count;
      std::uint16_t word = 0;
      if (kernels::put_level_symbol(states[lane], symbols_[i] % kOne, symbols_[i] / kOne, word))
        groups[lane / kernels::kLevelGroupLanes].push_back(word);
    }
  }
  for (unsigned lane = count; lane-- > 0;) {
    Vector<std::uint16_t>& group = groups[lane / kernels::kLevelGroupLanes];
    group.push_back(static_cast<std::uint16_t>(states[lane]));
    group.push_back(static_cast<std::uint16_t>(states[lane] >> 16));
  }
  for (Vector<std::uint16_t>& group : groups) std::reverse(group.begin(), group.end());
  return groups;
}

}  // namespace quern::mask
