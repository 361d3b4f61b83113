// Predicts one binary decision from several contexts. Each context owns a counter; two sets of weights, chosen by small
// contexts, mix the counters in the logistic domain; an adaptive map corrects the result. Integers only. The method is
// that of Mahoney's PAQ (2005), with counters of our own.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include <quern/memory.h>

#include "codecs/lidar/coding/counter.h"
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
      : table_bits_(table_bits),
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
    std::array<Counter*, kContexts> counters;
    Inputs inputs{};
    for (unsigned i = 0; i < kContexts; ++i) {
      Counter& counter = counters_[(std::size_t{i} << table_bits_) + (seen.contexts[i] >> (32 - table_bits_))];
      counters[i] = &counter;
      inputs[i] = static_cast<std::int16_t>(stretch(counter.one) * counter.trust() >> 8);
      inputs[kContexts + i] =
          static_cast<std::int16_t>((static_cast<std::int32_t>(counter.one) - 32768) * counter.trust() >> 13);
    }
    Weights& first = first_[seen.first_set];
    Weights& second = second_[seen.second_set];
    const std::int32_t first_sum = dot(inputs, first);
    const std::int32_t second_sum = dot(inputs, second);
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
    for (Counter* counter : counters) counter->update(bit);
    return bit;
  }

 private:
  /// Two of each counter, and zeros that fill vectors of eight.
  static constexpr unsigned kInputs = (2 * kContexts + 7) / 8 * 8;
  using Inputs = std::array<std::int16_t, kInputs>;
  using Weights = std::array<std::int16_t, kInputs>;  ///< in units of 2^-kWeightBits

  static constexpr unsigned kWeightBits = 14;
  static constexpr std::int16_t kFirstWeight = 14750 / static_cast<std::int16_t>(kContexts);
  static constexpr std::int16_t kMostWeight = 30000;
  static constexpr std::int32_t kMapStep = 192;
  static constexpr unsigned kMapSteps = 2 * (kMostStretched + 1) / kMapStep + 1;

  static Weights first_weights() {
    Weights weights{};
    std::fill_n(weights.begin(), kContexts, kFirstWeight);
    return weights;
  }
  /// In stretched units. The sum of 16 products of 12 and 15 bits fits.
  static std::int32_t dot(const Inputs& inputs, const Weights& weights) {
    std::int32_t sum = 0;
    for (unsigned i = 0; i < kInputs; ++i) sum += std::int32_t{inputs[i]} * weights[i];
    return sum >> kWeightBits;
  }
  /// Moves weights down the gradient of the coding cost. `error` is in units of 2^-16.
  static void adjust(const Inputs& inputs, Weights& weights, std::int32_t error) {
    const auto step = static_cast<std::int16_t>(error / 2);
    for (unsigned i = 0; i < kInputs; ++i) {
      const auto doubled = static_cast<std::int16_t>(inputs[i] * 2);
      const auto change = static_cast<std::int16_t>((std::int32_t{doubled} * step) >> 16);
      const auto rounded = static_cast<std::int16_t>((change + 1) >> 1);
      const auto moved = static_cast<std::int16_t>(weights[i] + rounded);
      weights[i] = std::clamp<std::int16_t>(moved, -kMostWeight, kMostWeight);
    }
  }

  unsigned table_bits_;
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
