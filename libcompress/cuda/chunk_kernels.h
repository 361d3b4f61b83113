// What a codec offers on CUDA: the twin of ChunkEncoder::encode and ChunkDecoder::decode for many chunks at once.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include <quern/dtype.h>

#include "kernels/cuda/cuda_chunk.h"
#include "libcompress/cuda/device_stream.h"

namespace quern::cuda {

/// Chunks of several streams of one element type. Stream i has DeviceStream::codec_state and the places
/// [i * chunks, (i + 1) * chunks).
struct ChunkPlaces {
  DType dtype = DType::f32;
  const DeviceStream* streams = nullptr;
  std::uint32_t count = 0;
  std::uint32_t chunks = 0;
  const kernels::CudaChunk* at = nullptr;
  /// The codec state if it is known on the host, where it saves launches: of all streams the same.
  std::span<const std::uint8_t> state;
};

/// Stateless; queues work and neither allocates nor waits.
class ChunkKernels {
 public:
  virtual ~ChunkKernels() = default;
  /// Whether they do what a codec object with that device_state() does.
  virtual bool serves(std::span<const std::uint8_t> state) const = 0;
  /// Chunk q to slots + q * slot_bytes, its bytes to sizes[q]; nothing is written of a chunk that takes as many bytes
  /// as its values.
  virtual cudaError_t encode(const ChunkPlaces& places, std::uint8_t* slots, std::uint64_t slot_bytes,
                             std::uint32_t* sizes, cudaStream_t queue) const = 0;
  /// What is stored of chunk q, which may be any bytes, to its box; damaged[q] becomes 0 or 1.
  virtual cudaError_t decode(const ChunkPlaces& places, const kernels::StoredChunk* stored, std::uint32_t* damaged,
                             cudaStream_t queue) const = 0;
};

/// Those of a codec, or null.
const ChunkKernels* builtin_chunk_kernels(std::uint16_t codec_id);

}  // namespace quern::cuda
