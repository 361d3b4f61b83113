// Encoding kernels of the stencil codec for one instruction set; part of instance.h.
#pragma once

#include "kernels/entropy/cpu/residual_encode_vectors.h"
#include "kernels/stencil/cpu/encode.h"

namespace quern::kernels {

template <class Isa>
struct StencilEncodeInstance {
  using Vectors = ResidualPutVectors<Isa>;

  [[gnu::noinline]] static void put(PutLanes& lanes, std::size_t lane, const ResidualEntries& entries,
                                    std::uint16_t symbol, std::int32_t code) {
    if (symbol == kNoSymbol) return;
    put_symbol(lanes.states[lane], code, symbol % kTokenPlaces, entries.entries[symbol], lanes.at[lane]);
  }
  /// Where lanes are few nearly all residuals are 0 and hardly ever fill a word.
  [[gnu::always_inline]] static void put_zero(PutLanes& lanes, std::size_t lane, const RansEncodeEntry& entry) {
    std::uint32_t state = lanes.states[lane];
    if (state > (std::uint64_t{entry.frequency} << (32 - kFrequencySumBits)) - 1) [[unlikely]] {
      *--lanes.at[lane] = static_cast<std::uint16_t>(state);
      state >>= 16;
    }
    lanes.states[lane] = rans_next<kFrequencySumBits>(state, entry);
  }

  /// Neighbours are of different lanes, so their long chains of arithmetic overlap.
  static void put_residuals(PutLanes& lanes, const ResidualEntries& entries, const std::uint16_t* symbols,
                            const std::int32_t* codes, std::size_t count, std::size_t first) {
    if constexpr (Vectors::kLanes > 0) {
      if (lanes.mask + 1 >= Vectors::kLanes)
        return Vectors::put_residuals(lanes, entries.packed, symbols, codes, count, first);
    }
    const RansEncodeEntry* const by_symbol = entries.entries;
    const std::size_t mask = lanes.mask;
    for (std::size_t x = count; x-- > 0;) {
      const std::size_t lane = (first + x) & mask;
      const std::uint16_t symbol = symbols[x];
      if (symbol % kTokenPlaces == 0) [[likely]] {
        put_zero(lanes, lane, by_symbol[symbol]);
      } else {
        put(lanes, lane, entries, symbol, codes[x]);
      }
    }
  }

  static void put_rows(PutLanes& lanes, const ResidualEntries& entries, const std::uint16_t* symbols,
                       const std::int32_t* codes, const PutRows& rows) {
    if constexpr (Vectors::kRows) {
      if (lanes.mask + 1 >= Vectors::kLanes) return Vectors::put_rows(lanes, entries.packed, symbols, codes, rows);
    }
    // Blocks of columns are brought into the order in which lanes take turns.
    constexpr std::size_t kColumns = 16;
    std::uint16_t some_symbols[kColumns * kMostResidualLanes];
    std::int32_t some_codes[kColumns * kMostResidualLanes];
    const std::size_t count = lanes.mask + 1;
    std::size_t longest = 0;
    for (std::size_t lane = 0; lane < count; ++lane) {
      const std::size_t length = rows.end[lane] - rows.begin[lane];
      longest = length > longest ? length : longest;
    }
    for (std::size_t back = 0; back < longest; back += kColumns) {
      const std::size_t columns = longest - back < kColumns ? longest - back : kColumns;
      for (std::size_t lane = 0; lane < count; ++lane) {
        const std::size_t length = rows.end[lane] - rows.begin[lane];
        const std::size_t left = length > back ? length - back : 0;
        const std::size_t missing = left < columns ? columns - left : 0;
        for (std::size_t x = 0; x < missing; ++x) {
          some_symbols[x * count + lane] = kNoSymbol;
          some_codes[x * count + lane] = 0;
        }
        const std::size_t first = rows.begin[lane] + left - (columns - missing);
        for (std::size_t x = missing; x < columns; ++x) {
          some_symbols[x * count + lane] = symbols[first + x - missing];
          some_codes[x * count + lane] = codes[first + x - missing];
        }
      }
      put_residuals(lanes, entries, some_symbols, some_codes, columns * count, 0);
    }
  }

  static constexpr StencilEncodeKernels kKernels{&put_residuals, &put_rows};
};

}  // namespace quern::kernels
