// What <quern/device.h>, <quern/device_arrays.h> and <quern/device_metrics.h> say in a build without CUDA.
#include <quern/device.h>
#include <quern/device_arrays.h>
#include <quern/device_metrics.h>

namespace quern {
namespace {

Status no_cuda() { return Status(StatusCode::device_unavailable, "this build of quern has no CUDA kernels"); }

}  // namespace

Result<Vector<DeviceInfo>> cuda_devices() { return no_cuda(); }
Result<std::unique_ptr<Device>> open_cuda_device(int) { return no_cuda(); }
Result<std::unique_ptr<DeviceArrayCoder>> device_compressor(int, DType, const Shape&, const CompressOptions&) {
  return no_cuda();
}
Result<std::unique_ptr<DeviceArrayCoder>> device_decompressor(int, DType, const Shape&, bool) { return no_cuda(); }
Result<CompressReport> compress_device_array(int, const void*, DType, const Shape&, const CompressOptions&,
                                             std::span<std::uint8_t>) {
  return no_cuda();
}
Status decompress_device_array(int, std::span<const std::uint8_t>, void*, DType, const Shape&, bool) {
  return no_cuda();
}
Result<BoundCheck> check_bound_on_device(const DevicePair&, const EnforcedBound&, const ValidityRule&) {
  return no_cuda();
}
Result<Quality> measure_quality_on_device(const DevicePair&, const ValidityRule&, bool) { return no_cuda(); }
Result<BoundCheck> check_device_stream(int, const void*, DType, const Shape&, std::span<const std::uint8_t>) {
  return no_cuda();
}

}  // namespace quern
