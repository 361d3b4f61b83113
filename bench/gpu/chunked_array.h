// An array cut into chunks as the codec lorenzo cuts it, with rules for its bound: what the chunk kernels are told.
#pragma once

#include <vector>

#include <quern/codec.h>

#include "bench/gpu/session.h"
#include "kernels/lorenzo/cuda/entry_points.h"
#include "kernels/mask/cuda/entry_points.h"

namespace quern::bench {

/// How the codec cuts an array.
ChunkGrid chunk_grid_of(const BenchArray& array);

class ChunkedArray {
 public:
  explicit ChunkedArray(const BenchArray& array);

  std::uint32_t count() const { return count_; }
  const ChunkGrid& grid() const { return grid_; }
  /// Of a chunk's values, rounded up to what a slot needs.
  std::uint64_t slot_bytes() const;
  const kernels::ChunkRules& rules() const { return rules_; }
  /// The sample that the codec's plan rests on, as places that are single tiles, and its elements.
  kernels::LorenzoChunks sample() const;
  std::uint64_t sample_elems() const { return sample_elems_; }

  /// Chooses the predictors by the estimates of the sample's tiles.
  void choose_predictors(Stream& stream);
  /// The chunks, in the array itself or in another of the same extents.
  kernels::LorenzoChunks chunks() const { return chunks_at(boxes_); }
  kernels::LorenzoChunks chunks_at(const DeviceArray<kernels::CudaChunk>& boxes) const;
  std::vector<kernels::CudaChunk> boxes_in(void* values) const;

 private:
  std::vector<kernels::CudaChunk> sample_tiles() const;

  const BenchArray& array_;
  ChunkGrid grid_;
  kernels::ChunkRules rules_;
  std::uint32_t count_ = 0;
  std::uint64_t sample_elems_ = 0;
  DeviceArray<kernels::ChunkRules> device_rules_;
  DeviceArray<kernels::CudaChunk> boxes_;
  DeviceArray<kernels::CudaChunk> tiles_;
};

}  // namespace quern::bench
