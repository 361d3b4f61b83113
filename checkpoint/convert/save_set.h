// A set of tensors into a session, from the first role to the last note.
#pragma once

#include "checkpoint/convert/checkpoint_files.h"
#include "checkpoint/convert/tensor_set.h"

namespace quern::checkpoint {

/// What became of a set.
struct SetCounts {
  std::uint64_t raw_bytes = 0;
  std::uint64_t stored_bytes = 0;
  std::uint64_t tensors = 0;
  std::uint64_t stored_already = 0;
  std::uint64_t lossy = 0;
};

/// Codes all tensors of the set into the session, under their numbers there. What is kept exactly against the wish of a
/// rule, and what was made lossy, become notes.
Result<SetCounts> save_set(SaveSession& session, TensorSet& set, const FileSaveOptions& options, TaskRunner& runner,
                           Report& report);

}  // namespace quern::checkpoint
