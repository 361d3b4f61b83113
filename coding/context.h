// The context of a residual: a weighted sum of magnitudes that the decoder already has. The sum is in fixed point;
// kernels::context_bin() says which bin, and so which distribution, it selects.
#pragma once

#include <cstdint>

namespace quern::coding {

inline constexpr unsigned kContextBits = 10;  ///< fraction bits of context weights
inline constexpr std::uint32_t kMaxContextWeight = (1u << 12) - 1;

}  // namespace quern::coding
