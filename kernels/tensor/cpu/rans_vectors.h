// Lanes of the rANS coder as vectors: 16 at a time with AVX-512, 8 with AVX2. Whatever set this file is compiled for
// without them has no vectors.
#pragma once

#include <array>
#include <cstring>

#include "kernels/common/cpu/word_shuffles.h"
#include "kernels/tensor/cpu/planes.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace quern::kernels {

#if defined(__AVX512BW__) && defined(__AVX512VL__)

/// Sixteen lanes.
template <class Isa>
struct RansStep {
  static constexpr std::size_t kStates = 16;
  using Lanes = __m512i;

  [[gnu::always_inline]] static void load(const std::uint32_t* from, Lanes& v) { v = _mm512_loadu_si512(from); }
  [[gnu::always_inline]] static void store(std::uint32_t* to, const Lanes& v) { _mm512_storeu_si512(to, v); }

  static constexpr bool kHasWindow = true;
  [[gnu::always_inline]] static void look_up(const std::uint32_t* table, const Lanes& index, __mmask16 upper,
                                             Lanes& found) {
    const Lanes low = _mm512_permutex2var_epi32(_mm512_loadu_si512(table), index, _mm512_loadu_si512(table + 16));
    const Lanes high = _mm512_permutex2var_epi32(_mm512_loadu_si512(table + 32), index, _mm512_loadu_si512(table + 48));
    found = _mm512_mask_mov_epi32(low, upper, high);
  }

  /// Puts symbols into states; `contexts`: null, or each lane's table.
  template <bool Windowed>
  [[gnu::always_inline]] static void encode(Lanes& state, const std::uint8_t* symbols, const std::uint8_t* contexts,
                                            const LaneEncodeTable* table, unsigned window, std::uint16_t*& words) {
    Lanes index = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(symbols)));
    Lanes reciprocal;
    Lanes rest;
    const Lanes within = _mm512_sub_epi32(index, _mm512_set1_epi32(static_cast<int>(window)));
    if (Windowed && __builtin_expect(_mm512_cmpge_epu32_mask(within, _mm512_set1_epi32(kLaneWindow)) == 0, 1)) {
      const __mmask16 upper = _mm512_test_epi32_mask(within, _mm512_set1_epi32(32));
      look_up(table->reciprocal + window, within, upper, reciprocal);
      look_up(table->rest + window, within, upper, rest);
    } else {
      if (contexts != nullptr) {
        const Lanes known = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(contexts)));
        index = _mm512_add_epi32(index, _mm512_slli_epi32(known, 9));
      }
      reciprocal = _mm512_i32gather_epi32(index, table->reciprocal, 4);
      rest = _mm512_i32gather_epi32(index, table->rest, 4);
    }
    const Lanes frequency = _mm512_and_si512(rest, _mm512_set1_epi32(0xfff));
    const __mmask16 full = _mm512_cmpge_epu32_mask(state, _mm512_slli_epi32(frequency, 31 - kLaneSumBits));
    const auto count = static_cast<unsigned>(__builtin_popcount(full));
    words -= count;
    const __m256i out = _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(full, state));
    _mm256_mask_storeu_epi16(words, static_cast<__mmask16>((1u << count) - 1), out);
    state = _mm512_mask_srli_epi32(state, full, state, 16);
    const Lanes even = _mm512_srli_epi64(_mm512_mul_epu32(state, reciprocal), 32);
    const Lanes odd = _mm512_mul_epu32(_mm512_srli_epi64(state, 32), _mm512_srli_epi64(reciprocal, 32));
    const Lanes high = _mm512_mask_mov_epi32(even, 0xaaaa, odd);
    const Lanes shift = _mm512_and_si512(_mm512_srli_epi32(rest, 12), _mm512_set1_epi32(31));
    const Lanes quotient = _mm512_srlv_epi32(high, shift);
    const Lanes gap = _mm512_sub_epi32(_mm512_set1_epi32(kLaneSum), frequency);
    state = _mm512_add_epi32(_mm512_add_epi32(state, _mm512_srli_epi32(rest, 17)), _mm512_mullo_epi32(quotient, gap));
  }

  /// Takes a symbol from each lane, the first step: `mask` says which lanes want a word.
  [[gnu::always_inline]] static void take(Lanes& state, const std::uint8_t* contexts, const LaneDecodeTable* table,
                                          std::uint8_t* symbols, unsigned& mask) {
    Lanes slot = _mm512_and_si512(state, _mm512_set1_epi32(kLaneSum - 1));
    if (contexts != nullptr) {
      const Lanes known = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(contexts)));
      slot = _mm512_add_epi32(slot, _mm512_slli_epi32(known, kLaneSumBits));
    }
    const Lanes entry = _mm512_i32gather_epi32(slot, table->entries, 4);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(symbols), _mm512_cvtepi32_epi8(entry));
    const Lanes offset = _mm512_and_si512(_mm512_srli_epi32(entry, 8), _mm512_set1_epi32(kLaneSum - 1));
    const Lanes product = _mm512_mullo_epi32(_mm512_srli_epi32(entry, 20), _mm512_srli_epi32(state, kLaneSumBits));
    state = _mm512_add_epi32(product, offset);
    mask = _mm512_cmplt_epu32_mask(state, _mm512_set1_epi32(kLaneFloor));
  }
  /// Gives them; 32 bytes are readable.
  [[gnu::always_inline]] static void refill(Lanes& state, unsigned mask, const std::uint8_t* words) {
    const auto lanes = static_cast<__mmask16>(mask);
    const Lanes next = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(words)));
    const Lanes dealt = _mm512_maskz_expand_epi32(lanes, next);
    state = _mm512_or_si512(_mm512_mask_slli_epi32(state, lanes, state, 16), dealt);
  }
};

#elif defined(__AVX2__)

/// Eight lanes.
template <class Isa>
struct RansStep {
  static constexpr std::size_t kStates = 8;
  using Lanes = __m256i;

  [[gnu::always_inline]] static void load(const std::uint32_t* from, Lanes& v) {
    v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  [[gnu::always_inline]] static void store(std::uint32_t* to, const Lanes& v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v);
  }
  [[gnu::always_inline]] static void load_bytes(const std::uint8_t* from, Lanes& v) {
    v = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
  }

  static constexpr bool kHasWindow = false;

  template <bool>
  [[gnu::always_inline]] static void encode(Lanes& state, const std::uint8_t* symbols, const std::uint8_t* contexts,
                                            const LaneEncodeTable* table, unsigned, std::uint16_t*& words) {
    Lanes index;
    load_bytes(symbols, index);
    if (contexts != nullptr) {
      Lanes known;
      load_bytes(contexts, known);
      index = _mm256_add_epi32(index, _mm256_slli_epi32(known, 9));
    }
    const Lanes reciprocal = _mm256_i32gather_epi32(reinterpret_cast<const int*>(table->reciprocal), index, 4);
    const Lanes rest = _mm256_i32gather_epi32(reinterpret_cast<const int*>(table->rest), index, 4);
    const Lanes frequency = _mm256_and_si256(rest, _mm256_set1_epi32(0xfff));
    // States and limits less one have 31 bits: a signed comparison serves.
    const Lanes limit = _mm256_sub_epi32(_mm256_slli_epi32(frequency, 31 - kLaneSumBits), _mm256_set1_epi32(1));
    const Lanes full = _mm256_cmpgt_epi32(state, limit);
    const auto mask = static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(full)));
    const Lanes low = _mm256_and_si256(state, _mm256_set1_epi32(0xffff));
    const __m128i eight = _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
    const __m128i shuffle = _mm_load_si128(reinterpret_cast<const __m128i*>(WordShuffles<Isa>::kGather[mask].data()));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(words - 8), _mm_shuffle_epi8(eight, shuffle));
    words -= __builtin_popcount(mask);
    state = _mm256_srlv_epi32(state, _mm256_and_si256(full, _mm256_set1_epi32(16)));
    const Lanes even = _mm256_srli_epi64(_mm256_mul_epu32(state, reciprocal), 32);
    const Lanes odd = _mm256_mul_epu32(_mm256_srli_epi64(state, 32), _mm256_srli_epi64(reciprocal, 32));
    const Lanes high = _mm256_blend_epi32(even, odd, 0xaa);
    const Lanes shift = _mm256_and_si256(_mm256_srli_epi32(rest, 12), _mm256_set1_epi32(31));
    const Lanes quotient = _mm256_srlv_epi32(high, shift);
    const Lanes gap = _mm256_sub_epi32(_mm256_set1_epi32(kLaneSum), frequency);
    state = _mm256_add_epi32(_mm256_add_epi32(state, _mm256_srli_epi32(rest, 17)), _mm256_mullo_epi32(quotient, gap));
  }

  [[gnu::always_inline]] static void take(Lanes& state, const std::uint8_t* contexts, const LaneDecodeTable* table,
                                          std::uint8_t* symbols, unsigned& mask) {
    Lanes slot = _mm256_and_si256(state, _mm256_set1_epi32(kLaneSum - 1));
    if (contexts != nullptr) {
      Lanes known;
      load_bytes(contexts, known);
      slot = _mm256_add_epi32(slot, _mm256_slli_epi32(known, kLaneSumBits));
    }
    const Lanes entry = _mm256_i32gather_epi32(reinterpret_cast<const int*>(table->entries), slot, 4);
    const __m256i pick = _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,  //
                                          -1, -1, -1, -1, 0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m256i bytes = _mm256_shuffle_epi8(entry, pick);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(symbols),
                     _mm_or_si128(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1)));
    const Lanes offset = _mm256_and_si256(_mm256_srli_epi32(entry, 8), _mm256_set1_epi32(kLaneSum - 1));
    const Lanes product = _mm256_mullo_epi32(_mm256_srli_epi32(entry, 20), _mm256_srli_epi32(state, kLaneSumBits));
    state = _mm256_add_epi32(product, offset);
    const Lanes empty = _mm256_cmpgt_epi32(_mm256_set1_epi32(kLaneFloor), state);
    mask = static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(empty)));
  }
  [[gnu::always_inline]] static void refill(Lanes& state, unsigned mask, const std::uint8_t* words) {
    const __m128i next = _mm_loadu_si128(reinterpret_cast<const __m128i*>(words));
    const __m128i shuffle = _mm_load_si128(reinterpret_cast<const __m128i*>(WordShuffles<Isa>::kDeal[mask].data()));
    const Lanes dealt = _mm256_cvtepu16_epi32(_mm_shuffle_epi8(next, shuffle));
    const Lanes empty = _mm256_cmpgt_epi32(_mm256_set1_epi32(kLaneFloor), state);
    state = _mm256_or_si256(_mm256_sllv_epi32(state, _mm256_and_si256(empty, _mm256_set1_epi32(16))), dealt);
  }
};

#endif

#if defined(__AVX2__)

/// Parts side by side, so that the steps of one fill the waits of the others.
template <class Isa>
struct RansVectors {
  static constexpr bool kAvailable = true;
  using Step = RansStep<Isa>;
  using Lanes = typename Step::Lanes;
  static constexpr std::size_t kVectors = kRansLanes / Step::kStates;

  template <LaneContext Source, std::size_t Parts>
  static void encode(const LaneEncodeJob& job, std::size_t groups) {
    if constexpr (Step::kHasWindow && Source != LaneContext::given) {
      if (job.windowed) return encode_groups<Source, Parts, true>(job, groups);
    }
    encode_groups<Source, Parts, false>(job, groups);
  }
  template <LaneContext Source, std::size_t Parts, bool Windowed>
  static void encode_groups(const LaneEncodeJob& job, std::size_t groups) {
    Lanes states[Parts][kVectors];
    std::uint16_t* words[Parts];
    for (std::size_t p = 0; p < Parts; ++p) {
      words[p] = job.parts[p].words;
      for (std::size_t v = 0; v < kVectors; ++v) Step::load(job.parts[p].states + v * Step::kStates, states[p][v]);
    }
    for (std::size_t group = groups; group-- > 0;) {
#pragma GCC unroll 4
      for (std::size_t p = 0; p < Parts; ++p) {
        const std::size_t at = p * groups + group;
        const LaneEncodeTable* table = job.tables;
        if constexpr (Source == LaneContext::previous) table += job.contexts[at];
#pragma GCC unroll 4
        for (std::size_t i = 0; i < kVectors; ++i) {
          const std::size_t v = kVectors - 1 - i;  // the last lane's word lies highest
          const std::size_t first = at * kRansLanes + v * Step::kStates;
          const std::uint8_t* contexts = nullptr;
          if constexpr (Source == LaneContext::given) contexts = job.contexts + first;
          Step::template encode<Windowed>(states[p][v], job.symbols + first, contexts, table, job.window, words[p]);
        }
      }
    }
    for (std::size_t p = 0; p < Parts; ++p) {
      job.parts[p].words = words[p];
      for (std::size_t v = 0; v < kVectors; ++v) Step::store(job.parts[p].states + v * Step::kStates, states[p][v]);
    }
  }

  /// Decodes groups of all parts while none can read beyond what is readable; returns how many of each.
  template <LaneContext Source, std::size_t Parts>
  static std::size_t decode(const LaneDecodeJob& job, std::size_t groups, std::uint32_t (&sums)[Parts]) {
    Lanes states[Parts][kVectors];
    const std::uint8_t* words[Parts];
    std::size_t tables[Parts] = {};
    for (std::size_t p = 0; p < Parts; ++p) {
      words[p] = job.parts[p].at;
      if constexpr (Source == LaneContext::previous) tables[p] = context_of(job, 0);
      for (std::size_t v = 0; v < kVectors; ++v) Step::load(job.parts[p].states + v * Step::kStates, states[p][v]);
    }
    std::size_t group = 0;
    for (; group < groups; ++group) {
      constexpr std::ptrdiff_t kMostRead = 2 * static_cast<std::ptrdiff_t>(kRansLanes + Step::kStates);
      const std::uint8_t* furthest = words[0];
      for (std::size_t p = 1; p < Parts; ++p) furthest = words[p] > furthest ? words[p] : furthest;
      if (job.readable_end - furthest < kMostRead) break;
#pragma GCC unroll 4
      for (std::size_t p = 0; p < Parts; ++p) {
        const std::size_t first = (p * groups + group) * kRansLanes;
        const LaneDecodeTable* const table = job.tables + tables[p];
        unsigned masks[kVectors];
#pragma GCC unroll 4
        for (std::size_t v = 0; v < kVectors; ++v) {
          const std::size_t at = first + v * Step::kStates;
          const std::uint8_t* contexts = nullptr;
          if constexpr (Source == LaneContext::given) contexts = job.contexts + at;
          Step::take(states[p][v], contexts, table, job.symbols + at, masks[v]);
        }
#pragma GCC unroll 4
        for (std::size_t v = 0; v < kVectors; ++v) {
          Step::refill(states[p][v], masks[v], words[p]);
          words[p] += 2 * __builtin_popcount(masks[v]);
        }
        if constexpr (Source == LaneContext::previous) {
          sums[p] = sum_of(job.symbols + first);
          tables[p] = context_of(job, sums[p]);
        }
      }
    }
    for (std::size_t p = 0; p < Parts; ++p) {
      job.parts[p].at = words[p];
      for (std::size_t v = 0; v < kVectors; ++v) Step::store(job.parts[p].states + v * Step::kStates, states[p][v]);
    }
    return group;
  }

 private:
  [[gnu::always_inline]] static std::uint32_t sum_of(const std::uint8_t* symbols) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(symbols));
    const __m256i fours = _mm256_sad_epu8(bytes, _mm256_setzero_si256());
    const __m128i pair = _mm_add_epi32(_mm256_castsi256_si128(fours), _mm256_extracti128_si256(fours, 1));
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(pair)) + static_cast<std::uint32_t>(_mm_extract_epi32(pair, 2));
  }
  /// Sums and thresholds but the unused, which are -1 as signed numbers and smaller than all, are below 2^15.
  [[gnu::always_inline]] static std::size_t context_of(const LaneDecodeJob& job, std::uint32_t sum) {
    const __m128i thresholds = _mm_loadu_si128(reinterpret_cast<const __m128i*>(job.thresholds));
    // The least of the two as unsigned numbers is the threshold where it is not above the sum.
    const __m128i least = _mm_min_epu16(thresholds, _mm_set1_epi16(static_cast<short>(sum)));
    const auto bytes = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi16(least, thresholds)));
    return static_cast<unsigned>(__builtin_popcount(bytes)) / 2;
  }
};

#else

template <class Isa>
struct RansVectors {
  static constexpr bool kAvailable = false;
};

#endif

}  // namespace quern::kernels
