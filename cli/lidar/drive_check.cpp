// Frames decoded one after another, each on all threads.
#include "cli/lidar/drive_check.h"

#include <fmt/format.h>

#include "cli/files/memory.h"
#include "libcompress/core/task_runner.h"
#include "lidar/drive/drive.h"

namespace quern::cli {

std::string undecodable_frame(std::span<const std::uint8_t> stream, const RunArgs& run) {
  MemorySource source(stream);
  Execution execution;
  execution.threads = run.threads;
  execution.memory_limit = memory_limit(run);
  const auto drive = lidar::Drive::open(source, execution);
  if (!drive.ok()) return drive.status().text();
  RunnerHandle runner(execution);
  for (std::uint64_t i = 0; i < (*drive)->frames(); ++i) {
    const auto cloud = (*drive)->read(i, lidar::points_within(execution.memory_limit), runner.get());
    // What a history predicted is told by quern lidar verify --history.
    if (!cloud.ok() && !(*drive)->misses_history()) return fmt::format("frame {}: {}", i, cloud.status().text());
  }
  return {};
}

}  // namespace quern::cli
