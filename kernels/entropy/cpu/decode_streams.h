// What residuals are decoded from: interleaved rANS streams, and the table of tokens of each context bin.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/entropy/context_bin.h"
#include "kernels/entropy/rans.h"
#include "kernels/entropy/token_table.h"

namespace quern::kernels {

inline constexpr std::size_t kMaxStreams = 32;
inline constexpr std::uint8_t kNoContextBin = 255;          ///< bin of an element that has no code; the code is 0
inline constexpr std::uint64_t kMaxStreamBytes = 1u << 31;  ///< of all streams together

/// Streams that elements take turns in. Positions are counted in words of 16 bits from `words`.
struct DecodeStreams {
  alignas(64) std::array<std::uint32_t, kMaxStreams> states{};
  alignas(64) std::array<std::uint32_t, kMaxStreams> at{};  ///< at least 2
  alignas(64) std::array<std::uint32_t, kMaxStreams> end{};
  const std::uint8_t* words = nullptr;
  std::uint32_t failed = 0;  ///< one bit a stream
  std::size_t mask = 0;      ///< how many there are, less one

  /// All sources lie in one range of bytes, at most kMaxStreamBytes, in order.
  explicit DecodeStreams(std::span<const RansSource> sources);
  [[gnu::always_inline]] RansSource source(std::size_t stream) const {
    return {words + std::size_t{2} * at[stream], words + std::size_t{2} * end[stream], states[stream],
            (failed >> stream & 1) != 0};
  }
  [[gnu::always_inline]] void set(std::size_t stream, const RansSource& source) {
    at[stream] = static_cast<std::uint32_t>((source.at - words) / 2);
    states[stream] = source.state;
    failed |= static_cast<std::uint32_t>(source.failed) << stream;
  }
  bool finished() const;
};

/// Tables of tokens by context bin.
struct ResidualTables {
  const TokenTable* tables = nullptr;
  alignas(64) std::array<std::uint16_t, kContextBins> indices{};  ///< of the table that serves a bin
  alignas(64) std::array<std::uint16_t, kContextBins> zeros{};    ///< frequency of token 0 there

  ResidualTables(const TokenTable* first, const std::array<const TokenTable*, kContextBins>& serving) : tables(first) {
    for (std::size_t b = 0; b < kContextBins; ++b) {
      indices[b] = static_cast<std::uint16_t>(serving[b] - first);
      zeros[b] = serving[b]->starts[1];
    }
  }
};

}  // namespace quern::kernels
