// Algorithms of a library, computed in one piece when their stream gets there.
#pragma once

#include <cstddef>
#include <functional>

#include "cuda_runtime_api.h"

namespace simt {

/// Queues the body, which reaches the device's memory; the temporary storage is filled with noise before.
cudaError_t queue_algorithm(cudaStream_t stream, void* temporary, std::size_t temporary_bytes,
                            std::function<void()> body);

}  // namespace simt
