// Where and how loudly a verb runs: what all verbs have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace quern::cli {

enum class DeviceKind { automatic, cpu, cuda };
enum class ProgressMode { automatic, always, never };

struct RunArgs {
  DeviceKind device = DeviceKind::cpu;
  unsigned device_index = 0;
  std::size_t threads = 1;              ///< 0: one a hardware thread
  std::optional<std::uint64_t> memory;  ///< bytes
  ProgressMode progress = ProgressMode::automatic;
  bool quiet = false;
  bool verbose = false;
  bool json = false;
};

}  // namespace quern::cli
