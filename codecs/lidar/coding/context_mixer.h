// Predicts one binary decision from several contexts. Each context owns a counter; two sets of weights, chosen by small
// contexts, mix the counters in the logistic domain; an adaptive map corrects the result. Integers only. The method is
// that of Mahoney's PAQ (2005), with counters of our own.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <quern/memory.h>

#include "codecs/lidar/coding/counter.h"
#include "codecs/lidar/coding/lanes.h"
#include "codecs/lidar/coding/logistic.h"
#include "kernels/common/bits.h"

namespace quern::codec::lidar {

/// What one decision is seen with. `contexts` are hashes, see context_hash().
template <unsigned kContexts>
struct DecisionContext {
  std::array<std::uint32_t, kContexts> contexts;
  std::uint32_t first_set;   ///< of weights
  std::uint32_t second_set;  ///< of weights
  std::uint32_t map;         ///< of the correction, below kMaps
};

template <unsigned kContexts>
class ContextMixer {
 public:
  static constexpr unsigned kMaps = 1024;

  /// `table_bits` (1..24): each context has a table of 2^table_bits counters of 4 bytes. May throw std::bad_alloc.
  ContextMixer(unsigned table_bits, std::uint32_t first_sets, std::uint32_t second_sets)
      : table_shift_(32 - table_bits),
        table_size_(std::size_t{1} << table_bits),
        counters_(std::size_t{kContexts} << table_bits),
        first_(first_sets, first_weights()),
        second_(second_sets, first_weights()),
        maps_(std::size_t{kMaps} * kMapSteps) {
    for (std::size_t i = 0; i < maps_.size(); ++i)
      maps_[i] = static_cast<std::uint16_t>(squash((static_cast<int>(i % kMapSteps) - 16) * kMapStep));
  }

  /// Codes one decision. For an encoder `value` is the decision.
  template <class Coder>
  unsigned code(Coder& coder, const DecisionContext<kContexts>& seen, unsigned value = 0) {
    Counters counters;
    Words words;
    Words stretched;
    if constexpr (kContexts % kLanes != 0) {
      // Lanes without a context have a counter that is never trusted.
      words.back() = {};
      stretched.back() = {};
    }
    look_up(seen, counters, words, stretched, std::make_index_sequence<kContexts>());
    std::array<CounterLanes, kGroups> lanes = lanes_of(words, std::make_index_sequence<kGroups>());
    Inputs inputs;
    for (unsigned k = 0; k < kGroups; ++k) {
      inputs[k] = lanes[k].trusted(Lanes::lower_halves(stretched[k]));
      inputs[kGroups + k] = lanes[k].trusted_directly();
    }
    Weights& first = first_[seen.first_set];
    Weights& second = second_[seen.second_set];
    const std::int32_t first_sum = mix(inputs, first);
    const std::int32_t second_sum = mix(inputs, second);
    const std::int32_t mixed = std::clamp((first_sum + second_sum) >> 1, -kMostStretched, kMostStretched);
    const std::int32_t place = mixed + kMostStretched + 1;
    std::uint16_t* const map = maps_.data() + std::size_t{seen.map} * kMapSteps + place / kMapStep;
    const std::int32_t share = place % kMapStep;
    const std::uint32_t mapped = static_cast<std::uint32_t>((map[0] * (kMapStep - share) + map[1] * share) / kMapStep);
    const std::uint32_t one = std::clamp<std::uint32_t>((squash(mixed) + mapped) / 2, 1, 65535);

    const unsigned bit = coder.bit(one, value);

    const std::int32_t target = bit != 0 ? 65535 : 0;
    adjust(inputs, first, target - static_cast<std::int32_t>(squash(first_sum)));
    adjust(inputs, second, target - static_cast<std::int32_t>(squash(second_sum)));
    for (unsigned i = 0; i < 2; ++i) map[i] = static_cast<std::uint16_t>(map[i] + (target - map[i]) / 64);
    for (unsigned k = 0; k < kGroups; ++k) {
      lanes[k].update(bit);
      lanes[k].store(words[k]);
    }
    write_back(words, counters, std::make_index_sequence<kContexts>());
    return bit;
  }

 private:
  static constexpr unsigned kGroups = (kContexts + kLanes - 1) / kLanes;
  /// Of each counter its stretched probability, then of each the probability itself, in groups of lanes.
  using Inputs = std::array<Lanes, 2 * kGroups>;
  using Weights = std::array<Lanes, 2 * kGroups>;  ///< in units of 2^-kWeightBits
  using Words = std::array<CounterLanes::Words, kGroups>;
  using Counters = std::array<Counter*, kContexts>;

  static constexpr unsigned kWeightBits = 14;
  static constexpr std::int16_t kFirstWeight = 14750 / static_cast<std::int16_t>(kContexts);
  static constexpr std::int16_t kMostWeight = 30000;
  static constexpr std::int32_t kMapStep = 192;
  static constexpr unsigned kMapSteps = 2 * (kMostStretched + 1) / kMapStep + 1;
  /// What the two inputs of a counter add up to at most, at full trust.
  static constexpr std::int64_t kMostInputs = kMostStretched + (32768 >> 5);
  static_assert(kMostInputs * kMostWeight * (kGroups * kLanes / 2) <= INT32_MAX, "dot() adds half of the lanes so");

  /// The counters of a decision, one for each context. Unrolled: each decision comes by here.
  template <std::size_t... kContext>
  [[gnu::always_inline]] void look_up(const DecisionContext<kContexts>& seen, Counters& counters, Words& words,
                                      Words& stretched, std::index_sequence<kContext...>) {
    Counter* table = counters_.data();
    ((counters[kContext] = table + (seen.contexts[kContext] >> table_shift_), table += table_size_), ...);
    ((word_of<kContext>(words) = counters[kContext]->one | std::uint32_t{counters[kContext]->age} << 16), ...);
    ((word_of<kContext>(stretched) = static_cast<std::uint32_t>(stretch(word_of<kContext>(words) & 0xFFFF))), ...);
  }
  template <std::size_t... kContext>
  [[gnu::always_inline]] static void write_back(const Words& words, const Counters& counters,
                                                std::index_sequence<kContext...>) {
    ((*counters[kContext] = {static_cast<std::uint16_t>(word_of<kContext>(words) & 0xFFFF),
                             static_cast<std::uint16_t>(word_of<kContext>(words) >> 16)}),
     ...);
  }
  template <std::size_t kContext, class AnyWords>
  [[gnu::always_inline]] static auto& word_of(AnyWords& words) {
    return words[kContext / kLanes][kContext % kLanes];
  }

  template <std::size_t... kGroup>
  static std::array<CounterLanes, kGroups> lanes_of(const Words& words, std::index_sequence<kGroup...>) {
    return {CounterLanes(words[kGroup])...};
  }
  static Weights first_weights() {
    Weights weights{};
    for (unsigned k = 0; k < kGroups; ++k) {
      CounterLanes::Words words{};
      for (unsigned i = 0; i < kLanes && k * kLanes + i < kContexts; ++i) words[i] = kFirstWeight;
      weights[k] = Lanes::lower_halves(words);
    }
    return weights;
  }
  /// In stretched units, within +-2^18. With 24 contexts the sum of products does not always fit 32 bits.
  static std::int32_t mix(const Inputs& inputs, const Weights& weights) {
    return static_cast<std::int32_t>(dot(inputs, weights) >> kWeightBits);
  }
  /// Moves weights down the gradient of the coding cost. `error` is in units of 2^-16.
  static void adjust(const Inputs& inputs, Weights& weights, std::int32_t error) {
    const Lanes step = Lanes::all(static_cast<std::int16_t>(error / 2));
    for (unsigned k = 0; k < inputs.size(); ++k) {
      const Lanes change = (upper_half(inputs[k] << 1, step) + Lanes::all(1)) >> 1;
      weights[k] = least(most(weights[k] + change, Lanes::all(-kMostWeight)), Lanes::all(kMostWeight));
    }
  }

  unsigned table_shift_;  ///< leaves the bits of a hash that say where in a table a counter lies
  std::size_t table_size_;
  Vector<Counter> counters_;
  Vector<Weights> first_;
  Vector<Weights> second_;
  Vector<std::uint16_t> maps_;
};

/// A context's hash from what it is made of. Its high bits say where in a table its counter lies.
inline std::uint32_t context_hash(std::uint64_t a, std::uint64_t b = 0) {
  std::uint64_t mixed = a * UINT64_C(0x9E3779B97F4A7C15) + b * UINT64_C(0xC2B2AE3D27D4EB4F);
  mixed ^= mixed >> 29;
  mixed *= UINT64_C(0xBF58476D1CE4E5B9);
  return static_cast<std::uint32_t>(mixed >> 32);
}

/// Bits of the tables for about `items` items: small inputs do not pay for large tables.
constexpr unsigned table_bits_for(std::uint64_t items) {
  const unsigned bits = kernels::bit_length(items) + 2;
  return bits < 8 ? 8 : bits > 17 ? 17 : bits;
}

}  // namespace quern::codec::lidar
