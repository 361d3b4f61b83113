// Residuals from sixteen streams at once, with AVX-512. Whatever else this file is compiled for has no vectors.
#pragma once

#include <cstdint>

#include "kernels/entropy/cpu/decode_streams.h"

#if defined(__AVX512BW__) && defined(__AVX512VL__)
#include <immintrin.h>
#endif

namespace quern::kernels {

#if defined(__AVX512BW__) && defined(__AVX512VL__)

/// Sixteen lanes of DecodeStreams.
template <class Isa>
struct ResidualDecodeVectors {
  static constexpr std::size_t kLanes = 16;
  using Lanes = __m512i;

  explicit ResidualDecodeVectors(const ResidualTables& by_level)
      : places(by_level.indices.data()),
        tables(by_level.tables),
        low_zeros(_mm512_load_si512(by_level.zeros.data())),
        high_zeros(_mm512_load_si512(by_level.zeros.data() + 32)),
        low_places(_mm512_load_si512(by_level.indices.data())),
        high_places(_mm512_load_si512(by_level.indices.data() + 32)) {}

  static constexpr int kFew = 3;  // codes other than 0 that are quicker taken one by one

  const std::uint16_t* places;
  const TokenTable* tables;
  Lanes low_zeros;
  Lanes high_zeros;
  Lanes low_places;
  Lanes high_places;

  /// Entries of a table of 16-bit numbers by level.
  [[gnu::always_inline]] static void by_level(__m512i low, __m256i levels, __m512i high, Lanes& found) {
    found = _mm512_cvtepu16_epi32(
        _mm512_castsi512_si256(_mm512_permutex2var_epi16(low, _mm512_castsi256_si512(levels), high)));
  }

  /// out[x] = table[levels[x]] for x < count; table has one entry for each level, 64-byte aligned.
  static void look_up(const std::uint16_t* table, const std::uint8_t* levels, std::size_t count, std::uint16_t* out) {
    const Lanes low = _mm512_load_si512(table);
    const Lanes high = _mm512_load_si512(table + 32);
    for (std::size_t x = 0; x < count; x += 32) {
      const __mmask32 columns = count - x >= 32 ? ~__mmask32{0} : (__mmask32{1} << (count - x)) - 1;
      const Lanes wide = _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(columns, levels + x));
      _mm512_mask_storeu_epi16(out + x, columns, _mm512_permutex2var_epi16(low, wide, high));
    }
  }

  struct Group {
    Lanes state;
    Lanes at;
    Lanes end;
    const std::uint8_t* words;
    __mmask16 failed;
  };

  /// Lanes of the mask whose state is low take a word, or fail.
  [[gnu::always_inline]] static void refill(Group& group, __mmask16 lanes) {
    const __mmask16 low = _mm512_mask_cmplt_epu32_mask(lanes, group.state, _mm512_set1_epi32(kRansFloor));
    if (low == 0) return;
    const __mmask16 has = _mm512_mask_cmplt_epu32_mask(low, group.at, group.end);
    group.failed = static_cast<__mmask16>(group.failed | (low & ~has));
    // The word and the one before it, which is there: nothing behind the lane's end is touched.
    const Lanes pair = _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), has, group.at, group.words - 2, 2);
    group.state =
        _mm512_mask_or_epi32(group.state, low, _mm512_slli_epi32(group.state, 16), _mm512_srli_epi32(pair, 16));
    group.at = _mm512_mask_add_epi32(group.at, has, group.at, _mm512_set1_epi32(1));
  }

  /// What starts[token] and starts[token + 1] are, as one number each.
  [[gnu::always_inline]] void starts(Lanes& found, __mmask16 lanes, const Lanes& table, const Lanes& token) const {
    const Lanes place = _mm512_add_epi32(table, _mm512_slli_epi32(token, 1));
    found = _mm512_mask_i32gather_epi32(
        found, lanes, place, reinterpret_cast<const std::uint8_t*>(tables) + offsetof(TokenTable, starts), 1);
  }

  /// The codes of `lanes`, whose token is not 0; their slots and states above them are given.
  [[gnu::always_inline]] void take_others(Group& group, __mmask16 lanes, __m256i levels, const Lanes& slot,
                                          const Lanes& above, Lanes& code) const {
    Lanes table;
    by_level(low_places, levels, high_places, table);
    table = _mm512_slli_epi32(table, kTokenTableShift);
    const Lanes bucket = _mm512_add_epi32(table, _mm512_srli_epi32(slot, TokenTable::kBucketShift));
    static_assert(offsetof(TokenTable, buckets) == 0);
    Lanes token = _mm512_and_si512(_mm512_mask_i32gather_epi32(_mm512_setzero_si512(), lanes, bucket, tables, 1),
                                   _mm512_set1_epi32(0xff));
    Lanes pair = _mm512_setzero_si512();
    starts(pair, lanes, table, token);
    __mmask16 later = _mm512_mask_cmpge_epu32_mask(lanes, slot, _mm512_srli_epi32(pair, 16));
    while (later != 0) {
      token = _mm512_mask_add_epi32(token, later, token, _mm512_set1_epi32(1));
      starts(pair, later, table, token);
      later = _mm512_mask_cmpge_epu32_mask(later, slot, _mm512_srli_epi32(pair, 16));
    }
    const Lanes start = _mm512_and_si512(pair, _mm512_set1_epi32(0xffff));
    const Lanes frequency = _mm512_sub_epi32(_mm512_srli_epi32(pair, 16), start);
    group.state =
        _mm512_mask_add_epi32(group.state, lanes, _mm512_mullo_epi32(frequency, above), _mm512_sub_epi32(slot, start));
    refill(group, lanes);
    const Lanes one = _mm512_set1_epi32(1);
    const Lanes index = _mm512_sub_epi32(token, _mm512_set1_epi32(kPlainMagnitudes));
    const __mmask16 large = _mm512_mask_cmpge_epu32_mask(lanes, token, _mm512_set1_epi32(kPlainMagnitudes));
    // Small tokens leave only the sign open.
    const __mmask16 small = static_cast<__mmask16>(lanes & ~large);
    Lanes plain = _mm512_and_si512(group.state, one);
    group.state = _mm512_mask_srli_epi32(group.state, small, group.state, 1);
    Lanes magnitude = token;
    if (large != 0) {
      const Lanes open = _mm512_add_epi32(_mm512_srli_epi32(index, 2), _mm512_set1_epi32(2));
      const Lanes count = _mm512_add_epi32(open, one);
      const Lanes most = _mm512_set1_epi32(kRansPlainBits);
      const Lanes first = _mm512_min_epu32(count, most);
      const Lanes bits = _mm512_sub_epi32(_mm512_sllv_epi32(one, first), one);
      plain = _mm512_mask_and_epi32(plain, large, group.state, bits);
      group.state = _mm512_mask_srlv_epi32(group.state, large, group.state, first);
      refill(group, lanes);
      const __mmask16 more = _mm512_mask_cmpgt_epu32_mask(large, count, most);
      if (more != 0) {
        const Lanes rest = _mm512_sub_epi32(count, most);
        const Lanes rest_bits = _mm512_sub_epi32(_mm512_sllv_epi32(one, rest), one);
        plain = _mm512_mask_or_epi32(plain, more, plain,
                                     _mm512_slli_epi32(_mm512_and_si512(group.state, rest_bits), kRansPlainBits));
        group.state = _mm512_mask_srlv_epi32(group.state, more, group.state, rest);
        refill(group, more);
      }
      const Lanes base = _mm512_sllv_epi32(
          _mm512_add_epi32(_mm512_and_si512(index, _mm512_set1_epi32(3)), _mm512_set1_epi32(4)), open);
      magnitude = _mm512_mask_add_epi32(magnitude, large, base, _mm512_srli_epi32(plain, 1));
    } else {
      refill(group, lanes);
    }
    const __mmask16 negative = _mm512_mask_test_epi32_mask(lanes, plain, one);
    code = _mm512_maskz_mov_epi32(lanes, magnitude);
    code = _mm512_mask_sub_epi32(code, negative, _mm512_setzero_si512(), code);
  }

  /// The same, one by one.
  [[gnu::always_inline]] void take_few(Group& group, __mmask16 lanes, __m128i contexts, Lanes& code) const {
    alignas(64) std::uint32_t states[kLanes];
    alignas(64) std::uint32_t at[kLanes];
    alignas(64) std::uint32_t end[kLanes];
    alignas(16) std::uint8_t levels[kLanes];
    _mm512_store_si512(states, group.state);
    _mm512_store_si512(at, group.at);
    _mm512_store_si512(end, group.end);
    _mm_store_si128(reinterpret_cast<__m128i*>(levels), contexts);
    for (unsigned left = lanes; left != 0; left &= left - 1) {
      const auto lane = static_cast<unsigned>(__builtin_ctz(left));
      const auto bit = static_cast<__mmask16>(1u << lane);
      RansSource source{group.words + std::size_t{2} * at[lane], group.words + std::size_t{2} * end[lane], states[lane],
                        false};
      const auto taken = static_cast<std::int32_t>(decode_residual(source, tables[places[levels[lane]]]));
      code = _mm512_mask_set1_epi32(code, bit, taken);
      group.state = _mm512_mask_set1_epi32(group.state, bit, static_cast<int>(source.state));
      group.at = _mm512_mask_set1_epi32(group.at, bit, static_cast<int>((source.at - group.words) / 2));
      group.failed = static_cast<__mmask16>(group.failed | static_cast<unsigned>(source.failed) << lane);
    }
  }

  /// The codes of the lanes that have one.
  [[gnu::always_inline]] void take(Group& group, __mmask16 lanes, __m128i contexts, Lanes& code) const {
    const __m256i levels = _mm256_cvtepu8_epi16(contexts);
    Lanes zero;
    by_level(low_zeros, levels, high_zeros, zero);
    const Lanes slot = _mm512_and_si512(group.state, _mm512_set1_epi32(kFrequencySum - 1));
    const Lanes above = _mm512_srli_epi32(group.state, kFrequencySumBits);
    const __mmask16 others = _mm512_mask_cmpge_epu32_mask(lanes, slot, zero);
    const auto zeros = static_cast<__mmask16>(lanes & ~others);
    group.state = _mm512_mask_add_epi32(group.state, zeros, _mm512_mullo_epi32(zero, above), slot);
    code = _mm512_setzero_si512();
    refill(group, zeros);
    if (others == 0) return;
    if (__builtin_popcount(others) <= kFew) {
      take_few(group, others, contexts, code);
    } else {
      take_others(group, others, levels, slot, above, code);
    }
  }

  static void decode_residuals(DecodeStreams& lanes, const ResidualTables& by_level, const std::uint8_t* contexts,
                               std::size_t count, std::size_t first, std::int32_t* codes) {
    const ResidualDecodeVectors vectors(by_level);
    // Columns go in groups that begin at a multiple of sixteen lanes; the first and the last may lack some.
    std::size_t lane = first & lanes.mask & ~(kLanes - 1);
    std::size_t missing = first & (kLanes - 1);
    for (std::size_t x = 0; x < count;) {
      const std::size_t taken = count - x < kLanes - missing ? count - x : kLanes - missing;
      const auto columns = static_cast<__mmask16>(((1u << taken) - 1) << missing);
      const std::ptrdiff_t begin = static_cast<std::ptrdiff_t>(x) - static_cast<std::ptrdiff_t>(missing);
      const __m128i levels = _mm_mask_loadu_epi8(_mm_set1_epi8(-1), columns, contexts + begin);
      const __mmask16 coded = _mm_mask_cmpneq_epu8_mask(columns, levels, _mm_set1_epi8(-1));
      Group group{_mm512_load_si512(lanes.states.data() + lane), _mm512_load_si512(lanes.at.data() + lane),
                  _mm512_load_si512(lanes.end.data() + lane), lanes.words, 0};
      Lanes code;
      vectors.take(group, coded, levels, code);
      _mm512_store_si512(lanes.states.data() + lane, group.state);
      _mm512_store_si512(lanes.at.data() + lane, group.at);
      lanes.failed |= static_cast<std::uint32_t>(group.failed) << lane;
      _mm512_mask_storeu_epi32(codes + begin, columns, code);
      x += taken;
      missing = 0;
      lane = (lane + kLanes) & lanes.mask;
    }
  }
};

#else

template <class Isa>
struct ResidualDecodeVectors {
  static constexpr std::size_t kLanes = 0;
};

#endif

}  // namespace quern::kernels
