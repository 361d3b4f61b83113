// What a device's side is told of an array's chunks, in the codec's own form (device_state of ChunkDecoder).
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

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

}  // namespace quern::codec::interp
