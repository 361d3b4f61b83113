// A chunk under the wavelet transform, decoded by the warps of a CTA. Of each band all warps sum up what contexts get
// from complete bands, then one warp takes its codes, rows side by side; the transform is undone by all warps, an axis
// and a lifting step at a time; corrections are taken like a band.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/common/job_task.h"
#include "kernels/common/number_elements.h"
#include "kernels/common/unroll.h"
#include "kernels/entropy/warp/rows.h"
#include "kernels/stencil/rules.h"
#include "kernels/stencil/warp/level_grid.h"
#include "kernels/stencil/warp/residual_streams.h"
#include "kernels/stencil/wavelet_job.h"
#include "kernels/stencil/wavelet_quantize.h"

namespace quern::kernels {

/// A chunk under way. The same in all lanes.
struct WaveletGrid {
  const WaveletJob* job = nullptr;
  const WaveletTap* taps = nullptr;
  double* values = nullptr;
  double* room = nullptr;
  std::uint32_t* magnitudes = nullptr;  ///< before a code is taken, its context sum as far as it is known
  std::uint32_t* corrections = nullptr;

  /// A template, as constexpr functions else may not cast bytes.
  template <class Task>
  constexpr explicit WaveletGrid(const Task& task)
      : job(reinterpret_cast<const WaveletJob*>(task.job)),
        taps(reinterpret_cast<const WaveletTap*>(task.job + job->taps)),
        values(reinterpret_cast<double*>(task.work + job->values)),
        room(reinterpret_cast<double*>(task.work + job->room)),
        magnitudes(reinterpret_cast<std::uint32_t*>(task.work + job->magnitudes)),
        corrections(reinterpret_cast<std::uint32_t*>(task.work + job->corrections)) {}

  [[gnu::always_inline]] constexpr std::uint32_t place(std::uint32_t start, const std::uint32_t* index) const {
    return start + index[0] * job->places[0] + index[1] * job->places[1] + index[2] * job->places[2] +
           index[3] * job->places[3];
  }
};

/// Index of a number counted in C order over the first `kAxes` of four extents; the others are left alone.
template <std::uint32_t kAxes>
[[gnu::always_inline]] constexpr void split_number(std::uint32_t number, const std::uint32_t* extents,
                                                   std::uint32_t* index) {
  unroll<kAxes>([&](auto a) {
    constexpr auto kAxis = static_cast<std::uint32_t>(kAxes - 1 - decltype(a)::value);
    index[kAxis] = number % extents[kAxis];
    number /= extents[kAxis];
  });
}

/// The magnitude that a tap sees from an index; `magnitudes` lie as the tap's band does.
template <class X>
[[gnu::always_inline]] constexpr std::uint32_t seen_by(const WaveletGrid& grid, const WaveletTap& tap,
                                                       const std::uint32_t* magnitudes, const std::uint32_t* index,
                                                       std::size_t lane) {
  std::uint32_t place = tap.start;
  bool inside = true;
  unroll<kLevelAxes>([&](auto a) {
    // Below 0 is far beyond the end.
    const std::uint32_t i = (index[a] >> tap.shift[a]) + static_cast<std::uint32_t>(std::int32_t{tap.by[a]});
    inside = inside && i < tap.extents[a];
    place += i * grid.job->places[a];
  });
  return inside ? X::load(magnitudes + place, lane) : 0;
}
/// The same times the tap's weight.
template <class X>
[[gnu::always_inline]] constexpr std::uint32_t tap_at(const WaveletGrid& grid, const WaveletTap& tap,
                                                      const std::uint32_t* magnitudes, const std::uint32_t* index,
                                                      std::size_t lane) {
  return tap.weight * seen_by<X>(grid, tap, magnitudes, index, lane);
}

/// Calls f(number, index, lane) for a warp's share of a band's codes.
template <class X, class F>
constexpr void for_band_codes(const WaveletBandPlan& band, std::uint32_t warp, std::uint32_t warps, F&& f) {
  const std::uint32_t count = band.rows * band.extents[kLastAxis];
  X::lanes([&](std::size_t lane) {
    for (std::uint32_t i = warp * kLanes + static_cast<std::uint32_t>(lane); i < count; i += warps * kLanes) {
      std::uint32_t index[kLevelAxes] = {};
      split_number<kLevelAxes>(i, band.extents, index);
      f(i, index, lane);
    }
  });
}

/// Contexts of a band's codes as far as complete bands give them, to where the magnitudes will be.
template <class X>
constexpr void sum_known_bands(const WaveletGrid& grid, const WaveletBandPlan& band, std::uint32_t* to,
                               std::uint32_t warp, std::uint32_t warps) {
  for_band_codes<X>(band, warp, warps, [&](std::uint32_t, const std::uint32_t* index, std::size_t lane) {
    std::uint32_t sum = band.constant;
    rolled(band.taps, band.taps + band.known_taps,
           [&](unsigned l) { sum += tap_at<X>(grid, grid.taps[l], grid.magnitudes, index, lane); });
    X::store(to + grid.place(band.start, index), lane, sum);
  });
}

/// Takes the codes of a band, or of the corrections. Called by one warp.
template <class X>
class WaveletCodeTaker {
 public:
  constexpr WaveletCodeTaker(const JobTask& task, const WaveletGrid& grid, const WaveletBandPlan& band,
                             bool corrections, const LevelTables& tables)
      : task_(task),
        grid_(grid),
        band_(band),
        corrections_(corrections),
        magnitudes_(corrections ? grid.corrections : grid.magnitudes),
        tables_(tables) {}

  constexpr void run(LevelLanes<X>& lanes) {
    walk_rows<X>({band_.rows, band_.extents[kLastAxis], band_.rows_before, grid_.job->lanes.mask},
                 [&](std::uint32_t row, std::uint32_t x, std::size_t lane) { take(row, x, lanes, lane); });
  }

 private:
  template <class T>
  using vec = typename X::template vec<T>;

  [[gnu::always_inline]] constexpr void take(std::uint32_t row, std::uint32_t x, LevelLanes<X>& lanes,
                                             std::size_t lane) {
    const WaveletJob& job = *grid_.job;
    if (x == 0) {
      X::set(near_[0], lane, std::uint32_t{0});
      X::set(near_[1], lane, std::uint32_t{0});
    }
    std::uint32_t index[kLevelAxes] = {};
    split_number<kLastAxis>(row, band_.extents, index);
    index[kLastAxis] = x;
    const std::uint32_t place = grid_.place(band_.start, index);
    std::int32_t code = 0;
    if (!corrections_ || !job.masked || !is_special(index, lane)) {
      std::uint32_t context = X::load(magnitudes_ + place, lane);
      const std::uint32_t own = band_.taps + band_.known_taps;
      rolled(own, own + band_.own_taps,
             [&](unsigned l) { context += tap_at<X>(grid_, grid_.taps[l], magnitudes_, index, lane); });
      context += band_.near[0] * X::get(near_[0], lane) + band_.near[1] * X::get(near_[1], lane);
      code = lanes.take(tables_.tokens[X::load(&tables_.serving[context_bin(context)], lane)], lane);
    }
    const std::uint32_t magnitude = capped_magnitude(code, kMaxWaveletMagnitude);
    X::set(near_[1], lane, X::get(near_[0], lane));
    X::set(near_[0], lane, magnitude);
    X::store(magnitudes_ + place, lane, magnitude);
    const double value = corrections_ ? X::load(grid_.values + place, lane) + code * job.correction
                                      : wavelet_coefficient(code, job.offsets[0], job.offsets[1], band_.step);
    X::store(grid_.values + place, lane, value);
  }

  [[gnu::always_inline]] constexpr bool is_special(const std::uint32_t* index, std::size_t lane) const {
    std::uint64_t offset = 0;
    unroll<kLevelAxes>([&](auto a) { offset += index[a] * grid_.job->special_strides[a]; });
    return X::load(task_.special + offset, lane) != 0;
  }

  const JobTask& task_;
  const WaveletGrid& grid_;
  const WaveletBandPlan& band_;
  bool corrections_;
  std::uint32_t* magnitudes_;
  const LevelTables& tables_;
  vec<std::uint32_t> near_[2];  ///< magnitudes of the columns before
};

/// One lifting step: of the low values (the first half of a line, rounded up) or of the others, from the values of the
/// other kind beside them.
template <class X>
constexpr void lift_half(const WaveletGrid& grid, const WaveletLift& lift, bool low, double factor, std::uint32_t warp,
                         std::uint32_t warps) {
  const std::uint32_t n = lift.box[lift.axis];
  const std::uint32_t lows = (n + 1) / 2;
  const std::uint32_t highs = n - lows;
  const std::uint32_t stride = grid.job->places[lift.axis];
  std::uint32_t extents[kLevelAxes] = {};
  std::uint32_t count = 1;
  unroll<kLevelAxes>([&](auto a) {
    extents[a] = a == lift.axis ? (low ? lows : highs) : lift.box[a];
    count *= extents[a];
  });
  X::lanes([&](std::size_t lane) {
    for (std::uint32_t i = warp * kLanes + static_cast<std::uint32_t>(lane); i < count; i += warps * kLanes) {
      std::uint32_t index[kLevelAxes] = {};
      split_number<kLevelAxes>(i, extents, index);
      std::uint32_t along = 0;
      unroll<kLevelAxes>([&](auto a) { along = a == lift.axis ? index[a] : along; });
      double* const to = grid.values + (grid.place(0, index) + (low ? 0 : lows) * stride);
      double* const line = to - std::size_t{along + (low ? 0 : lows)} * stride;
      const std::uint32_t left = low ? lows + (along > 0 ? along - 1 : 0) : along;
      const std::uint32_t right = low                ? lows + (along < highs ? along : highs - 1)
                                  : along + 1 < lows ? along + 1
                                                     : lows - 1;
      const double before = X::load(line + std::size_t{left} * stride, lane);
      const double after = X::load(line + std::size_t{right} * stride, lane);
      X::store(to, lane, lifted(X::load(to, lane), before, after, factor));
    }
  });
}

/// To the room with low and high values of each line in turns, or from such lines with low values in front; and back.
enum class BoxCopy : std::uint8_t { weave, part, back };

/// Copies a box between the two arrays.
template <class X>
constexpr void copy_box(const WaveletGrid& grid, const WaveletLift& lift, BoxCopy copy, std::uint32_t warp,
                        std::uint32_t warps) {
  const std::uint32_t lows = (lift.box[lift.axis] + 1) / 2;
  const std::uint32_t count = lift.box[0] * lift.box[1] * lift.box[2] * lift.box[3];
  X::lanes([&](std::size_t lane) {
    for (std::uint32_t i = warp * kLanes + static_cast<std::uint32_t>(lane); i < count; i += warps * kLanes) {
      std::uint32_t index[kLevelAxes] = {};
      split_number<kLevelAxes>(i, lift.box, index);
      const std::uint32_t place = grid.place(0, index);
      if (copy == BoxCopy::back) {
        X::store(grid.values + place, lane, X::load(grid.room + place, lane));
        continue;
      }
      unroll<kLevelAxes>([&](auto a) {
        if (a == lift.axis) index[a] = index[a] % 2 == 0 ? index[a] / 2 : lows + index[a] / 2;
      });
      const std::uint32_t parted = grid.place(0, index);
      const bool weave = copy == BoxCopy::weave;
      X::store(grid.room + (weave ? place : parted), lane, X::load(grid.values + (weave ? parted : place), lane));
    }
  });
}

/// Elements of a complete chunk, in C order.
template <class X>
constexpr void store_wavelet_elements(const JobTask& task, const WaveletGrid& grid, std::uint32_t warp,
                                      std::uint32_t warps) {
  const WaveletJob& job = *grid.job;
  const std::size_t width = element_bytes(job.element);
  const std::uint32_t count = job.extents[0] * job.extents[1] * job.extents[2] * job.extents[3];
  X::lanes([&](std::size_t lane) {
    for (std::uint32_t i = warp * kLanes + static_cast<std::uint32_t>(lane); i < count; i += warps * kLanes) {
      std::uint32_t index[kLevelAxes] = {};
      split_number<kLevelAxes>(i, job.extents, index);
      std::uint64_t out = 0;
      unroll<kLevelAxes>([&](auto a) { out += index[a] * job.strides[a]; });
      const double number = X::load(grid.values + i, lane) * job.unit + job.base;
      const double value = job.lattice.element(number);
      const std::uint64_t bits =
          with_number_element(job.element, [&](auto type) -> std::uint64_t { return decltype(type)::bits(value); });
      put_element<X>(task.out, width, out, bits, lane);
    }
  });
}
template <class X>
constexpr void store_wavelet_exceptions(const JobTask& task, const WaveletGrid& grid, const JobException* exceptions,
                                        std::uint32_t warp, std::uint32_t warps) {
  const WaveletJob& job = *grid.job;
  const std::size_t width = element_bytes(job.element);
  X::lanes([&](std::size_t lane) {
    for (std::uint32_t i = warp * kLanes + static_cast<std::uint32_t>(lane); i < job.exception_count;
         i += warps * kLanes) {
      std::uint32_t index[kLevelAxes] = {};
      split_number<kLevelAxes>(exceptions[i].index, job.extents, index);
      std::uint64_t out = 0;
      unroll<kLevelAxes>([&](auto a) { out += index[a] * job.strides[a]; });
      put_element<X>(task.out, width, out, exceptions[i].bits, lane);
    }
  });
}

/// Undoes the transform: of the four lifting steps the last first.
template <class X, class Block>
constexpr void undo_wavelet(Block& block, const WaveletGrid& grid, const WaveletLift* lifts) {
  for (std::uint32_t l = 0; l < grid.job->lift_count; ++l) {
    const WaveletLift& lift = lifts[l];
    unroll<4>([&](auto step) {
      const double factor = -wavelet_factor(3 - step);
      block.all([&](std::uint32_t warp, std::uint32_t warps) {
        lift_half<X>(grid, lift, step % 2 == 0, factor, warp, warps);
      });
    });
    for (const BoxCopy copy : {BoxCopy::weave, BoxCopy::back})
      block.all([&](std::uint32_t warp, std::uint32_t warps) { copy_box<X>(grid, lift, copy, warp, warps); });
  }
}

/// Decodes a chunk, as decode_level_chunk does.
template <class X, class Block>
constexpr bool decode_wavelet_chunk(Block& block, const JobTask& task, LevelTables& tables) {
  const WaveletGrid grid(task);
  const WaveletJob& job = *grid.job;
  block.all([&](std::uint32_t warp, std::uint32_t warps) {
    fill_level_tables<X>(job, LevelGridView::table<StreamStarts>(task, job.starts), warp, warps, tables);
  });
  LevelLanes<X> lanes;
  bool good = true;
  block.first([&] { lanes.open(job.lanes, LevelGridView::table<std::uint8_t>(task, job.words)); });
  const auto* const bands = LevelGridView::table<WaveletBandPlan>(task, job.bands);
  const std::uint32_t parts = job.band_count + (job.correction != 0 ? 1 : 0);
  for (std::uint32_t b = 0; b < parts; ++b) {
    const bool corrections = b == job.band_count;
    if (corrections) undo_wavelet<X>(block, grid, LevelGridView::table<WaveletLift>(task, job.lifts));
    block.all([&](std::uint32_t warp, std::uint32_t warps) {
      sum_known_bands<X>(grid, bands[b], corrections ? grid.corrections : grid.magnitudes, warp, warps);
    });
    block.first([&] { WaveletCodeTaker<X>(task, grid, bands[b], corrections, tables).run(lanes); });
  }
  if (job.correction == 0) undo_wavelet<X>(block, grid, LevelGridView::table<WaveletLift>(task, job.lifts));
  block.first([&] { good = lanes.finished(); });
  block.all([&](std::uint32_t warp, std::uint32_t warps) { store_wavelet_elements<X>(task, grid, warp, warps); });
  block.all([&](std::uint32_t warp, std::uint32_t warps) {
    store_wavelet_exceptions<X>(task, grid, LevelGridView::table<JobException>(task, job.exceptions), warp, warps);
  });
  return good;
}

}  // namespace quern::kernels
