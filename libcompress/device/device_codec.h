// What a codec offers on a device, and the codecs of this build that offer something.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "libcompress/device/chunk_kernels.h"
#include "libcompress/device/decode_kernels.h"
#include "libcompress/device/encode_kernels.h"

namespace quern::cuda {

/// A codec's half for a device. What it does not offer is null.
struct DeviceCodec {
  std::uint16_t id = 0;
  const char* name = "";
  const ChunkKernels* chunks = nullptr;
  const ProgramKernels* programs = nullptr;
  /// Those that encode chunks of an encoder with that device_state(), or null.
  const ProgramEncodeKernels* (*find_encoder)(std::span<const std::uint8_t> state) = nullptr;

  const ProgramEncodeKernels* encoder(std::span<const std::uint8_t> state) const {
    return find_encoder != nullptr ? find_encoder(state) : nullptr;
  }
};

/// Every codec of this build that has kernels.
std::span<const DeviceCodec* const> builtin_device_codecs();

/// The half of the codec with that number; one that offers nothing where there is none.
inline DeviceCodec builtin_device_codec(std::uint16_t id) {
  for (const DeviceCodec* codec : builtin_device_codecs())
    if (codec->id == id) return *codec;
  return {};
}
inline DeviceCodec builtin_device_codec(std::string_view name) {
  for (const DeviceCodec* codec : builtin_device_codecs())
    if (codec->name == name) return *codec;
  return {};
}

}  // namespace quern::cuda
