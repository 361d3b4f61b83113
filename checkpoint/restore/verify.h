// Is every byte of a checkpoint what it was when it was saved, and bringing it back to that where it can be.
#pragma once

#include <quern/execution.h>

#include "checkpoint/restore/restore.h"
#include "checkpoint/store/store.h"

namespace quern::checkpoint {

struct Finding {
  CheckpointName name;
  bool good = true;
  bool repaired = false;    ///< repair alone: it was damaged and is whole again
  Vector<String> problems;  ///< one sentence each
};

/// Fast: manifest, sizes, headers and indexes of parts, references. Full: also every record, the hash of every tensor
/// and blob, and parity. Fails only when the store cannot be read at all.
Finding verify_checkpoint(const Store& store, const CheckpointName& name, bool full, TaskRunner& runner);

/// Mends what copies, checksums and parity allow: a manifest from the copy beside the parity, indexes of parts from
/// their records, parts and parity files from each other. Everything else stays as it is. Bytes are put in place only
/// when they are those that were saved.
Finding repair_checkpoint(const Store& store, const CheckpointName& name, TaskRunner& runner);

/// Checkpoints that have a manifest, and those that have only a copy of one beside their parity.
Result<Vector<CheckpointName>> names_to_repair(const Store& store, Report& report);

}  // namespace quern::checkpoint
