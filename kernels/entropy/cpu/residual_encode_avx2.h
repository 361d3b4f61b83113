// Residuals into eight streams at once, with AVX2; part of residual_encode_vectors.h.
#pragma once

#include <immintrin.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "kernels/common/bits.h"
#include "kernels/entropy/cpu/encode_streams.h"

namespace quern::kernels {

/// For each set of eight lanes, bytes of a shuffle that moves its words to the lower end.
template <class Isa>
struct WordChoice {
  using Table = std::array<std::array<std::uint8_t, 16>, 256>;
  static constexpr Table make() {
    Table table{};
    for (unsigned mask = 0; mask < 256; ++mask) {
      unsigned rank = 0;
      for (unsigned lane = 0; lane < 8; ++lane) {
        if ((mask >> lane & 1) == 0) continue;
        table[mask][2 * rank] = static_cast<std::uint8_t>(2 * lane);
        table[mask][2 * rank + 1] = static_cast<std::uint8_t>(2 * lane + 1);
        ++rank;
      }
    }
    return table;
  }
  alignas(64) static constexpr Table kTable = make();
};

/// Eight lanes of EncodeStreams; the steps are those of sixteen.
template <class Isa>
struct ResidualEncodeVectors {
  static constexpr std::size_t kLanes = 8;
  static constexpr bool kRows = false;
  using Lanes = __m256i;
  using Floats = __m256;

  static constexpr std::size_t kBlock = 64;  // groups between two dealings of words

  struct Words {
    std::uint16_t words[(kBlock * kResidualWords + 1) * kLanes];
    std::uint16_t places[(kBlock * kResidualWords + 1) * kLanes];  ///< twice the lane, in the low byte
    std::size_t count = 0;
    __m128i first;  ///< twice the first lane of the group at hand, eight times

    /// Moves the low words of states out that are marked.
    [[gnu::always_inline]] void take(Lanes& state, const Lanes& full) {
      const auto mask = static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(full)));
      const Lanes low = _mm256_and_si256(state, _mm256_set1_epi32(0xffff));
      const __m128i narrow = _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
      const __m128i chosen = _mm_load_si128(reinterpret_cast<const __m128i*>(WordChoice<Isa>::kTable[mask].data()));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(words + count), _mm_shuffle_epi8(narrow, chosen));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(places + count), _mm_add_epi16(chosen, first));
      count += popcount(mask);
      state = _mm256_blendv_epi8(state, _mm256_srli_epi32(state, 16), full);
    }
    [[gnu::always_inline]] void deal(EncodeStreams& to) {
      for (std::size_t i = 0; i < count; ++i) *--to.at[(places[i] & 0xffu) / 2] = words[i];
      count = 0;
    }
  };

  /// The bits of codes other than 0 that have no model.
  [[gnu::always_inline]] static void put_plain(Lanes& state, const Lanes& code, const Lanes& others, Words& words) {
    const Lanes one = _mm256_set1_epi32(1);
    const Lanes sign = _mm256_srli_epi32(code, 31);
    const Lanes magnitude = _mm256_abs_epi32(code);
    const Lanes large =
        _mm256_and_si256(others, _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(kPlainMagnitudes - 1)));
    if (_mm256_testz_si256(large, large) != 0) {
      words.take(state, _mm256_and_si256(_mm256_srai_epi32(state, 31), others));
      state = _mm256_blendv_epi8(state, _mm256_or_si256(_mm256_slli_epi32(state, 1), sign), others);
      return;
    }
    // Without the bit below the leading one a magnitude does not round into the next octave.
    const Floats real = _mm256_cvtepi32_ps(_mm256_andnot_si256(_mm256_srli_epi32(magnitude, 1), magnitude));
    const Lanes exponent = _mm256_srli_epi32(_mm256_castps_si256(real), 23);
    const Lanes open = _mm256_and_si256(large, _mm256_sub_epi32(exponent, _mm256_set1_epi32(127 + 2)));
    const Lanes low = _mm256_andnot_si256(_mm256_sllv_epi32(_mm256_set1_epi32(-1), open), magnitude);
    Lanes plain = _mm256_or_si256(_mm256_slli_epi32(low, 1), sign);
    Lanes count = _mm256_add_epi32(open, one);
    const Lanes most = _mm256_set1_epi32(kRansPlainBits);
    const Lanes longer = _mm256_cmpgt_epi32(count, most);
    if (_mm256_testz_si256(longer, longer) == 0) {
      put_bits(state, _mm256_srli_epi32(plain, kRansPlainBits), _mm256_sub_epi32(count, most), longer, words);
      count = _mm256_min_epu32(count, most);
      plain = _mm256_and_si256(plain, _mm256_sub_epi32(_mm256_sllv_epi32(one, count), one));
    }
    put_bits(state, plain, count, others, words);
  }
  [[gnu::always_inline]] static void put_bits(Lanes& state, const Lanes& bits, const Lanes& count, const Lanes& lanes,
                                              Words& words) {
    const Lanes above = _mm256_srlv_epi32(state, _mm256_sub_epi32(_mm256_set1_epi32(32), count));
    words.take(state, _mm256_andnot_si256(_mm256_cmpeq_epi32(above, _mm256_setzero_si256()), lanes));
    state = _mm256_blendv_epi8(state, _mm256_or_si256(_mm256_sllv_epi32(state, count), bits), lanes);
  }

  /// Puts codes[i] into lane i of a group, where symbols[i] is one.
  [[gnu::always_inline]] static void put(Lanes& state, const std::uint16_t* symbols, const std::int32_t* codes,
                                         const std::uint32_t* table, Words& words) {
    const Lanes symbol = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(symbols)));
    const Lanes code = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
    const Lanes lanes = _mm256_cmpgt_epi32(_mm256_set1_epi32(kNoSymbol), symbol);
    // Frequency 2^15 leaves a state as it is.
    const Lanes whole = _mm256_set1_epi32(kFrequencySum);
    const Lanes packed = _mm256_mask_i32gather_epi32(whole, reinterpret_cast<const int*>(table), symbol, lanes, 4);
    const Lanes frequency = _mm256_and_si256(packed, _mm256_set1_epi32(0xffff));
    const Lanes start = _mm256_srli_epi32(packed, 16);
    // A little less than the reciprocal.
    const Floats reciprocal = _mm256_div_ps(_mm256_set1_ps(0x1.ffffep-1f), _mm256_cvtepi32_ps(frequency));
    put_plain(state, code, _mm256_andnot_si256(_mm256_cmpeq_epi32(code, _mm256_setzero_si256()), lanes), words);
    const Lanes limit = _mm256_sub_epi32(_mm256_slli_epi32(frequency, 32 - kFrequencySumBits), _mm256_set1_epi32(1));
    const Lanes inside = _mm256_cmpeq_epi32(_mm256_max_epu32(state, limit), limit);
    words.take(state, _mm256_andnot_si256(inside, _mm256_set1_epi32(-1)));
    // Quotients are below 2^17, and the reciprocal lacks more than rounding adds, but no more than 2^-19 of itself with
    // it: the estimate is the quotient or one less.
    const Floats upper = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_srli_epi32(state, 16)), _mm256_set1_ps(0x1p16f));
    const Floats real = _mm256_add_ps(upper, _mm256_cvtepi32_ps(_mm256_and_si256(state, _mm256_set1_epi32(0xffff))));
    const Lanes estimate = _mm256_cvttps_epi32(_mm256_mul_ps(real, reciprocal));
    const Lanes rest = _mm256_sub_epi32(state, _mm256_mullo_epi32(estimate, frequency));
    const Lanes exact = _mm256_cmpgt_epi32(frequency, rest);
    const Lanes next = _mm256_add_epi32(_mm256_slli_epi32(estimate, kFrequencySumBits), rest);
    const Lanes more = _mm256_andnot_si256(exact, _mm256_sub_epi32(whole, frequency));
    state = _mm256_add_epi32(_mm256_add_epi32(next, start), more);
  }

  static void encode_residuals(EncodeStreams& lanes, const std::uint32_t* table, const std::uint16_t* symbols,
                               const std::int32_t* codes, std::size_t count, std::size_t first) {
    Words words;
    Lanes states[kMaxStreams / kLanes];
    std::memcpy(states, lanes.states.data(), sizeof(states));
    // Groups begin at a multiple of eight lanes; the first and the last may lack some.
    const std::size_t missing = first & (kLanes - 1);
    for (std::size_t end = count + missing; end > 0;) {
      const std::size_t at = (end - 1) & ~(kLanes - 1);
      const std::size_t lane = (first - missing + at) & lanes.mask;
      Lanes& state = states[lane / kLanes];
      words.first = _mm_set1_epi16(static_cast<short>(2 * lane));
      if (end - at == kLanes && at >= missing) {
        put(state, symbols + (at - missing), codes + (at - missing), table, words);
      } else {
        std::uint16_t some_symbols[kLanes];
        std::int32_t some_codes[kLanes];
        for (std::size_t i = 0; i < kLanes; ++i) {
          const bool here = at + i >= missing && at + i < end;
          some_symbols[i] = here ? symbols[at + i - missing] : kNoSymbol;
          some_codes[i] = here ? codes[at + i - missing] : 0;
        }
        put(state, some_symbols, some_codes, table, words);
      }
      end = at;
      if (words.count > (kBlock - 1) * kResidualWords * kLanes) words.deal(lanes);
    }
    words.deal(lanes);
    std::memcpy(lanes.states.data(), states, sizeof(states));
  }
};

}  // namespace quern::kernels
