// Entry points of the quick check of decoded tensors on the CPU: tells blocks whose elements certainly keep their bound
// from blocks at which the caller has to check each element, and keeps the largest errors. One set for each instruction
// set; all give the same answers. Values are binary32 at any address.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/cpu/isa.h"

namespace quern::kernels {

inline constexpr std::size_t kCheckBlock = 512;  ///< most elements of a block

/// Largest errors so far.
struct CheckWorst {
  double absolute = 0;  ///< |decoded - value|
  double relative = 0;  ///< updates: the square of it, by the second moment; logs: the ratio, 0 where all are equal
};

/// Each takes count <= kCheckBlock elements and returns whether all certainly keep the bound; only then `worst` counts
/// them. Elements whose bits are equal always do.
struct BoundCheckKernels {
  /// |decoded - value| < bound, both finite and the value not 0.
  bool (*steps)(double bound, const std::uint8_t* values, const std::uint8_t* decoded, std::size_t count,
                CheckWorst& worst);
  /// The square of the error is at most `square` times the second moment, which is positive; the value is not 0.
  bool (*updates)(double square, const std::uint8_t* values, const std::uint8_t* decoded, const std::uint8_t* second,
                  std::size_t count, CheckWorst& worst);
  /// Both are positive, and the quotient of the greater by the smaller, rounded, is at most `ratio`.
  bool (*logs)(double ratio, const std::uint8_t* values, const std::uint8_t* decoded, std::size_t count,
               CheckWorst& worst);
};

/// The kernels of an available level.
const BoundCheckKernels& bound_check_kernels(IsaLevel level);

}  // namespace quern::kernels
