// Encoder: one block under every predictor, and what each costs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codecs/autoencoder/block_numbers.h"
#include "codecs/autoencoder/chunk.h"
#include "codecs/autoencoder/plane.h"
#include "codecs/autoencoder/work_values.h"

namespace quern::codec::autoencoder {

/// What is known of a block before it is predicted. Arrays have a value for each element of the part in the chunk.
struct BlockTargets {
  Block block;
  std::vector<std::int64_t> values;   ///< in units
  std::vector<std::uint8_t> special;  ///< empty: none
  std::int64_t mean = 0;              ///< of the others, in units of step / 4
  std::size_t count = 0;              ///< of the others
};

/// One way to code a block.
struct BlockChoice {
  unsigned method = kLorenzo;
  Slopes slopes{};
  std::vector<std::int32_t> latents;
  std::vector<std::int64_t> predicted;  ///< not of Lorenzo
  std::vector<std::int32_t> codes;      ///< of all elements; 0 of special ones
  std::uint64_t sum = 0;                ///< of their magnitudes
  std::uint64_t cost = UINT64_MAX;      ///< estimated bits, in units of 2^-12; the most: it cannot code the block
};

class BlockCoder {
 public:
  explicit BlockCoder(const EncodeSpec& spec) : spec_(spec) {}

  /// Finds the steps of latents for which sampled blocks cost least; without it no network is used.
  void choose_steps(std::span<const BlockTargets> sample, double unit, NetworkScale& scale);

  /// The cheapest choice; its values are in `values` afterwards. Belongs to the coder until the next call.
  const BlockChoice& choose(const BlockTargets& targets, const NetworkScale& scale, const BlockHistory& history,
                            WorkValues& values);

 private:
  void try_plane(const BlockTargets& targets, bool slopes, const BlockHistory& history);
  void try_lorenzo(const BlockTargets& targets, WorkValues& values);
  void try_networks(const BlockTargets& targets, const NetworkScale& scale, const BlockHistory& history);
  void encode_latents(const BlockTargets& targets, std::size_t network, double inverse);
  void predict_latents(const BlockTargets& targets, std::size_t network, const NetworkScale& scale,
                       BlockChoice& choice);
  /// Codes of predictions, their cost and the block's mean's.
  static void finish(const BlockTargets& targets, const BlockHistory& history, BlockChoice& choice);
  void keep_if_best();

  const EncodeSpec& spec_;
  BlockChoice trial_, best_;
  NetworkMemory memory_;
  std::vector<std::int16_t> proposed_;  ///< latents before they are quantized
  std::vector<std::int64_t> whole_;     ///< predictions of a whole block
};

/// Estimated bits of a number of a block, in units of 2^-12.
std::uint64_t number_cost(std::int64_t number);

}  // namespace quern::codec::autoencoder
