// Kernels that code residuals, for one instruction set; included by source files that are compiled with that set's
// flags.
#pragma once

#include "kernels/entropy/cpu/context_bins.h"
#include "kernels/entropy/cpu/residual_decode_vectors.h"
#include "kernels/entropy/cpu/residual_decode_zeros.h"
#include "kernels/entropy/cpu/residual_encode_vectors.h"
#include "kernels/entropy/cpu/residual_kernels.h"

namespace quern::kernels {

template <class Isa>
struct ResidualInstance {
  using Bins = ContextBins<Isa>;
  using EncodeVectors = ResidualEncodeVectors<Isa>;
  using DecodeVectors = ResidualDecodeVectors<Isa>;
  using Zeros = ResidualDecodeZeros<Isa>;

  static void symbols(const std::uint32_t* sums, const std::int32_t* codes, std::size_t count, std::uint16_t* out) {
    for (std::size_t x = 0; x < count; ++x) {
      const auto sign = static_cast<std::uint32_t>(codes[x] >> 31);
      const std::uint32_t magnitude = (static_cast<std::uint32_t>(codes[x]) ^ sign) - sign;
      const std::uint32_t leading = Bins::leading_bit(magnitude | kPlainMagnitudes);
      const std::uint32_t large = 4 * (leading - 1) + (magnitude >> (leading - 2));
      const std::uint32_t plain = 0u - static_cast<std::uint32_t>(magnitude < kPlainMagnitudes);
      const std::uint32_t token = (magnitude & plain) | (large & ~plain);
      out[x] = static_cast<std::uint16_t>(Bins::bin_of(sums[x]) * kTokenStride + token);
    }
  }

  [[gnu::noinline]] static void encode_one(EncodeStreams& streams, std::size_t stream, const ResidualEntries& entries,
                                           std::uint16_t symbol, std::int32_t code) {
    if (symbol == kNoSymbol) return;
    encode_residual(streams.states[stream], code, symbol % kTokenStride, entries.entries[symbol], streams.at[stream]);
  }
  /// Where streams are few nearly all residuals are 0 and hardly ever fill a word.
  [[gnu::always_inline]] static void encode_zero(EncodeStreams& streams, std::size_t stream,
                                                 const RansEncodeEntry& entry) {
    std::uint32_t state = streams.states[stream];
    if (state > (std::uint64_t{entry.frequency} << (32 - kFrequencySumBits)) - 1) [[unlikely]] {
      *--streams.at[stream] = static_cast<std::uint16_t>(state);
      state >>= 16;
    }
    streams.states[stream] = rans_next<kFrequencySumBits>(state, entry);
  }

  /// Neighbours are of different streams, so their long chains of arithmetic overlap.
  static void encode_residuals(EncodeStreams& streams, const ResidualEntries& entries, const std::uint16_t* symbols,
                               const std::int32_t* codes, std::size_t count, std::size_t first) {
    if constexpr (EncodeVectors::kLanes > 0) {
      if (streams.mask + 1 >= EncodeVectors::kLanes)
        return EncodeVectors::encode_residuals(streams, entries.packed, symbols, codes, count, first);
    }
    const RansEncodeEntry* const by_symbol = entries.entries;
    const std::size_t mask = streams.mask;
    for (std::size_t x = count; x-- > 0;) {
      const std::size_t stream = (first + x) & mask;
      const std::uint16_t symbol = symbols[x];
      if (symbol % kTokenStride == 0) [[likely]] {
        encode_zero(streams, stream, by_symbol[symbol]);
      } else {
        encode_one(streams, stream, entries, symbol, codes[x]);
      }
    }
  }

  static void encode_rows(EncodeStreams& streams, const ResidualEntries& entries, const std::uint16_t* symbols,
                          const std::int32_t* codes, const StreamRows& rows) {
    if constexpr (EncodeVectors::kRows) {
      if (streams.mask + 1 >= EncodeVectors::kLanes)
        return EncodeVectors::encode_rows(streams, entries.packed, symbols, codes, rows);
    }
    // Blocks of columns are brought into the order in which streams take turns.
    constexpr std::size_t kColumns = 16;
    std::uint16_t some_symbols[kColumns * kMaxStreams];
    std::int32_t some_codes[kColumns * kMaxStreams];
    const std::size_t count = streams.mask + 1;
    std::size_t longest = 0;
    for (std::size_t stream = 0; stream < count; ++stream) {
      const std::size_t length = rows.end[stream] - rows.begin[stream];
      longest = length > longest ? length : longest;
    }
    for (std::size_t back = 0; back < longest; back += kColumns) {
      const std::size_t columns = longest - back < kColumns ? longest - back : kColumns;
      for (std::size_t stream = 0; stream < count; ++stream) {
        const std::size_t length = rows.end[stream] - rows.begin[stream];
        const std::size_t left = length > back ? length - back : 0;
        const std::size_t missing = left < columns ? columns - left : 0;
        for (std::size_t x = 0; x < missing; ++x) {
          some_symbols[x * count + stream] = kNoSymbol;
          some_codes[x * count + stream] = 0;
        }
        const std::size_t first = rows.begin[stream] + left - (columns - missing);
        for (std::size_t x = missing; x < columns; ++x) {
          some_symbols[x * count + stream] = symbols[first + x - missing];
          some_codes[x * count + stream] = codes[first + x - missing];
        }
      }
      encode_residuals(streams, entries, some_symbols, some_codes, columns * count, 0);
    }
  }

  static void decode_residuals(DecodeStreams& streams, const ResidualTables& tables, const std::uint8_t* bins,
                               std::size_t count, std::size_t first, std::int32_t* codes) {
    if constexpr (DecodeVectors::kLanes > 0) {
      if (streams.mask + 1 >= DecodeVectors::kLanes)
        return DecodeVectors::decode_residuals(streams, tables, bins, count, first, codes);
    }
    if constexpr (Zeros::kAny) {
      if (Zeros::serves(streams)) return Zeros::decode_residuals(streams, tables, bins, count, first, codes);
    }
    const std::size_t used = count < streams.mask + 1 ? count : streams.mask + 1;
    RansSource sources[kMaxStreams];
    for (std::size_t i = 0; i < used; ++i)
      sources[(first + i) & streams.mask] = streams.source((first + i) & streams.mask);
    for (std::size_t x = 0; x < count; ++x) {
      codes[x] = 0;
      if (bins[x] == kNoContextBin) continue;
      RansSource& source = sources[(first + x) & streams.mask];
      codes[x] = static_cast<std::int32_t>(decode_residual(source, tables.tables[tables.indices[bins[x]]]));
    }
    for (std::size_t i = 0; i < used; ++i) streams.set((first + i) & streams.mask, sources[(first + i) & streams.mask]);
  }

  static void zero_frequencies(const std::uint32_t* sums, const ResidualTables& tables, std::size_t count,
                               std::uint16_t* out) {
    constexpr std::size_t kBlock = 64;
    std::uint8_t bins[kBlock];
    for (std::size_t x = 0; x < count; x += kBlock) {
      const std::size_t columns = count - x < kBlock ? count - x : kBlock;
      for (std::size_t i = 0; i < columns; ++i) bins[i] = static_cast<std::uint8_t>(Bins::bin_of(sums[x + i]));
      if constexpr (DecodeVectors::kLanes > 0) {
        DecodeVectors::look_up(tables.zeros.data(), bins, columns, out + x);
      } else {
        for (std::size_t i = 0; i < columns; ++i) out[x + i] = tables.zeros[bins[i]];
      }
    }
  }

  static constexpr ResidualKernels kKernels{&symbols, &encode_residuals, &encode_rows, &decode_residuals,
                                            &zero_frequencies};
};

}  // namespace quern::kernels
