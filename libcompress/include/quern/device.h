// Devices that encode and decode in place of the calling machine's threads. Named in Execution::device, by whoever
// opened it; nothing is found or started behind the caller's back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <quern/codec.h>
#include <quern/compress.h>
#include <quern/execution.h>
#include <quern/memory.h>
#include <quern/status.h>

namespace quern {

class SegmentDecoder;
class SegmentEncoder;
class SegmentLayout;
struct Header;
struct StreamSetup;

struct DeviceInfo {
  int ordinal = 0;
  std::string name;
  int major = 0;  ///< compute capability
  int minor = 0;
  std::uint64_t memory_bytes = 0;
};

/// One device. Calls that are under way at once each need a device of their own. Bytes and values do not depend on it.
class Device : public Allocated {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;

  /// For the pipeline. Null when the codec has no kernels for what is wanted; then the runner's threads do it.
  virtual Result<std::unique_ptr<SegmentEncoder>> encoder(const StreamSetup& setup, const CompressOptions& options,
                                                          TaskRunner& runner) = 0;
  virtual Result<std::unique_ptr<SegmentDecoder>> decoder(const Header& header, const SegmentLayout& layout,
                                                          const ChunkDecoder& codec, TaskRunner& runner) = 0;
};

/// CUDA devices that this build can use on this machine. `device_unavailable` says why there are none: a build without
/// CUDA, no driver, no device.
Result<Vector<DeviceInfo>> cuda_devices();

/// Opens one. Device memory is taken from it when it first encodes or decodes, and given back when it is destroyed; of
/// host memory, page-locked buffers. Fails with `device_unavailable` and `device_error`.
Result<std::unique_ptr<Device>> open_cuda_device(int ordinal);

/// Copies between the memory of device `ordinal` and the host's, after what the device's default stream waits for, and
/// wait until they are done. The current device is as before.
Status copy_from_device(int ordinal, const void* device, void* host, std::uint64_t bytes);
Status copy_to_device(int ordinal, const void* host, void* device, std::uint64_t bytes);

}  // namespace quern
