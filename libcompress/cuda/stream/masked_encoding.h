// Chunks of segments with special values, coded again: the steps that host arrays and device arrays share.
#pragma once

#include <cstdint>

#include <quern/compress.h>

#include "kernels/mask/cuda/entry_points.h"
#include "kernels/mask/words.h"
#include "libcompress/core/element_of.h"
#include "libcompress/cuda/stream/mask_waves.cuh"
#include "libcompress/device/chunk_kernels.h"
#include "libcompress/pipeline/mask/mask_rules.h"

namespace quern::cuda {

/// What masks are made by under a bound; a bound that is found on the device replaces the part that depends on it.
inline kernels::LaneMaskRules mask_rules(DType dtype, const CompressOptions& options, const EnforcedBound& enforced,
                                         bool by_levels) {
  kernels::LaneMaskRules rules;
  rules.element = element_of(dtype);
  rules.by_levels = by_levels;
  kernels::with_element_words(rules.element, [&](auto words) {
    using W = decltype(words);
    rules.repeated = mask::repeated_rules<W>(options.find_repeated, enforced);
    for (const std::uint64_t bits : options.fill_bits) {
      const kernels::FillWords<W> fill(bits);
      for (unsigned i = 0; i < fill.count; ++i) rules.fills[rules.fill_count++] = fill.words[i];
    }
  });
  return rules;
}

/// Warps that make masks, and their memory.
struct MaskingWarps {
  kernels::MaskWorkers workers;
  std::uint8_t* memory = nullptr;
};

/// Queues one wave, whose jobs were made: masks, copies without gaps, and their chunks into the slots where they were
/// before. Then the jobs of the next one. `variants` as in ChunkPlaces.
inline cudaError_t encode_wave_async(const StreamTables& tables, const StreamPlan* plans, const MaskList& list,
                                     const MaskWave& wave, const MaskingWarps& warps, const ChunkKernels& kernels,
                                     DType dtype, std::uint32_t variants, const EncodedSlots& slots,
                                     cudaStream_t queue) {
  EncodedSlots whole = slots;
  whole.parts = nullptr;
  ChunkPlaces chunks;
  chunks.dtype = dtype;
  chunks.streams = wave.streams;
  chunks.count = wave.slots;
  chunks.chunks = wave.chunks;
  chunks.at = wave.boxes;
  chunks.variants = variants;
  chunks.list = wave.again;
  chunks.listed = wave.counts + wave.number;
  cudaError_t error = kernels::mask_jobs_async(element_of(dtype), {wave.jobs, wave.slots, list.count, wave.first()},
                                               warps.workers, warps.memory, queue);
  if (error == cudaSuccess) error = take_masks_async(tables, plans, list, wave, queue);
  if (error == cudaSuccess) error = kernels.encode(chunks, whole, {}, queue);
  return error;
}

}  // namespace quern::cuda
