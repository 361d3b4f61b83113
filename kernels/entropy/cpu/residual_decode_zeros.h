// Residuals from four or eight streams, nearly all of which are 0 where streams are that few: groups of them are
// decoded side by side as long as no stream has anything else, or needs a word. With AVX2 and more.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/entropy/cpu/decode_streams.h"

#if defined(__AVX2__)
#include <immintrin.h>

#include "kernels/entropy/cpu/residual_decode_vectors.h"
#endif

namespace quern::kernels {

#if defined(__AVX2__)

template <class Isa>
struct ResidualDecodeZeros {
  static constexpr bool kAny = true;
  static bool serves(const DecodeStreams& lanes) { return lanes.mask == 3 || lanes.mask == 7; }

  static void decode_residuals(DecodeStreams& lanes, const ResidualTables& tables, const std::uint8_t* contexts,
                               std::size_t count, std::size_t first, std::int32_t* codes) {
    if (lanes.mask == 3) return take<Four>(lanes, tables, contexts, count, first, codes);
    return take<Eight>(lanes, tables, contexts, count, first, codes);
  }

 private:
  static constexpr std::size_t kBlock = 64;
  struct Four {
    using Lanes = std::uint32_t __attribute__((vector_size(16)));
    static constexpr std::size_t kLanes = 4;
    [[gnu::always_inline]] static void load(const std::uint16_t* from, Lanes& v) {
      v = reinterpret_cast<Lanes>(_mm_cvtepu16_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
    }
  };
  struct Eight {
    using Lanes = std::uint32_t __attribute__((vector_size(32)));
    static constexpr std::size_t kLanes = 8;
    [[gnu::always_inline]] static void load(const std::uint16_t* from, Lanes& v) {
      v = reinterpret_cast<Lanes>(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
    }
  };

  /// Frequencies of 0 in those bins; false when an element has no code.
  [[gnu::always_inline]] static bool look_up(const ResidualTables& tables, const std::uint8_t* levels,
                                             std::size_t count, std::uint16_t* out) {
    if (std::memchr(levels, kNoContextBin, count) != nullptr) return false;
    if constexpr (ResidualDecodeVectors<Isa>::kLanes > 0) {
      ResidualDecodeVectors<Isa>::look_up(tables.zeros.data(), levels, count, out);
    } else {
      for (std::size_t i = 0; i < count; ++i) out[i] = tables.zeros[levels[i]];
    }
    return true;
  }

  [[gnu::noinline]] static void take_one(DecodeStreams& lanes, std::size_t lane, const ResidualTables& tables,
                                         std::uint8_t level, std::int32_t& code) {
    if (level == kNoContextBin) return;
    RansSource source = lanes.source(lane);
    code = static_cast<std::int32_t>(decode_residual(source, tables.tables[tables.indices[level]]));
    lanes.set(lane, source);
  }

  /// Takes groups of zeros of those frequencies from the states. Returns how many, all or those before one that has
  /// something else or makes a state too small.
  template <class Width>
  [[gnu::always_inline]] static std::size_t take_groups(std::uint32_t* states, const std::uint16_t* frequencies,
                                                        std::size_t groups) {
    using Lanes = typename Width::Lanes;
    constexpr std::size_t N = Width::kLanes;
    Lanes state;
    std::memcpy(&state, states, sizeof(state));
    std::size_t g = 0;
    for (; g < groups; ++g) {
      Lanes frequency;
      Width::load(frequencies + g * N, frequency);
      const Lanes slot = state & (kFrequencySum - 1);
      const Lanes next = frequency * (state >> kFrequencySumBits) + slot;
      static_assert(kRansFloor == 1u << 16);
      // Of numbers below 2^16 the difference has its sign in the upper half; and next must have something there.
      const Lanes stop = ((frequency - 1 - slot) >> 31) | ((next >> 16) == 0 ? Lanes{} + 1 : Lanes{});
      std::uint64_t marked[N / 2];
      std::memcpy(marked, &stop, sizeof(marked));
      std::uint64_t any = 0;
      for (const std::uint64_t part : marked) any |= part;
      if (any != 0) [[unlikely]]
        break;
      state = next;
    }
    std::memcpy(states, &state, sizeof(state));
    return g;
  }
  template <class Width>
  static void take(DecodeStreams& lanes, const ResidualTables& tables, const std::uint8_t* contexts, std::size_t count,
                   std::size_t first, std::int32_t* codes) {
    constexpr std::size_t N = Width::kLanes;
    std::memset(codes, 0, count * sizeof(*codes));
    std::size_t x = 0;
    const auto take_next = [&] {
      take_one(lanes, (first + x) % N, tables, contexts[x], codes[x]);
      ++x;
    };
    while (x < count && (first + x) % N != 0) take_next();
    alignas(64) std::uint16_t frequencies[kBlock];
    while (count - x >= N) {
      const std::size_t block = count - x < kBlock ? (count - x) / N * N : kBlock;
      if (!look_up(tables, contexts + x, block, frequencies)) {
        for (std::size_t i = 0; i < block; ++i) take_next();
        continue;
      }
      for (const std::size_t begin = x, end = x + block; x < end;) {
        x += N * take_groups<Width>(lanes.states.data(), frequencies + (x - begin), (end - x) / N);
        for (std::size_t i = 0; x < end && i < N; ++i) take_next();
      }
    }
    while (x < count) take_next();
  }
};

#else

template <class Isa>
struct ResidualDecodeZeros {
  static constexpr bool kAny = false;
};

#endif

}  // namespace quern::kernels
