// What a device's side is told of an array's chunks, in the codec's own form (device_state of ChunkDecoder and of
// ChunkEncoder).
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include <quern/dtype.h>

#include "codecs/interp/chunk.h"

namespace quern::codec::interp {

struct DeviceState {
  DType dtype = DType::f32;
  kernels::InterpTile tile;
  Predictors predictors{};

  DeviceState() = default;
  explicit DeviceState(const ChunkSpec& spec) : dtype(spec.dtype), tile(spec.tile), predictors(spec.predictors) {}
  std::span<const std::uint8_t> bytes() const { return {reinterpret_cast<const std::uint8_t*>(this), sizeof *this}; }
};

inline DeviceState device_state_of(std::span<const std::uint8_t> bytes) {
  DeviceState state;
  if (bytes.size() == sizeof state) std::memcpy(static_cast<void*>(&state), bytes.data(), sizeof state);
  return state;
}

/// An encoder's state is what it encodes chunks by.
inline std::span<const std::uint8_t> encoder_state(const ChunkSpec& spec) {
  static_assert(std::is_trivially_copyable_v<ChunkSpec>);
  return {reinterpret_cast<const std::uint8_t*>(&spec), sizeof spec};
}
inline ChunkSpec spec_of_encoder_state(std::span<const std::uint8_t> bytes) {
  ChunkSpec spec;
  if (bytes.size() == sizeof spec) std::memcpy(static_cast<void*>(&spec), bytes.data(), sizeof spec);
  return spec;
}

}  // namespace quern::codec::interp
