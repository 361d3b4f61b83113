// Rows side by side with AVX-512: see raster_wave_values.h. Whatever else this file is compiled for has no vectors.
#pragma once

#include "kernels/entropy/cpu/context_bins.h"
#include "kernels/entropy/cpu/residual_decode_vectors.h"
#include "kernels/stencil/cpu/raster_wave.h"

#if defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
#include "kernels/stencil/cpu/raster_wave_values.h"
#endif

namespace quern::kernels {

#if defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__)

/// The residuals of a wave.
template <class Isa>
class WaveResiduals {
 public:
  using Words = __m512i;
  using Vectors = ResidualDecodeVectors<Isa>;
  static_assert(Vectors::kLanes == kWaveRows);

  WaveResiduals(const RasterWave& wave, const ResidualTables& by_level, const DecodeStreams& lanes)
      : wave_(wave),
        magnitudes_(wave.magnitudes),
        end_(static_cast<std::ptrdiff_t>(wave.columns)),
        residuals_(by_level),
        lane_(_mm512_and_si512(
            _mm512_add_epi32(WaveValues::numbers(), _mm512_set1_epi32(static_cast<int>(wave.lane & lanes.mask))),
            _mm512_set1_epi32(static_cast<int>(lanes.mask)))) {
    group_.state = _mm512_i32gather_epi32(lane_, lanes.states.data(), 4);
    group_.at = _mm512_i32gather_epi32(lane_, lanes.at.data(), 4);
    group_.end = _mm512_i32gather_epi32(lane_, lanes.end.data(), 4);
    group_.words = lanes.words;
    group_.failed = 0;
    for (std::ptrdiff_t t = -kRing; t < 0; ++t)
      above_[slot(t)] =
          _mm512_maskz_set1_epi32(1, t + WaveValues::kLag >= -2 ? magnitude(-1, t + WaveValues::kLag) : 0);
  }

  /// The residuals of step s, from what other planes give to contexts.
  [[gnu::always_inline]] Words take(std::ptrdiff_t s, __mmask16 rows, Words context) {
    add(context, wave_.second_context, from_above(above_[slot(s - 6)], s < end_ ? magnitude(-2, s) : 0));
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i)
      add(context, wave_.above_context[i], above_[slot(s - 1 - static_cast<std::ptrdiff_t>(i))]);
    add(context, wave_.near_context[1], near_[1]);
    add(context, wave_.near_context[0], near_[0]);
    Words code;
    residuals_.take(group_, rows, bins(context), code);
    return code;
  }
  /// Keeps their magnitudes.
  [[gnu::always_inline]] void push(std::ptrdiff_t s, Words size) {
    near_[1] = near_[0];
    near_[0] = size;
    const std::ptrdiff_t right = s + WaveValues::kLag;
    above_[slot(s)] = from_above(size, right < end_ ? magnitude(-1, right) : 0);
  }

  void leave(DecodeStreams& lanes) const {
    const auto rows = static_cast<__mmask16>((1u << wave_.rows) - 1);
    _mm512_mask_i32scatter_epi32(lanes.states.data(), rows, lane_, group_.state, 4);
    _mm512_mask_i32scatter_epi32(lanes.at.data(), rows, lane_, group_.at, 4);
    for (std::size_t i = 0; i < wave_.rows; ++i)
      if ((group_.failed >> i & 1) != 0) lanes.failed |= 1u << ((wave_.lane + i) & lanes.mask);
  }

 private:
  static constexpr std::ptrdiff_t kRing = WaveValues::kRing;

  static std::size_t slot(std::ptrdiff_t t) { return WaveValues::slot(t); }
  int magnitude(std::ptrdiff_t r, std::ptrdiff_t column) const {
    return static_cast<int>(magnitudes_[r * static_cast<std::ptrdiff_t>(wave_.stride) + column]);
  }
  [[gnu::always_inline]] static Words from_above(Words v, int first) {
    return _mm512_alignr_epi32(v, _mm512_set1_epi32(first), 15);
  }
  [[gnu::always_inline]] static void add(Words& sum, std::uint32_t weight, Words v) {
    sum = _mm512_add_epi32(sum, _mm512_mullo_epi32(_mm512_set1_epi32(static_cast<int>(weight)), v));
  }
  [[gnu::always_inline]] static __m128i bins(Words sum) {
    using Numbers = std::uint32_t __attribute__((vector_size(64)));
    using Integers = std::int32_t __attribute__((vector_size(64)));
    using Floats = float __attribute__((vector_size(64)));
    Numbers found;
    ContextBins<Isa>::template bins_of<Floats, Integers>(reinterpret_cast<Numbers>(sum), found);
    return _mm512_cvtepi32_epi8(reinterpret_cast<__m512i>(found));
  }

  const RasterWave& wave_;
  std::uint32_t* magnitudes_;
  std::ptrdiff_t end_;
  Vectors residuals_;
  typename Vectors::Group group_;
  Words lane_;
  Words near_[2]{};
  Words above_[kRing];
};

template <class Isa>
struct RasterWaveVectors {
  static constexpr bool kThere = true;
  using Doubles = WaveValues::Doubles;
  using Words = __m512i;
  static constexpr auto kSteps = static_cast<std::ptrdiff_t>(WaveSteps::kSteps);

  [[gnu::always_inline]] static Words integers(const WaveSteps& steps, std::size_t i) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtpd_epu32(steps.low(i))),
                              _mm512_cvtpd_epu32(steps.high(i)), 1);
  }

  static bool decode(const RasterWave& wave, const ResidualTables& by_level, DecodeStreams& lanes) {
    WaveValues values(wave);
    WaveResiduals<Isa> residuals(wave, by_level, lanes);
    const __m512d unit = _mm512_set1_pd(static_cast<double>(1u << wave.fraction_bits));
    const Words most = _mm512_set1_epi32(static_cast<int>(wave.most_magnitude));
    WaveSteps far;
    WaveSteps contexts;
    WaveSteps made;
    WaveSteps magnitudes;
    for (std::ptrdiff_t first = 0; first < values.steps(); first += kSteps) {
      values.open(first);
      values.load(wave.far, wave.pitch, far);
      contexts.from_rows([&](std::size_t row) {
        return _mm512_cvtepu32_pd(
            _mm256_maskz_loadu_epi32(values.there(row), wave.context + row * wave.pitch + values.column(row)));
      });
      for (std::size_t i = 0; i < WaveSteps::kSteps; ++i) {
        const std::ptrdiff_t s = first + static_cast<std::ptrdiff_t>(i);
        const __mmask16 rows = values.active(s);
        const Words code = residuals.take(s, rows, integers(contexts, i));
        const Words size = _mm512_min_epu32(_mm512_abs_epi32(code), most);
        residuals.push(s, size);
        magnitudes.set(i, _mm512_cvtepi32_pd(WaveValues::low(size)), _mm512_cvtepi32_pd(WaveValues::high(size)));
        Doubles v = values.predict(s, far.low(i), far.high(i));
        v.low = _mm512_add_pd(v.low, _mm512_mul_pd(unit, _mm512_cvtepi32_pd(WaveValues::low(code))));
        v.high = _mm512_add_pd(v.high, _mm512_mul_pd(unit, _mm512_cvtepi32_pd(WaveValues::high(code))));
        values.push(s, rows, v);
        made.set(i, v.low, v.high);
      }
      values.store(made);
      magnitudes.to_rows([&](std::size_t row, __m512d v) {
        _mm256_mask_storeu_epi32(wave.magnitudes + row * wave.stride + values.column(row), values.there(row),
                                 _mm512_cvtpd_epi32(v));
      });
    }
    residuals.leave(lanes);
    return values.small();
  }
};

#else

template <class Isa>
struct RasterWaveVectors {
  static constexpr bool kThere = false;
};

#endif

}  // namespace quern::kernels
