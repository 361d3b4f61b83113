// What a mode brings: three functions over one chunk or one tensor. Callers have checked that the inputs fit the
// description and that the chunk exists.
#pragma once

#include "codecs/tensor/tensor.h"

namespace quern::codec::tensor {

/// Inputs cut to one chunk; what was not given is empty.
struct ChunkInputs {
  std::uint64_t index = 0;
  std::uint64_t first_elem = 0;
  std::size_t elems = 0;
  std::span<const std::uint8_t> values;
  std::span<const std::uint8_t> base;
  std::span<const std::uint8_t> companion;
  ElementType companion_type = ElementType::f32;
  std::span<const std::uint8_t> direction;
  std::span<const std::uint8_t> base_direction;
  /// Encoders of modes that say so in `gives_decoded`: where what decoding gives is to be put; empty: nowhere.
  std::span<std::uint8_t> decoded;
};

struct ModeCoder {
  Mode mode;
  /// Fills plan.side, or says why these values cannot be coded so (`unsupported`).
  Status (*plan)(const TensorInputs& inputs, TaskRunner& runner, TensorPlan& plan);
  /// `whole` holds all of the inputs, for modes that look beyond the chunk.
  Result<std::size_t> (*encode)(const TensorPlan& plan, const TensorInputs& whole, const ChunkInputs& chunk,
                                std::span<std::uint8_t> out, AlignedBuffer& scratch);
  Result<TensorNeeds> (*needs)(const TensorDescription& description, std::span<const std::uint8_t> side);
  /// Inputs that `needs` asks for are there.
  Status (*decode)(const TensorDescription& description, std::span<const std::uint8_t> side, const TensorInputs& whole,
                   const ChunkInputs& chunk, std::span<const std::uint8_t> bytes, std::span<std::uint8_t> out,
                   AlignedBuffer& scratch);
  bool gives_decoded = false;
};

extern const ModeCoder kRawCoder;
extern const ModeCoder kConstantCoder;
extern const ModeCoder kPlanesCoder;
extern const ModeCoder kDeltaCoder;
extern const ModeCoder kDerivedCoder;
extern const ModeCoder kEbqCoder;
extern const ModeCoder kUpdqCoder;
extern const ModeCoder kLogqCoder;
extern const ModeCoder kBlk8Coder;
extern const ModeCoder kBlk4Coder;

/// The coder of a mode, null when there is none.
const ModeCoder* mode_coder(Mode mode);

}  // namespace quern::codec::tensor
