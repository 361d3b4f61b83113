// Adam over moments at rest on the CPU, one set of entry points for each instruction set; all give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/cpu/isa.h"
#include "kernels/tensor/at_rest_block.h"

namespace quern::kernels {

/// A tile: up to kAtRestTileBlocks blocks, of which the last may have values that are not there (zeros).
struct AtRestTile {
  std::size_t values = 0;
  std::uint64_t first_block = 0;  ///< its number in the whole parameter space
  std::uint32_t* headers = nullptr;
  std::uint8_t* slots = nullptr;
  const std::uint8_t* beside = nullptr;  ///< of blocks that are not narrow, one after the other
};

struct AtRestKernels {
  /// Decodes both moments, updates them and the weights, and encodes the moments in their place. What lies beside the
  /// slots goes to `beside`, with room for kAtRestRawBytes a block; returns its bytes. `copy`: nullptr, or the weights
  /// in bfloat16. Gradients have one element a value.
  std::size_t (*step_f32)(const AtRestStep& step, const AtRestTile& tile, const float* gradient, float* weight,
                          std::uint16_t* copy, std::uint8_t* beside);
  std::size_t (*step_bf16)(const AtRestStep& step, const AtRestTile& tile, const std::uint16_t* gradient, float* weight,
                           std::uint16_t* copy, std::uint8_t* beside);
  /// Encodes moments; as above.
  std::size_t (*encode)(const AtRestStep& step, const AtRestTile& tile, const float* first, const float* second,
                        std::uint8_t* beside);
  void (*decode)(const AtRestForm& form, const AtRestTile& tile, float* first, float* second);
  /// The sum of squares of a gradient, each multiplied by `factor` in binary64, in an order that depends on `count`
  /// alone; not finite when an element is not.
  double (*squares_f32)(const float* gradient, std::size_t count, double factor);
  double (*squares_bf16)(const std::uint16_t* gradient, std::size_t count, double factor);
};

/// The kernels of an available level.
const AtRestKernels& at_rest_kernels(IsaLevel level);

}  // namespace quern::kernels
