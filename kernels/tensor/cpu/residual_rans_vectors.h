// The eight states of the coder of residuals as one vector of AVX2. Other instruction sets have no vectors here.
#pragma once

#include <bit>
#include <cstring>

#include "kernels/common/cpu/word_shuffles.h"
#include "kernels/tensor/cpu/residuals.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace quern::kernels {

/// For magnitudes m >= 16: (bits of m as a float) >> 21 less the symbol.
inline constexpr std::uint32_t kLargeSymbol = 4 * (127 + 4) - kSignedSymbols;

#if defined(__AVX2__)

template <class Isa>
struct TensorRansVectors {
  static constexpr bool kAvailable = true;
  using Lanes = __m256i;

  [[gnu::always_inline]] static void load(const std::uint32_t* from, Lanes& v) {
    v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  [[gnu::always_inline]] static void store(void* to, const Lanes& v) {
    _mm256_storeu_si256(static_cast<__m256i*>(to), v);
  }

  /// bytes[i] = table[bytes[i]], of 48 entries.
  static void look_up(const std::uint8_t* table, std::uint8_t* bytes, std::size_t count) {
    static_assert(kTensorContexts == 48);
    const auto part = [&](std::size_t k) {
      return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table + 16 * k)));
    };
    const Lanes low = part(0);
    const Lanes middle = part(1);
    const Lanes high = part(2);
    std::size_t i = 0;
    for (; i + 32 <= count; i += 32) {
      const Lanes index = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes + i));
      // Bit 4 and bit 5, moved to the top of their bytes, choose.
      const Lanes upper = _mm256_slli_epi16(index, 3);
      const Lanes top = _mm256_slli_epi16(index, 2);
      const Lanes place = _mm256_and_si256(index, _mm256_set1_epi8(15));
      const Lanes first =
          _mm256_blendv_epi8(_mm256_shuffle_epi8(low, place), _mm256_shuffle_epi8(middle, place), upper);
      store(bytes + i, _mm256_blendv_epi8(first, _mm256_shuffle_epi8(high, place), top));
    }
    for (; i < count; ++i) bytes[i] = table[bytes[i]];
  }

  /// What goes into the states, of some residuals.
  struct Block {
    static constexpr std::size_t kSize = 256;
    std::uint16_t places[kSize];     ///< of entries
    std::uint32_t open[kSize];       ///< bits below the symbols
    std::uint32_t open_bits[kSize];  ///< more than 16: not prepared
  };
  [[gnu::always_inline]] static void prepare(const std::int32_t* residuals, const std::uint8_t* tables,
                                             std::size_t count, Block& block) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::int32_t residual = residuals[i];
      const auto sign = static_cast<std::uint32_t>(residual >> 31);
      const std::uint32_t m = (static_cast<std::uint32_t>(residual) ^ sign) - sign;
      // Exact below 2^24, and more than 16 bits are open from 2^18 on.
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(m)));
      const auto base = static_cast<std::uint32_t>(static_cast<std::int32_t>(std::bit_cast<float>(bits & 0xffe00000u)));
      // By a mask, which compilers make vectors of.
      const std::uint32_t small = 0u - static_cast<std::uint32_t>(m < kPlainMagnitudes);
      const std::uint32_t symbol =
          (zigzag(static_cast<std::uint32_t>(residual)) & small) | (((bits >> 21) - kLargeSymbol) & ~small);
      block.places[i] = static_cast<std::uint16_t>(tables[i] * kTensorPlaces + symbol);
      block.open[i] = ((m - base) << 1 | (sign & 1)) & ~small;
      block.open_bits[i] = ((bits >> 23) - 128) & ~small;
    }
  }

  /// Entries of eight places.
  [[gnu::always_inline]] static void find(const TensorEncodeTable* table, const std::uint16_t* places,
                                          Lanes& reciprocal, Lanes& rest) {
    const TensorEncodeEntry* const entries = table->entries;
    const auto two = [&](std::size_t i) {
      const __m128i first = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(entries + places[i]));
      return _mm_loadh_pi(_mm_castsi128_ps(first), reinterpret_cast<const __m64*>(entries + places[i + 1]));
    };
    const __m256 low = _mm256_set_m128(two(4), two(0));
    const __m256 high = _mm256_set_m128(two(6), two(2));
    reciprocal = _mm256_castps_si256(_mm256_shuffle_ps(low, high, 0x88));
    rest = _mm256_castps_si256(_mm256_shuffle_ps(low, high, 0xdd));
  }

  /// Writes the words of a vector of 16-bit lanes whose lanes in `full` are all ones: the last lane's highest.
  [[gnu::always_inline]] static void put_eight(const __m128i& eight, unsigned mask, std::uint16_t*& words) {
    const __m128i shuffle = _mm_load_si128(reinterpret_cast<const __m128i*>(WordShuffles<Isa>::kGather[mask].data()));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(words - 8), _mm_shuffle_epi8(eight, shuffle));
    words -= __builtin_popcount(mask);
  }

  /// States with symbols put into them, once they have room.
  [[gnu::always_inline]] static void next(const Lanes& reciprocal, const Lanes& rest, Lanes& state) {
    const Lanes frequency = _mm256_and_si256(rest, _mm256_set1_epi32(0xfff));
    const Lanes even = _mm256_srli_epi64(_mm256_mul_epu32(state, reciprocal), 32);
    const Lanes odd = _mm256_mul_epu32(_mm256_srli_epi64(state, 32), _mm256_srli_epi64(reciprocal, 32));
    const Lanes product = _mm256_blend_epi32(even, odd, 0xaa);
    const Lanes shift = _mm256_and_si256(_mm256_srli_epi32(rest, 12), _mm256_set1_epi32(15));
    const Lanes quotient = _mm256_srlv_epi32(product, shift);
    const Lanes left = _mm256_sub_epi32(state, _mm256_mullo_epi32(quotient, frequency));
    // At least the frequency is left over where the quotient is one too small. Both are below 2^13.
    const Lanes more = _mm256_cmpgt_epi32(frequency, left);
    const Lanes remainder = _mm256_sub_epi32(left, _mm256_andnot_si256(more, frequency));
    const Lanes whole = _mm256_add_epi32(quotient, _mm256_andnot_si256(more, _mm256_set1_epi32(1)));
    state = _mm256_add_epi32(_mm256_add_epi32(remainder, _mm256_srli_epi32(rest, 20)),
                             _mm256_slli_epi32(whole, kTensorSumBits));
  }

  [[gnu::always_inline]] static void put_symbols(const Lanes& reciprocal, const Lanes& rest, Lanes& state,
                                                 std::uint16_t*& words) {
    const Lanes full = is_full(rest, state);
    const Lanes low = _mm256_and_si256(state, _mm256_set1_epi32(0xffff));
    const __m128i eight = _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
    put_eight(eight, static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(full))), words);
    state = _mm256_srlv_epi32(state, _mm256_and_si256(full, _mm256_set1_epi32(16)));
    next(reciprocal, rest, state);
  }
  [[gnu::always_inline]] static Lanes is_full(const Lanes& rest, const Lanes& state) {
    const Lanes frequency = _mm256_and_si256(rest, _mm256_set1_epi32(0xfff));
    const Lanes upper = _mm256_srli_epi32(state, 32 - kTensorSumBits);
    return _mm256_cmpgt_epi32(upper, _mm256_sub_epi32(frequency, _mm256_set1_epi32(1)));
  }

  /// Open bits first, then symbols. Of a lane's two words that of the open bits lies higher.
  [[gnu::always_inline]] static void put_open(const Lanes& open, const Lanes& open_bits, const Lanes& reciprocal,
                                              const Lanes& rest, Lanes& state, std::uint16_t*& words) {
    const Lanes sixteen = _mm256_set1_epi32(16);
    const Lanes zero = _mm256_setzero_si256();
    const Lanes above = _mm256_srlv_epi32(state, _mm256_sub_epi32(_mm256_set1_epi32(32), open_bits));
    const Lanes fits = _mm256_cmpeq_epi32(above, zero);
    const Lanes first = _mm256_slli_epi32(state, 16);
    state = _mm256_srlv_epi32(state, _mm256_andnot_si256(fits, sixteen));
    state = _mm256_or_si256(_mm256_sllv_epi32(state, open_bits), open);
    const Lanes full = is_full(rest, state);
    const Lanes both = _mm256_blend_epi16(state, first, 0xaa);
    const Lanes not_fits = _mm256_cmpeq_epi32(fits, zero);
    const Lanes chosen = _mm256_blend_epi16(full, not_fits, 0xaa);
    state = _mm256_srlv_epi32(state, _mm256_and_si256(full, sixteen));
    const auto mask = static_cast<unsigned>(
        _mm_movemask_epi8(_mm_packs_epi16(_mm256_castsi256_si128(chosen), _mm256_extracti128_si256(chosen, 1))));
    put_eight(_mm256_extracti128_si256(both, 1), mask >> 8, words);
    put_eight(_mm256_castsi256_si128(both), mask & 0xff, words);
    next(reciprocal, rest, state);
  }

  /// The first `count` residuals, a multiple of eight, from the last one down.
  static void encode(TensorEncodeJob& job, std::size_t count) {
    Block block;
    Lanes state;
    load(job.states, state);
    std::uint16_t* words = job.words;
    while (count > 0) {
      const std::size_t size = count % Block::kSize == 0 ? Block::kSize : count % Block::kSize;
      count -= size;
      prepare(job.residuals + count, job.tables + count, size, block);
      if (count >= Block::kSize) fetch(job, count - Block::kSize);
      for (std::size_t at = size; at > 0;) {
        at -= kTensorStates;
        Lanes reciprocal, rest, open_bits;
        find(job.table, block.places + at, reciprocal, rest);
        load(block.open_bits + at, open_bits);
        const Lanes odd = _mm256_or_si256(_mm256_cmpgt_epi32(open_bits, _mm256_set1_epi32(kRansPlainBits)),
                                          _mm256_cmpeq_epi32(rest, _mm256_setzero_si256()));
        if (__builtin_expect(_mm256_testz_si256(odd, odd) == 0, 0)) {
          put_one_by_one(job, count + at, state, words);
        } else if (_mm256_testz_si256(open_bits, open_bits) != 0) {
          put_symbols(reciprocal, rest, state, words);
        } else {
          Lanes open;
          load(block.open + at, open);
          put_open(open, open_bits, reciprocal, rest, state, words);
        }
      }
    }
    job.words = words;
    store(job.states, state);
  }
  /// Asks for the block that comes next: processors expect ascending addresses.
  [[gnu::always_inline]] static void fetch(const TensorEncodeJob& job, std::size_t first) {
    constexpr std::size_t kLine = 64;
    const auto* const residuals = reinterpret_cast<const char*>(job.residuals + first);
    for (std::size_t at = 0; at < Block::kSize * sizeof(std::int32_t); at += kLine) __builtin_prefetch(residuals + at);
    for (std::size_t at = 0; at < Block::kSize; at += kLine) __builtin_prefetch(job.tables + first + at);
  }
  static void put_one_by_one(const TensorEncodeJob& job, std::size_t first, Lanes& state, std::uint16_t*& words) {
    std::uint32_t states[kTensorStates];
    store(states, state);
    for (std::size_t lane = kTensorStates; lane-- > 0;)
      tensor_put_residual(states[lane], job.residuals[first + lane], job.table[job.tables[first + lane]], words);
    load(states, state);
  }

  // ---- decoding

  [[gnu::always_inline]] static Lanes deal(const std::uint8_t*& at, unsigned mask) {
    const auto eight = [&](unsigned lanes) {
      const __m128i next = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
      const __m128i shuffle = _mm_load_si128(reinterpret_cast<const __m128i*>(WordShuffles<Isa>::kDeal[lanes].data()));
      at += 2 * __builtin_popcount(lanes);
      return _mm_shuffle_epi8(next, shuffle);
    };
    const __m128i low = eight(mask & 0xff);
    return _mm256_set_m128i(eight(mask >> 8), low);
  }

  /// Residuals of symbols and their open bits, at most 16.
  [[gnu::always_inline]] static Lanes residuals_of(const Lanes& symbol, const Lanes& is_small, const Lanes& open) {
    const Lanes one = _mm256_set1_epi32(1);
    const Lanes index = _mm256_sub_epi32(symbol, _mm256_set1_epi32(kSignedSymbols));
    const Lanes lead = _mm256_add_epi32(_mm256_and_si256(index, _mm256_set1_epi32(3)), _mm256_set1_epi32(4));
    const Lanes base = _mm256_sllv_epi32(lead, _mm256_add_epi32(_mm256_srli_epi32(index, 2), _mm256_set1_epi32(2)));
    const Lanes large = _mm256_add_epi32(base, _mm256_srli_epi32(open, 1));
    // A small one's magnitude is (symbol + 1) / 2, its sign the lowest bit, as a large one's is that of the open bits.
    const Lanes small = _mm256_srli_epi32(_mm256_add_epi32(symbol, one), 1);
    const Lanes magnitude = _mm256_blendv_epi8(large, small, is_small);
    const Lanes sign_bit = _mm256_and_si256(_mm256_blendv_epi8(open, symbol, is_small), one);
    const Lanes sign = _mm256_sub_epi32(_mm256_setzero_si256(), sign_bit);
    return _mm256_sub_epi32(_mm256_xor_si256(magnitude, sign), sign);
  }

  /// Decodes groups of eight while words are plenty; returns how many residuals there are now.
  static std::size_t decode(TensorDecodeJob& job) {
    constexpr std::ptrdiff_t kMostRead = 32;
    Lanes state;
    load(job.states, state);
    const std::uint8_t* at = job.source.at;
    const Lanes zero = _mm256_setzero_si256();
    const Lanes sixteen = _mm256_set1_epi32(16);
    const Lanes low_word = _mm256_set1_epi32(0xffff);
    const auto* const entries = reinterpret_cast<const int*>(job.table->entries);
    std::size_t i = 0;
    for (; i + kTensorStates <= job.count && job.source.end - at >= kMostRead; i += kTensorStates) {
      const Lanes table = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(job.tables + i)));
      const Lanes slot = _mm256_and_si256(state, _mm256_set1_epi32(kTensorSum - 1));
      const Lanes entry =
          _mm256_i32gather_epi32(entries, _mm256_or_si256(slot, _mm256_slli_epi32(table, kTensorSumBits)), 4);
      const Lanes symbol = _mm256_and_si256(entry, _mm256_set1_epi32(0xff));
      const Lanes is_small = _mm256_cmpgt_epi32(_mm256_set1_epi32(kSignedSymbols), symbol);
      const Lanes index = _mm256_sub_epi32(symbol, _mm256_set1_epi32(kSignedSymbols));
      const Lanes open_bits =
          _mm256_andnot_si256(is_small, _mm256_add_epi32(_mm256_srli_epi32(index, 2), _mm256_set1_epi32(3)));
      const Lanes wide = _mm256_cmpgt_epi32(open_bits, _mm256_set1_epi32(kRansPlainBits));
      if (__builtin_expect(_mm256_testz_si256(wide, wide) == 0, 0)) {
        take_one_by_one(job, i, state, at);
        continue;
      }
      const Lanes frequency = _mm256_add_epi32(_mm256_and_si256(_mm256_srli_epi32(entry, 8), _mm256_set1_epi32(0xfff)),
                                               _mm256_set1_epi32(1));
      state = _mm256_add_epi32(_mm256_mullo_epi32(frequency, _mm256_srli_epi32(state, kTensorSumBits)),
                               _mm256_srli_epi32(entry, 20));
      const Lanes empty = _mm256_cmpeq_epi32(_mm256_srli_epi32(state, 16), zero);
      // After a word more, the state without its open bits is below 2^16 if this one is 0 without them.
      const Lanes shorter = _mm256_srlv_epi32(state, open_bits);
      const Lanes empty_after = _mm256_andnot_si256(
          is_small, _mm256_cmpeq_epi32(_mm256_srlv_epi32(shorter, _mm256_andnot_si256(empty, sixteen)), zero));
      const Lanes wanted = _mm256_blend_epi16(empty, empty_after, 0xaa);
      const auto mask = static_cast<unsigned>(
          _mm_movemask_epi8(_mm_packs_epi16(_mm256_castsi256_si128(wanted), _mm256_extracti128_si256(wanted, 1))));
      const Lanes words = deal(at, mask);
      state = _mm256_or_si256(_mm256_sllv_epi32(state, _mm256_and_si256(empty, sixteen)),
                              _mm256_and_si256(words, low_word));
      const Lanes above = _mm256_srlv_epi32(state, open_bits);
      const Lanes open = _mm256_sub_epi32(state, _mm256_sllv_epi32(above, open_bits));
      state = _mm256_or_si256(_mm256_sllv_epi32(above, _mm256_and_si256(empty_after, sixteen)),
                              _mm256_srli_epi32(words, 16));
      store(job.residuals + i, residuals_of(symbol, is_small, open));
    }
    job.source.at = at;
    store(job.states, state);
    return i;
  }
  static void take_one_by_one(TensorDecodeJob& job, std::size_t first, Lanes& state, const std::uint8_t*& at) {
    std::uint32_t states[kTensorStates];
    store(states, state);
    job.source.at = at;
    for (std::size_t lane = 0; lane < kTensorStates; ++lane) {
      job.source.state = states[lane];
      job.residuals[first + lane] = tensor_take_residual(job.source, job.table[job.tables[first + lane]]);
      states[lane] = job.source.state;
    }
    at = job.source.at;
    load(states, state);
  }
};

#else

template <class Isa>
struct TensorRansVectors {
  static constexpr bool kAvailable = false;
  static void look_up(const std::uint8_t* table, std::uint8_t* bytes, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) bytes[i] = table[bytes[i]];
  }
};

#endif

}  // namespace quern::kernels
