// The decoding kernels for elements of 8 bytes.
#include "kernels/lorenzo/cuda/decode_width.cuh"

namespace quern::kernels {

template cudaError_t launch_decode_width<std::uint64_t>(const LorenzoChunks&, const StoredChunk*, void*, std::uint32_t*,
                                                        cudaStream_t);

}  // namespace quern::kernels
