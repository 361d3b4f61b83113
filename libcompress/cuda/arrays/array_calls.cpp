// One array in device memory at a time: memory for the call, the queued work, and what became of it.
#include <algorithm>
#include <cstring>

#include <quern/device_arrays.h>
#include <quern/survey.h>

#include "libcompress/cuda/cuda_memory.h"

namespace quern {
namespace {

using cuda::CurrentDevice;
using cuda::DeviceMemory;
using cuda::to_status;

/// A coder with the memory that one call takes.
class ArrayCall {
 public:
  explicit ArrayCall(const DeviceArrayCoder& coder) : coder_(coder) {}

  Status open(std::uint64_t stream_bytes) {
    QUERN_RETURN_IF_ERROR(
        workspace_.reserve(std::max<std::uint64_t>(coder_.workspace_bytes(1), sizeof(DeviceOutcome))));
    return stream_.reserve(std::max<std::uint64_t>(stream_bytes, 1));
  }
  std::uint8_t* stream() const { return stream_.data(); }

  /// Waits for the work that `queue` queues on the default stream; the bytes of its outcome. What a hardware fault has
  /// changed is done once more.
  template <class Queue>
  Result<std::uint64_t> run(const Queue& queue) const {
    QUERN_ASSIGN_OR_RETURN(DeviceOutcome outcome, run_once(queue));
    if (code_of(outcome) == StatusCode::hardware_fault) {
      QUERN_ASSIGN_OR_RETURN(outcome, run_once(queue));
      if (code_of(outcome) == StatusCode::hardware_fault)
        return Status(StatusCode::hardware_fault,
                      "a hardware fault of the device changed the array, and changed it again in the second attempt; "
                      "nothing of this call can be relied on");
    }
    if (code_of(outcome) != StatusCode::ok) return Status(code_of(outcome), "refused by the device");
    return outcome.bytes;
  }

 private:
  static StatusCode code_of(const DeviceOutcome& outcome) { return static_cast<StatusCode>(outcome.status); }

  template <class Queue>
  Result<DeviceOutcome> run_once(const Queue& queue) const {
    QUERN_RETURN_IF_ERROR(queue(workspace_.data(), workspace_.size()));
    DeviceOutcome outcome;
    QUERN_RETURN_IF_ERROR(to_status(cudaMemcpy(&outcome, workspace_.data(), sizeof(outcome), cudaMemcpyDeviceToHost)));
    return outcome;
  }

  const DeviceArrayCoder& coder_;
  DeviceMemory workspace_;
  DeviceMemory stream_;
};

/// What the stream says of itself, as the CPU's encoder reports it.
Result<CompressReport> describe(std::span<const std::uint8_t> stream, std::uint64_t array_bytes) {
  MemorySource source(stream);
  QUERN_ASSIGN_OR_RETURN(const StreamInfo info, inspect(source, builtin_codecs()));
  QUERN_ASSIGN_OR_RETURN(const MaskSurvey found, survey_masks(source, {}));
  CompressReport report;
  report.input_bytes = array_bytes;
  report.output_bytes = stream.size();
  report.masked_elems = found.elems();
  report.raw_chunks = found.raw_chunks;
  report.chunks = info.chunks;
  report.enforced = info.enforced;
  report.range = info.range;
  report.codec = info.codec_name;
  report.codec_id = info.codec_id;
  report.on_device = true;
  return report;
}

}  // namespace

Result<CompressReport> compress_device_array(int ordinal, const void* array, DType dtype, const Shape& shape,
                                             const CompressOptions& options, std::span<std::uint8_t> stream) {
  QUERN_ASSIGN_OR_RETURN(const auto coder, device_compressor(ordinal, dtype, shape, options));
  const CurrentDevice current(ordinal);
  QUERN_RETURN_IF_ERROR(current.status());
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t most, max_stream_bytes(dtype, shape, options.metadata.size()));
  const std::uint64_t room = std::min<std::uint64_t>(most, stream.size());
  ArrayCall call(*coder);
  QUERN_RETURN_IF_ERROR(call.open(room));
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t bytes, call.run([&](void* workspace, std::uint64_t workspace_bytes) {
    DeviceArrays arrays;
    arrays.array = const_cast<void*>(array);
    arrays.stream = call.stream();
    arrays.stream_bytes = room;
    return coder->compress(arrays, workspace, workspace_bytes, nullptr);
  }));
  QUERN_RETURN_IF_ERROR(
      to_status(cudaMemcpy(stream.data(), call.stream(), static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost)));
  return describe(stream.first(static_cast<std::size_t>(bytes)), shape.elems() * dtype_bytes(dtype));
}

Status decompress_device_array(int ordinal, std::span<const std::uint8_t> stream, void* array, DType dtype,
                               const Shape& shape, bool check_faults) {
  QUERN_ASSIGN_OR_RETURN(const auto coder, device_decompressor(ordinal, dtype, shape, check_faults));
  const CurrentDevice current(ordinal);
  QUERN_RETURN_IF_ERROR(current.status());
  ArrayCall call(*coder);
  QUERN_RETURN_IF_ERROR(call.open(stream.size()));
  return call
      .run([&](void* workspace, std::uint64_t workspace_bytes) {
        // A fault may have changed the device's copy: each attempt takes its own.
        QUERN_RETURN_IF_ERROR(
            to_status(cudaMemcpy(call.stream(), stream.data(), stream.size(), cudaMemcpyHostToDevice)));
        DeviceArrays arrays;
        arrays.array = array;
        arrays.stream = call.stream();
        arrays.stream_bytes = stream.size();
        return coder->decompress(arrays, workspace, workspace_bytes, nullptr);
      })
      .status();
}

}  // namespace quern
