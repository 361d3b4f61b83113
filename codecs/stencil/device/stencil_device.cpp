// From chunks to the launches of the stencil kernels.
#include "codecs/stencil/device/stencil_device.h"

#include <cstring>

#include "codecs/stencil/device/chunk_job.h"
#include "codecs/stencil/device/state.h"
#include "codecs/stencil/device/stencil_encode_device.h"
#include "codecs/stencil/stencil.h"
#include "kernels/stencil/cuda/decode_entry_points.h"
#include "kernels/stencil/job_head.h"

namespace quern::codec::stencil {
namespace {

class Kernels final : public cuda::ProgramKernels {
 public:
  bool serves(std::span<const std::uint8_t> state) const override { return !state.empty(); }
  bool prepare(std::span<const std::uint8_t> state, std::span<const std::uint8_t> in, const MutableBox3& box,
               cuda::ChunkProgram& program) const override {
    const ChunkSpec spec = spec_of_state(state);
    if (!append_chunk_program(spec, in, box, program.bytes)) return false;
    kernels::ProgramHead head;
    std::memcpy(&head, program.bytes.data(), sizeof head);
    program.work_bytes = head.work_bytes;
    return true;
  }
  cudaError_t decode(const kernels::ProgramTask* tasks, std::uint32_t count, std::uint32_t* damaged,
                     cudaStream_t queue) const override {
    cudaError_t error = kernels::stencil_levels_decode_async(tasks, count, damaged, queue);
    if (error != cudaSuccess) return error;
    error = kernels::stencil_raster_decode_async(tasks, count, damaged, queue);
    if (error != cudaSuccess) return error;
    return kernels::stencil_wavelet_decode_async(tasks, count, damaged, queue);
  }
};

}  // namespace

const cuda::DeviceCodec& stencil_device_codec() {
  static const Kernels kernels;
  static const cuda::DeviceCodec codec{kCodecId, stencil_codec().info().name, nullptr, &kernels,
                                       stencil_encode_kernels};
  return codec;
}

}  // namespace quern::codec::stencil
