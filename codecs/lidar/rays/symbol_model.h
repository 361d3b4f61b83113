// Signed numbers that are small as a rule: zero or not, sign, magnitude in unary, each decision mixed from the contexts
// of the number; large magnitudes end in an adaptive code.
#pragma once

#include <array>
#include <cstdint>

#include "codecs/lidar/coding/context_mixer.h"
#include "codecs/lidar/coding/number_coder.h"

namespace quern::codec::lidar {

template <unsigned kContexts>
class SymbolModel {
 public:
  static constexpr unsigned kSets = 32;

  SymbolModel(unsigned table_bits, std::uint32_t second_sets) : mixer_(table_bits, kNodes, second_sets) {}

  /// `contexts`: any numbers; `second_set` below what was said. For an encoder `value` is the number.
  template <class Coder>
  std::int64_t code(Coder& coder, const std::array<std::uint64_t, kContexts>& contexts, std::uint32_t second_set,
                    std::int64_t value = 0) {
    const std::uint64_t magnitude = static_cast<std::uint64_t>(value < 0 ? -value : value);
    if (decide(coder, contexts, second_set, 0, magnitude != 0) == 0) return 0;
    const unsigned negative = decide(coder, contexts, second_set, 1, value < 0);
    std::uint64_t result = 1;
    while (result < kUnary &&
           decide(coder, contexts, second_set, static_cast<unsigned>(result) + 1, magnitude > result) != 0)
      ++result;
    if (result == kUnary) result += rest_.code(coder, magnitude - result);
    if (result > kMostMagnitude) result = kMostMagnitude;  // hostile bytes alone
    return negative != 0 ? -static_cast<std::int64_t>(result) : static_cast<std::int64_t>(result);
  }

 private:
  static constexpr std::uint64_t kUnary = 20;
  static constexpr unsigned kNodes = 24;
  static constexpr std::uint64_t kMostMagnitude = UINT64_C(1) << 40;

  template <class Coder>
  unsigned decide(Coder& coder, const std::array<std::uint64_t, kContexts>& contexts, std::uint32_t second_set,
                  unsigned node, bool value) {
    DecisionContext<kContexts> seen;
    for (unsigned i = 0; i < kContexts; ++i) seen.contexts[i] = context_hash(contexts[i], node | std::uint64_t{i} << 8);
    seen.first_set = node;
    seen.second_set = second_set;
    seen.map = node;
    return mixer_.code(coder, seen, value ? 1 : 0);
  }

  ContextMixer<kContexts> mixer_;
  NumberModel rest_;
};

}  // namespace quern::codec::lidar
