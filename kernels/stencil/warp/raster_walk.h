// How the lanes of one warp walk the rows of a plane side by side, each four columns behind the one before, and what a
// point sees there: the columns before it in registers, rows before it in a ring of the last steps' values that the
// lanes share. What points get from elsewhere is loaded four columns ahead. Neighbours have fixed places, so that a
// step holds no loop over taps; taps that a model lacks have weight 0.
#pragma once

#include <cstdint>

#include "kernels/common/round_to_integer.h"
#include "kernels/entropy/warp/rows.h"
#include "kernels/stencil/rules.h"
#include "kernels/stencil/warp/raster_grid.h"

namespace quern::kernels {

/// A neighbour in a row before: of the same plane, or of a chunk of one plane.
struct RowSlot {
  std::uint32_t back = 1;
  std::int32_t column = 0;
  bool context = false;  ///< its magnitude may count, too
};
inline constexpr std::size_t kMostRowSlots = 13;
inline constexpr std::size_t kMeanSlots = 3;  ///< columns -1, 0, 1 of the mean of rows before
inline constexpr std::uint32_t kMostRowsBack = 3;

/// All such neighbours; those of one row side by side, the row before first.
template <bool kPlanes>
struct RowSlots {
  static constexpr std::size_t kCount = kPlanes ? 8 : kMostRowSlots;
  static constexpr std::uint32_t kBack = kPlanes ? 2 : kMostRowsBack;

  static constexpr std::size_t begin(std::uint32_t back) {
    if (back > kBack) return kCount;
    if (back == 1) return 0;
    if (back == 2) return kPlanes ? 5 : 7;
    return 12;
  }
  static constexpr RowSlot at(std::size_t slot) {
    const std::uint32_t back = slot < begin(2) ? 1 : slot < begin(3) ? 2 : 3;
    const auto width = static_cast<std::int32_t>(begin(back + 1) - begin(back));
    const std::int32_t column = static_cast<std::int32_t>(slot - begin(back)) - width / 2;
    const bool context = back == 1 ? column >= (kPlanes ? -1 : -2) && column <= 2 : column == 0;
    return {back, column, context};
  }
};

/// What the walking warp and those that prepare its way share.
struct RasterWalkMemory {
  static constexpr std::uint32_t kSteps = 32;  ///< how many the ring holds
  double values[kSteps][kLanes];               ///< by the lane of the walk, the plane's first row having lane 0
  std::uint32_t magnitudes[kSteps][kLanes];
  double rows[kRowClasses][kMostRowSlots];  ///< weights
  double means[kRowClasses][kMeanSlots];
  std::int64_t near[kRowClasses][kRasterNearTaps];
  std::uint32_t context[kMostRowSlots];
};

namespace detail {

template <class X, bool kPlanes>
constexpr void fill_slot(const RasterGrid& grid, std::uint32_t slot, RasterWalkMemory& memory, std::size_t lane) {
  RowSlot wanted;
  unroll<RowSlots<kPlanes>::kCount>([&](auto s) {
    if (s == slot) wanted = RowSlots<kPlanes>::at(s);
  });
  const auto is_wanted = [&](const auto& tap) {
    return !tap.mean && tap.row == -static_cast<std::int32_t>(wanted.back) && tap.column == wanted.column;
  };
  const RasterJob& job = *grid.job;
  for (std::uint32_t c = 0; c < kRowClasses; ++c) {
    const RasterList list = job.classes[c].rows;
    double weight = 0;
    rolled(list.first, list.first + list.count,
           [&](unsigned t) { weight = is_wanted(grid.taps[t]) ? grid.taps[t].weight : weight; });
    X::store(&memory.rows[c][slot], lane, weight);
  }
  std::uint32_t weight = 0;
  rolled(job.context_rows.first, job.context_rows.first + job.context_rows.count,
         [&](unsigned t) { weight = is_wanted(grid.context_taps[t]) ? grid.context_taps[t].weight : weight; });
  X::store(&memory.context[slot], lane, weight);
}

}  // namespace detail

/// Weights by places. Called by every warp of a chunk; the first one does it.
template <class X>
constexpr void fill_walk_memory(const RasterGrid& grid, std::uint32_t warp, RasterWalkMemory& memory) {
  if (warp != 0) return;
  const RasterJob& job = *grid.job;
  X::lanes([&](std::size_t lane) {
    const auto slot = static_cast<std::uint32_t>(lane);
    if (job.planes > 1) {
      if (slot < RowSlots<true>::kCount) detail::fill_slot<X, true>(grid, slot, memory, lane);
    } else if (slot < RowSlots<false>::kCount) {
      detail::fill_slot<X, false>(grid, slot, memory, lane);
    }
    if (slot < kMeanSlots) {
      for (std::uint32_t c = 0; c < kRowClasses; ++c) {
        const RasterList list = job.classes[c].rows;
        double weight = 0;
        rolled(list.first, list.first + list.count, [&](unsigned t) {
          const RasterTap<double>& tap = grid.taps[t];
          weight = tap.mean && tap.column == static_cast<std::int32_t>(slot) - 1 ? tap.weight : weight;
        });
        X::store(&memory.means[c][slot], lane, weight);
      }
    }
    if (slot < kRasterNearTaps) {
      for (std::uint32_t c = 0; c < kRowClasses; ++c) {
        const RasterClass& plan = job.classes[c];
        X::store(&memory.near[c][slot], lane, slot < plan.near_count ? plan.near[slot] : std::int64_t{0});
      }
    }
  });
}

/// A point on the way. A lane that has none, before its first row and after its last one, goes along with `here` false:
/// what it computes is lost.
struct WalkPoint {
  bool here = false;
  std::uint32_t row = 0;
  std::uint32_t x = 0;
  std::uint32_t step = 0;
  std::uint32_t walker = 0;  ///< the lane of the walk
  std::uint32_t place = 0;   ///< its number in the chunk
};

/// The sum of N terms, as a tree: they are integers, so that their order does not matter.
template <std::size_t N, std::size_t kFirst = 0>
[[gnu::always_inline]] constexpr double sum_of(const double* terms) {
  if constexpr (N == 1) {
    return terms[kFirst];
  } else {
    return sum_of<N / 2, kFirst>(terms) + sum_of<N - N / 2, kFirst + N / 2>(terms);
  }
}

/// `kPlanes`: of a chunk of several planes. `kMagnitudes`: those of rows before are wanted, too.
template <class X, bool kPlanes, bool kMagnitudes>
class RasterWalk {
  using Slots = RowSlots<kPlanes>;
  template <class T>
  using vec = typename X::template vec<T>;

 public:
  /// In several planes no more columns before a point have weights.
  static constexpr std::size_t kNear = kPlanes ? 3 : kRasterNearTaps;

  /// Row n of the plane is in lane (number + n) & mask of the warp.
  constexpr RasterWalk(const RasterGrid& grid, std::uint32_t plane, std::uint32_t number, std::uint32_t mask,
                       RasterWalkMemory& memory)
      : values_(grid.values),
        magnitudes_(grid.magnitudes),
        means_(grid.means),
        rows_(grid.job->rows),
        columns_(grid.job->columns),
        weight_bits_(grid.job->weight_bits),
        mean_(!kPlanes && grid.job->mean),
        plane_(plane),
        number_(number),
        mask_(mask),
        memory_(memory) {
    const std::uint32_t wave = (mask + 1) * kRowSkew;
    period_ = columns_ > wave ? (columns_ + kRowSkew - 1) / kRowSkew * kRowSkew : wave;
    extra_ = period_ - wave;
    // Rows that lanes walked in their turn before are in the ring, too, if that is not too long ago.
    constexpr std::uint32_t kReach = 3;
    ring_holds_turns_ =
        mask + 1 >= kMostRowsBack && extra_ + kMostRowsBack * kRowSkew + kReach < RasterWalkMemory::kSteps;
    // Planes before have it in what they give.
    rounding_ = kPlanes ? 0 : std::uint64_t{1} << (weight_bits_ - 1);
  }

  /// For all points, as walk_rows() does: client.load(place in the plane, i, lane) four columns ahead,
  /// client.shift(lane) before a lane's next four, then client.step(point, i, lane), where i = 0..3 is a constant.
  template <class Client>
  constexpr void run(Client& client) {
    const std::uint32_t last = rows_ - 1;
    const std::uint32_t blocks =
        last / (mask_ + 1) * (period_ / kRowSkew) + (last & mask_) + (columns_ + kRowSkew - 1) / kRowSkew;
    vec<std::uint32_t> row;
    vec<std::uint32_t> x;
    vec<std::uint32_t> count;  // of the block's columns
    const auto load = [&](std::uint32_t r, std::uint32_t at, std::size_t lane) {
      if (r >= rows_) return;
      unroll<kRowSkew>([&](auto i) {
        if (at + i < columns_) client.load(r * columns_ + at + static_cast<std::uint32_t>(i), i, lane);
      });
    };
    X::lanes([&](std::size_t lane) {
      X::set(row, lane, walker_of(lane));
      X::set(x, lane, std::uint32_t{0});
      clear(lane);
      client.clear(lane);
      if (lane <= mask_ && walker_of(lane) == 0) load(0, 0, lane);
    });
    for (std::uint32_t block = 0; block < blocks; ++block) {
      X::lanes([&](std::size_t lane) {
        const std::uint32_t walker = walker_of(lane);
        std::uint32_t r = X::get(row, lane);
        std::uint32_t at = X::get(x, lane);
        const auto go_on = [&] {
          at += kRowSkew;
          if (at >= period_) {
            at = 0;
            r += mask_ + 1;
          }
        };
        if (block > walker) go_on();
        X::set(row, lane, r);
        X::set(x, lane, at);
        const bool here = lane <= mask_ && block >= walker && r < rows_ && at < columns_;
        X::set(count, lane, here ? columns_ - at : 0);
        client.shift(lane);
        if (here && at == 0) start_row(r, block, walker, lane);
        if (block >= walker) go_on();
        if (lane <= mask_ && block + 1 >= walker) load(r, at, lane);
      });
      unroll<kRowSkew>([&](auto i) {
        X::lanes([&](std::size_t lane) {
          constexpr auto kAt = static_cast<std::uint32_t>(decltype(i)::value);
          WalkPoint point;
          point.here = kAt < X::get(count, lane);
          point.row = X::get(row, lane);
          point.x = X::get(x, lane) + kAt;
          point.step = block * kRowSkew + kAt;
          point.walker = walker_of(lane);
          point.place = (plane_ * rows_ + point.row) * columns_ + point.x;
          see(point, lane);
          client.step(point, i, lane);
        });
        X::sync();
      });
    }
  }

  /// What rows before give to the prediction of a point.
  [[gnu::always_inline]] constexpr double rows_sum(const WalkPoint& point, std::size_t lane) const {
    double terms[Slots::kCount] = {};
    unroll<Slots::kCount>([&](auto t) { terms[t] = row_weight<decltype(t)::value>(lane) * X::get(seen_[t], lane); });
    double sum = sum_of<Slots::kCount>(terms);
    if constexpr (!kPlanes) {
      if (mean_ && point.here) {
        // The mean goes on from row to row.
        unroll<kMeanSlots>([&](auto t) {
          const std::uint32_t column =
              kept_inside(static_cast<std::int32_t>(point.x) + static_cast<std::int32_t>(t) - 1, columns_);
          const double weight = X::load(&memory_.means[X::get(class_, lane)][t], lane);
          // Not there before the third row, nor is its weight.
          if (weight != 0) sum += weight * X::load(means_ + (std::size_t{point.row} * columns_ + column), lane);
        });
      }
    }
    return point.row > 0 ? sum : 0;
  }

  /// The prediction, from that and from what planes before gave.
  [[gnu::always_inline]] constexpr std::int64_t predict(double rows_sum, std::int64_t before, std::size_t lane) const {
    auto sum = static_cast<std::uint64_t>(before) + static_cast<std::uint64_t>(nearest_integer(rows_sum)) + rounding_;
    // The latest value, which everything waits for, comes last.
    unroll<kNear>([&](auto t) {
      constexpr std::size_t kAt = kNear - 1 - decltype(t)::value;
      sum += static_cast<std::uint64_t>(near_weight<kAt>(lane)) * static_cast<std::uint64_t>(X::get(near_[kAt], lane));
    });
    return static_cast<std::int64_t>(sum) >> weight_bits_;
  }

  /// What rows before give to the context of a point.
  [[gnu::always_inline]] constexpr std::uint32_t row_context(std::size_t lane) const {
    std::uint32_t sum = 0;
    unroll<Slots::kCount>([&](auto t) {
      if constexpr (Slots::at(decltype(t)::value).context)
        sum += X::load(&memory_.context[t], lane) * X::get(seen_magnitudes_[t], lane);
    });
    return sum;
  }

  [[gnu::always_inline]] constexpr std::int64_t last(std::size_t lane) const { return X::get(near_[0], lane); }

  /// Takes a point's value.
  [[gnu::always_inline]] constexpr void push(const WalkPoint& point, std::int64_t value, std::size_t lane) {
    unroll<kNear - 1>([&](auto t) {
      constexpr std::size_t kTo = kNear - 1 - decltype(t)::value;
      X::set(near_[kTo], lane, X::get(near_[kTo - 1], lane));
    });
    X::set(near_[0], lane, value);
    if (!point.here) return;
    const double kept = number_of(value);
    X::store(&memory_.values[point.step % RasterWalkMemory::kSteps][point.walker], lane, kept);
    X::store(values_ + point.place, lane, kept);
    if constexpr (!kPlanes) {
      if (mean_) next_row_mean(point, kept, lane);
    }
  }
  [[gnu::always_inline]] constexpr void push_magnitude(const WalkPoint& point, std::uint32_t magnitude,
                                                       std::size_t lane) {
    X::store(&memory_.magnitudes[point.step % RasterWalkMemory::kSteps][point.walker], lane, magnitude);
    X::store(magnitudes_ + point.place, lane, magnitude);
  }

 private:
  static constexpr std::uint32_t half_width(std::uint32_t back) {
    return static_cast<std::uint32_t>(Slots::begin(back + 1) - Slots::begin(back)) / 2;
  }

  [[gnu::always_inline]] constexpr std::uint32_t walker_of(std::size_t lane) const {
    return (static_cast<std::uint32_t>(lane) - number_) & mask_;
  }

  /// Rows before that are not in the ring are read where all values are.
  [[gnu::always_inline]] constexpr bool is_far(std::uint32_t back, std::uint32_t walker) const {
    return back > walker && !ring_holds_turns_;
  }

  template <std::size_t kSlot>
  [[gnu::always_inline]] constexpr double row_weight(std::size_t lane) const {
    if constexpr (kPlanes) return X::get(row_weights_[kSlot], lane);
    // Too many for registers.
    return X::load(&memory_.rows[X::get(class_, lane)][kSlot], lane);
  }
  template <std::size_t kAt>
  [[gnu::always_inline]] constexpr std::int64_t near_weight(std::size_t lane) const {
    if constexpr (kPlanes) return X::get(near_weights_[kAt], lane);
    return X::load(&memory_.near[X::get(class_, lane)][kAt], lane);
  }

  [[gnu::always_inline]] constexpr void clear(std::size_t lane) {
    X::set(class_, lane, std::uint32_t{0});
    unroll<Slots::kBack>([&](auto b) {
      X::set(ring_step_[b], lane, std::uint32_t{0});
      X::set(ring_walker_[b], lane, std::uint32_t{0});
    });
    unroll<Slots::kCount>([&](auto t) {
      X::set(seen_[t], lane, 0.0);
      X::set(seen_magnitudes_[t], lane, std::uint32_t{0});
      X::set(row_weights_[t], lane, 0.0);
    });
    unroll<kNear>([&](auto t) {
      X::set(near_[t], lane, std::int64_t{0});
      X::set(near_weights_[t], lane, std::int64_t{0});
    });
  }

  /// Value of a row before that exists; `back` is less than kBack where the chunk begins with fewer rows.
  template <std::uint32_t kBack>
  [[gnu::always_inline]] constexpr double value_above(std::uint32_t row, std::uint32_t walker, std::uint32_t column,
                                                      std::size_t lane) const {
    const std::uint32_t back = kBack < row ? kBack : row;
    if (is_far(back, walker)) return X::load(values_ + ((plane_ * rows_ + row - back) * columns_ + column), lane);
    return X::load(&memory_.values[(X::get(ring_step_[kBack - 1], lane) + column) % RasterWalkMemory::kSteps]
                                  [X::get(ring_walker_[kBack - 1], lane)],
                   lane);
  }
  template <std::uint32_t kBack>
  [[gnu::always_inline]] constexpr std::uint32_t magnitude_above(std::uint32_t row, std::uint32_t walker,
                                                                 std::uint32_t column, std::size_t lane) const {
    if (is_far(kBack, walker)) return X::load(magnitudes_ + ((plane_ * rows_ + row - kBack) * columns_ + column), lane);
    return X::load(&memory_.magnitudes[(X::get(ring_step_[kBack - 1], lane) + column) % RasterWalkMemory::kSteps]
                                      [X::get(ring_walker_[kBack - 1], lane)],
                   lane);
  }

  /// Before a row's first point: where rows before are, what lies left of what its first point sees newly in them, what
  /// its taps into itself see, and its weights.
  constexpr void start_row(std::uint32_t row, std::uint32_t block, std::uint32_t walker, std::size_t lane) {
    const std::uint32_t of = class_of_row(plane_, row, rows_, kPlanes);
    X::set(class_, lane, of);
    if constexpr (kPlanes) {
      unroll<Slots::kCount>([&](auto t) { X::set(row_weights_[t], lane, X::load(&memory_.rows[of][t], lane)); });
      unroll<kNear>([&](auto t) { X::set(near_weights_[t], lane, X::load(&memory_.near[of][t], lane)); });
    }
    double first = 0;
    if (row > 0) {
      unroll<Slots::kBack>([&](auto b) {
        constexpr std::uint32_t kBack = decltype(b)::value + 1;
        constexpr std::size_t kBegin = Slots::begin(kBack);
        const std::uint32_t back = kBack < row ? kBack : row;
        X::set(ring_walker_[b], lane, (walker - back) & mask_);
        X::set(ring_step_[b], lane, block * kRowSkew - back * kRowSkew - (back > walker ? extra_ : 0));
        // One to the right, as the first point moves all to the left.
        unroll<2 * half_width(kBack)>([&](auto t) {
          const auto column = static_cast<std::int32_t>(t) - static_cast<std::int32_t>(half_width(kBack));
          X::set(seen_[kBegin + 1 + t], lane, value_above<kBack>(row, walker, kept_inside(column, columns_), lane));
        });
      });
      first = value_above<1>(row, walker, 0, lane);
    } else if (plane_ > 0) {
      first = X::load(values_ + std::size_t{plane_ - 1} * rows_ * columns_, lane);
    }
    unroll<kNear>([&](auto t) { X::set(near_[t], lane, static_cast<std::int64_t>(first)); });
    if constexpr (kMagnitudes) {
      unroll<Slots::begin(2)>([&](auto t) {
        // Nothing beyond the chunk.
        constexpr std::int32_t kColumn = Slots::at(decltype(t)::value).column - 1;
        const bool inside = kColumn >= 0 && kColumn < static_cast<std::int32_t>(columns_) && row > 0;
        X::set(seen_magnitudes_[t], lane,
               inside ? magnitude_above<1>(row, walker, static_cast<std::uint32_t>(kColumn), lane) : 0);
      });
    }
  }

  /// Moves what is seen of rows before to a point.
  [[gnu::always_inline]] constexpr void see(const WalkPoint& point, std::size_t lane) {
    unroll<Slots::kBack>([&](auto b) {
      constexpr std::uint32_t kBack = decltype(b)::value + 1;
      constexpr std::size_t kBegin = Slots::begin(kBack);
      constexpr std::uint32_t kHalf = half_width(kBack);
      unroll<2 * kHalf>([&](auto t) { X::set(seen_[kBegin + t], lane, X::get(seen_[kBegin + t + 1], lane)); });
      // Beyond the chunk that of the nearest point.
      const std::uint32_t column = point.x + kHalf < columns_ ? point.x + kHalf : columns_ - 1;
      if (point.here && point.row > 0)
        X::set(seen_[kBegin + 2 * kHalf], lane, value_above<kBack>(point.row, point.walker, column, lane));
      if constexpr (kMagnitudes) {
        constexpr std::uint32_t kReach = kBack == 1 ? 2 : 0;
        constexpr std::size_t kNewest = kBegin + kHalf + kReach;
        if constexpr (kBack == 1)
          unroll<kNewest>([&](auto t) { X::set(seen_magnitudes_[t], lane, X::get(seen_magnitudes_[t + 1], lane)); });
        const bool inside = point.here && point.row >= kBack && point.x + kReach < columns_;
        X::set(seen_magnitudes_[kNewest], lane,
               inside ? magnitude_above<kBack>(point.row, point.walker, point.x + kReach, lane) : 0);
      }
    });
  }

  /// The mean that the next row of a chunk of one plane looks at, which goes on from row to row.
  [[gnu::always_inline]] constexpr void next_row_mean(const WalkPoint& point, double value, std::size_t lane) {
    const double mean = point.row == 0 ? 0 : X::load(means_ + point.place, lane);
    if (point.row + 1 < rows_)
      X::store(means_ + (point.place + columns_), lane, next_mean(mean, value, mean_weight(point.row + 1)));
  }

  double* values_;
  std::uint32_t* magnitudes_;
  double* means_;
  std::uint32_t rows_;
  std::uint32_t columns_;
  std::uint32_t weight_bits_;
  bool mean_;
  std::uint32_t plane_;
  std::uint32_t number_;
  std::uint32_t mask_;
  RasterWalkMemory& memory_;
  std::uint32_t period_ = 0;
  std::uint32_t extra_ = 0;  ///< steps between a lane's turns, beyond those that the walk of all lanes takes
  bool ring_holds_turns_ = false;
  std::uint64_t rounding_ = 0;
  vec<std::uint32_t> class_;
  vec<std::int64_t> near_[kNear];           ///< values of the columns before
  vec<std::int64_t> near_weights_[kNear];   ///< in several planes
  vec<double> seen_[Slots::kCount];         ///< values of rows before, by slots
  vec<double> row_weights_[Slots::kCount];  ///< in several planes
  vec<std::uint32_t> seen_magnitudes_[Slots::kCount];
  vec<std::uint32_t> ring_step_[Slots::kBack];    ///< of column 0 of rows before, in the ring
  vec<std::uint32_t> ring_walker_[Slots::kBack];  ///< and their lane
};

}  // namespace quern::kernels
