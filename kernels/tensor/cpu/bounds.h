// Entry points of the kernels for bounded tensor modes on the CPU: values to codes and back. One set for each
// instruction set; all give the same bits: the expressions are those of core/tensor_bounds.h, each operation rounded by
// itself. Values are binary32 at any address, little-endian as the host.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/cpu/isa.h"
#include "kernels/tensor/bounds.h"

namespace quern::kernels {

/// What a first moment is coded with: E (twice eps less a hair) and what the square of an error may be in units of the
/// second moment.
struct UpdateUnit {
  float two_eps = 0;
  double square = 0;
};

struct TensorBoundKernels {
  /// Codes of first moments in steps of E * sqrt(second), what decoders make of them, and marks of those that are not
  /// coded: 1, else 0; their code is 0 and their decoded value +0. Returns whether there are marks. `decoded` may be
  /// null.
  bool (*update_codes)(const UpdateUnit& unit, const std::uint8_t* values, const std::uint8_t* second,
                       std::size_t count, std::int32_t* codes, std::uint8_t* decoded, std::uint8_t* marks);
  /// predictions[i]: `share` 64ths of the code of the base, 0 where there is no step.
  void (*update_predictions)(const UpdateUnit& unit, std::int32_t share, const std::uint8_t* base,
                             const std::uint8_t* second, std::size_t count, std::int32_t* predictions);
  /// marks[i]: 1 where a second moment makes no step, else 0. Returns whether there are any.
  bool (*update_marks)(const std::uint8_t* second, std::size_t count, std::uint8_t* marks);
  /// Decoded first moments of codes.
  void (*update_values)(const UpdateUnit& unit, const std::int32_t* codes, const std::uint8_t* second,
                        std::size_t count, std::uint8_t* decoded);

  /// Codes of values in steps around predictions (null: 0), and the rest as update_codes.
  bool (*step_codes)(const StepUnit& unit, const std::uint8_t* values, const float* predictions, std::size_t count,
                     std::int32_t* codes, std::uint8_t* decoded, std::uint8_t* marks);
  /// Decoded values of codes around predictions (null: 0).
  void (*step_values)(float step, const std::int32_t* codes, const float* predictions, std::size_t count,
                      std::uint8_t* decoded);

  /// Least and greatest of the bit patterns of positive finite values; UINT32_MAX and 0 where there are none.
  void (*positive_range)(const std::uint8_t* values, std::size_t count, std::uint32_t& lowest, std::uint32_t& highest);
  /// Eight sums side by side, of elements i mod 8, of finite values or of the squares of their distances from `mean`;
  /// returns how many are finite.
  std::uint64_t (*finite_sums)(const std::uint8_t* values, std::size_t count, double* sums);
  void (*finite_squares)(const std::uint8_t* values, std::size_t count, double mean, double* sums);
};

/// The kernels of an available level.
const TensorBoundKernels& tensor_bound_kernels(IsaLevel level);

}  // namespace quern::kernels
