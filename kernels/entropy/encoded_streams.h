// What a residual and the end of a stream take where a device writes interleaved streams.
#pragma once

#include <cstdint>

namespace quern::kernels {

/// Words that a residual takes at most, and those of a stream's state.
inline constexpr std::uint32_t kMostResidualWords = 3;
inline constexpr std::uint32_t kStateWords = 2;

}  // namespace quern::kernels
