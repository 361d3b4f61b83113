// The nodes that parts and parity can be spread over, as a JSON file describes them.
#pragma once

#include <cstdint>
#include <string_view>

#include "checkpoint/storage.h"

namespace quern::checkpoint {

inline constexpr std::size_t kMostNodes = 1024;

/// Something that fails as a whole: a disk, a server, a share.
struct Node {
  String name;                 ///< in sentences and tables; unlike those of others
  String folder;               ///< where its files lie; empty: it is only planned with
  std::uint64_t bytes = 0;     ///< its capacity
  std::uint64_t used = 0;      ///< of it, at most `bytes`
  double write_rate = 0;       ///< bytes a second, above 0
  double read_rate = 0;        ///< bytes a second, above 0
  double yearly_failures = 0;  ///< expected in a year; those of a node that always fails within days are allowed

  std::uint64_t free() const { return bytes - used; }
};

/// Reads {"nodes": [{"name": "a", "folder": "/mnt/a/run", "capacity": 4e12, "used": 0, "write": 2e8, "read": 4e8,
/// "yearly_failure_rate": 0.02}, ...]}. `folder` and `used` may be left out; nothing else may be there. The sentence of a
/// failure names the node and not the file.
Result<Vector<Node>> parse_nodes(std::string_view text, Report& report);

}  // namespace quern::checkpoint
