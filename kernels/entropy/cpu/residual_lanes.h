// What residuals are taken from: many rANS lanes side by side, and the tables of tokens of each context level.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/entropy/rans.h"
#include "kernels/entropy/token_table.h"

namespace quern::kernels {

inline constexpr std::size_t kMostResidualLanes = 32;
inline constexpr std::size_t kResidualLevels = 64;         ///< context levels
inline constexpr std::uint8_t kNoResidual = 255;           ///< level of an element that has no code; the code is 0
inline constexpr std::uint64_t kMostLaneBytes = 1u << 31;  ///< of all lanes together

/// Lanes that elements take turns in. Places are counted in words of 16 bits from `words`.
struct ResidualLanes {
  alignas(64) std::array<std::uint32_t, kMostResidualLanes> states{};
  alignas(64) std::array<std::uint32_t, kMostResidualLanes> at{};  ///< at least 2
  alignas(64) std::array<std::uint32_t, kMostResidualLanes> end{};
  const std::uint8_t* words = nullptr;
  std::uint32_t failed = 0;  ///< one bit a lane
  std::size_t mask = 0;      ///< how many there are, less one

  /// All sources lie in one range of bytes, at most kMostLaneBytes, in order.
  explicit ResidualLanes(std::span<const RansSource> sources);
  [[gnu::always_inline]] RansSource source(std::size_t lane) const {
    return {words + std::size_t{2} * at[lane], words + std::size_t{2} * end[lane], states[lane],
            (failed >> lane & 1) != 0};
  }
  [[gnu::always_inline]] void set(std::size_t lane, const RansSource& source) {
    at[lane] = static_cast<std::uint32_t>((source.at - words) / 2);
    states[lane] = source.state;
    failed |= static_cast<std::uint32_t>(source.failed) << lane;
  }
  bool finished() const;
};

/// Tables of tokens by context level.
struct ResidualTables {
  const TokenTable* tables = nullptr;
  alignas(64) std::array<std::uint16_t, kResidualLevels> places{};  ///< of the table that serves a level
  alignas(64) std::array<std::uint16_t, kResidualLevels> zeros{};   ///< frequency of token 0 there

  ResidualTables(const TokenTable* first, const std::array<const TokenTable*, kResidualLevels>& serving)
      : tables(first) {
    for (std::size_t l = 0; l < kResidualLevels; ++l) {
      places[l] = static_cast<std::uint16_t>(serving[l] - first);
      zeros[l] = serving[l]->starts[1];
    }
  }
};

}  // namespace quern::kernels
