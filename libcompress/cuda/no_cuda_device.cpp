// What <quern/device.h> and <quern/device_arrays.h> say in a build without CUDA.
#include <quern/device.h>
#include <quern/device_arrays.h>

namespace quern {
namespace {

Status no_cuda() { return Status(StatusCode::device_unavailable, "this build of quern has no CUDA kernels"); }

}  // namespace

Result<Vector<DeviceInfo>> cuda_devices() { return no_cuda(); }
Result<std::unique_ptr<Device>> open_cuda_device(int) { return no_cuda(); }
Result<std::unique_ptr<DeviceArrayCoder>> device_compressor(int, DType, const Shape&, const CompressOptions&) {
  return no_cuda();
}
Result<std::unique_ptr<DeviceArrayCoder>> device_decompressor(int, DType, const Shape&) { return no_cuda(); }
Result<CompressReport> compress_device_array(int, const void*, DType, const Shape&, const CompressOptions&,
                                             std::span<std::uint8_t>) {
  return no_cuda();
}
Status decompress_device_array(int, std::span<const std::uint8_t>, void*, DType, const Shape&) { return no_cuda(); }

}  // namespace quern
