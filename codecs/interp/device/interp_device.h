// The interp codec on CUDA.
#pragma once

#include "libcompress/device/device_codec.h"

namespace quern::codec::interp {

const cuda::DeviceCodec& interp_device_codec();

}  // namespace quern::codec::interp
