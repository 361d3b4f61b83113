// The lorenzo codec on CUDA.
#pragma once

#include "libcompress/device/device_codec.h"

namespace quern::codec::lorenzo {

/// The codec state of its kernels is kernels::ChunkRules.
const cuda::DeviceCodec& lorenzo_device_codec();

}  // namespace quern::codec::lorenzo
