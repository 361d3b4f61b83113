// What callers of the bounded modes compute beside the codec: the direction in which an optimizer moves the weights,
// and the unit of weights' bounds.
#pragma once

#include <cstdint>
#include <span>

namespace quern::codec::tensor {

/// out[i] = exp_avg[i] / sqrt(exp_avg_sq[i]) in binary32, 0 where that is not a finite number: what ebq predicts
/// weights from when it has a base (TensorInputs::direction). Arguments are *decoded* moments, so that a decoder can do
/// the same; all three have the same size, a multiple of 4 bytes, at any address. Division and root are IEEE's: the
/// same bits everywhere.
void update_direction(std::span<const std::uint8_t> exp_avg, std::span<const std::uint8_t> exp_avg_sq,
                      std::span<std::uint8_t> out);

/// Standard deviation of the finite ones of binary32 values at any address; 0 when there are none. Sums in a fixed
/// order: the same number everywhere.
double standard_deviation(std::span<const std::uint8_t> values);

}  // namespace quern::codec::tensor
