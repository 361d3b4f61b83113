// The decoding kernels for elements of 1 byte.
#include "kernels/lorenzo/cuda/decode_width.cuh"

namespace quern::kernels {

template cudaError_t launch_decode_width<std::uint8_t>(const LorenzoChunks&, const StoredChunk*, void*, std::uint32_t*,
                                                       cudaStream_t);

}  // namespace quern::kernels
