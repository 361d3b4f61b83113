// Launches that the host functions put together; arguments were checked. One table for each width of element.
#pragma once

#include "kernels/lorenzo/cuda/entry_points.h"

namespace quern::kernels {

struct LorenzoLaunches {
  cudaError_t (*encode)(const LorenzoChunks& chunks, const LorenzoSlots& slots, const ScanRequest& scan,
                        std::uint32_t* sizes, cudaStream_t stream);
  cudaError_t (*decode)(const LorenzoChunks& chunks, const StoredChunk* stored, void* workspace, std::uint32_t* damaged,
                        cudaStream_t stream);
  cudaError_t (*sample)(const LorenzoChunks& chunks, std::uint32_t* costs, std::uint32_t* bytes, cudaStream_t stream);
};

/// Defined in one source file for each width of element, since they take long to compile.
template <class Bits>
cudaError_t launch_decode_width(const LorenzoChunks& chunks, const StoredChunk* stored, void* workspace,
                                std::uint32_t* damaged, cudaStream_t stream);

extern const LorenzoLaunches kLaunches8;
extern const LorenzoLaunches kLaunches16;
extern const LorenzoLaunches kLaunches32;
extern const LorenzoLaunches kLaunches64;

inline const LorenzoLaunches& lorenzo_launches(Element element) {
  switch (element_bytes(element)) {
    case 1: return kLaunches8;
    case 2: return kLaunches16;
    case 4: return kLaunches32;
    default: return kLaunches64;
  }
}

}  // namespace quern::kernels
