// Entry points of the kernels for residuals of bounded tensor modes on the CPU: symbols of integers, counts of them,
// and the rANS coder whose eight states take turns. One set for each instruction set; all give the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/cpu/isa.h"
#include "kernels/entropy/residual_tokens.h"
#include "kernels/tensor/residuals.h"

namespace quern::kernels {

/// Residuals to put into eight states. Words go downwards and take at most four for each residual; kTensorWordSlack
/// words below those that count may be written.
struct TensorEncodeJob {
  const std::int32_t* residuals = nullptr;  ///< magnitudes below 2^30
  const std::uint8_t* tables = nullptr;     ///< number of the table of each
  std::size_t count = 0;
  const TensorEncodeTable* table = nullptr;  ///< the first of them
  std::uint16_t* words = nullptr;            ///< behind the last word; afterwards the first
  std::uint32_t states[kTensorStates];       ///< the floor; afterwards what a decoder begins with
};
inline constexpr std::size_t kTensorWordSlack = 16;

struct TensorDecodeJob {
  std::int32_t* residuals = nullptr;
  const std::uint8_t* tables = nullptr;  ///< number of the table of each
  std::size_t count = 0;
  const TensorDecodeTable* table = nullptr;  ///< the first of them
  RansSource source;                         ///< words, a whole number of them; its state has no meaning
  std::uint32_t states[kTensorStates];       ///< afterwards the floor, if nothing is damaged
};

struct TensorResidualKernels {
  /// symbols[i] of residuals[i], magnitudes below 2^30.
  void (*symbols)(const std::int32_t* residuals, std::size_t count, std::uint8_t* symbols);
  /// Sum of the magnitudes, each at most `most` <= 2^20; |residual| < 2^31.
  std::uint64_t (*magnitude_sum)(const std::int32_t* residuals, std::size_t count, std::uint32_t most);
  /// sums[i] += the magnitude of residuals[i], at most `most` <= 2^20.
  void (*add_magnitudes)(const std::int32_t* residuals, std::size_t count, std::uint32_t most, std::uint32_t* sums);
  /// tables[i] = table_of[tensor_context(level + levels[i])]; |level|, |levels[i]| <= 2^20. `table_of` has
  /// kTensorContexts entries.
  void (*choose_tables)(const std::int32_t* levels, std::size_t count, std::int32_t level, const std::uint8_t* table_of,
                        std::uint8_t* tables);
  /// ++counts[kTensorPlaces * contexts[i] + symbols[i]] for i < count; contexts below kTensorContexts.
  void (*count)(const std::uint8_t* symbols, const std::uint8_t* contexts, std::size_t count, std::uint32_t* counts);
  void (*encode)(TensorEncodeJob& job);
  void (*decode)(TensorDecodeJob& job);
};

/// The kernels of an available level.
const TensorResidualKernels& tensor_residual_kernels(IsaLevel level);

}  // namespace quern::kernels
