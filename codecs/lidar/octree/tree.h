// Blocks to bytes and back.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/lidar/octree/block.h"

namespace quern::codec::lidar {

/// The octree of a block, complete and valid, with its part of a prediction, if there is one. The bytes depend on the
/// arguments alone. Takes about 150 bytes for each cube and each expected or known one, and up to 20 MiB for the models.
/// May throw std::bad_alloc.
Vector<std::uint8_t> encode_block(const Block& block, const Surroundings& surroundings,
                                  const BlockPrediction& prediction = {});

/// Decodes into a block whose origin and depth are set. `cubes`: exactly as many must come, and with `counted` points
/// that add up to `points`. Any bytes are safe; fails with `corrupt`. Takes memory as encode_block. May throw
/// std::bad_alloc.
Status decode_block(std::span<const std::uint8_t> bytes, const Surroundings& surroundings, std::uint64_t cubes,
                    bool counted, std::uint64_t points, Block& block, const BlockPrediction& prediction = {});

}  // namespace quern::codec::lidar
