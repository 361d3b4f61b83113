// The values of rows side by side with AVX-512: sixteen, each three columns behind the one above it, so that the five
// elements above are known and a step takes an element of each. What steps need is brought into their order, and what
// they make into that of rows, eight steps at a time. For raster_wave_vectors.h alone.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/stencil/cpu/raster_wave.h"

namespace quern::kernels {

/// Numbers of eight steps, sixteen rows each.
struct alignas(64) WaveSteps {
  static constexpr std::size_t kSteps = 8;
  double numbers[kSteps][kWaveRows];

  [[gnu::always_inline]] __m512d low(std::size_t step) const { return _mm512_load_pd(numbers[step]); }
  [[gnu::always_inline]] __m512d high(std::size_t step) const { return _mm512_load_pd(numbers[step] + 8); }
  [[gnu::always_inline]] void set(std::size_t step, __m512d low, __m512d high) {
    _mm512_store_pd(numbers[step], low);
    _mm512_store_pd(numbers[step] + 8, high);
  }

  /// Takes eight columns of each row: row(i) gives those of row i.
  template <class Row>
  [[gnu::always_inline]] void from_rows(const Row& row) {
    for (std::size_t half = 0; half < kWaveRows; half += 8) {
      __m512d v[8];
#pragma GCC unroll 8
      for (std::size_t i = 0; i < 8; ++i) v[i] = row(half + i);
      transpose(v);
#pragma GCC unroll 8
      for (std::size_t i = 0; i < 8; ++i) _mm512_store_pd(numbers[i] + half, v[i]);
    }
  }
  /// Gives row(i, columns) the eight columns of each row.
  template <class Row>
  [[gnu::always_inline]] void to_rows(const Row& row) const {
    for (std::size_t half = 0; half < kWaveRows; half += 8) {
      __m512d v[8];
#pragma GCC unroll 8
      for (std::size_t i = 0; i < 8; ++i) v[i] = _mm512_load_pd(numbers[i] + half);
      transpose(v);
#pragma GCC unroll 8
      for (std::size_t i = 0; i < 8; ++i) row(half + i, v[i]);
    }
  }

 private:
  [[gnu::always_inline]] static void transpose(__m512d (&v)[8]) {
    __m512d pairs[8];
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 8; i += 2) {
      pairs[i] = _mm512_unpacklo_pd(v[i], v[i + 1]);
      pairs[i + 1] = _mm512_unpackhi_pd(v[i], v[i + 1]);
    }
#pragma GCC unroll 2
    for (std::size_t odd = 0; odd < 2; ++odd) {
      // 0x88: the even quarters of both; 0xdd: the odd ones.
      const __m512d even_of_first = _mm512_shuffle_f64x2(pairs[odd], pairs[2 + odd], 0x88);
      const __m512d odd_of_first = _mm512_shuffle_f64x2(pairs[odd], pairs[2 + odd], 0xdd);
      const __m512d even_of_last = _mm512_shuffle_f64x2(pairs[4 + odd], pairs[6 + odd], 0x88);
      const __m512d odd_of_last = _mm512_shuffle_f64x2(pairs[4 + odd], pairs[6 + odd], 0xdd);
      v[odd] = _mm512_shuffle_f64x2(even_of_first, even_of_last, 0x88);
      v[4 + odd] = _mm512_shuffle_f64x2(even_of_first, even_of_last, 0xdd);
      v[2 + odd] = _mm512_shuffle_f64x2(odd_of_first, odd_of_last, 0x88);
      v[6 + odd] = _mm512_shuffle_f64x2(odd_of_first, odd_of_last, 0xdd);
    }
  }
};

/// The values of a wave.
class WaveValues {
 public:
  /// A number of each row.
  struct Doubles {
    __m512d low;
    __m512d high;
  };
  using Words = __m512i;
  static constexpr std::ptrdiff_t kLag = 3;
  static constexpr std::ptrdiff_t kRing = 8;  ///< steps that are looked back on are fewer
  static std::size_t slot(std::ptrdiff_t t) { return static_cast<std::size_t>(t) % kRing; }
  static_assert(kWaveRows == 16);

  explicit WaveValues(const RasterWave& wave)
      : wave_(wave),
        values_(wave.values),
        end_(static_cast<std::ptrdiff_t>(wave.columns)),
        rows_(static_cast<__mmask16>((1u << wave.rows) - 1)),
        behind_(_mm512_mullo_epi32(numbers(), _mm512_set1_epi32(static_cast<int>(kLag)))) {
    // Of the first row, what lies above its first columns.
    const double* const above = row(-1);
    for (std::ptrdiff_t t = -kRing; t < 0; ++t) {
      const double x = t + kLag >= -2 ? above[t + kLag] : 0;
      above_[slot(t)] = {_mm512_maskz_mov_pd(1, _mm512_set1_pd(x)), _mm512_setzero_pd()};
    }
    const double* const second = row(-2);
    for (std::ptrdiff_t i = 0; i < 3; ++i)
      second_[i] = {_mm512_maskz_mov_pd(1, _mm512_set1_pd(second[-i])), _mm512_setzero_pd()};
    first_ = above[0];
  }

  static Words numbers() { return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }
  static __mmask8 low(__mmask16 mask) { return static_cast<__mmask8>(mask); }
  static __mmask8 high(__mmask16 mask) { return static_cast<__mmask8>(mask >> 8); }
  static __m256i low(Words v) { return _mm512_castsi512_si256(v); }
  static __m256i high(Words v) { return _mm512_extracti64x4_epi64(v, 1); }

  [[gnu::always_inline]] static __m512d floor(__m512d v) {
    return _mm512_roundscale_pd(v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  }

  /// Steps that all rows take together.
  std::ptrdiff_t steps() const { return end_ + kLag * (static_cast<std::ptrdiff_t>(wave_.rows) - 1); }
  /// Rows that have an element in step s: row i at column s - 3 i.
  [[gnu::always_inline]] __mmask16 active(std::ptrdiff_t s) const {
    const Words column = _mm512_sub_epi32(_mm512_set1_epi32(static_cast<int>(s)), behind_);
    return _mm512_mask_cmplt_epu32_mask(rows_, column, _mm512_set1_epi32(static_cast<int>(end_)));
  }

  /// Begins eight steps.
  [[gnu::always_inline]] void open(std::ptrdiff_t s) {
    first_step_ = s;
    // Row i has the steps from 3 i - s on, and `columns` of them.
    const Words before = _mm512_sub_epi32(behind_, _mm512_set1_epi32(static_cast<int>(s)));
    const Words until = _mm512_add_epi32(before, _mm512_set1_epi32(static_cast<int>(end_)));
    const Words none = _mm512_setzero_si512();
    const Words all = _mm512_set1_epi32(WaveSteps::kSteps);
    const Words ones = _mm512_set1_epi32(0xff);
    const auto inside = [&](Words v) { return _mm512_max_epi32(none, _mm512_min_epi32(v, all)); };
    const Words from = _mm512_sllv_epi32(ones, inside(before));
    const Words there = _mm512_andnot_si512(_mm512_sllv_epi32(ones, inside(until)), _mm512_and_si512(from, ones));
    _mm_store_si128(reinterpret_cast<__m128i*>(there_), _mm512_cvtepi32_epi8(_mm512_maskz_mov_epi32(rows_, there)));
  }
  /// Of these steps, where the columns of a row begin, counted from its first, and which of them are there.
  [[gnu::always_inline]] std::ptrdiff_t column(std::size_t row) const {
    return first_step_ - kLag * static_cast<std::ptrdiff_t>(row);
  }
  [[gnu::always_inline]] __mmask8 there(std::size_t row) const { return there_[row]; }

  /// Integers of these steps, from rows that are `pitch` elements apart.
  [[gnu::always_inline]] void load(const std::int64_t* from, std::size_t pitch, WaveSteps& to) const {
    to.from_rows([&](std::size_t row) {
      return _mm512_cvtepi64_pd(_mm512_maskz_loadu_epi64(there(row), from + row * pitch + column(row)));
    });
  }
  [[gnu::always_inline]] void store(const WaveSteps& from) const {
    from.to_rows([&](std::size_t row, __m512d v) {
      _mm512_mask_storeu_pd(values_ + row * wave_.stride + column(row), there(row), v);
    });
  }

  /// Predictions of the elements of step s, from what other planes give.
  [[gnu::always_inline]] Doubles predict(std::ptrdiff_t s, __m512d low_sum, __m512d high_sum) {
    Doubles sum{low_sum, high_sum};
    beginning_ = s % kLag == 0 && s / kLag < static_cast<std::ptrdiff_t>(wave_.rows)
                     ? static_cast<__mmask16>(1u << (s / kLag))
                     : static_cast<__mmask16>(0);
    if (beginning_ != 0) begin_row();
    second_[2] = second_[1];
    second_[1] = second_[0];
    second_[0] = from_above(above_[slot(s - 5)], row(-2)[s + 1 < end_ + 3 ? s + 1 : end_]);
#pragma GCC unroll 3
    for (std::size_t i = 0; i < 3; ++i) add(sum, wave_.second[i], second_[i]);
#pragma GCC unroll 5
    for (std::size_t i = 5; i-- > 0;) add(sum, wave_.above[i], above_[slot(s - 1 - static_cast<std::ptrdiff_t>(i))]);
#pragma GCC unroll 3
    for (std::size_t i = 3; i-- > 0;) add(sum, wave_.near[i], near_[i]);
    return {scaled(sum.low), scaled(sum.high)};
  }

  /// Keeps the values of step s.
  [[gnu::always_inline]] void push(std::ptrdiff_t s, __mmask16 rows, const Doubles& v) {
    const Doubles value{_mm512_mask_mov_pd(near_[0].low, low(rows), v.low),
                        _mm512_mask_mov_pd(near_[0].high, high(rows), v.high)};
    largest_ = _mm512_max_pd(largest_, _mm512_max_pd(_mm512_abs_pd(value.low), _mm512_abs_pd(value.high)));
    near_[2] = near_[1];
    near_[1] = near_[0];
    near_[0] = value;
    above_[slot(s)] = from_above(value, row(-1)[s + kLag < end_ + 3 ? s + kLag : end_]);
    if (beginning_ != 0) end_begin();
  }

  bool small() const { return _mm512_reduce_max_pd(largest_) < wave_.most; }

 private:
  const double* row(std::ptrdiff_t r) const { return values_ + r * static_cast<std::ptrdiff_t>(wave_.stride); }

  /// What the row above has in its place; of the first row that is `first`.
  [[gnu::always_inline]] static Doubles from_above(const Doubles& v, double first) {
    const Words high = _mm512_castpd_si512(v.high);
    const Words low = _mm512_castpd_si512(v.low);
    const Words begin = _mm512_castpd_si512(_mm512_set1_pd(first));
    return {_mm512_castsi512_pd(_mm512_alignr_epi64(low, begin, 7)),
            _mm512_castsi512_pd(_mm512_alignr_epi64(high, low, 7))};
  }
  [[gnu::always_inline]] static void add(Doubles& sum, double weight, const Doubles& v) {
    const __m512d w = _mm512_set1_pd(weight);
    sum.low = _mm512_add_pd(sum.low, _mm512_mul_pd(w, v.low));
    sum.high = _mm512_add_pd(sum.high, _mm512_mul_pd(w, v.high));
  }
  /// Half a unit rounded up.
  [[gnu::always_inline]] __m512d scaled(__m512d sum) const {
    const double one = static_cast<double>(1u << wave_.weight_bits);
    return floor(_mm512_mul_pd(_mm512_add_pd(sum, _mm512_set1_pd(one / 2)), _mm512_set1_pd(1 / one)));
  }

  /// Left of a row lies what the row above it begins with.
  void begin_row() {
    const __m512d x = _mm512_set1_pd(first_);
    for (Doubles& v : near_) {
      v.low = _mm512_mask_mov_pd(v.low, low(beginning_), x);
      v.high = _mm512_mask_mov_pd(v.high, high(beginning_), x);
    }
  }
  /// The first value of a row is known: for the row below that is all that lies left of it.
  void end_begin() {
    first_ = _mm512_mask_reduce_add_pd(low(beginning_), near_[0].low) +
             _mm512_mask_reduce_add_pd(high(beginning_), near_[0].high);
    const auto below = static_cast<__mmask16>(beginning_ << 1);
    const __m512d x = _mm512_set1_pd(first_);
    for (Doubles& v : above_) {
      v.low = _mm512_mask_mov_pd(v.low, low(below), x);
      v.high = _mm512_mask_mov_pd(v.high, high(below), x);
    }
  }

  const RasterWave& wave_;
  double* values_;
  std::ptrdiff_t end_;
  __mmask16 rows_;
  __mmask16 beginning_ = 0;
  std::ptrdiff_t first_step_ = 0;
  alignas(16) std::uint8_t there_[kWaveRows];
  Words behind_;
  double first_ = 0;
  __m512d largest_ = _mm512_setzero_pd();
  Doubles near_[3]{};
  Doubles second_[3];
  Doubles above_[kRing];  ///< of the last steps what each row was given by the one above: three columns to its right
};

}  // namespace quern::kernels
