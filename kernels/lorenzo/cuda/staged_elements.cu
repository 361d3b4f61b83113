// The encoder of staged tiles of all other element types, for each tile shape.
#include "kernels/lorenzo/cuda/staged.cuh"
#include "kernels/lorenzo/cuda/staged_launches.cuh"

namespace quern::kernels {

cudaError_t encode_staged_elements_async(const LorenzoChunks& chunks, const LorenzoSlots& slots,
                                         const ScanRequest& scan, cudaStream_t stream) {
  return launch_staged<ElementTiles>(chunks, slots, scan, stream);
}

}  // namespace quern::kernels
