// From streams to the launches of the lorenzo kernels.
#include "codecs/lorenzo/lorenzo_device.h"

#include <cstring>

#include "kernels/core/tile_code.h"
#include "kernels/cuda/lorenzo_cuda.h"

namespace quern::codec::lorenzo {
namespace {

using kernels::ChunkRules;
using kernels::LorenzoChunks;

static_assert(sizeof(ChunkRules) <= cuda::kCodecStateBytes);

constexpr std::uint32_t kAllShapes = 7;

class LorenzoChunkKernels final : public cuda::ChunkKernels {
 public:
  bool serves(std::span<const std::uint8_t> state) const override {
    return state.size() == sizeof(ChunkRules) && kernels::lorenzo_cuda_serves(rules_of(state));
  }
  cudaError_t encode(const cuda::ChunkPlaces& places, std::uint8_t* slots, std::uint64_t slot_bytes,
                     std::uint32_t* sizes, cudaStream_t queue) const override {
    return kernels::lorenzo_encode_async(chunks_of(places), {slots, slot_bytes}, {}, sizes, queue);
  }
  cudaError_t decode(const cuda::ChunkPlaces& places, const kernels::StoredChunk* stored, std::uint32_t* damaged,
                     cudaStream_t queue) const override {
    return kernels::lorenzo_decode_async(chunks_of(places), stored, damaged, queue);
  }

 private:
  static ChunkRules rules_of(std::span<const std::uint8_t> state) {
    ChunkRules rules;
    std::memcpy(&rules, state.data(), sizeof rules);
    return rules;
  }

  static LorenzoChunks chunks_of(const cuda::ChunkPlaces& places) {
    LorenzoChunks chunks;
    chunks.element = static_cast<kernels::Element>(places.dtype);
    chunks.shapes = places.state.empty() ? kAllShapes : 1u << static_cast<unsigned>(rules_of(places.state).tile);
    chunks.tiles = kernels::max_chunk_tiles(dtype_bytes(places.dtype));
    chunks.items = places.count;
    chunks.chunks = places.chunks;
    chunks.rules = reinterpret_cast<const std::uint8_t*>(places.streams) + offsetof(cuda::DeviceStream, codec_state);
    chunks.rules_stride = sizeof(cuda::DeviceStream);
    chunks.at = places.at;
    return chunks;
  }
};

}  // namespace

const cuda::ChunkKernels& lorenzo_chunk_kernels() {
  static const LorenzoChunkKernels kernels;
  return kernels;
}

}  // namespace quern::codec::lorenzo
