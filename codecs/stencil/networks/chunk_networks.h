// What chunks know of the model of super-resolution that a stream names.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codecs/stencil/levels/axes.h"

namespace quern::codec::stencil {

class LevelNetworks;

/// Belongs to the encoder or decoder of the array. Immutable.
struct ChunkNetworks {
  /// Null: the model was not found. Chunks, and levels, without networks decode all the same.
  const LevelNetworks* networks = nullptr;
};

/// Whether a class of a chunk may have a network, at a level; `stream` null: the stream names no model. Any class may
/// where the model was not found.
bool may_predict(const ChunkNetworks* stream, const LevelAxes& axes, unsigned level, std::size_t parity_class);

}  // namespace quern::codec::stencil
