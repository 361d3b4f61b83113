// A chunk of the stencil codec through the code that a CTA runs, on the emulator.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "kernels/stencil/warp/level_decode.h"
#include "kernels/stencil/warp/raster_decode.h"
#include "kernels/stencil/warp/wavelet_decode.h"
#include "tests/emulator/lane_emulator.h"

namespace quern::testing {

/// Warps in a random order, as they finish.
struct EmulatedBlock {
  std::uint32_t warps = 4;

  template <class F>
  void all(F&& f) const {
    EmulatorState& state = EmulatorState::instance();
    std::vector<std::uint32_t> order(warps);
    for (std::uint32_t w = 0; w < warps; ++w) order[w] = w;
    for (std::size_t w = warps; w > 1; --w) std::swap(order[w - 1], order[state.random() % w]);
    for (const std::uint32_t w : order) f(w, warps);
    state.sync();
  }
  template <class F>
  void first(F&& f) const {
    f();
    EmulatorState::instance().sync();
  }
  template <class F, class G>
  void first_and_others(F&& f, G&& g) const {
    EmulatorState& state = EmulatorState::instance();
    const std::uint32_t others = warps > 1 ? warps - 1 : 1;
    std::vector<std::uint32_t> order(others + 1);
    for (std::uint32_t w = 0; w <= others; ++w) order[w] = w;
    for (std::size_t w = others + 1; w > 1; --w) std::swap(order[w - 1], order[state.random() % w]);
    for (const std::uint32_t w : order) {
      if (w == others)
        f();
      else
        g(w, others);
    }
    state.sync();
  }
};

/// Memory for jobs and for what they work in, of exactly so many bytes.
inline auto job_memory(std::size_t bytes) {
  const auto free = [](std::uint8_t* at) { ::operator delete (at, std::align_val_t{kernels::kJobAlignment}); };
  return std::unique_ptr<std::uint8_t, decltype(free)>(
      static_cast<std::uint8_t*>(::operator new (bytes, std::align_val_t{kernels::kJobAlignment})), free);
}
inline void fill_with_noise(std::uint8_t* at, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 4) {
    const auto noise = static_cast<std::uint32_t>(EmulatorState::instance().random());
    std::memcpy(at + i, &noise, sizeof noise);
  }
}

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
