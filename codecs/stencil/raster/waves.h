// Rows of a chunk in raster order decoded side by side, where vectors are long enough
// (kernels/stencil/cpu/raster_wave.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "codecs/stencil/raster/model.h"
#include "codecs/stencil/raster/planes.h"
#include "kernels/stencil/cpu/stencil.h"
#include "libcompress/core/arena.h"

namespace quern::codec::stencil {

/// What waves of one chunk share.
class RasterWaves {
 public:
  RasterWaves(Arena& arena, const kernels::StencilExtents& extents)
      : suit_(extents.rows > kLeastRows && extents.columns >= kLeastColumns && extents.columns <= kMostColumns),
        pitch_(row_room(extents.columns)),
        far_(arena.take<std::int64_t>(suit_ ? kernels::kWaveRows * pitch_ : 0)),
        context_(arena.take<std::uint32_t>(suit_ ? kernels::kWaveRows * pitch_ : 0)) {}

  /// Whether rows of such a chunk are worth it.
  bool serve(const RasterModel& model, const kernels::StencilKernels& kernels) const {
    return suit_ && !model.format.masked && kernels.decode.decode_wave != nullptr &&
           std::size_t{1} << model.stream_bits >= kernels::kWaveRows;
  }

  /// A chunk begins.
  void start(const kernels::StencilExtents& extents, const RasterModel& model);
  /// Whether a row's values make sums that are exact in any order; encoders keep to that.
  bool exact(std::span<const double> values) const {
    const double most = waves_[0].most;
    return std::ranges::all_of(values, [&](double v) { return v < most && v > -most; });
  }

  /// Rows from `row` > 0 on that one wave takes.
  static std::size_t rows_from(const WorkPlanes& planes, std::size_t row) {
    return std::min(kernels::kWaveRows, planes.extents().rows - row);
  }
  /// Decodes rows_from(planes, row) rows, halos included. False when a value is not exact().
  bool decode(const kernels::StencilKernels& kernels, WorkPlanes& planes, std::size_t plane, std::size_t row,
              const SplitWeights& split, const RasterModel& model, const kernels::ResidualTables& tables,
              kernels::DecodeStreams& lanes);

 private:
  static constexpr std::size_t kLeastRows = 8;
  static constexpr std::size_t kLeastColumns = 32;
  static constexpr std::size_t kMostColumns = 4096;  ///< what waves read has to stay in a cache

  bool suit_;
  std::size_t pitch_;
  std::int64_t* far_;  ///< of the rows of a wave; so the next
  std::uint32_t* context_;
  std::array<kernels::RasterWave, kernels::kRowClasses / 2> waves_{};  ///< of first, second and later planes
};

}  // namespace quern::codec::stencil
