// What a device's side is told of an array's chunks, in the codec's own form (device_state of ChunkDecoder and of
// ChunkEncoder).
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include <quern/dtype.h>

#include "codecs/stencil/chunk.h"

namespace quern::codec::stencil {

struct DeviceState {
  DType dtype = DType::f32;
  std::array<std::uint64_t, 3> most{1, 1, 1};  ///< extents of a full chunk
  LevelsForm form;

  explicit DeviceState(const ChunkSpec& spec) : dtype(spec.dtype), most(spec.most), form(spec.form) {}
  std::span<const std::uint8_t> bytes() const { return {reinterpret_cast<const std::uint8_t*>(this), sizeof *this}; }
};

/// An encoder's state is what it encodes chunks by.
inline std::span<const std::uint8_t> encoder_state(const EncodeSpec& spec) {
  static_assert(std::is_trivially_copyable_v<EncodeSpec>);
  return {reinterpret_cast<const std::uint8_t*>(&spec), sizeof spec};
}
inline EncodeSpec spec_of_encoder_state(std::span<const std::uint8_t> bytes) {
  EncodeSpec spec;
  if (bytes.size() == sizeof spec) std::memcpy(static_cast<void*>(&spec), bytes.data(), sizeof spec);
  return spec;
}

/// What chunks are decoded by, from the bytes of a state.
inline ChunkSpec spec_of_state(std::span<const std::uint8_t> bytes) {
  DeviceState state{ChunkSpec{}};
  if (bytes.size() == sizeof state) std::memcpy(static_cast<void*>(&state), bytes.data(), sizeof state);
  ChunkSpec spec;
  spec.dtype = state.dtype;
  spec.most = state.most;
  spec.form = state.form;
  return spec;
}

}  // namespace quern::codec::stencil
