// Encoding kernels of the stencil codec for one instruction set; part of stencil_instance.h.
#pragma once

#include "kernels/cpu/residual_put_vectors.h"
#include "kernels/cpu/stencil_encode.h"

namespace quern::kernels {

template <class Isa>
struct StencilEncodeInstance {
  using Vectors = ResidualPutVectors<Isa>;

  [[gnu::always_inline]] static void put(PutLanes& lanes, std::size_t lane, const ResidualEntries& entries,
                                         std::uint16_t symbol, std::int32_t code) {
    if (symbol == kNoSymbol) return;
    put_symbol(lanes.states[lane], code, symbol % kTokenPlaces, entries.entries[symbol], lanes.at[lane]);
  }

  /// Neighbours are of different lanes, so their long chains of arithmetic overlap.
  static void put_residuals(PutLanes& lanes, const ResidualEntries& entries, const std::uint16_t* symbols,
                            const std::int32_t* codes, std::size_t count, std::size_t first) {
    if constexpr (Vectors::kLanes > 0) {
      if (lanes.mask + 1 >= Vectors::kLanes)
        return Vectors::put_residuals(lanes, entries.packed, symbols, codes, count, first);
    }
    for (std::size_t x = count; x-- > 0;) put(lanes, (first + x) & lanes.mask, entries, symbols[x], codes[x]);
  }

  static void put_rows(PutLanes& lanes, const ResidualEntries& entries, const std::uint16_t* symbols,
                       const std::int32_t* codes, const PutRows& rows) {
    if constexpr (Vectors::kRows) {
      if (lanes.mask + 1 >= Vectors::kLanes) return Vectors::put_rows(lanes, entries.packed, symbols, codes, rows);
    }
    // A few at a time, for the same reason.
    constexpr std::size_t kAtOnce = 4;
    for (std::size_t lane = 0; lane <= lanes.mask; lane += kAtOnce) {
      const std::size_t some = lanes.mask + 1 - lane < kAtOnce ? lanes.mask + 1 - lane : kAtOnce;
      std::size_t most = 0;
      for (std::size_t j = lane; j < lane + some; ++j)
        most = rows.end[j] - rows.begin[j] > most ? rows.end[j] - rows.begin[j] : most;
      for (std::size_t back = 1; back <= most; ++back) {
        for (std::size_t j = lane; j < lane + some; ++j) {
          if (back > rows.end[j] - rows.begin[j]) continue;
          put(lanes, j, entries, symbols[rows.end[j] - back], codes[rows.end[j] - back]);
        }
      }
    }
  }

  static constexpr StencilEncodeKernels kKernels{&put_residuals, &put_rows};
};

}  // namespace quern::kernels
