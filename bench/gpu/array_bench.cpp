// Whole calls on arrays in device memory: range, plan, header, chunks, masks, checksums, trailer, and back.
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

#include <quern/device_arrays.h>

#include "bench/gpu/subjects.h"
#include "kernels/metrics/cuda/bound_check_cuda.h"

namespace quern::bench {
namespace {

constexpr double kRelative = 1e-3;

/// Compressed under one bound.
class CodedArray {
 public:
  CodedArray(Session& session, const BenchArray& array, const CompressOptions& options)
      : session_(session),
        array_(array),
        coder_(make_coder(array, options)),
        workspace_(coder_->workspace_bytes(1)),
        stream_bytes_(room_for(array)),
        bytes_(stream_bytes_) {
    call_.array = const_cast<void*>(array.values);
    call_.stream = bytes_.data();
    call_.stream_bytes = stream_bytes_;
  }

  /// `reads`: how often the array is read.
  void time_compression(const std::string& step, std::uint64_t reads) {
    check(compress(queue_), "compress");
    stored_ = outcome();
    const std::uint64_t n = array_.bytes();
    session_.time_step(array_, "arrays", step, {n, stored_, reads * n + stored_},
                       [&](cudaStream_t stream) { return compress(stream); });
  }

  std::uint64_t time_decompression(const std::string& step, DeviceArray<std::uint8_t>& decoded) {
    call_.array = decoded.data();
    call_.stream_bytes = stored_;
    const std::uint64_t n = array_.bytes();
    session_.time_step(array_, "arrays", step, {n, stored_, n + stored_}, [&](cudaStream_t stream) {
      return error_of(coder_->decompress(call_, workspace_.data(), workspace_.bytes(), stream));
    });
    return outcome();
  }
  std::uint64_t stored() const { return stored_; }

 private:
  static std::uint64_t room_for(const BenchArray& array) { return array.bytes() + array.bytes() / 1000 + 256; }
  static std::unique_ptr<DeviceArrayCoder> make_coder(const BenchArray& array, const CompressOptions& options) {
    auto shape = Shape::make(array.extents);
    if (!shape.ok()) throw std::runtime_error(shape.status().text());
    int device = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    auto coder = device_compressor(device, static_cast<DType>(array.element), *shape, options);
    if (!coder.ok()) throw std::runtime_error(coder.status().text());
    return std::move(coder).value();
  }
  static cudaError_t error_of(const Status& status) { return status.ok() ? cudaSuccess : cudaErrorUnknown; }

  cudaError_t compress(cudaStream_t stream) const {
    return error_of(coder_->compress(call_, workspace_.data(), workspace_.bytes(), stream));
  }
  std::uint64_t outcome() {
    queue_.wait();
    DeviceOutcome outcome;
    check(cudaMemcpy(&outcome, workspace_.data(), sizeof outcome, cudaMemcpyDeviceToHost), "copy from the device");
    if (outcome.status != 0)
      throw std::runtime_error("a call on an array ended with status " + std::to_string(outcome.status));
    return outcome.bytes;
  }

  Session& session_;
  const BenchArray& array_;
  Stream queue_;
  std::unique_ptr<DeviceArrayCoder> coder_;
  DeviceArray<std::uint8_t> workspace_;
  std::uint64_t stream_bytes_;
  DeviceArray<std::uint8_t> bytes_;
  DeviceArrays call_;
  std::uint64_t stored_ = 0;
};

CompressOptions options_for(BoundKind kind, double value) {
  CompressOptions options;
  options.codec = "lorenzo";
  options.bound = {kind, value};
  return options;
}

/// Both ways with streams read a second time.
void time_fault_checks(Session& session, const BenchArray& array) {
  constexpr std::uint64_t kMemory = 8;  // and a second array, and what decompressing works in
  if (!session.has_room(kMemory * array.bytes() + (UINT64_C(512) << 20))) return;
  CompressOptions options = options_for(BoundKind::abs, array.bound);
  options.settings.emplace_back("verify", "fault");
  CodedArray checked(session, array, options);
  checked.time_compression("compress_absolute_checked", 2);
  DeviceArray<std::uint8_t> decoded(array.bytes());
  checked.time_decompression("decompress_checked", decoded);
}

}  // namespace

void bench_arrays(Session& session, const BenchArray& array) {
  constexpr std::uint64_t kMemory = 5;  // workspace, stream and decoded array, of each byte of values
  if (!session.has_room(kMemory * array.bytes() + (UINT64_C(512) << 20))) return;
  CodedArray(session, array, options_for(BoundKind::rel, kRelative)).time_compression("compress_relative", 2);
  CompressOptions given = options_for(BoundKind::rel, kRelative);
  given.range = ValueRange{-1, 1};
  CodedArray(session, array, given).time_compression("compress_relative_given_range", 1);
  CodedArray absolute(session, array, options_for(BoundKind::abs, array.bound));
  absolute.time_compression("compress_absolute", 1);
  DeviceArray<std::uint8_t> decoded(array.bytes());
  const std::uint64_t decoded_bytes = absolute.time_decompression("decompress", decoded);
  time_fault_checks(session, array);
  DeviceArray<kernels::CudaBoundCheck> result(1);
  Stream queue;
  const kernels::FillValues no_fills;
  check(kernels::check_bound_async(array.element, array.values, decoded.data(), array.elems(),
                                   {verifier::BoundRule::absolute, array.bound}, no_fills, result.data(), queue),
        "check_bound_async");
  queue.wait();
  Members members;
  members.count("stored_bytes", absolute.stored())
      .number("ratio", static_cast<double>(array.bytes()) / static_cast<double>(absolute.stored()));
  members.flag("all_decoded", decoded_bytes == array.bytes()).count("violations", result.get()[0].violations);
  session.tell(array, "arrays", members);
}

}  // namespace quern::bench
