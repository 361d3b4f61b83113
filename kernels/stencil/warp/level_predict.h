// Predictions and contexts of a class in levels, by all warps of a chunk. Where a patch's neighbours lie is the same
// for all its columns: the lanes of a warp find it side by side, a lane a neighbour, and leave a list that all of them
// then walk. Numbers are those of codecs/stencil/levels/decode.cpp: sums of products in binary64 in the same order, so
// that even bytes that no encoder writes give the same values.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/common/round_to_integer.h"
#include "kernels/stencil/level_job.h"
#include "kernels/stencil/rules.h"
#include "kernels/stencil/warp/level_grid.h"
#include "kernels/stencil/warp/level_patch.h"

namespace quern::kernels {

/// A neighbour of a patch: the place of column 0 of its row, seen from the patch's first row, places to that of the
/// row below, and its weight.
struct alignas(16) LevelPlace {
  std::int32_t place = 0;
  std::uint32_t stride = 0;
  double weight = 0;
};
/// Memory of one warp.
struct LevelPlaces {
  LevelPlace list[kLanes];
};

/// Predicts a patch: the prediction's bits go where the values will be, the context sum where the residuals will be. Or
/// with `kCoded`, of a class that is coded already, tells the context sums alone, with what the class itself gives.
template <class X, bool kCoded = false>
class LevelPredictor {
 public:
  constexpr LevelPredictor(const JobTask& task, const LevelGridView& grid, const LevelSweep& sweep, LevelPlaces& places)
      : grid_(grid),
        job_(*grid.job),
        view_(grid.stage->views[sweep.parity_class]),
        plan_(*sweep.plan),
        first_row_(sweep.first_row),
        taps_(LevelGridView::table<LevelTap<double>>(task, job_.taps) + plan_.taps),
        magnitude_taps_(LevelGridView::table<LevelTap<std::uint32_t>>(task, job_.magnitude_taps) +
                        plan_.magnitude_taps),
        spreads_(LevelGridView::table<LevelSpread>(task, job_.spreads) + plan_.spreads),
        list_(places.list) {}

  constexpr void run(LevelPatch patch) const requires(!kCoded) {
    run(patch, [](std::uint32_t, std::uint32_t, std::size_t) {});
  }
  /// Calls visit(number of the point in its class, context sum, lane) for the points of a coded class.
  template <class Visit>
  constexpr void run(LevelPatch patch, const Visit& visit) const {
    const std::uint32_t rows = patch.rows;
    LevelRow at(view_, first_row_ + patch.row);
    LevelRow last = at;
    last.index[2] += rows - 1;
    const bool inside = row_is_inside(grid_, at) && row_is_inside(grid_, last);
    // At the border each row has neighbours of its own.
    if (!inside) patch.rows = 1;
    rolled(0, rows / patch.rows, [&](unsigned) {
      predict(patch, at, inside, visit);
      ++patch.row;
      ++at.index[2];
    });
  }

 private:
  template <class T>
  using vec = typename X::template vec<T>;

  template <class Visit>
  constexpr void predict(const LevelPatch& patch, const LevelRow& at, bool inside, const Visit& visit) const {
    // Points that do not exist are those of the first row or the last column, and left alone.
    std::uint32_t down[kPatchPoints] = {};
    unroll<kPatchPoints>([&](auto k) { down[k] = patch.down(k) < patch.rows ? patch.down(k) : 0; });
    vec<std::uint32_t> x[kPatchPoints];
    vec<double> sums[kPatchPoints];
    vec<std::uint32_t> contexts[kPatchPoints];
    X::lanes([&](std::size_t lane) {
      unroll<kPatchPoints>([&](auto k) {
        const std::uint32_t column = patch.column(k, lane);
        X::set(x[k], lane, column < patch.columns ? column : patch.columns - 1);
        X::set(sums[k], lane, 0.0);
        X::set(contexts[k], lane, plan_.constant);
      });
    });
    const auto place_of = [&](const LevelPlace& from, auto k, std::size_t lane) __attribute__((always_inline)) {
      return static_cast<std::uint32_t>(from.place) + down[k] * from.stride + X::get(x[k], lane);
    };
    const auto add_value = [&](const LevelPlace& from, std::size_t lane) __attribute__((always_inline)) {
      unroll<kPatchPoints>([&](auto k) {
        X::set(sums[k], lane,
               X::get(sums[k], lane) + from.weight * X::load(grid_.values + place_of(from, k, lane), lane));
      });
    };
    if (kCoded) {
      // Codes and values say what the points were predicted as.
    } else if (inside || !job_.linear_border) {
      for (std::uint32_t begin = 0; begin < plan_.tap_count; begin += kLanes) {
        list_places(at, inside, taps_, begin, plan_.tap_count);
        const std::uint32_t left = plan_.tap_count - begin;
        X::lanes([&](std::size_t lane) {
          in_eights(0, left < kLanes ? left : kLanes, [&](unsigned t) { add_value(X::load(list_ + t, lane), lane); });
        });
        X::sync();
      }
    } else {
      constexpr std::uint32_t kTaps = kLanes / kLinearPlaces;
      for (std::uint32_t begin = 0; begin < plan_.tap_count; begin += kTaps) {
        list_linear_places(at, begin);
        const std::uint32_t left = plan_.tap_count - begin;
        X::lanes([&](std::size_t lane) {
          rolled(0, left < kTaps ? left : kTaps, [&](unsigned t) {
            const LevelPlace* const choices = list_ + t * kLinearPlaces;
            rolled(0, X::load(&choices->stride, lane), [&](unsigned choice) {
              LevelPlace from = X::load(choices + choice, lane);
              from.stride = 0;
              add_value(from, lane);
            });
          });
        });
        X::sync();
      }
    }
    for (std::uint32_t begin = 0; begin < plan_.magnitude_tap_count; begin += kLanes) {
      list_places(at, inside, magnitude_taps_, begin, plan_.magnitude_tap_count);
      const std::uint32_t left = plan_.magnitude_tap_count - begin;
      X::lanes([&](std::size_t lane) {
        in_eights(0, left < kLanes ? left : kLanes, [&](unsigned t) {
          const LevelPlace from = X::load(list_ + t, lane);
          const auto weight = static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(from.weight));
          unroll<kPatchPoints>([&](auto k) {
            const std::uint32_t residual = X::load(grid_.residuals + place_of(from, k, lane), lane);
            X::set(contexts[k], lane, X::get(contexts[k], lane) + weight * context_magnitude(residual));
          });
        });
      });
      X::sync();
    }
    vec<std::int64_t> predicted[kPatchPoints];
    const std::uint32_t own = view_.first + (first_row_ + patch.row) * view_.stride;
    X::lanes([&](std::size_t lane) {
      unroll<kPatchPoints>([&](auto k) {
        if constexpr (kCoded) {
          const std::uint32_t place = own + down[k] * view_.stride + X::get(x[k], lane);
          const auto code = static_cast<std::int32_t>(X::load(grid_.residuals + place, lane));
          X::set(predicted[k], lane,
                 static_cast<std::int64_t>(X::load(grid_.values + place, lane)) - code * grid_.stage->quantum);
          return;
        }
        const auto sum = static_cast<std::uint64_t>(nearest_integer(X::get(sums[k], lane)));
        X::set(predicted[k], lane, scaled_down(sum, job_.weight_bits));
      });
    });
    if (plan_.spread_count != 0) {
      vec<std::uint32_t> spreads[kPatchPoints];
      X::lanes(
          [&](std::size_t lane) { unroll<kPatchPoints>([&](auto k) { X::set(spreads[k], lane, std::uint32_t{0}); }); });
      for (std::uint32_t begin = 0; begin < plan_.spread_count; begin += kLanes / 2) {
        list_spreads(at, inside, begin);
        const std::uint32_t left = plan_.spread_count - begin;
        X::lanes([&](std::size_t lane) {
          rolled(0, left < kLanes / 2 ? left : kLanes / 2, [&](unsigned s) {
            const LevelSpread& spread = spreads_[begin + s];
            const LevelPlace first = X::load(list_ + 2 * s, lane);
            const LevelPlace second = X::load(list_ + 2 * s + 1, lane);
            unroll<kPatchPoints>([&](auto k) {
              const double difference = X::load(grid_.values + place_of(first, k, lane), lane) +
                                        spread.second_factor * X::load(grid_.values + place_of(second, k, lane), lane) +
                                        spread.predicted_factor * static_cast<double>(X::get(predicted[k], lane));
              const std::uint32_t counted = capped_spread(difference, spread.scale, kMaxSpread);
              X::set(spreads[k], lane, X::get(spreads[k], lane) + spread.weight * counted);
            });
          });
        });
        X::sync();
      }
      X::lanes([&](std::size_t lane) {
        unroll<kPatchPoints>([&](auto k) {
          X::set(contexts[k], lane, X::get(contexts[k], lane) + (X::get(spreads[k], lane) >> kSpreadFractionBits));
        });
      });
    }
    X::lanes([&](std::size_t lane) {
      unroll<kPatchPoints>([&](auto k) {
        if (patch.down(k) >= patch.rows || patch.column(k, lane) >= patch.columns) return;
        const std::uint32_t place = own + down[k] * view_.stride + X::get(x[k], lane);
        if constexpr (kCoded) {
          const std::uint32_t row = first_row_ + patch.row + down[k];
          visit(row * patch.columns + X::get(x[k], lane), X::get(contexts[k], lane) + own_context(row, place, lane),
                lane);
          return;
        }
        X::store(grid_.values + place, lane, std::bit_cast<double>(X::get(predicted[k], lane)));
        X::store(grid_.residuals + place, lane, X::get(contexts[k], lane));
      });
    });
  }

  /// What points of the class give to a context, whose rows are complete.
  [[gnu::always_inline]] constexpr std::uint32_t own_context(std::uint32_t row, std::uint32_t place,
                                                             std::size_t lane) const {
    const auto magnitude = [&](std::uint32_t at) { return context_magnitude(X::load(grid_.residuals + at, lane)); };
    std::uint32_t sum = 0;
    if ((plan_.above | plan_.sides) != 0 && row % view_.extents[2] != 0) {
      const std::uint32_t above = place - view_.stride;
      sum += plan_.above * magnitude(above);
      if (plan_.sides != 0) sum += plan_.sides * (magnitude(above - 1) + magnitude(above + 1));
    }
    if (plan_.back != 0 && row / view_.extents[2] % view_.extents[1] != 0)
      sum += plan_.back * magnitude(place - view_.extents[2] * view_.stride);
    return sum;
  }

  [[gnu::always_inline]] static constexpr double weight_of(const LevelTap<double>& tap) { return tap.weight; }
  /// As bits.
  [[gnu::always_inline]] static constexpr double weight_of(const LevelTap<std::uint32_t>& tap) {
    return std::bit_cast<double>(std::uint64_t{tap.weight});
  }
  template <class Weight>
  constexpr void list_places(const LevelRow& at, bool inside, const LevelTap<Weight>* taps, std::uint32_t begin,
                             std::uint32_t end) const {
    X::lanes([&](std::size_t lane) {
      const std::uint32_t t = begin + static_cast<std::uint32_t>(lane);
      if (t >= end) return;
      const LevelTap<Weight>& tap = taps[t];
      X::store(list_ + lane, lane,
               {neighbour_place(grid_, at, inside, tap.in_class, tap.step), grid_.stage->views[tap.in_class].stride,
                weight_of(tap)});
    });
    X::sync();
  }
  constexpr void list_linear_places(const LevelRow& at, std::uint32_t begin) const {
    X::lanes([&](std::size_t lane) {
      const std::uint32_t t = begin + static_cast<std::uint32_t>(lane / kLinearPlaces);
      if (t >= plan_.tap_count) return;
      const LinearPlace from = linear_place(grid_, at, taps_[t], static_cast<std::uint32_t>(lane % kLinearPlaces));
      X::store(list_ + lane, lane, {from.place, from.count, from.weight});
    });
    X::sync();
  }
  constexpr void list_spreads(const LevelRow& at, bool inside, std::uint32_t begin) const {
    X::lanes([&](std::size_t lane) {
      const std::uint32_t s = begin + static_cast<std::uint32_t>(lane / 2);
      if (s >= plan_.spread_count) return;
      const LevelSpread& spread = spreads_[s];
      const bool first = lane % 2 == 0;
      const std::uint32_t in_class = first ? spread.first_class : spread.second_class;
      X::store(list_ + lane, lane,
               {neighbour_place(grid_, at, inside, in_class, first ? spread.first_step : spread.second_step),
                grid_.stage->views[in_class].stride, 0});
    });
    X::sync();
  }

  const LevelGridView& grid_;
  const LevelJob& job_;
  const LevelView& view_;
  const ClassPlan& plan_;
  std::uint32_t first_row_;
  const LevelTap<double>* taps_;
  const LevelTap<std::uint32_t>* magnitude_taps_;
  const LevelSpread* spreads_;
  LevelPlace* list_;
};

}  // namespace quern::kernels
