// quern checkpoint: what the user asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/args/run_args.h"

namespace quern::cli {

enum class CheckpointWork {
  save,
  load,
  ls,
  info,
  diff,
  verify,
  repair,
  compact,
  gc,
  convert,
  export_model,
  bench,
  tiers,
  place,
  keeper
};

struct CheckpointArgs {
  CheckpointWork work = CheckpointWork::ls;
  std::vector<std::string> inputs;
  std::string store;
  std::optional<std::uint64_t> step;
  std::vector<std::uint64_t> steps;  ///< diff: the two; gc: those to remove
  std::optional<std::uint64_t> base;
  bool base_newest = false;  ///< the newest checkpoint without a base, where there is one that is not too old
  bool replace = false;
  std::vector<std::pair<std::string, std::string>> tags;  ///< name, text
  std::string preset = "exact";
  std::string policy;  ///< file; empty: none
  std::string replay;  ///< file; empty: none
  std::uint32_t parity_data = 0;
  std::uint32_t parity_files = 0;
  std::vector<std::pair<std::string, std::string>> roles;  ///< glob, role
  int zstd_level = 0;
  std::string group;
  std::uint32_t writer = 0;
  std::uint32_t writers = 1;
  bool dry_run = false;
  bool full = false;
  std::vector<std::string> tensors;
  std::string slice;  ///< of each tensor; empty: all
  std::optional<std::size_t> keep;
  std::uint64_t keep_every = 0;  ///< 0: none
  std::size_t keep_best = 0;     ///< 0: none
  std::string metric;
  bool largest_is_best = false;
  std::optional<std::uint64_t> shard_bytes;
  std::string hf;                  ///< export: folder
  std::vector<std::string> strip;  ///< export: prefixes
  std::string dtype;               ///< export: empty: as they are
  // bench: a trainer that only computes.
  std::uint64_t state_bytes = 64'000'000;
  std::uint64_t tensor_count = 48;
  std::optional<double> forward, backward;  ///< seconds
  std::uint64_t bench_steps = 12;
  std::uint64_t every = 1;
  std::uint64_t ring_bytes = 0;  ///< 0: as large as the state, and an eighth more
  double throttle = 0;           ///< bytes a second; 0: none
  std::string html;
  std::string output;
  std::vector<std::string> tiers;  ///< folders behind the store, nearest first
  std::string tiers_work;          ///< list, drain, promote, evict
  bool bench_tier = false;         ///< the throttle is that of a tier behind the store
  // keeper: a store in memory.
  std::uint64_t memory_bytes = 0;
  std::string keeper_folder;  ///< empty: one of the store's in /dev/shm
  bool once = false;
  // place: nodes for parts and parity.
  std::uint64_t item_bytes = 0;
  double target = 0.99999;
  double days = 365.25;
  std::string scheduler = "min-storage";
  bool adopt = false;           ///< the store becomes the owner of its nodes
  std::uint64_t simulated = 0;  ///< items of the made-up workload; 0: none
  bool target_given = false;    ///< then all of them have it
  std::uint64_t seed = 1;
  bool force = false;
  RunArgs run;
  // keeper: a group of keepers with parity of each other's memories.
  std::vector<std::string> peers;  ///< sockets of all members, in their order; empty: no group
  std::uint64_t member = 0;        ///< which of them this one is
  std::uint64_t peer_parity = 1;
};

}  // namespace quern::cli
