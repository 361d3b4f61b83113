// Decoding kernels of the stencil codec for one instruction set; part of stencil_instance.h.
#pragma once

#include <bit>

#include "kernels/cpu/residual_vectors.h"
#include "kernels/cpu/stencil_decode.h"

namespace quern::kernels {

template <class Isa>
struct StencilDecodeInstance {
  using Vectors = ResidualVectors<Isa>;

  static void take_residuals(ResidualLanes& lanes, const ResidualTables& tables, const std::uint8_t* contexts,
                             std::size_t count, std::size_t first, std::int32_t* codes) {
    if constexpr (Vectors::kLanes > 0) {
      if (lanes.mask + 1 >= Vectors::kLanes)
        return Vectors::take_residuals(lanes, tables, contexts, count, first, codes);
    }
    for (std::size_t x = 0; x < count; ++x) {
      codes[x] = 0;
      if (contexts[x] == kNoResidual) continue;
      const std::size_t lane = (first + x) & lanes.mask;
      RansSource source = lanes.source(lane);
      codes[x] = static_cast<std::int32_t>(take_residual(source, tables.tables[tables.places[contexts[x]]]));
      lanes.set(lane, source);
    }
  }

  static void add_codes(const std::int64_t* predicted, const std::int32_t* codes, std::int64_t quantum,
                        std::uint32_t most, std::size_t count, double* values, std::uint32_t* magnitudes) {
    for (std::size_t x = 0; x < count; ++x) {
      const std::uint64_t value = static_cast<std::uint64_t>(predicted[x]) +
                                  static_cast<std::uint64_t>(std::int64_t{codes[x]}) * static_cast<std::uint64_t>(quantum);
      values[x] = static_cast<double>(static_cast<std::int64_t>(value << 11) >> 11);
      const auto sign = static_cast<std::uint32_t>(codes[x] >> 31);
      const std::uint32_t magnitude = (static_cast<std::uint32_t>(codes[x]) ^ sign) - sign;
      magnitudes[x] = magnitude < most ? magnitude : most;
    }
  }

  [[gnu::always_inline]] static std::uint32_t single(double value, double unit, double base) {
    return std::bit_cast<std::uint32_t>(static_cast<float>(value * unit + base));
  }
  static void store_singles(const double* values, double unit, double base, std::size_t count, std::uint32_t* out) {
    for (std::size_t x = 0; x < count; ++x) out[x] = single(values[x], unit, base);
  }
  static void store_pairs(const double* even, const double* odd, double unit, double base, std::size_t count,
                          std::uint32_t* out) {
    for (std::size_t x = 0; x < count; ++x) {
      out[2 * x] = single(even[x], unit, base);
      out[2 * x + 1] = single(odd[x], unit, base);
    }
  }

  static constexpr StencilDecodeKernels kKernels{&take_residuals, &add_codes, &store_singles, &store_pairs};
};

}  // namespace quern::kernels
