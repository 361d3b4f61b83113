// Copies between a device's memory and the host's in a build without CUDA.
#include <quern/device.h>

namespace quern {
namespace {

Status no_cuda() { return Status(StatusCode::device_unavailable, "this build of quern does not know CUDA devices"); }

}  // namespace

Status copy_from_device(int, const void*, void*, std::uint64_t) { return no_cuda(); }
Status copy_to_device(int, const void*, void*, std::uint64_t) { return no_cuda(); }

}  // namespace quern
