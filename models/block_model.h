// Models of codec `autoencoder`: networks that say what a block of values looks like from a few numbers, its latents.
// Their stored form is in docs/format-model.md, chapter 3.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <quern/memory.h>
#include <quern/models.h>
#include <quern/status.h>

#include "kernels/network/network.h"
#include "models/model_file.h"

namespace quern::models {

enum class BlockPredictorKind : std::uint8_t {
  principal_components = 1,  ///< one dense layer each way
  autoencoder = 2,
};

struct BlockPredictor {
  BlockPredictorKind kind = BlockPredictorKind::principal_components;
  /// From a block's values less their mean to latents; no layers where the model can only decode.
  kernels::Network encoder;
  kernels::Network decoder;  ///< from latents to values less the mean

  std::size_t latents() const { return decoder.in.elems(); }
};

/// A checked model: the shapes of its networks are known, no sum of theirs overflows, and what evaluating them takes is
/// bounded by the size of blocks.
struct BlockModel {
  std::array<std::uint32_t, 3> block{1, 1, 1};  ///< extents, slowest first
  /// Values of 2^unit_bits stand for half the range of the array.
  std::uint8_t unit_bits = 0;
  std::string record;  ///< JSON: what it was trained on, and how well it did
  std::vector<BlockPredictor> predictors;

  std::size_t block_elems() const { return std::size_t{block[0]} * block[1] * block[2]; }
  bool can_encode() const;
};

inline constexpr std::size_t kMostPredictors = 4;
inline constexpr std::size_t kMostLatents = 256;
inline constexpr std::size_t kMostBlockElems = 4096;

/// The bytes of a file. May throw std::bad_alloc.
Vector<std::uint8_t> write_block_model(const BlockModel& model);
/// Reads them, whatever they are: fails with bad_magic, unsupported_version (newer, or of another engine), unsupported
/// (a model of another kind), checksum_mismatch, truncated or corrupt. May throw std::bad_alloc. O(bytes).
Result<BlockModel> read_block_model(std::span<const std::uint8_t> bytes);

/// The model without encoders and record: what a decoder needs, and what streams embed.
BlockModel decoding_half(const BlockModel& model);
bool is_decoding_half(const BlockModel& model);
/// The first 16 bytes of the SHA-256 of the decoding half's file: the same for a model with and without its encoders.
ModelId model_id(const BlockModel& model);

}  // namespace quern::models
