// The factor that brings a base nearest to the values: moments of an optimizer decay by a constant factor from step to
// step, and the difference to the decayed base is far smaller than to the base itself.
#pragma once

#include <cstdint>
#include <span>

namespace quern::codec::tensor {

inline constexpr float kLeastScale = 0x1p-8f;
inline constexpr float kMostScale = 2.0f;

/// True for the factors a stream may hold. (No denormal product can come of them: kernels/tensor/cpu/planes.h.)
constexpr bool is_scale(float scale) { return scale >= kLeastScale && scale <= kMostScale; }

/// Factor for 4-byte floats; exactly 1 unless another one saves bits in a sample. From separately rounded operations in
/// a fixed order: the same on every machine.
float fit_scale(std::span<const std::uint8_t> values, std::span<const std::uint8_t> base);

}  // namespace quern::codec::tensor
