// Training of one codec's network by LibTorch.
#pragma once

#include <cstdint>
#include <vector>

#include "surrogate/train/runs_table.h"

namespace quern::surrogate {

struct TrainingOptions {
  int epochs = 500;
  int deep_epochs = 0;  ///< of networks with deep features; 0: as many as of the others
  std::uint64_t seed = 1;
  std::size_t experts = 1;
  int hidden = 64;         ///< outputs of each hidden layer
  int patch_epochs = 300;  ///< of the networks that look at patches
  /// For ablations: inputs of coarse levels do not count; hidden layers give nothing, the direct path alone is left.
  bool without_levels = false, without_hidden = false;
};

/// Twice: first on rows of Part::train alone, from which the widening of the intervals follows, so that four in five of
/// the rows of Part::intervals lie within; then on both, under the same widening. Rows are of one codec.
CodecModel train_network(const std::vector<const Row*>& rows, const TrainingOptions& options);

}  // namespace quern::surrogate
