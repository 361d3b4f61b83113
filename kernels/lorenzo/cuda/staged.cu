// The encoder of staged tiles of binary32, for each tile shape.
#include "kernels/lorenzo/cuda/staged.cuh"
#include "kernels/lorenzo/cuda/staged_launches.cuh"

namespace quern::kernels {

cudaError_t encode_staged_tiles_async(const LorenzoChunks& chunks, const LorenzoSlots& slots, const ScanRequest& scan,
                                      cudaStream_t stream) {
  return launch_staged<Binary32Tiles>(chunks, slots, scan, stream);
}

}  // namespace quern::kernels
