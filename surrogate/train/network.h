// Training of one codec's network by LibTorch.
#pragma once

#include <cstdint>
#include <vector>

#include "surrogate/train/runs_table.h"

namespace quern::surrogate {

struct TrainingOptions {
  int epochs = 500;
  std::uint64_t seed = 1;
  std::size_t experts = 1;
  /// For ablations: inputs of coarse levels do not count; hidden layers give nothing, the direct path alone is left.
  bool without_levels = false, without_hidden = false;
};

/// Trains on rows of Part::train and widens the intervals on those of Part::intervals, so that four in five hold the
/// truth there. Rows are of one codec.
CodecModel train_network(const std::vector<const Row*>& rows, const TrainingOptions& options);

}  // namespace quern::surrogate
