// What the targets of the checkpoint store and the seeds of their corpus agree on: a small store on a disk in memory,
// and parts as plain lists of records, which are sealed before the store reads them.
#pragma once

#include <span>

#include "checkpoint/restore/restore.h"
#include "tests/faults/simulated_disk.h"
#include "tests/fuzz/fuzz_common.h"

namespace quern::fuzz {

/// Steps 1 to 4 of a small state: whole; as differences, copies and aliases of step 1's; with a loss; with a loss,
/// predicted from step 3's. The same at every call.
struct SmallStore {
  SmallStore();
  checkpoint::Store store() { return {disk, "store"}; }

  testing::SimulatedDisk disk;
  Vector<checkpoint::CheckpointName> names;
};

/// A record in a list: kind and mode as bytes, tensor and chunk as u16, raw bytes u32, length of the body u16, body.
void append_record(const checkpoint::Record& record, std::span<const std::uint8_t> body, Vector<std::uint8_t>& list);
/// A whole part with every checksum right, of the records in a list.
Vector<std::uint8_t> sealed_part(const checkpoint::PartIdentity& identity, std::span<const std::uint8_t> list,
                                 checkpoint::PartInfo& info);

/// Restores every tensor and blob of a checkpoint; what fails is left out. Values restored are those that the manifest
/// names by hash.
void restore_all(const checkpoint::Store& store, const checkpoint::CheckpointName& name);

}  // namespace quern::fuzz
