// Arrays in host memory, segments on a device (of the simulator): bytes and values as without it.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include <quern/compress.h>
#include <quern/device.h>
#include <quern/stream_io.h>

#include "tests/simt/simt.h"
#include "tests/support/array_cases.h"

namespace quern {
namespace {

using quern::testing::Data;
using quern::testing::OwnedArray;

class StagedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    simt::reset({});
    auto device = open_cuda_device(0);
    ASSERT_TRUE(device.ok()) << device.status().text();
    device_ = std::move(device).value();
  }
  void TearDown() override {
    device_.reset();
    EXPECT_GT(simt::counters().launches, 0u);
    EXPECT_EQ(simt::failure(), "");
    EXPECT_EQ(simt::counters().allocations, simt::counters().frees);
    EXPECT_EQ(simt::counters().host_allocations, simt::counters().host_frees);
    EXPECT_EQ(simt::live_handles(), 0u);
  }

  Vector<std::uint8_t> compress_on(Device* device, const OwnedArray& array, const CompressOptions& options) {
    Vector<std::uint8_t> bytes;
    VectorSink sink(bytes);
    Execution execution;
    execution.device = device;
    const auto report = compress(array.view(), options, builtin_codecs(), execution, sink);
    EXPECT_TRUE(report.ok()) << report.status().text();
    if (report.ok() && device != nullptr && report->codec == "lorenzo") {
      EXPECT_TRUE(report->on_device);
    }
    return bytes;
  }

  Status decompress_on(Device* device, std::span<const std::uint8_t> stream, OwnedArray& out) {
    MemorySource source(stream);
    Execution execution;
    execution.device = device;
    return decompress(source, {out.bytes.data(), out.dtype, out.shape}, builtin_codecs(), execution).status();
  }

  /// Same bytes, same values, both ways.
  void compare(const OwnedArray& array, const CompressOptions& options) {
    const auto expected = compress_on(nullptr, array, options);
    const auto stream = compress_on(device_.get(), array, options);
    ASSERT_EQ(stream, expected);
    OwnedArray on_host = array;
    OwnedArray on_device = array;
    on_host.bytes.assign(array.bytes.size(), 0xa5);
    on_device.bytes.assign(array.bytes.size(), 0x5a);
    ASSERT_TRUE(decompress_on(nullptr, stream, on_host).ok());
    const Status status = decompress_on(device_.get(), stream, on_device);
    ASSERT_TRUE(status.ok()) << status.text() << " " << simt::failure();
    ASSERT_EQ(on_device.bytes, on_host.bytes);
  }

  std::unique_ptr<Device> device_;
};

CompressOptions lorenzo_options(BoundKind kind, double value) {
  CompressOptions options;
  options.codec = "lorenzo";
  options.bound = {kind, value};
  return options;
}

TEST_F(StagedTest, EveryTypeAndKindOfData_BytesAsOnTheHost) {
  const Shape shape = quern::testing::shape_of({5, 37, 41});
  for (const DType dtype : quern::testing::all_dtypes())
    for (const Data data : quern::testing::all_data()) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + quern::testing::data_name(data));
      compare(quern::testing::make_array(dtype, shape, data), lorenzo_options(BoundKind::rel, 1e-3));
      if (HasFatalFailure()) return;
    }
}

TEST_F(StagedTest, EdgeShapes_BytesAsOnTheHost) {
  for (const Shape& shape : quern::testing::edge_shapes())
    for (const DType dtype : {DType::f32, DType::f64}) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + shape.text());
      compare(quern::testing::make_array(dtype, shape, Data::smooth), lorenzo_options(BoundKind::abs, 1e-2));
      if (HasFatalFailure()) return;
    }
}

}  // namespace
}  // namespace quern
