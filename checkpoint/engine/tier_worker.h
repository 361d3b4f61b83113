// A tier as the engine's threads see it: one thread copies checkpoints of the store to it, so that a tier that hangs
// holds up nobody else.
#pragma once

#include <thread>

#include "checkpoint/engine/engine.h"
#include "checkpoint/tiers/tiers.h"
#include "storage/token_bucket.h"
#include "storage/write_rates.h"

namespace quern::checkpoint {

struct TierWorker {
  TierWorker(const TierOptions& given, FileSystem& files)
      : options(given), store(given.files != nullptr ? *given.files : files, given.path), bucket(given.write_rate) {}

  const TierOptions options;
  const Store store;
  storage::TokenBucket bucket;
  storage::WriteRates rates;    ///< of the tier's thread
  bool prepared = false;        ///< likewise: its folders are there, and it was measured
  Vector<CheckpointName> busy;  ///< likewise: other engines were copying them
  std::thread thread;

  // Guarded by the core's mutex.
  struct Waiting {
    std::uint64_t step;
    String id;
  };
  std::deque<Waiting> waiting;   ///< saves whose level depends on it
  Vector<CheckpointName> whole;  ///< of the store, what the tier was found to have whole
  Vector<String> passed_over;    ///< ids
  bool wake = true;              ///< there may be something to copy: at first what an earlier process left
  bool compared = false;         ///< whether it is known if its folder is that of the store
  bool asked = false;            ///< whether the store knows the newest generation it has, or that it does not answer
  TierStats stats;
};

}  // namespace quern::checkpoint
