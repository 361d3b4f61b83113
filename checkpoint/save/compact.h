// Storing a checkpoint anew so that it needs no other.
#pragma once

#include "checkpoint/save/save.h"

namespace quern::checkpoint {

/// Saves the checkpoint of that step again without bases or values of other checkpoints, then removes the old form.
/// What comes back stays the same bit for bit: weights that ebq had predicted from a base are stored without further
/// loss. Fails when other checkpoints need it.
Result<SaveResult> compact(const Store& store, std::uint64_t step, const SaveOptions& options, TaskRunner& runner,
                           Report& report);

}  // namespace quern::checkpoint
