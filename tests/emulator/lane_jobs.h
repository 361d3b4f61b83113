// A chunk of the stencil codec through the code that a CTA runs, on the emulator.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "kernels/stencil/warp/level_decode.h"
#include "kernels/stencil/warp/raster_decode.h"
#include "kernels/stencil/warp/wavelet_decode.h"
#include "tests/emulator/emulated_block.h"

namespace quern::testing {

/// Decodes a job to `out`, whose first element is the box's, with working memory of exactly its size and full of
/// noise; whether the lanes ended where they should. Accesses of that memory are watched if asked for.
inline bool decode_job_on_lanes(std::span<const std::uint8_t> job, void* out, const std::uint8_t* special,
                                std::uint32_t warps, bool watch) {
  kernels::JobHead head;
  std::memcpy(&head, job.data(), sizeof head);
  EmulatorState& state = EmulatorState::instance();
  const auto code = job_memory(head.bytes);
  std::memcpy(code.get(), job.data(), head.bytes);
  const auto work = job_memory(head.work_bytes);
  fill_with_noise(work.get(), head.work_bytes);
  if (watch) state.watch(work.get(), head.work_bytes);
  const EmulatedBlock block{warps};
  const kernels::JobTask task{code.get(), work.get(), out, special};
  if (head.kind == kernels::JobKind::levels) {
    const auto memory = std::make_unique<kernels::LevelMemory>();
    return kernels::decode_level_chunk<LaneEmulator>(block, task, *memory);
  }
  if (head.kind == kernels::JobKind::raster) {
    const auto shared = std::make_unique<kernels::RasterDecodeShared>();
    std::memset(static_cast<void*>(shared.get()), 0xA5, sizeof *shared);
    return kernels::decode_raster_chunk<LaneEmulator>(block, task, *shared);
  }
  const auto tables = std::make_unique<kernels::LevelTables>();
  return kernels::decode_wavelet_chunk<LaneEmulator>(block, task, *tables);
}

}  // namespace quern::testing
