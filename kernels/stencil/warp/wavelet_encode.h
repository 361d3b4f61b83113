// A chunk under the wavelet, encoded up to its symbols by the warps of a CTA, a job for each step. Every number is
// that of codecs/stencil/wavelet/encode.cpp: values are integers, sums of them exact in whatever order.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/common/number_elements.h"
#include "kernels/entropy/residual_tokens.h"
#include "kernels/entropy/warp/rows.h"
#include "kernels/stencil/rules.h"
#include "kernels/stencil/warp/encode_result.h"
#include "kernels/stencil/warp/raster_encode.h"
#include "kernels/stencil/warp/wavelet_decode.h"
#include "kernels/stencil/wavelet_encode_job.h"
#include "kernels/stencil/wavelet_quantize.h"

namespace quern::kernels {

/// What the warps of a chunk share.
struct WaveletEncodeShared {
  std::int64_t excess[4][kMaxBlockWarps * kLanes];  ///< sums and counts of a lane, as WaveletSampleHead has them
  std::uint32_t counts[kContextBins][kResidualTokens];
  std::uint32_t exceptions[kMaxBlockWarps];    ///< that each warp has found
  std::uint32_t out_of_range[kMaxBlockWarps];  ///< not 0: an element is no finite number
  std::uint32_t corrected[kMaxBlockWarps];     ///< not 0: there are corrections
};

/// A chunk under way. The same in all lanes.
struct WaveletCodes {
  const WaveletEncodeJob* job = nullptr;
  WaveletGrid grid;
  const WaveletBandPlan* bands = nullptr;
  const WaveletLift* lifts = nullptr;
  const WaveletTrial* trials = nullptr;
  const WaveletSampleRow* sample_rows = nullptr;
  const void* elements = nullptr;
  std::int32_t* codes = nullptr;
  std::uint16_t* symbols = nullptr;
  std::uint32_t* exception_list = nullptr;
  WaveletSampleHead* head = nullptr;
  std::uint32_t* samples = nullptr;

  /// A template, as constexpr functions else may not cast bytes.
  template <class Task>
  constexpr explicit WaveletCodes(const Task& task)
      : job(reinterpret_cast<const WaveletEncodeJob*>(task.job)),
        grid(task),
        bands(reinterpret_cast<const WaveletBandPlan*>(task.job + job->wavelet.bands)),
        lifts(reinterpret_cast<const WaveletLift*>(task.job + job->wavelet.lifts)),
        trials(reinterpret_cast<const WaveletTrial*>(task.job + job->trials)),
        sample_rows(reinterpret_cast<const WaveletSampleRow*>(task.job + job->sample_rows)),
        elements(task.elements),
        codes(reinterpret_cast<std::int32_t*>(task.work + job->codes)),
        symbols(reinterpret_cast<std::uint16_t*>(task.work + job->symbols)),
        exception_list(reinterpret_cast<std::uint32_t*>(task.work + job->exception_list)),
        head(reinterpret_cast<WaveletSampleHead*>(task.work + job->samples)),
        samples(reinterpret_cast<std::uint32_t*>(task.work + job->samples + sizeof(WaveletSampleHead))) {}

  constexpr std::uint32_t elems() const {
    const WaveletJob& wavelet = job->wavelet;
    return wavelet.extents[0] * wavelet.extents[1] * wavelet.extents[2] * wavelet.extents[3];
  }
  /// The corrections follow the bands.
  constexpr const WaveletBandPlan& corrections() const { return bands[job->wavelet.band_count]; }
  template <class X>
  [[gnu::always_inline]] constexpr std::uint64_t element(std::uint32_t index, std::size_t lane) const {
    return load_element<X>(elements, job->wavelet.element, index, lane);
  }
  [[gnu::always_inline]] constexpr double value_of(std::uint64_t bits) const {
    return with_number_element(job->wavelet.element, [&](auto type) -> double {
      using Type = decltype(type);
      return Type::value(static_cast<typename Type::Bits>(bits));
    });
  }
  /// In units. The number is finite.
  [[gnu::always_inline]] constexpr double target_of(double number) const {
    return nearest((number - job->wavelet.base) * job->inverse);
  }
};

/// Elements to values.
template <class X>
constexpr void load_wavelet_values(const WaveletCodes& codes, std::uint32_t warp, std::uint32_t warps,
                                   WaveletEncodeShared& shared) {
  typename X::template vec<bool> out_of_range;
  X::lanes([&](std::size_t lane) {
    bool any = false;
    for (std::uint32_t i = warp * kLanes + static_cast<std::uint32_t>(lane); i < codes.elems(); i += warps * kLanes) {
      const double number = codes.value_of(codes.template element<X>(i, lane));
      const bool finite = number - number == 0;
      any = any || !finite;
      X::store(codes.grid.values + i, lane, finite ? codes.target_of(number) : 0);
    }
    X::set(out_of_range, lane, any);
  });
  const std::uint32_t any = X::any(out_of_range) ? 1 : 0;
  X::lanes([&](std::size_t lane) {
    if (lane == 0 && any != 0) X::store(shared.out_of_range + warp, lane, any);
  });
}

/// Makes the transform that these lifts undo: the last first.
template <class X, class Block>
constexpr void make_wavelet(Block& block, const WaveletGrid& grid, const WaveletLift* lifts, std::uint32_t count) {
  for (std::uint32_t l = count; l-- > 0;) {
    const WaveletLift& lift = lifts[l];
    for (const BoxCopy copy : {BoxCopy::part, BoxCopy::back})
      block.all([&](std::uint32_t warp, std::uint32_t warps) { copy_box<X>(grid, lift, copy, warp, warps); });
    unroll<4>([&](auto step) {
      const double factor = wavelet_factor(step);
      block.all([&](std::uint32_t warp, std::uint32_t warps) {
        lift_half<X>(grid, lift, step % 2 == 1, factor, warp, warps);
      });
    });
  }
}

/// How often each token occurs in a band, without contexts.
template <class X, class Block>
constexpr void count_band_tokens(Block& block, const WaveletCodes& codes, std::uint32_t number,
                                 WaveletEncodeShared& shared) {
  std::uint32_t* const counts = shared.counts[0];
  block.all([&](std::uint32_t warp, std::uint32_t) {
    X::lanes([&](std::size_t lane) {
      for (std::size_t i = lane; warp == 0 && i < kResidualTokens; i += kLanes)
        X::store(counts + i, lane, std::uint32_t{0});
    });
  });
  block.all([&](std::uint32_t warp, std::uint32_t warps) {
    const WaveletBandPlan& band = codes.bands[number];
    const double inverse = 1 / static_cast<double>(band.step);
    for_band_codes<X>(band, warp, warps, [&](std::uint32_t, const std::uint32_t* index, std::size_t lane) {
      const double value = X::load(codes.grid.values + codes.grid.place(band.start, index), lane);
      X::add_to(counts + token_of(magnitude_of(wavelet_code(value, inverse, kWaveletRounding))), lane,
                std::uint32_t{1});
    });
  });
  block.all([&](std::uint32_t warp, std::uint32_t) {
    std::uint32_t* const out = reinterpret_cast<std::uint32_t*>(codes.head) + std::size_t{number} * kResidualTokens;
    X::lanes([&](std::size_t lane) {
      for (std::size_t i = lane; warp == 0 && i < kResidualTokens; i += kLanes)
        X::store(out + i, lane, X::load(counts + i, lane));
    });
  });
}

/// Quantizes planes of bands, each by one warp that walks its rows.
template <class X>
class WaveletQuantizer {
 public:
  constexpr explicit WaveletQuantizer(const WaveletCodes& codes) : codes_(codes) {
    X::lanes([&](std::size_t lane) { unroll<4>([&](auto i) { X::set(excess_[i], lane, std::int64_t{0}); }); });
  }

  constexpr void run(std::uint32_t warp, std::uint32_t warps, WaveletEncodeShared& shared) {
    std::uint32_t number = 0;
    for (std::uint32_t b = 0; b < codes_.job->wavelet.band_count; ++b) {
      const WaveletBandPlan& band = codes_.bands[b];
      const std::uint32_t planes = band.rows / band.extents[kRowAxis];
      for (std::uint32_t plane = 0; plane < planes; ++plane, ++number)
        if (number % warps == warp) run_plane(band, plane);
    }
    X::lanes([&](std::size_t lane) {
      unroll<4>([&](auto i) { X::store(&shared.excess[i][warp * kLanes + lane], lane, X::get(excess_[i], lane)); });
    });
  }

 private:
  template <class T>
  using vec = typename X::template vec<T>;
  static constexpr std::uint32_t kRowAxis = kLastAxis - 1;

  constexpr void run_plane(const WaveletBandPlan& band, std::uint32_t plane) {
    const std::uint32_t rows = band.extents[kRowAxis];
    const double inverse = 1 / static_cast<double>(band.step);
    walk_rows<X>({rows, band.extents[kLastAxis], 0, kLanes - 1},
                 [&](std::uint32_t row, std::uint32_t x, std::size_t lane) {
                   take(band, inverse, plane * rows + row, row == 0, x, lane);
                 });
  }

  [[gnu::always_inline]] constexpr void take(const WaveletBandPlan& band, double inverse, std::uint32_t row, bool first,
                                             std::uint32_t x, std::size_t lane) {
    const std::uint32_t columns = band.extents[kLastAxis];
    if (x == 0) {
      X::set(near_[0], lane, std::uint32_t{0});
      X::set(near_[1], lane, std::uint32_t{0});
    }
    std::uint32_t index[kLevelAxes] = {};
    split_number<kLastAxis>(row, band.extents, index);
    index[kLastAxis] = x;
    const std::uint32_t place = codes_.grid.place(band.start, index);
    std::uint32_t around = X::get(near_[0], lane) + X::get(near_[1], lane);
    if (!first) {
      const std::uint32_t* const above = codes_.grid.magnitudes + (place - codes_.grid.job->places[kRowAxis]);
      around += X::load(above, lane);
      if (x + 1 < columns) around += X::load(above + 1, lane);
    }
    const double value = X::load(codes_.grid.values + place, lane);
    const std::int32_t code = wavelet_code(value, inverse, around == 0 ? kQuietWaveletRounding : kWaveletRounding);
    const std::uint32_t size = magnitude_of(code);
    const std::uint32_t magnitude = capped_magnitude(code, kMaxWaveletMagnitude);
    X::set(near_[1], lane, X::get(near_[0], lane));
    X::set(near_[0], lane, magnitude);
    X::store(codes_.grid.magnitudes + place, lane, magnitude);
    X::store(codes_.codes + (band.codes_before + row * columns + x), lane, code);
    if (size == 0) return;
    const std::int64_t excess = wavelet_excess(value, inverse, size);
    const bool one = size == 1;
    X::set(excess_[0], lane, X::get(excess_[0], lane) + (one ? excess : 0));
    X::set(excess_[1], lane, X::get(excess_[1], lane) + (one ? 0 : excess));
    X::set(excess_[2], lane, X::get(excess_[2], lane) + (one ? 1 : 0));
    X::set(excess_[3], lane, X::get(excess_[3], lane) + (one ? 0 : 1));
  }

  const WaveletCodes& codes_;
  vec<std::uint32_t> near_[2];  ///< magnitudes of the columns before
  vec<std::int64_t> excess_[4];
};

/// Sums what the lanes of all warps have, a lane each of the four.
template <class X>
constexpr void sum_wavelet_excess(const WaveletCodes& codes, std::uint32_t warps, const WaveletEncodeShared& shared) {
  X::lanes([&](std::size_t lane) {
    if (lane >= 4) return;
    std::int64_t sum = 0;
    for (std::uint32_t i = 0; i < warps * kLanes; ++i) sum += X::load(&shared.excess[lane][i], lane);
    X::store(lane < 2 ? &codes.head->excess[lane] : &codes.head->counts[lane - 2], lane, sum);
  });
}

/// Samples: what is seen from the columns of some rows of bands, or of the corrections.
template <class X>
constexpr void gather_wavelet_samples(const WaveletCodes& codes, std::uint32_t warp, std::uint32_t warps) {
  const WaveletGrid& grid = codes.grid;
  for (std::uint32_t r = warp; r < codes.job->sample_row_count; r += warps) {
    const WaveletSampleRow& sample = codes.sample_rows[r];
    const WaveletBandPlan& band = codes.bands[sample.band];
    const std::uint32_t columns = band.extents[kLastAxis];
    const std::uint32_t* const own = sample.band == grid.job->band_count ? grid.corrections : grid.magnitudes;
    X::lanes([&](std::size_t lane) {
      for (auto x = static_cast<std::uint32_t>(lane); x < columns; x += kLanes) {
        std::uint32_t index[kLevelAxes] = {};
        split_number<kLastAxis>(sample.row, band.extents, index);
        index[kLastAxis] = x;
        std::uint32_t* const out = codes.samples + sample.out + x;
        X::store(out, lane, X::load(own + grid.place(band.start, index), lane));
        for (std::uint32_t f = 1; f < kWaveletFeatureRows; ++f)
          X::store(out + std::size_t{f} * columns, lane, std::uint32_t{0});
        rolled(0, band.known_taps + band.own_taps, [&](unsigned l) {
          const WaveletTap& tap = grid.taps[band.taps + l];
          const std::uint32_t seen = seen_by<X>(grid, tap, l < band.known_taps ? grid.magnitudes : own, index, lane);
          std::uint32_t* const to = out + std::size_t{tap.weight} * columns;
          if (seen != 0) X::store(to, lane, X::load(to, lane) + seen);
        });
      }
    });
  }
}

/// Symbols of a band, or of the corrections, and how often each occurs.
template <class X>
constexpr void set_wavelet_symbols(const WaveletCodes& codes, const WaveletBandPlan& band, const std::uint32_t* own,
                                   std::uint32_t warp, std::uint32_t warps, WaveletEncodeShared& shared) {
  const WaveletGrid& grid = codes.grid;
  for_band_codes<X>(band, warp, warps, [&](std::uint32_t i, const std::uint32_t* index, std::size_t lane) {
    std::uint32_t context = band.constant;
    rolled(band.taps, band.taps + band.known_taps,
           [&](unsigned l) { context += tap_at<X>(grid, grid.taps[l], grid.magnitudes, index, lane); });
    rolled(band.taps + band.known_taps, band.taps + band.known_taps + band.own_taps,
           [&](unsigned l) { context += tap_at<X>(grid, grid.taps[l], own, index, lane); });
    const std::uint32_t* const here = own + grid.place(band.start, index);
    if (index[kLastAxis] > 0) context += band.near[0] * X::load(here - 1, lane);
    if (index[kLastAxis] > 1) context += band.near[1] * X::load(here - 2, lane);
    const std::uint32_t at = band.codes_before + i;
    const std::uint32_t level = context_bin(context);
    const unsigned token = token_of(magnitude_of(X::load(codes.codes + at, lane)));
    X::store(codes.symbols + at, lane, static_cast<std::uint16_t>(level * kTokenStride + token));
    X::add_to(&shared.counts[level][token], lane, std::uint32_t{1});
  });
}

template <class X>
constexpr void restore_coefficients(const WaveletCodes& codes, const WaveletBandPlan& band, std::uint32_t warp,
                                    std::uint32_t warps) {
  for_band_codes<X>(band, warp, warps, [&](std::uint32_t i, const std::uint32_t* index, std::size_t lane) {
    const WaveletJob& job = *codes.grid.job;
    const std::int32_t code = X::load(codes.codes + (band.codes_before + i), lane);
    X::store(codes.grid.values + codes.grid.place(band.start, index), lane,
             wavelet_coefficient(code, job.offsets[0], job.offsets[1], band.step));
  });
}

/// Corrections of a warp's elements. How many stay exceptions, and which they are, a bit for each lane, where the first
/// number of each block of the room is.
template <class X>
constexpr void find_corrections(const WaveletCodes& codes, std::uint32_t warp, std::uint32_t warps,
                                WaveletEncodeShared& shared) {
  const WaveletEncodeJob& job = *codes.job;
  const WaveletJob& wavelet = job.wavelet;
  const WarpRun run(codes.elems(), warp, warps);
  std::uint32_t found = 0;
  typename X::template vec<bool> corrected;
  X::lanes([&](std::size_t lane) { X::set(corrected, lane, false); });
  for (std::uint32_t base = run.begin; base < run.end; base += kLanes) {
    typename X::template vec<bool> missed;
    X::lanes([&](std::size_t lane) {
      X::set(missed, lane, false);
      const std::uint32_t i = base + static_cast<std::uint32_t>(lane);
      if (i >= run.end) return;
      const std::uint64_t bits = codes.template element<X>(i, lane);
      const double value = X::load(codes.grid.values + i, lane);
      const auto keeps = [&](double number) {
        return with_number_element(wavelet.element, [&](auto type) -> bool {
          using Type = decltype(type);
          return keeps_bound<Type>(static_cast<typename Type::Bits>(bits),
                                   Type::bits(number * wavelet.unit + wavelet.base), job.bound);
        });
      };
      double code = 0;
      if (!keeps(value)) {
        const double number = codes.value_of(bits);
        if (number - number == 0) code = wavelet_correction(codes.target_of(number) - value, job.correction);
        const bool kept = code != 0 && keeps(value + code * job.correction);
        X::set(missed, lane, !kept);
        if (kept)
          X::set(corrected, lane, true);
        else
          code = 0;
      }
      const auto whole = static_cast<std::int32_t>(code);
      X::store(codes.codes + (codes.elems() + i), lane, whole);
      X::store(codes.grid.corrections + i, lane, capped_magnitude(whole, kMaxWaveletMagnitude));
    });
    const std::uint32_t flags = X::ballot(missed);
    X::lanes([&](std::size_t lane) {
      if (lane == 0) X::store(codes.grid.room + base, lane, std::bit_cast<double>(std::uint64_t{flags}));
    });
    found += popcount(flags);
  }
  const std::uint32_t any = X::any(corrected) ? 1 : 0;
  X::lanes([&](std::size_t lane) {
    if (lane != 0) return;
    X::store(shared.exceptions + warp, lane, found);
    X::store(shared.corrected + warp, lane, any);
  });
}

template <class X>
constexpr void list_wavelet_exceptions(const WaveletCodes& codes, std::uint32_t warp, std::uint32_t warps,
                                       const WaveletEncodeShared& shared) {
  list_exceptions<X>(codes.grid.room, codes.elems(), codes.job->exceptions, codes.exception_list, warp, warps,
                     shared.exceptions);
  if (warp != 0) return;
  std::uint32_t any = 0;
  for (std::uint32_t w = 0; w < warps; ++w) any |= X::load_same(shared.corrected + w);
  X::lanes([&](std::size_t lane) {
    if (lane == 0) X::store(&codes.head->corrected, lane, any);
  });
}

template <class X>
constexpr void clear_wavelet_shared(const WaveletCodes& codes, std::uint32_t warp, std::uint32_t warps,
                                    WaveletEncodeShared& shared) {
  clear_symbol_counts<X>(warp, warps, shared);
  X::lanes([&](std::size_t lane) {
    if (lane != 0) return;
    X::store(shared.out_of_range + warp, lane, std::uint32_t{0});
    X::store(shared.exceptions + warp, lane, warp == 0 ? codes.job->found : 0);
  });
}

/// A step of a chunk.
template <class X, class Block>
constexpr void encode_wavelet_chunk(Block& block, const EncodeTask& task, WaveletEncodeShared& shared) {
  const WaveletCodes codes(task);
  const WaveletJob& wavelet = codes.job->wavelet;
  block.all([&](std::uint32_t warp, std::uint32_t warps) { clear_wavelet_shared<X>(codes, warp, warps, shared); });
  const auto load = [&] {
    block.all([&](std::uint32_t warp, std::uint32_t warps) { load_wavelet_values<X>(codes, warp, warps, shared); });
  };
  switch (codes.job->step) {
    case WaveletEncodeStep::transforms:
      for (std::uint32_t t = 0; t < codes.job->trial_count; ++t) {
        const WaveletTrial& trial = codes.trials[t];
        load();
        make_wavelet<X>(block, codes.grid, codes.lifts + trial.lifts, trial.lift_count);
        for (std::uint32_t b = 0; b < trial.band_count; ++b)
          count_band_tokens<X>(block, codes, trial.bands + b, shared);
      }
      break;
    case WaveletEncodeStep::quantize:
      load();
      make_wavelet<X>(block, codes.grid, codes.lifts, wavelet.lift_count);
      block.all([&](std::uint32_t warp, std::uint32_t warps) { WaveletQuantizer<X>(codes).run(warp, warps, shared); });
      block.all([&](std::uint32_t warp, std::uint32_t warps) {
        if (warp == 0) sum_wavelet_excess<X>(codes, warps, shared);
        gather_wavelet_samples<X>(codes, warp, warps);
      });
      break;
    case WaveletEncodeStep::code:
      block.all([&](std::uint32_t warp, std::uint32_t warps) {
        for (std::uint32_t b = 0; b < wavelet.band_count; ++b) {
          set_wavelet_symbols<X>(codes, codes.bands[b], codes.grid.magnitudes, warp, warps, shared);
          restore_coefficients<X>(codes, codes.bands[b], warp, warps);
        }
      });
      undo_wavelet<X>(block, codes.grid, codes.lifts);
      block.all([&](std::uint32_t warp, std::uint32_t warps) { find_corrections<X>(codes, warp, warps, shared); });
      block.all([&](std::uint32_t warp, std::uint32_t warps) {
        list_wavelet_exceptions<X>(codes, warp, warps, shared);
        gather_wavelet_samples<X>(codes, warp, warps);
      });
      break;
    case WaveletEncodeStep::correct:
      block.all([&](std::uint32_t warp, std::uint32_t warps) {
        if (wavelet.correction != 0)
          set_wavelet_symbols<X>(codes, codes.corrections(), codes.grid.corrections, warp, warps, shared);
      });
      break;
  }
  block.all([&](std::uint32_t warp, std::uint32_t warps) {
    store_encode_result<X>(*static_cast<RasterEncodeResult*>(task.result), false, codes.job->exceptions, warp, warps,
                           shared);
  });
}

}  // namespace quern::kernels
