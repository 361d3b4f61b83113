// Small training states, their saving and the comparison with what comes back: what tests of the store share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/restore/verify.h"
#include "checkpoint/save/compact.h"
#include "checkpoint/save/save.h"
#include "checkpoint/store/collect.h"

namespace quern::testing {

struct SmallTensor {
  std::string name;
  checkpoint::TensorDescription what;
  std::vector<std::uint8_t> values;
};

/// A parameter with its moments, a copy of it in bf16, equal tensors, one without elements and a scalar. States of
/// neighbouring steps differ a little; some tensors do not change.
std::vector<SmallTensor> small_state(std::uint64_t step);

/// Saves small_state(step), with a blob of the step's number.
Status save_small(const checkpoint::Store& store, const checkpoint::SaveOptions& options, checkpoint::Report& report);

/// The same with a loss: weights by ebq, first moments by updq, second ones by logq, as a preset would have it.
Status save_small_lossy(const checkpoint::Store& store, const checkpoint::SaveOptions& options,
                        checkpoint::Report& report);
/// Everything that comes back of a step, tensor after tensor.
Result<std::vector<std::uint8_t>> restore_small(const checkpoint::Store& store, std::uint64_t step,
                                                checkpoint::Report& report);

/// The checkpoint of that step holds small_state(step) and the blob, bit for bit.
Status check_small(const checkpoint::Store& store, std::uint64_t step, checkpoint::Report& report);

}  // namespace quern::testing
