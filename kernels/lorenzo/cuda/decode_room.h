// The device memory that a call to lorenzo_decode_async works in: a job for each tile that a coded chunk may have, and
// of each place whether something is left for a CTA of its own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/lorenzo/cuda/entry_points.h"
#include "kernels/lorenzo/tile_job.h"

namespace quern::kernels {

struct DecodeRoom {
  TileJob* jobs = nullptr;        ///< (item * coded + place) * tiles + tile
  std::uint32_t* left = nullptr;  ///< item * chunks + place: not 0 where the chunk is plain or has tiles without a job
  std::uint32_t jobs_count = 0;

  /// Memory at `at` for chunks whose `coded` is not 0.
  static constexpr std::uint64_t job_count(const LorenzoChunks& chunks) {
    return std::uint64_t{chunks.items} * chunks.coded * chunks.tiles;
  }
  static constexpr std::uint64_t bytes(const LorenzoChunks& chunks) {
    return job_count(chunks) * sizeof(TileJob) + std::uint64_t{chunks.items} * chunks.chunks * sizeof(std::uint32_t);
  }
  static DecodeRoom in(const LorenzoChunks& chunks, void* at) {
    const std::uint64_t count = job_count(chunks);
    auto* const jobs = static_cast<TileJob*>(at);
    return {jobs, reinterpret_cast<std::uint32_t*>(jobs + count), static_cast<std::uint32_t>(count)};
  }
};

}  // namespace quern::kernels
