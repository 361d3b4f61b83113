// CUDA devices behind <quern/device.h>.
#include <quern/device.h>

#include "libcompress/cuda/cuda_memory.h"
#include "libcompress/cuda/jobs/job_decoder.h"
#include "libcompress/cuda/jobs/job_encoder.h"
#include "libcompress/cuda/staged/staged_decoder.h"
#include "libcompress/cuda/staged/staged_encoder.h"
#include "libcompress/device/device_codec.h"
#include "libcompress/pipeline/encode/setup.h"

namespace quern {
namespace {

/// Kernels place chunks by 32-bit offsets within a segment, and count its cells in 31 bits.
constexpr std::uint64_t kMostSegmentBytes = UINT64_C(1) << 31;

Result<DeviceInfo> describe_device(int ordinal) {
  cudaDeviceProp properties{};
  QUERN_RETURN_IF_ERROR(cuda::to_status(cudaGetDeviceProperties(&properties, ordinal)));
  DeviceInfo info;
  info.ordinal = ordinal;
  info.name = properties.name;
  info.major = properties.major;
  info.minor = properties.minor;
  info.memory_bytes = properties.totalGlobalMem;
  return info;
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(DeviceInfo info) : info_(std::move(info)) {}
  ~CudaDevice() override {
    const cuda::CurrentDevice current(info_.ordinal);
    lanes_.clear();
  }

  const DeviceInfo& info() const override { return info_; }

  Result<std::unique_ptr<SegmentEncoder>> encoder(const StreamSetup& setup, const CompressOptions& options,
                                                  TaskRunner& runner) override {
    if (setup.encoder == nullptr) return std::unique_ptr<SegmentEncoder>();
    const cuda::JobEncodeKernels* jobs =
        cuda::builtin_device_codec(setup.header.codec_id).encoder(setup.encoder->device_state());
    if (jobs != nullptr)
      return std::unique_ptr<SegmentEncoder>(new cuda::JobEncoder(setup, options, runner, *jobs, lanes_, info_));
    const cuda::ChunkKernels* kernels = kernels_for(setup.header.codec_id, setup.encoder->device_state(), setup.layout);
    if (kernels == nullptr) return std::unique_ptr<SegmentEncoder>();
    return std::unique_ptr<SegmentEncoder>(
        new cuda::StagedEncoder(setup, options, runner, *kernels, lanes_, info_.ordinal));
  }

  Result<std::unique_ptr<SegmentDecoder>> decoder(const Header& header, const SegmentLayout& layout,
                                                  const ChunkDecoder& codec, TaskRunner& runner) override {
    const cuda::JobKernels* jobs = cuda::builtin_device_codec(header.codec_id).jobs;
    if (jobs != nullptr && jobs->serves(codec.device_state()))
      return std::unique_ptr<SegmentDecoder>(new cuda::JobDecoder(header, layout, codec, runner, *jobs, lanes_, info_));
    const cuda::ChunkKernels* kernels = kernels_for(header.codec_id, codec.device_state(), layout);
    if (kernels == nullptr) return std::unique_ptr<SegmentDecoder>();
    return std::unique_ptr<SegmentDecoder>(
        new cuda::StagedDecoder(header, layout, codec, runner, *kernels, lanes_, info_.ordinal));
  }

 private:
  static const cuda::ChunkKernels* kernels_for(std::uint16_t codec_id, std::span<const std::uint8_t> state,
                                               const SegmentLayout& layout) {
    const cuda::ChunkKernels* kernels = cuda::builtin_device_codec(codec_id).chunks;
    if (kernels == nullptr || state.empty() || !kernels->serves(state)) return nullptr;
    return layout.full_chunk_bytes() * kMaxSegmentChunks < kMostSegmentBytes ? kernels : nullptr;
  }

  DeviceInfo info_;
  cuda::LanePool lanes_;
};

}  // namespace

Result<Vector<DeviceInfo>> cuda_devices() {
  QUERN_ASSIGN_OR_RETURN(const int count, cuda::device_count());
  try {
    Vector<DeviceInfo> devices;
    for (int i = 0; i < count; ++i) {
      QUERN_ASSIGN_OR_RETURN(DeviceInfo info, describe_device(i));
      devices.push_back(std::move(info));
    }
    return devices;
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, "out of memory");
  }
}

Result<std::unique_ptr<Device>> open_cuda_device(int ordinal) {
  QUERN_RETURN_IF_ERROR(cuda::check_ordinal(ordinal));
  try {
    QUERN_ASSIGN_OR_RETURN(DeviceInfo info, describe_device(ordinal));
    return std::unique_ptr<Device>(new CudaDevice(std::move(info)));
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, "out of memory");
  }
}

}  // namespace quern
