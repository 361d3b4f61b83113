// The stencil codec on CUDA.
#pragma once

#include "libcompress/device/device_codec.h"

namespace quern::codec::stencil {

const cuda::DeviceCodec& stencil_device_codec();

}  // namespace quern::codec::stencil
