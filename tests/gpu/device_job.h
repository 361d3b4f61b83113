// Arrays of one type and shape on the (simulated) device with everything that a call on them takes, and the same done
// on the host.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <quern/compress.h>
#include <quern/device_arrays.h>
#include <quern/stream_io.h>

#include "tests/support/array_cases.h"
#include "tests/support/device_buffer.h"

namespace quern::testing {

using Bytes = std::vector<std::uint8_t>;

inline Bytes on_host(const OwnedArray& array, const CompressOptions& options) {
  Vector<std::uint8_t> bytes;
  VectorSink sink(bytes);
  const auto report = compress(array.view(), options, builtin_codecs(), {}, sink);
  EXPECT_TRUE(report.ok()) << report.status().text();
  return {bytes.begin(), bytes.end()};
}

/// Status of a stream that may be anything; the values when it is fine.
inline StatusCode decoded_on_host(std::span<const std::uint8_t> stream, OwnedArray& out) {
  MemorySource source(stream);
  const auto report = decompress(source, {out.bytes.data(), out.dtype, out.shape}, builtin_codecs(), {});
  if (!report.ok()) return report.status().code();
  return report->input_bytes == stream.size() ? StatusCode::ok : StatusCode::trailing_data;
}

inline CompressOptions lorenzo(BoundKind kind, double value) {
  CompressOptions options;
  options.codec = "lorenzo";
  options.bound = {kind, value};
  return options;
}

/// Arrays of one type and shape on the device, with everything that a call takes, each piece of memory of exactly its
/// size.
class DeviceJob {
 public:
  DeviceJob(const DeviceArrayCoder& coder, std::size_t count, std::size_t array_bytes, std::size_t stream_bytes)
      : coder_(coder),
        array_bytes_(array_bytes),
        stream_bytes_(stream_bytes),
        workspace_(coder.workspace_bytes(static_cast<std::uint32_t>(count))),
        array_table_(count),
        stream_table_(count),
        room_(count),
        sizes_(count),
        statuses_(count) {
    std::vector<void*> arrays, streams;
    for (std::size_t i = 0; i < count; ++i) {
      arrays_.push_back(std::make_unique<DeviceBuffer<std::uint8_t>>(array_bytes));
      streams_.push_back(std::make_unique<DeviceBuffer<std::uint8_t>>(stream_bytes));
      arrays.push_back(arrays_.back()->data());
      streams.push_back(streams_.back()->data());
    }
    array_table_.put(arrays);
    stream_table_.put(streams);
    room_.put(std::vector<std::uint64_t>(count, stream_bytes));
    call_.count = static_cast<std::uint32_t>(count);
    call_.arrays = array_table_.data();
    call_.streams = stream_table_.data();
    call_.stream_sizes = room_.data();
    call_.sizes = sizes_.data();
    call_.statuses = statuses_.data();
  }

  DeviceArrays& call() { return call_; }
  DeviceBuffer<std::uint8_t>& array(std::size_t i) { return *arrays_[i]; }
  DeviceBuffer<std::uint8_t>& stream(std::size_t i) { return *streams_[i]; }
  DeviceBuffer<std::uint64_t>& room() { return room_; }
  DeviceBuffer<std::uint8_t>& workspace() { return workspace_; }
  std::vector<std::int32_t> statuses() const { return statuses_.get(); }
  std::vector<std::uint64_t> sizes() const { return sizes_.get(); }
  std::vector<DeviceOutcome> outcomes() const {
    const auto bytes = workspace_.get(call_.count * sizeof(DeviceOutcome));
    std::vector<DeviceOutcome> out(call_.count);
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::uint8_t*>(out.data()));
    return out;
  }

  Status compress(cudaStream_t queue) { return coder_.compress(call_, workspace_.data(), workspace_.count(), queue); }
  Status decompress(cudaStream_t queue) {
    return coder_.decompress(call_, workspace_.data(), workspace_.count(), queue);
  }

 private:
  const DeviceArrayCoder& coder_;
  std::size_t array_bytes_;
  std::size_t stream_bytes_;
  DeviceBuffer<std::uint8_t> workspace_;
  std::vector<std::unique_ptr<DeviceBuffer<std::uint8_t>>> arrays_;
  std::vector<std::unique_ptr<DeviceBuffer<std::uint8_t>>> streams_;
  DeviceBuffer<void*> array_table_;
  DeviceBuffer<void*> stream_table_;
  DeviceBuffer<std::uint64_t> room_;
  DeviceBuffer<std::uint64_t> sizes_;
  DeviceBuffer<std::int32_t> statuses_;
  DeviceArrays call_;
};

}  // namespace quern::testing
