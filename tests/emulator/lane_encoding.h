// A chunk of the stencil codec encoded by the code that CTAs run, on the emulator.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "kernels/stencil/warp/level_encode.h"
#include "kernels/stencil/warp/rans_encode.h"
#include "kernels/stencil/warp/raster_encode.h"
#include "kernels/stencil/warp/wavelet_encode.h"
#include "tests/emulator/lane_jobs.h"

namespace quern::testing {

/// The jobs of one chunk, in the same memory, which is of exactly its size and full of noise at first.
class EncodingOnLanes {
  static auto copy_of(std::span<const std::uint8_t> job) {
    auto code = job_memory(job.size());
    std::memcpy(code.get(), job.data(), job.size());
    return code;
  }

 public:
  EncodingOnLanes(std::uint32_t work_bytes, std::uint32_t warps, bool watch)
      : work_(job_memory(work_bytes)), block_{warps} {
    fill_with_noise(work_.get(), work_bytes);
    if (watch) EmulatorState::instance().watch(work_.get(), work_bytes);
  }

  /// A chunk in raster order.
  kernels::RasterEncodeResult encode(std::span<const std::uint8_t> job, void* elements, const std::uint8_t* special) {
    return run<kernels::RasterEncodeShared>(job, elements, special,
                                            [&](const kernels::EncodeTask& task, kernels::RasterEncodeShared& shared) {
                                              kernels::encode_raster_chunk<LaneEmulator>(block_, task, shared);
                                            });
  }
  /// A step of a chunk in levels.
  kernels::RasterEncodeResult step_level(std::span<const std::uint8_t> job, void* elements,
                                         const std::uint8_t* special) {
    return run<kernels::LevelEncodeShared>(job, elements, special,
                                           [&](const kernels::EncodeTask& task, kernels::LevelEncodeShared& shared) {
                                             kernels::encode_level_chunk<LaneEmulator>(block_, task, shared);
                                           });
  }
  /// A step of a chunk under the wavelet.
  kernels::RasterEncodeResult step_wavelet(std::span<const std::uint8_t> job, void* elements,
                                           const std::uint8_t* special) {
    return run<kernels::WaveletEncodeShared>(
        job, elements, special, [&](const kernels::EncodeTask& task, kernels::WaveletEncodeShared& shared) {
          kernels::encode_wavelet_chunk<LaneEmulator>(block_, task, shared);
        });
  }
  const std::uint8_t* work() const { return work_.get(); }
  std::vector<std::uint32_t> exceptions(std::uint32_t at, std::uint32_t count) const {
    std::vector<std::uint32_t> list(count);
    if (count > 0) std::memcpy(list.data(), work_.get() + at, count * sizeof(std::uint32_t));
    return list;
  }
  /// Words of the lanes, as many as there is room for; returns how many each lane has.
  std::vector<std::uint32_t> write_lanes(std::span<const std::uint8_t> job, std::vector<std::uint16_t>& words) {
    const auto code = copy_of(job);
    kernels::RowLanesResult result;
    std::memset(static_cast<void*>(&result), 0xA5, sizeof result);
    const auto shared = std::make_unique<kernels::LaneEncodeShared>();
    std::memset(static_cast<void*>(shared.get()), 0xA5, sizeof *shared);
    kernels::write_row_lanes<LaneEmulator>(
        block_, kernels::EncodeTask{code.get(), work_.get(), words.data(), nullptr, &result}, *shared);
    return {std::begin(result.words), std::end(result.words)};
  }

 private:
  template <class Shared, class Encode>
  kernels::RasterEncodeResult run(std::span<const std::uint8_t> job, void* elements, const std::uint8_t* special,
                                  const Encode& encode) {
    const auto code = copy_of(job);
    kernels::RasterEncodeResult result;
    const auto shared = std::make_unique<Shared>();
    std::memset(static_cast<void*>(shared.get()), 0xA5, sizeof *shared);
    encode(kernels::EncodeTask{code.get(), work_.get(), elements, special, &result}, *shared);
    return result;
  }

  decltype(job_memory(0)) work_;
  EmulatedBlock block_;
};

}  // namespace quern::testing
