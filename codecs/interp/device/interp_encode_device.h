// Encoding of the interp codec on CUDA.
#pragma once

#include <cstdint>
#include <span>

#include "libcompress/device/encode_kernels.h"

namespace quern::codec::interp {

/// Those for chunks of an encoder with that state; null where there are none.
const cuda::JobEncodeKernels* interp_encode_kernels(std::span<const std::uint8_t> state);

}  // namespace quern::codec::interp
