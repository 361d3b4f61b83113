// Entry points of the kernels that code residuals on a CPU: symbols from context sums and codes, and interleaved
// streams. All instruction sets give the same numbers and write the same words, whatever the bytes are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/cpu/isa.h"
#include "kernels/entropy/cpu/decode_streams.h"
#include "kernels/entropy/cpu/encode_streams.h"

namespace quern::kernels {

/// Arrays are in host memory and hold `count` elements, unless a function says otherwise. None may overlap.
struct ResidualKernels {
  /// out[x] = context_bin(sums[x]) * kTokenStride + token of the magnitude of codes[x].
  void (*symbols)(const std::uint32_t* sums, const std::int32_t* codes, std::size_t count, std::uint16_t* out);
  /// Encodes codes[x], whose symbol is symbols[x], into stream (first + x) & streams.mask, the last one first. Elements
  /// of kNoSymbol are left out.
  void (*encode_residuals)(EncodeStreams& streams, const ResidualEntries& entries, const std::uint16_t* symbols,
                           const std::int32_t* codes, std::size_t count, std::size_t first);
  /// Encodes one row into each stream.
  void (*encode_rows)(EncodeStreams& streams, const ResidualEntries& entries, const std::uint16_t* symbols,
                      const std::int32_t* codes, const StreamRows& rows);
  /// codes[x] = the next residual of context bin bins[x] from stream (first + x) & streams.mask; 0 for kNoContextBin.
  void (*decode_residuals)(DecodeStreams& streams, const ResidualTables& tables, const std::uint8_t* bins,
                           std::size_t count, std::size_t first, std::int32_t* codes);
  /// out[x] = frequency of token 0 in the bin of sums[x].
  void (*zero_frequencies)(const std::uint32_t* sums, const ResidualTables& tables, std::size_t count,
                           std::uint16_t* out);
};

/// The kernels of an available instruction set.
const ResidualKernels& residual_kernels(IsaLevel level);

}  // namespace quern::kernels
