// Composition root of the device's side: the one place that names every codec that has kernels.
#include "codecs/interp/device/interp_device.h"
#include "codecs/lorenzo/lorenzo_device.h"
#include "codecs/stencil/device/stencil_device.h"
#include "libcompress/device/device_codec.h"

namespace quern::cuda {

std::span<const DeviceCodec* const> builtin_device_codecs() {
  static const DeviceCodec* const codecs[] = {
      &codec::interp::interp_device_codec(),
      &codec::lorenzo::lorenzo_device_codec(),
      &codec::stencil::stencil_device_codec(),
  };
  return codecs;
}

}  // namespace quern::cuda
