// Launches of the encoder of staged tiles; arguments were checked.
#pragma once

#include "kernels/lorenzo/cuda/entry_points.h"

namespace quern::kernels {

/// Queue the kernels that encode tiles of binary32 or of another element type, for each tile shape that occurs. Set
/// `parts.listed` to 0.
cudaError_t encode_staged_tiles_async(const LorenzoChunks& chunks, const LorenzoSlots& slots, const ScanRequest& scan,
                                      cudaStream_t stream);
cudaError_t encode_staged_elements_async(const LorenzoChunks& chunks, const LorenzoSlots& slots,
                                         const ScanRequest& scan, cudaStream_t stream);
/// Queues the kernel that then finds sizes, scans, and the chunks that are encoded another way, which it scans itself.
cudaError_t size_chunks_async(const LorenzoChunks& chunks, const LorenzoSlots& slots, const ScanRequest& scan,
                              std::uint32_t* sizes, cudaStream_t stream);

}  // namespace quern::kernels
