// From chunks to the launches of the interp kernels.
#include "codecs/interp/device/interp_device.h"

#include <cstring>

#include "codecs/interp/device/chunk_job.h"
#include "codecs/interp/device/interp_encode_device.h"
#include "codecs/interp/device/state.h"
#include "codecs/interp/interp.h"
#include "kernels/interp/cuda/entry_points.h"
#include "kernels/interp/interp_job.h"

namespace quern::codec::interp {
namespace {

class Kernels final : public cuda::JobKernels {
 public:
  bool serves(std::span<const std::uint8_t> state) const override { return state.size() == sizeof(DeviceState); }
  /// Decoding gives special elements some value, which masks then replace.
  bool reads_special() const override { return false; }
  bool prepare(std::span<const std::uint8_t> state, std::span<const std::uint8_t> in, const MutableBox3& box,
               cuda::ChunkJob& job) const override {
    if (!append_chunk_job(device_state_of(state), in, box, job.bytes)) return false;
    kernels::InterpJob head;
    std::memcpy(&head, job.bytes.data(), sizeof head);
    job.work_bytes = head.work_bytes;
    return true;
  }
  cudaError_t decode(const kernels::JobTask* tasks, std::uint32_t count, std::uint32_t* damaged,
                     cudaStream_t queue) const override {
    return kernels::interp_decode_async(tasks, count, damaged, queue);
  }
};

}  // namespace

const cuda::DeviceCodec& interp_device_codec() {
  static const Kernels kernels;
  static const cuda::DeviceCodec codec{kCodecId, interp_codec().info().name, nullptr, &kernels, interp_encode_kernels};
  return codec;
}

}  // namespace quern::codec::interp
