// Brings a checkpoint from one store to another as it is: coded bytes, manifest and place in the order are the same.
#pragma once

#include <functional>

#include "checkpoint/store/store.h"
#include "storage/write_rates.h"

namespace quern::checkpoint {

struct CopyControl {
  /// Called before so many bytes are written; false ends the copy with `cancelled`. Waits where the rate is limited.
  std::function<bool(std::size_t)> turn = [](std::size_t) { return true; };
  /// Learns how fast the other store is written, and says with how many blocks under way; null: four, and nothing learns.
  storage::WriteRates* rates = nullptr;
};

struct Copied {
  std::uint64_t checkpoints = 0;  ///< with those that are needed; 0: all was there
  std::uint64_t bytes = 0;        ///< of parts, parity and manifests
};

/// Copies a checkpoint, and before it what its tensors need of others, unless it is there whole; one that is damaged
/// there is replaced. Every record is compared with its checksum before it is written, so damage is not copied. The
/// order is that of a save: parts are written to tmp/ and synced, then the folder is renamed, then the manifest appears.
/// While somebody else copies the same one, fails with a status that is_busy() knows.
/// What `from` cannot give is `corrupt` or another code than `io_error`, which is that of the other store.
/// Fails when the other store is the same folder, or has another checkpoint in the same place of the order. Memory: the largest record, and the
/// blocks of a queue. Keeps no lock of `from`: what is collected there meanwhile makes the copy fail.
Result<Copied> copy_checkpoint(const Store& from, const Store& to, const CheckpointName& name,
                               const CopyControl& control, Report& report);

/// True when both have the same tensors and blobs with the same hashes, however they are stored.
bool same_values(const Manifest& a, const Manifest& b);

}  // namespace quern::checkpoint
