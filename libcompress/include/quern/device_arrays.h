// Arrays in a device's memory to streams in its memory and back: work that is queued, for one array or for many of one
// type and shape. The streams are those that the CPU writes for the same options.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <quern/compress.h>
#include <quern/dtype.h>
#include <quern/memory.h>
#include <quern/shape.h>
#include <quern/status.h>

namespace quern {

/// Where the arrays and streams of a call lie; all pointers are to memory of the device, `sizes` may also be
/// page-locked memory of the host. What a call is told lies there until the queue has passed it.
struct DeviceArrays {
  std::uint32_t count = 1;
  /// One: an array in C order, aligned as its elements; a stream; the stream's room (compressing) or size.
  void* array = nullptr;
  void* stream = nullptr;
  std::uint64_t stream_bytes = 0;
  /// More, or one: the same in tables of `count` entries. Null: the members above.
  void* const* arrays = nullptr;
  void* const* streams = nullptr;
  const std::uint64_t* stream_sizes = nullptr;
  /// Bytes written of each stream, 0 when it failed; StatusCode of each. Null: only the outcomes tell.
  std::uint64_t* sizes = nullptr;
  std::int32_t* statuses = nullptr;
};

/// What became of each array, at the workspace's start. Compressing: `bytes` are those of the stream. Decompressing:
/// those of the array. 0 when it failed.
struct DeviceOutcome {
  std::int32_t status = 0;  ///< a StatusCode
  std::int32_t reserved = 0;
  std::uint64_t bytes = 0;
};

/// Arrays of one type and shape on one device. Immutable; calls from several threads are independent. Keeps a few
/// kilobytes of device memory, which calls that are under way read.
class DeviceArrayCoder : public Allocated {
 public:
  virtual ~DeviceArrayCoder() = default;

  /// Exactly what a call for `count` arrays works in; its address is a multiple of 256.
  virtual std::uint64_t workspace_bytes(std::uint32_t count) const = 0;

  /// Queue the work on `queue` (a cudaStream_t of the device, which is the current one) and return; nothing is
  /// allocated, nothing is waited for, and a stream that is being captured into a graph is fine. Status tells of the
  /// arguments alone. Streams may lie at any address; up to 7 bytes around them are read, never written. Any bytes may
  /// stand where a stream should: the status tells.
  virtual Status compress(const DeviceArrays& arrays, void* workspace, std::uint64_t workspace_bytes,
                          void* queue) const = 0;
  virtual Status decompress(const DeviceArrays& arrays, void* workspace, std::uint64_t workspace_bytes,
                            void* queue) const = 0;
};

/// `unsupported` says what does not run there: a codec without kernels (`auto` may mean one: name the codec), bounds
/// that are found by search, shapes whose chunks are too small.
Result<std::unique_ptr<DeviceArrayCoder>> device_compressor(int ordinal, DType dtype, const Shape& shape,
                                                            const CompressOptions& options);
/// For decompress() alone. `check_faults` as below.
///
/// Hardware faults: under the setting verify=fault of codec `lorenzo`, and with `check_faults`, a call reads its streams a
/// second time, to memory of its own, and holds the values against the arrays. What a bit that flipped has changed becomes
/// the outcome hardware_fault, and the caller queues the call again. Workspaces grow by the arrays and by what
/// decompressing takes. Streams are the same. Coders made with verify=fault check both ways.
Result<std::unique_ptr<DeviceArrayCoder>> device_decompressor(int ordinal, DType dtype, const Shape& shape,
                                                              bool check_faults = false);

/// One array in device memory to a stream in host memory and back, done when they return; they begin after what the
/// device's default stream waits for. The device's memory holds a workspace and a stream, twice to three times the
/// array, for as long as the call takes; where the device looks for hardware faults, also another array and what
/// decompressing takes. Fail as device_compressor() and the outcomes say; then `stream` or `array` have any content. What
/// a hardware fault has changed is done once more, where it is looked for, before the call fails with `hardware_fault`.
/// O(elements).
Result<CompressReport> compress_device_array(int ordinal, const void* array, DType dtype, const Shape& shape,
                                             const CompressOptions& options, std::span<std::uint8_t> stream);
Status decompress_device_array(int ordinal, std::span<const std::uint8_t> stream, void* array, DType dtype,
                               const Shape& shape, bool check_faults = false);

}  // namespace quern
