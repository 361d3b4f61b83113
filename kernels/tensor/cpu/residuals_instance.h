// Kernels for residuals of bounded tensor modes, of one instruction set; included by one source file for each, compiled
// with that set's flags. Loops over values are for the compiler to vectorize; the coder is in residual_rans_vectors.h.
#pragma once

#include <bit>
#include <cstring>

#include "kernels/tensor/cpu/residual_rans_vectors.h"
#include "kernels/tensor/cpu/residuals.h"

namespace quern::kernels {

template <class Isa>
struct TensorResidualInstance {
  using Vectors = TensorRansVectors<Isa>;

  [[gnu::always_inline]] static std::uint32_t magnitude(std::int32_t residual) {
    const auto sign = static_cast<std::uint32_t>(residual >> 31);
    return (static_cast<std::uint32_t>(residual) ^ sign) - sign;
  }

  static void symbols(const std::int32_t* residuals, std::size_t count, std::uint8_t* __restrict symbols) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t m = magnitude(residuals[i]);
      const std::uint32_t code = zigzag(static_cast<std::uint32_t>(residuals[i]));
      // Exact as a float: below 2^30, six low bits that no symbol depends on are cleared above 2^24.
      const std::uint32_t kept = m & ~((0u - static_cast<std::uint32_t>(m >= 1u << 24)) & 63u);
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(kept)));
      const std::uint32_t large = (bits >> 21) - kLargeSymbol;
      const std::uint32_t small = 0u - static_cast<std::uint32_t>(m < kPlainMagnitudes);
      symbols[i] = static_cast<std::uint8_t>((code & small) | (large & ~small));
    }
  }

  static constexpr std::size_t kSumBlock = 2048;  ///< magnitudes of 2^20 that 32 bits hold the sum of

  static std::uint64_t magnitude_sum(const std::int32_t* residuals, std::size_t count, std::uint32_t most) {
    std::uint64_t sum = 0;
    for (std::size_t begin = 0; begin < count; begin += kSumBlock) {
      const std::size_t end = count - begin < kSumBlock ? count : begin + kSumBlock;
      std::uint32_t part = 0;
      for (std::size_t i = begin; i < end; ++i) {
        const std::uint32_t m = magnitude(residuals[i]);
        part += m < most ? m : most;
      }
      sum += part;
    }
    return sum;
  }
  static void add_magnitudes(const std::int32_t* residuals, std::size_t count, std::uint32_t most,
                             std::uint32_t* __restrict sums) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t m = magnitude(residuals[i]);
      sums[i] += m < most ? m : most;
    }
  }

  static void choose_tables(const std::int32_t* levels, std::size_t count, std::int32_t level,
                            const std::uint8_t* table_of, std::uint8_t* __restrict tables) {
    for (std::size_t i = 0; i < count; ++i) tables[i] = static_cast<std::uint8_t>(tensor_context(level + levels[i]));
    Vectors::look_up(table_of, tables, count);
  }

  static void count(const std::uint8_t* symbols, const std::uint8_t* contexts, std::size_t count,
                    std::uint32_t* __restrict counts) {
    // Equal symbols follow each other often: four sets of counters take turns, so that they wait less.
    constexpr std::size_t kBlock = 512;
    constexpr std::size_t kSets = 4;
    constexpr std::size_t kCounters = kTensorPlaces * kTensorContexts;
    std::uint32_t others[kSets - 1][kCounters] = {};
    std::uint16_t places[kBlock];
    for (std::size_t begin = 0; begin < count; begin += kBlock) {
      const std::size_t n = count - begin < kBlock ? count - begin : kBlock;
      for (std::size_t i = 0; i < n; ++i)
        places[i] = static_cast<std::uint16_t>(contexts[begin + i] * kTensorPlaces + symbols[begin + i]);
      std::size_t i = 0;
      for (; i + kSets <= n; i += kSets) {
        ++counts[places[i]];
        ++others[0][places[i + 1]];
        ++others[1][places[i + 2]];
        ++others[2][places[i + 3]];
      }
      for (; i < n; ++i) ++counts[places[i]];
    }
    for (std::size_t i = 0; i < kCounters; ++i) counts[i] += others[0][i] + others[1][i] + others[2][i];
  }

  static void encode(TensorEncodeJob& job) {
    std::size_t left = job.count;
    const auto put = [&](std::size_t i) {
      tensor_put_residual(job.states[i % kTensorStates], job.residuals[i], job.table[job.tables[i]], job.words);
    };
    while (left % kTensorStates != 0) put(--left);
    if constexpr (Vectors::kAvailable) {
      Vectors::encode(job, left);
    } else {
      while (left > 0) put(--left);
    }
  }

  static void decode(TensorDecodeJob& job) {
    std::size_t i = 0;
    if constexpr (Vectors::kAvailable) i = Vectors::decode(job);
    for (; i < job.count; ++i) {
      std::uint32_t& state = job.states[i % kTensorStates];
      job.source.state = state;
      job.residuals[i] = tensor_take_residual(job.source, job.table[job.tables[i]]);
      state = job.source.state;
    }
  }

  static constexpr TensorResidualKernels kKernels{&symbols, &magnitude_sum, &add_magnitudes, &choose_tables,
                                                  &count,   &encode,        &decode};
};

}  // namespace quern::kernels
