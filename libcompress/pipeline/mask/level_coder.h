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

/// Symbols that do not depend on each other, with their contexts. An encoder is given the symbols, a decoder gives them.
struct LevelList {
  Vector<std::uint16_t> contexts;
  Vector<std::uint16_t> fine;  ///< empty: none of them has a fine context
  Vector<std::uint8_t> symbols;

  void clear() {
    contexts.clear();
    fine.clear();
    symbols.clear();
  }
  std::size_t size() const { return contexts.size(); }
  void add(unsigned context, unsigned symbol) {
    contexts.push_back(static_cast<std::uint16_t>(context));
    symbols.push_back(static_cast<std::uint8_t>(symbol));
  }
};

/// Counts and probabilities of one set of tables: of a mask, or of one bit of its classes.
class LevelTables {
 public:
  LevelTables() : fine_(kernels::level_contexts::kFineCount) {
    for (unsigned c = 0; c < counts_.size(); ++c) {
      counts_[c] = {kernels::kLevelConstants[c][0], kernels::kLevelConstants[c][1]};
      probabilities_[c] = static_cast<std::uint16_t>(kernels::level_probability(counts_[c]));
    }
  }

  /// Of a one, at the start of the batch under way.
  std::uint32_t probability(const LevelList& list, std::size_t i) const {
    const std::uint32_t p = probabilities_[list.contexts[i]];
    if (list.fine.empty()) return p;
    return kernels::fine_probability(fine_[list.fine[i]], p);
  }
  /// Counts the symbols [begin, end) of a batch that is over.
  void learn(const LevelList& list, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      Seen& seen = seen_[list.contexts[i]];
      if (seen.zeros + seen.ones == 0) touched_.push_back(list.contexts[i]);
      ++(list.symbols[i] == 0 ? seen.zeros : seen.ones);
      if (!list.fine.empty()) learn_fine(list.fine[i], list.symbols[i]);
    }
    for (const std::uint16_t c : touched_) {
      kernels::LevelCounts& counts = counts_[c];
      counts.add(seen_[c].zeros, seen_[c].ones);
      probabilities_[c] = static_cast<std::uint16_t>(kernels::level_probability(counts));
      seen_[c] = {};
    }
    touched_.clear();
    for (const std::uint16_t f : touched_fine_) {
      fine_[f].add(seen_fine_[f].zeros, seen_fine_[f].ones);
      seen_fine_[f] = {};
    }
    touched_fine_.clear();
  }

 private:
  struct Seen {
    std::uint16_t zeros = 0;
    std::uint16_t ones = 0;
  };
  void learn_fine(std::uint16_t f, unsigned symbol) {
    if (seen_fine_.empty()) seen_fine_.resize(kernels::level_contexts::kFineCount);
    Seen& seen = seen_fine_[f];
    if (seen.zeros + seen.ones == 0) touched_fine_.push_back(f);
    ++(symbol == 0 ? seen.zeros : seen.ones);
  }

  std::array<kernels::LevelCounts, kernels::level_contexts::kCount> counts_;
  std::array<std::uint16_t, kernels::level_contexts::kCount> probabilities_{};
  std::array<Seen, kernels::level_contexts::kCount> seen_{};
  Vector<kernels::LevelCounts> fine_;
  Vector<Seen> seen_fine_;
  Vector<std::uint16_t> touched_;
  Vector<std::uint16_t> touched_fine_;
};

/// Collects all symbols; they are put into words from the last one on.
class LevelEncoder {
 public:
  static constexpr bool kDecodes = false;

  /// The symbols of a list, in batches of which the last one ends with the list.
  void code(LevelTables& tables, LevelList& list) {
    for (std::size_t at = 0; at < list.size();) {
      const std::size_t end = at + static_cast<std::size_t>(std::min<std::uint64_t>(list.size() - at, batches_.next()));
      for (std::size_t i = at; i < end; ++i) {
        symbols_.push_back(static_cast<std::uint16_t>(tables.probability(list, i) | list.symbols[i] * kOne));
      }
      tables.learn(list, at, end);
      sizes_.push_back(static_cast<std::uint16_t>(end - at));
      batches_.took(end - at);
      at = end;
    }
  }
  static constexpr bool good() { return true; }

  unsigned lanes() const { return kernels::level_lanes_for(batches_.done()); }
  /// Words of a group of lanes, in the order in which a decoder takes them.
  Vector<Vector<std::uint16_t>> words() const;

 private:
  static constexpr unsigned kOne = kernels::kLevelOne;  // above a probability: the symbol

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
    for (std::size_t at = 0; at < list.size();) {
      const std::size_t end = at + static_cast<std::size_t>(std::min<std::uint64_t>(list.size() - at, batches_.next()));
      unsigned lane = 0;
      for (std::size_t i = at; i < end; ++i) {
        std::uint32_t& state = states_[lane];
        list.symbols[i] = static_cast<std::uint8_t>(kernels::take_level_symbol(state, tables.probability(list, i)));
        if (state < kernels::kLevelStateLow) state = state << 16 | sources_[lane / kernels::kLevelGroupLanes].next();
        lane = lane + 1 == lanes_ ? 0 : lane + 1;
      }
      tables.learn(list, at, end);
      batches_.took(end - at);
      at = end;
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
