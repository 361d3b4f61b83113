// Residuals into sixteen streams at once, with AVX-512, or eight with AVX2. Whatever else this file is compiled for has
// no vectors.
#pragma once

#include <cstdint>

#include "kernels/entropy/cpu/encode_streams.h"

#if defined(__AVX512BW__) && defined(__AVX512VL__)
#include <immintrin.h>
#elif defined(__AVX2__)
#include "kernels/entropy/cpu/residual_encode_avx2.h"
#endif

namespace quern::kernels {

#if defined(__AVX512BW__) && defined(__AVX512VL__)

/// Sixteen lanes of EncodeStreams. Words of all lanes are collected in the order they come in, with the lane of each,
/// and dealt to the lanes afterwards: which lanes have one is never a branch.
template <class Isa>
struct ResidualEncodeVectors {
  static constexpr std::size_t kLanes = 16;
  static constexpr bool kRows = true;  ///< has encode_rows
  using Lanes = __m512i;
  using Floats = __m512;

  static constexpr std::size_t kBlock = 64;  // groups between two dealings of words
  static constexpr int kDown = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;

  struct Words {
    std::uint16_t words[(kBlock * kResidualWords + 1) * kLanes];
    std::uint8_t lanes[(kBlock * kResidualWords + 1) * kLanes];
    std::size_t count = 0;

    /// Moves the low words of states out that are marked.
    [[gnu::always_inline]] void take(Lanes& state, __mmask16 full, const __m128i& numbers) {
      const __m256i chosen = _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(full, state));
      const __m128i theirs = _mm512_cvtepi32_epi8(_mm512_maskz_compress_epi32(full, _mm512_cvtepu8_epi32(numbers)));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(words + count), chosen);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(lanes + count), theirs);
      count += static_cast<unsigned>(__builtin_popcount(full));
      state = _mm512_mask_srli_epi32(state, full, state, 16);
    }
    [[gnu::always_inline]] void deal(EncodeStreams& to) {
      for (std::size_t i = 0; i < count; ++i) *--to.at[lanes[i]] = words[i];
      count = 0;
    }
  };

  /// The bits of codes other than 0 that have no model.
  [[gnu::always_inline]] static void put_plain(Lanes& state, const Lanes& code, __mmask16 others,
                                               const __m128i& numbers, Words& words) {
    const Lanes one = _mm512_set1_epi32(1);
    const Lanes sign = _mm512_srli_epi32(code, 31);
    const Lanes magnitude = _mm512_abs_epi32(code);
    const __mmask16 large = _mm512_mask_cmpge_epu32_mask(others, magnitude, _mm512_set1_epi32(kPlainMagnitudes));
    if (large == 0) {
      // The sign alone.
      words.take(state, static_cast<__mmask16>(_mm512_movepi32_mask(state) & others), numbers);
      state = _mm512_mask_or_epi32(state, others, _mm512_slli_epi32(state, 1), sign);
      return;
    }
    // Below the leading bit and the two that follow it, all are open: the exponent of a binary32 that does not round
    // up says how many those are.
    const Floats real = _mm512_cvt_roundepi32_ps(magnitude, kDown);
    const Lanes exponent = _mm512_srli_epi32(_mm512_castps_si512(real), 23);
    const Lanes open = _mm512_maskz_sub_epi32(large, exponent, _mm512_set1_epi32(127 + 2));
    const Lanes low = _mm512_andnot_si512(_mm512_sllv_epi32(_mm512_set1_epi32(-1), open), magnitude);
    Lanes plain = _mm512_or_si512(_mm512_slli_epi32(low, 1), sign);
    Lanes count = _mm512_add_epi32(open, one);
    const Lanes most = _mm512_set1_epi32(kRansPlainBits);
    const __mmask16 long_ones = _mm512_cmpgt_epu32_mask(count, most);
    if (long_ones != 0) {
      put_bits(state, _mm512_srli_epi32(plain, kRansPlainBits), _mm512_sub_epi32(count, most), long_ones, numbers,
               words);
      count = _mm512_min_epu32(count, most);
      plain = _mm512_and_si512(plain, _mm512_sub_epi32(_mm512_sllv_epi32(one, count), one));
    }
    put_bits(state, plain, count, others, numbers, words);
  }
  [[gnu::always_inline]] static void put_bits(Lanes& state, const Lanes& bits, const Lanes& count, __mmask16 lanes,
                                              const __m128i& numbers, Words& words) {
    const Lanes above = _mm512_srlv_epi32(state, _mm512_sub_epi32(_mm512_set1_epi32(32), count));
    words.take(state, _mm512_mask_test_epi32_mask(lanes, above, above), numbers);
    state = _mm512_mask_or_epi32(state, lanes, _mm512_sllv_epi32(state, count), bits);
  }

  /// Puts the codes of the lanes that have one; `numbers`: of the lanes.
  [[gnu::always_inline]] static void put(Lanes& state, const Lanes& symbol, const Lanes& code, __mmask16 lanes,
                                         const std::uint32_t* table, const __m128i& numbers, Words& words) {
    // Frequency 2^15 leaves a state as it is.
    const Lanes whole = _mm512_set1_epi32(kFrequencySum);
    const Lanes packed = _mm512_mask_i32gather_epi32(whole, lanes, symbol, table, 4);
    const Lanes frequency = _mm512_and_si512(packed, _mm512_set1_epi32(0xffff));
    const Lanes start = _mm512_srli_epi32(packed, 16);
    const Floats reciprocal = _mm512_div_round_ps(_mm512_set1_ps(1), _mm512_cvt_roundepi32_ps(frequency, kDown), kDown);
    put_plain(state, code, _mm512_mask_test_epi32_mask(lanes, code, code), numbers, words);
    const Lanes limit = _mm512_sub_epi32(_mm512_slli_epi32(frequency, 32 - kFrequencySumBits), _mm512_set1_epi32(1));
    words.take(state, _mm512_cmpgt_epu32_mask(state, limit), numbers);
    // Quotients are below 2^17 and three operations round down by less than 2^-23 each: the estimate is the quotient or
    // one less.
    const Floats real = _mm512_mul_round_ps(_mm512_cvt_roundepu32_ps(state, kDown), reciprocal, kDown);
    const Lanes estimate = _mm512_cvtt_roundps_epu32(real, _MM_FROUND_NO_EXC);
    const Lanes rest = _mm512_sub_epi32(state, _mm512_mullo_epi32(estimate, frequency));
    const __mmask16 missed = _mm512_cmpge_epu32_mask(rest, frequency);
    const Lanes next = _mm512_add_epi32(_mm512_slli_epi32(estimate, kFrequencySumBits), rest);
    state = _mm512_add_epi32(next, start);
    state = _mm512_mask_add_epi32(state, missed, state, _mm512_sub_epi32(whole, frequency));
  }

  /// Numbers of the lanes from `first` on.
  [[gnu::always_inline]] static void number(std::size_t first, __m128i& numbers) {
    numbers = _mm_add_epi8(_mm_set_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                           _mm_set1_epi8(static_cast<char>(first)));
  }
  /// Sixteen elements that lie side by side, those of `columns`.
  [[gnu::always_inline]] static void put_group(Lanes& state, __mmask16 columns, const std::uint16_t* symbols,
                                               const std::int32_t* codes, const std::uint32_t* table,
                                               const __m128i& numbers, Words& words) {
    const __m256i narrow = _mm256_maskz_loadu_epi16(columns, symbols);
    const __mmask16 lanes = _mm256_mask_cmpneq_epi16_mask(columns, narrow, _mm256_set1_epi16(-1));
    put(state, _mm512_cvtepu16_epi32(narrow), _mm512_maskz_loadu_epi32(columns, codes), lanes, table, numbers, words);
  }

  static void encode_residuals(EncodeStreams& lanes, const std::uint32_t* table, const std::uint16_t* symbols,
                               const std::int32_t* codes, std::size_t count, std::size_t first) {
    Words words;
    Lanes low = _mm512_load_si512(lanes.states.data());
    Lanes high = _mm512_load_si512(lanes.states.data() + kLanes);
    __m128i low_numbers;
    __m128i high_numbers;
    number(0, low_numbers);
    number(kLanes, high_numbers);
    // Groups begin at a multiple of sixteen lanes; the first and the last may lack some. `at` and `from` count from
    // the first lane of the first group.
    const std::size_t from = first & (kLanes - 1);
    const bool two = lanes.mask >= kLanes;
    const std::size_t offset = first & kLanes & lanes.mask;  // whether the first group is of the upper lanes
    symbols -= from;
    codes -= from;
    for (std::size_t end = count + from; end > 0;) {
      const std::size_t at = (end - 1) & ~(kLanes - 1);
      if (two && end % (2 * kLanes) == offset && at >= kLanes && at - kLanes >= from) {
        // Both groups are whole.
        put_group(high, 0xffff, symbols + at, codes + at, table, high_numbers, words);
        put_group(low, 0xffff, symbols + at - kLanes, codes + at - kLanes, table, low_numbers, words);
        end = at - kLanes;
      } else {
        auto columns = static_cast<__mmask16>((2u << (end - 1 - at)) - 1);
        if (at == 0) columns = static_cast<__mmask16>(columns & (0xffffu << from));
        const bool upper = two && ((at + offset) & kLanes) != 0;
        if (upper) {
          put_group(high, columns, symbols + at, codes + at, table, high_numbers, words);
        } else {
          put_group(low, columns, symbols + at, codes + at, table, low_numbers, words);
        }
        end = at;
      }
      if (words.count > (kBlock - 2) * kResidualWords * kLanes) words.deal(lanes);
    }
    words.deal(lanes);
    _mm512_store_si512(lanes.states.data(), low);
    _mm512_store_si512(lanes.states.data() + kLanes, high);
  }

  /// Turns sixteen rows of sixteen numbers into columns.
  [[gnu::always_inline]] static void transpose(Lanes (&m)[kLanes]) {
    Lanes t[kLanes];
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kLanes; i += 2) {
      t[i] = _mm512_unpacklo_epi32(m[i], m[i + 1]);
      t[i + 1] = _mm512_unpackhi_epi32(m[i], m[i + 1]);
    }
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kLanes; i += 4) {
      m[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
      m[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
      m[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
      m[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    // m[4 * i + c] has columns c, c + 4, c + 8 and c + 12 of rows 4 * i to 4 * i + 3.
#pragma GCC unroll 4
    for (std::size_t c = 0; c < 4; ++c) {
      t[c] = _mm512_shuffle_i32x4(m[c], m[c + 4], 0x88);
      t[c + 4] = _mm512_shuffle_i32x4(m[c], m[c + 4], 0xdd);
      t[c + 8] = _mm512_shuffle_i32x4(m[c + 8], m[c + 12], 0x88);
      t[c + 12] = _mm512_shuffle_i32x4(m[c + 8], m[c + 12], 0xdd);
    }
#pragma GCC unroll 4
    for (std::size_t c = 0; c < 4; ++c) {
      m[c] = _mm512_shuffle_i32x4(t[c], t[c + 8], 0x88);
      m[c + 4] = _mm512_shuffle_i32x4(t[c + 4], t[c + 12], 0x88);
      m[c + 8] = _mm512_shuffle_i32x4(t[c], t[c + 8], 0xdd);
      m[c + 12] = _mm512_shuffle_i32x4(t[c + 4], t[c + 12], 0xdd);
    }
  }

  /// Sixteen columns of sixteen rows.
  struct Columns {
    Lanes symbols[kLanes];
    Lanes codes[kLanes];

    /// Those from `back` to `back` + 15 before the ends of rows; what lies before their beginnings has no code.
    [[gnu::always_inline]] void load(const std::uint16_t* from, const std::int32_t* from_codes, const StreamRows& rows,
                                     std::size_t lane, std::size_t back) {
      for (std::size_t j = 0; j < kLanes; ++j) {
        const std::size_t end = rows.end[lane + j];
        const std::size_t length = end - rows.begin[lane + j];
        const std::size_t left = length > back ? length - back : 0;
        const std::size_t missing = left < kLanes ? kLanes - left : 0;
        const auto mask = static_cast<__mmask16>(0xffffu << missing);
        // Never before the first element, so that addresses stay in the array: what is missing is shifted in.
        const std::size_t first = end - length + left - (kLanes - missing);
        const auto shifted = static_cast<__mmask16>(mask >> missing);
        const __m256i some = _mm256_maskz_loadu_epi16(shifted, from + first);
        const Lanes some_codes = _mm512_maskz_loadu_epi32(shifted, from_codes + first);
        symbols[j] = _mm512_mask_expand_epi32(_mm512_set1_epi32(kNoSymbol), mask, _mm512_cvtepu16_epi32(some));
        codes[j] = _mm512_maskz_expand_epi32(mask, some_codes);
      }
      transpose(symbols);
      transpose(codes);
    }
    [[gnu::always_inline]] void put_column(Lanes& state, std::size_t x, const std::uint32_t* table,
                                           const __m128i& numbers, Words& words) const {
      const __mmask16 coded = _mm512_cmpneq_epi32_mask(symbols[x], _mm512_set1_epi32(kNoSymbol));
      put(state, symbols[x], codes[x], coded, table, numbers, words);
    }
  };

  static void encode_rows(EncodeStreams& lanes, const std::uint32_t* table, const std::uint16_t* symbols,
                          const std::int32_t* codes, const StreamRows& rows) {
    Words words;
    Columns low_columns;
    Columns high_columns;
    Lanes low = _mm512_load_si512(lanes.states.data());
    Lanes high = _mm512_load_si512(lanes.states.data() + kLanes);
    __m128i low_numbers;
    __m128i high_numbers;
    number(0, low_numbers);
    number(kLanes, high_numbers);
    std::size_t longest = 0;
    for (std::size_t lane = 0; lane <= lanes.mask; ++lane) {
      const std::size_t length = rows.end[lane] - rows.begin[lane];
      longest = length > longest ? length : longest;
    }
    static_assert(kBlock >= 2 * kLanes);
    for (std::size_t back = 0; back < longest; back += kLanes) {
      low_columns.load(symbols, codes, rows, 0, back);
      if (lanes.mask >= kLanes) {
        high_columns.load(symbols, codes, rows, kLanes, back);
        for (std::size_t x = kLanes; x-- > 0;) {
          low_columns.put_column(low, x, table, low_numbers, words);
          high_columns.put_column(high, x, table, high_numbers, words);
        }
      } else {
        for (std::size_t x = kLanes; x-- > 0;) low_columns.put_column(low, x, table, low_numbers, words);
      }
      words.deal(lanes);
    }
    _mm512_store_si512(lanes.states.data(), low);
    _mm512_store_si512(lanes.states.data() + kLanes, high);
  }
};

#elif !defined(__AVX2__)

template <class Isa>
struct ResidualEncodeVectors {
  static constexpr std::size_t kLanes = 0;
  static constexpr bool kRows = false;
};

#endif

}  // namespace quern::kernels
