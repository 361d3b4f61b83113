// What <quern/device.h> says in a build without CUDA.
#include <quern/device.h>

namespace quern {
namespace {

Status no_cuda() { return Status(StatusCode::device_unavailable, "this build of quern has no CUDA kernels"); }

}  // namespace

Result<Vector<DeviceInfo>> cuda_devices() { return no_cuda(); }
Result<std::unique_ptr<Device>> open_cuda_device(int) { return no_cuda(); }

}  // namespace quern
