// What residuals are encoded into: interleaved rANS streams, and how each symbol is coded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/entropy/cpu/decode_streams.h"
#include "kernels/entropy/rans.h"
#include "kernels/entropy/residual_encode.h"
#include "kernels/entropy/residual_tokens.h"

namespace quern::kernels {

inline constexpr std::size_t kResidualSymbols = kContextBins * kTokenStride;
static_assert(kResidualSymbols <= kNoSymbol);

/// What coding takes, by symbol.
struct ResidualEntries {
  RansEncodeEntry* entries = nullptr;
  std::uint32_t* packed = nullptr;  ///< the same for vectors: frequency | start << 16

  [[gnu::always_inline]] void set(std::size_t symbol, std::uint32_t frequency, std::uint32_t start) const {
    entries[symbol] = make_rans_entry(frequency, start);
    packed[symbol] = frequency | start << 16;
  }
};

/// Streams, each written downwards from where its room ends. No kernel knows how much room there is: a residual takes
/// at most kResidualWords in its stream, and the word below those is written to, too.
struct EncodeStreams {
  alignas(64) std::array<std::uint32_t, kMaxStreams> states{};
  std::array<std::uint16_t*, kMaxStreams> at{};
  std::size_t mask = 0;  ///< how many there are, less one
};

/// Rows that are encoded side by side, row j into stream j: elements begin[j] to end[j] - 1, the last one first. Rows
/// may be empty.
struct StreamRows {
  alignas(64) std::array<std::uint32_t, kMaxStreams> begin{};
  alignas(64) std::array<std::uint32_t, kMaxStreams> end{};  ///< below 2^31
};

}  // namespace quern::kernels
