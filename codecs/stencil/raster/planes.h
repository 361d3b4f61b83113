// The working planes of a chunk: reconstructed values and magnitudes of residuals with halos, and where the taps of a
// row find them. Encoder, trial runs and decoder walk a chunk's rows through this one class.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "codecs/stencil/elements.h"
#include "codecs/stencil/raster/model.h"
#include "kernels/stencil/cpu/stencil.h"
#include "kernels/stencil/rules.h"
#include "kernels/stencil/taps.h"
#include "libcompress/core/arena.h"

namespace quern::codec::stencil {

/// Results of a row: one entry a column, and room for whole blocks.
inline std::size_t row_room(std::size_t columns) {
  return (columns + kernels::kStencilBlock - 1) / kernels::kStencilBlock * kernels::kStencilBlock;
}

/// Weights of a row class split into taps of earlier rows (without those of weight 0) and of the row itself.
struct SplitWeights {
  std::array<std::int64_t, kernels::kMaxNearTaps> near{};
  std::size_t near_count = 0;
  std::array<kernels::Tap, kernels::kMaxTaps> far_taps{};
  std::array<double, kernels::kMaxTaps> far_weights{};
  std::size_t far_count = 0;
  std::size_t of_plane = 0;  ///< from here on those in the element's own plane
};

inline SplitWeights split_weights(kernels::StencilShape shape, std::size_t row_class, const RasterModel& model) {
  const kernels::TapList list = kernels::taps_of(shape, row_class, model.mean);
  const Weights& weights = model.weights[row_class];
  SplitWeights split;
  split.near_count = list.near;
  for (std::size_t t = 0; t < list.near; ++t) split.near[t] = weights[t];
  const auto add = [&](bool of_plane) {
    for (std::size_t t = list.near; t < list.count; ++t) {
      if (weights[t] == 0 || (list.taps[t].plane == 0) != of_plane) continue;
      split.far_taps[split.far_count] = list.taps[t];
      split.far_weights[split.far_count++] = static_cast<double>(weights[t]);
    }
  };
  add(false);
  split.of_plane = split.far_count;
  add(true);
  return split;
}

class WorkPlanes {
 public:
  /// Takes memory; values of all planes stay when `keep_all`.
  WorkPlanes(Arena& arena, const kernels::StencilExtents& extents, bool keep_all)
      : extents_(extents),
        geometry_(kernels::PlaneGeometry::make(extents, keep_all)),
        keep_all_(keep_all),
        values_(arena.take<double>(geometry_.elems())),
        means_(arena.take<double>(mean_elems())),
        magnitudes_(arena.take<std::uint32_t>(geometry_.elems() + geometry_.plane_elems)),
        far_(arena.take<std::int64_t>(row_room(extents.columns))),
        context_(arena.take<std::uint32_t>(row_room(extents.columns))) {}

  void clear() {
    std::memset(values_, 0, geometry_.elems() * sizeof(double));
    if (mean_elems() > 0) std::memset(means_, 0, mean_elems() * sizeof(double));
    std::memset(magnitudes_, 0, (geometry_.elems() + geometry_.plane_elems) * sizeof(std::uint32_t));
  }

  const kernels::StencilExtents& extents() const { return extents_; }
  const kernels::PlaneGeometry& geometry() const { return geometry_; }
  double* values(std::size_t plane, std::size_t row) { return values_ + at(plane, row); }
  std::uint32_t* magnitudes(std::size_t plane, std::size_t row) { return magnitudes_ + at(plane, row); }
  const double* tap(std::size_t plane, std::size_t row, const kernels::Tap& tap) const {
    if (tap.plane != kernels::kMeanPlane) return values_ + at(plane, row, tap);
    return means_ + at(keep_all_ ? plane : 0, row, {0, tap.row, tap.column});
  }
  /// Planes before the first have no residuals.
  const std::uint32_t* context_tap(std::size_t plane, std::size_t row, const kernels::Tap& tap) const {
    if (static_cast<std::ptrdiff_t>(plane) + tap.plane >= 0) return magnitudes_ + at(plane, row, tap);
    return magnitudes_ + geometry_.elems() + at(0, row, {0, tap.row, tap.column});
  }

  bool can_have_mean() const { return extents_.planes >= kernels::kMeanMinPlanes; }
  /// Takes the plane before this one into the mean, halos included: all of it at first, then no less than 3/16.
  void update_mean(const kernels::StencilKernels& kernels, std::size_t plane) {
    if (plane == 0) return;
    const double* const x = values_ + geometry_.row_at(static_cast<std::ptrdiff_t>(plane) - 1, 0) - row_origin();
    const double* const before = means_ + (keep_all_ ? (plane - 1) * geometry_.plane_elems : 0);
    double* const after = means_ + (keep_all_ ? plane * geometry_.plane_elems : 0);
    const double weight = kernels::mean_weight(static_cast<std::uint32_t>(plane));
    kernels.add_to_mean(x, before, weight, geometry_.plane_elems, after);
  }

  /// Sets the halo left of a row: what it begins from.
  void start_row(std::size_t plane, std::size_t row) {
    double first = 0;
    if (row > 0) {
      first = *values(plane, row - 1);
    } else if (plane > 0) {
      first = *values(plane - 1, 0);
    }
    double* const x = values(plane, row);
    std::fill(x - kernels::PlaneGeometry::kLeft, x, first);
  }
  /// Repeats a row's ends into its halos, and the first and last row into the halos of the plane.
  void finish_row(std::size_t plane, std::size_t row) {
    double* const x = values(plane, row);
    std::fill(x - kernels::PlaneGeometry::kLeft, x, x[0]);
    std::fill(x + extents_.columns, x + extents_.columns + 3, x[extents_.columns - 1]);
    const auto copy = [&](std::ptrdiff_t to) {
      double* const halo = values_ + geometry_.row_at(static_cast<std::ptrdiff_t>(plane), to);
      std::memcpy(halo - kernels::PlaneGeometry::kLeft, x - kernels::PlaneGeometry::kLeft,
                  geometry_.stride * sizeof(double));
    };
    const auto halo = static_cast<std::ptrdiff_t>(geometry_.halo_rows);
    const auto rows = static_cast<std::ptrdiff_t>(extents_.rows);
    if (row == 0)
      for (std::ptrdiff_t m = 1; m <= halo; ++m) copy(-m);
    if (row + 1 == extents_.rows)
      for (std::ptrdiff_t m = 0; m < halo; ++m) copy(rows + m);
  }

  /// Part of each prediction that earlier rows give, times 2^weight_bits.
  const std::int64_t* far_sums(const kernels::StencilKernels& kernels, std::size_t plane, std::size_t row,
                               const SplitWeights& split) {
    sum_taps(kernels, plane, row, split, split.far_count, far_);
    return far_;
  }
  /// Part of each context that earlier rows give, with the constant.
  const std::uint32_t* context_sums(const kernels::StencilKernels& kernels, std::size_t plane, std::size_t row,
                                    const RasterModel& model) {
    sum_contexts(kernels, plane, row, model, kernels::kNearContextTaps, context_);
    return context_;
  }
  /// The context sums of a row whose residuals are known.
  const std::uint32_t* all_context_sums(const kernels::StencilKernels& kernels, std::size_t plane, std::size_t row,
                                        const RasterModel& model) {
    sum_contexts(kernels, plane, row, model, 0, context_);
    return context_;
  }
  /// What other planes give to predictions of a row, and to its contexts, with the constant.
  void far_sums_of_planes(const kernels::StencilKernels& kernels, std::size_t plane, std::size_t row,
                          const SplitWeights& split, std::int64_t* out) const {
    sum_taps(kernels, plane, row, split, split.of_plane, out);
  }
  void context_sums_of_planes(const kernels::StencilKernels& kernels, std::size_t plane, std::size_t row,
                              const RasterModel& model, std::uint32_t* out) const {
    sum_contexts(kernels, plane, row, model, kernels::kPlaneContextTaps, out);
  }

 private:
  /// A tap, of whose row the place in the mean and in four planes is known.
  template <class T>
  const T* in_row(const std::array<const T*, 5>& rows, const kernels::Tap& tap) const {
    static_assert(kernels::kMeanPlane == 1);
    return rows[static_cast<std::size_t>(kernels::kMeanPlane - tap.plane)] +
           static_cast<std::ptrdiff_t>(tap.row) * static_cast<std::ptrdiff_t>(geometry_.stride) + tap.column;
  }
  void sum_taps(const kernels::StencilKernels& kernels, std::size_t plane, std::size_t row, const SplitWeights& split,
                std::size_t taps, std::int64_t* out) const {
    // The row in the mean, in its own plane, and in the planes before that.
    const double* const mean = can_have_mean() ? means_ + at(keep_all_ ? plane : 0, row) : nullptr;
    const auto before = [&](std::int8_t k) { return values_ + at(plane, row, {k, 0, 0}); };
    const std::array<const double*, 5> rows{mean, before(0), before(-1), before(-2), before(-3)};
    std::array<const double*, kernels::kMaxTaps> sources;  // NOLINT: set below
    for (std::size_t t = 0; t < taps; ++t) sources[t] = in_row(rows, split.far_taps[t]);
    kernels.tap_sums(sources.data(), split.far_weights.data(), taps, extents_.columns, out);
  }
  void sum_contexts(const kernels::StencilKernels& kernels, std::size_t plane, std::size_t row,
                    const RasterModel& model, std::size_t first_tap, std::uint32_t* out) const {
    const auto taps = kernels::context_taps(extents_.shape());
    const auto before = [&](std::int8_t k) { return context_tap(plane, row, {k, 0, 0}); };
    const std::array<const std::uint32_t*, 5> rows{nullptr, before(0), before(-1), before(-2), before(-3)};
    std::array<const std::uint32_t*, kernels::kMaxContextTaps> sources;  // NOLINT: set below
    for (std::size_t t = first_tap; t < taps.size(); ++t) sources[t] = in_row(rows, taps[t]);
    kernels.context_sums(sources.data() + first_tap, model.context_weights.data() + first_tap, taps.size() - first_tap,
                         model.context_constant, extents_.columns, out);
  }
  std::size_t mean_elems() const {
    if (!can_have_mean()) return 0;
    return keep_all_ ? geometry_.elems() : geometry_.plane_elems;
  }
  /// Elements of a plane before the first of row 0.
  std::size_t row_origin() const { return geometry_.row_at(0, 0); }
  std::size_t at(std::size_t plane, std::size_t row, const kernels::Tap& tap = {}) const {
    return static_cast<std::size_t>(
        static_cast<std::ptrdiff_t>(geometry_.row_at(static_cast<std::ptrdiff_t>(plane) + tap.plane,
                                                     static_cast<std::ptrdiff_t>(row) + tap.row)) +
        tap.column);
  }

  kernels::StencilExtents extents_;
  kernels::PlaneGeometry geometry_;
  bool keep_all_;
  double* values_;
  double* means_;
  std::uint32_t* magnitudes_;
  std::int64_t* far_;
  std::uint32_t* context_;
};

}  // namespace quern::codec::stencil
