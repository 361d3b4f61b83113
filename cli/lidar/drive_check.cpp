// Frames decoded one after another, each on all threads.
#include "cli/lidar/drive_check.h"

#include <fmt/format.h>

#include "cli/files/memory.h"
#include "cli/lidar/drive_kinds.h"
#include "libcompress/core/task_runner.h"
#include "lidar/drive/drive.h"

namespace quern::cli {
namespace {

Execution execution_of(const RunArgs& run) {
  Execution execution;
  execution.threads = run.threads;
  execution.memory_limit = memory_limit(run);
  return execution;
}

}  // namespace

std::string sources_of_drive(std::span<const std::uint8_t> stream, const RunArgs& run) {
  MemorySource source(stream);
  const auto drive = lidar::Drive::open(source, execution_of(run));
  DriveKinds kinds;
  for (std::uint64_t i = 0; drive.ok() && i < (*drive)->frames(); ++i) {
    const auto frame = (*drive)->describe(i);
    if (!frame.ok()) break;
    kinds.add(frame->description);
  }
  return kinds.sources_text();
}

DecodedFrames decode_frames(std::span<const std::uint8_t> stream, const RunArgs& run) {
  MemorySource source(stream);
  const Execution execution = execution_of(run);
  const auto drive = lidar::Drive::open(source, execution);
  DecodedFrames out;
  if (!drive.ok()) {
    out.problem = drive.status().text();
    return out;
  }
  RunnerHandle runner(execution);
  for (std::uint64_t i = 0; i < (*drive)->frames(); ++i) {
    const auto cloud = (*drive)->read(i, lidar::points_within(execution.memory_limit), runner.get());
    if (cloud.ok()) continue;
    if (!(*drive)->misses_history()) {
      out.problem = fmt::format("frame {}: {}", i, cloud.status().text());
      return out;
    }
    ++out.without_history;
  }
  return out;
}

}  // namespace quern::cli
