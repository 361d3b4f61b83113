// Levels of rows and columns of a plane of residuals, and the contexts that follow from them.
#pragma once

#include <algorithm>

#include "codecs/tensor/residuals/residual_plane.h"
#include "kernels/common/log2_fixed.h"
#include "kernels/tensor/cpu/residuals.h"

namespace quern::codec::tensor {

inline constexpr std::uint32_t kMaxMagnitudeSeen = 1u << 20;  ///< larger ones count as this
inline constexpr unsigned kMagnitudeUnits = 16;               ///< mean magnitudes are kept in sixteenths

inline const kernels::TensorResidualKernels& residual_kernels() {
  return kernels::tensor_residual_kernels(kernels::best_isa());
}

/// log2 of 1/16 + a mean magnitude, in quarters of an octave from 1/16.
inline std::int32_t level_of(std::uint64_t sum, std::uint64_t count) {
  if (count == 0) return 0;
  const std::uint64_t mean = sum * kMagnitudeUnits / count + 1;
  return static_cast<std::int32_t>((kernels::log2_fixed(static_cast<std::uint32_t>(mean)) + 512) >> 10);
}

/// Levels of a piece's rows; returns the sum of all magnitudes.
inline std::uint64_t find_row_levels(const PlanePiece& piece, std::span<const std::int32_t> residuals,
                                     Vector<std::int32_t>& levels) {
  const auto& kernels = residual_kernels();
  levels.resize(piece.rows());
  std::uint64_t total = 0;
  for_rows(piece, [&](std::size_t row, std::size_t, std::size_t begin, std::size_t end) {
    const std::uint64_t sum = kernels.magnitude_sum(residuals.data() + begin, end - begin, kMaxMagnitudeSeen);
    levels[row] = level_of(sum, end - begin);
    total += sum;
  });
  return total;
}

/// tables[i]: the entry of `table_of` for the context of element i. Rows of nothing but `base` where `rows` is empty,
/// columns of nothing but 0 where `columns` is.
inline void find_tables(const PlanePiece& piece, std::span<const std::int32_t> rows,
                        std::span<const std::int32_t> columns, std::int32_t base,
                        const std::array<std::uint8_t, kContexts>& table_of, std::span<std::uint8_t> tables) {
  const auto& kernels = residual_kernels();
  for_rows(piece, [&](std::size_t row, std::size_t column, std::size_t begin, std::size_t end) {
    const std::int32_t level = rows.empty() ? base : rows[row];
    std::uint8_t* const to = tables.data() + begin;
    if (columns.empty()) {
      std::fill(to, to + (end - begin), table_of[kernels::tensor_context(level)]);
    } else {
      kernels.choose_tables(columns.data() + column, end - begin, level, table_of.data(), to);
    }
  });
}

}  // namespace quern::codec::tensor
