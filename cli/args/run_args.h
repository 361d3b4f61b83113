// Where and how loudly a verb runs: what all verbs have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace quern::cli {

enum class DeviceKind { automatic, cpu, cuda };
enum class ProgressMode { automatic, always, never };

/// Where models of learned codecs are, for verbs that encode or decode.
struct ModelArguments {
  std::string file;                 ///< of --model; empty: none
  std::vector<std::string> stores;  ///< folders
};

struct RunArgs {
  DeviceKind device = DeviceKind::cpu;
  unsigned device_index = 0;
  std::size_t threads = 1;              ///< 0: one a hardware thread
  std::optional<std::uint64_t> memory;  ///< bytes
  ProgressMode progress = ProgressMode::automatic;
  bool quiet = false;
  bool verbose = false;
  bool json = false;
  ModelArguments models;
};

}  // namespace quern::cli
