// What a device must show, through the public interface alone: bytes and values as on the CPU, both ways, run after
// run. The same source runs on a real device (gpu_equality, which skips without one) and on the simulator.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include <quern/compress.h>
#include <quern/device.h>
#include <quern/stream_io.h>

#include "tests/gpu/settings.h"
#include "tests/support/array_cases.h"

namespace quern {
namespace {

using quern::testing::Data;
using quern::testing::OwnedArray;
using quern::testing::setting;
using quern::testing::Thinning;

/// Leaves a pattern in device memory that the next allocations may get, so that nothing rests on zeros there.
void poison_device_memory() {
  std::size_t free = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  const std::size_t bytes = std::min<std::size_t>(free / 2, setting("QUERN_GPU_POISON_BYTES", UINT64_C(2) << 30));
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, bytes), cudaSuccess);
  EXPECT_EQ(cudaMemset(memory, 0xa5, bytes), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

class Equality : public ::testing::Test {
 protected:
  void SetUp() override {
    poison_device_memory();
    auto device = open_cuda_device(0);
    ASSERT_TRUE(device.ok()) << device.status().text();
    device_ = std::move(device).value();
  }

  Vector<std::uint8_t> compressed(Device* device, const OwnedArray& array, const CompressOptions& options) {
    Vector<std::uint8_t> bytes;
    VectorSink sink(bytes);
    Execution execution;
    execution.device = device;
    const auto report = compress(array.view(), options, builtin_codecs(), execution, sink);
    EXPECT_TRUE(report.ok()) << report.status().text();
    return bytes;
  }
  Vector<std::uint8_t> decompressed(Device* device, std::span<const std::uint8_t> stream, const OwnedArray& like) {
    Vector<std::uint8_t> values(like.bytes.size(), 0xa5);
    MemorySource source(stream);
    Execution execution;
    execution.device = device;
    const auto report = decompress(source, {values.data(), like.dtype, like.shape}, builtin_codecs(), execution);
    EXPECT_TRUE(report.ok()) << report.status().text();
    return values;
  }
  void compare(const OwnedArray& array, const CompressOptions& options) {
    const auto stream = compressed(nullptr, array, options);
    ASSERT_EQ(compressed(device_.get(), array, options), stream);
    ASSERT_EQ(decompressed(device_.get(), stream, array), decompressed(nullptr, stream, array));
  }

  static CompressOptions options_of(BoundKind kind, double value) {
    CompressOptions options;
    options.codec = "lorenzo";
    options.bound = {kind, value};
    return options;
  }

  std::unique_ptr<Device> device_;
};

TEST_F(Equality, EveryTypeDataAndBound_SameBytesAndValues) {
  const Shape shape = quern::testing::shape_of({5, 37, 41});
  Thinning thinning;
  for (const DType dtype : quern::testing::all_dtypes())
    for (const Data data : quern::testing::all_data()) {
      if (!thinning.takes()) continue;
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + quern::testing::data_name(data));
      const OwnedArray array = quern::testing::make_array(dtype, shape, data);
      compare(array, options_of(BoundKind::rel, 1e-3));
      compare(array, options_of(BoundKind::lossless, 0));
      if (is_float(dtype)) compare(array, options_of(BoundKind::pwrel, 1e-2));
      if (HasFatalFailure()) return;
    }
}

TEST_F(Equality, EdgeShapes_SameBytesAndValues) {
  Thinning thinning;
  for (const Shape& shape : quern::testing::edge_shapes())
    for (const DType dtype : {DType::f32, DType::f64, DType::u16}) {
      if (!thinning.takes()) continue;
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + shape.text());
      compare(quern::testing::make_array(dtype, shape, Data::smooth), options_of(BoundKind::abs, 1));
      if (HasFatalFailure()) return;
    }
}

TEST_F(Equality, EveryLayoutOfALargeArray_SameBytesAndValues) {
  const std::uint64_t planes = setting("QUERN_GPU_PLANES", 256);
  for (const DType dtype : {DType::f32, DType::f64}) {
    const OwnedArray array =
        quern::testing::make_array(dtype, quern::testing::shape_of({planes, 200, 300}), Data::offset_signal);
    for (const char* layout : {"1d", "2d:1", "2d:2", "3d:1,2"}) {
      SCOPED_TRACE(layout);
      CompressOptions options = options_of(BoundKind::rel, 1e-4);
      options.settings = {{"layout", layout}};
      compare(array, options);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(Equality, Stencil_SameBytesAndValues) {
  // A third of the chunks' elements are special in one of them.
  const std::uint64_t planes = std::min<std::uint64_t>(setting("QUERN_GPU_PLANES", 64), 64);
  const Shape shape = quern::testing::shape_of({planes, 100, 130});
  const std::uint64_t runs = std::min<std::uint64_t>(setting("QUERN_GPU_RUNS", 3), 3);
  Thinning thinning;
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i16, DType::u8})
    for (const char* layout : {"levels", "planes", "raster", "wavelet"})
      for (const Data data : {Data::smooth, Data::nan_block}) {
        if (!thinning.takes()) continue;
        SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + layout + " " + quern::testing::data_name(data));
        const OwnedArray array = quern::testing::make_array(dtype, shape, data);
        CompressOptions options = options_of(BoundKind::rel, 1e-3);
        options.codec = "stencil";
        options.settings = {{"layout", layout}};
        const auto stream = compressed(nullptr, array, options);
        const auto values = decompressed(nullptr, stream, array);
        for (std::uint64_t run = 0; run < runs; ++run) ASSERT_EQ(compressed(device_.get(), array, options), stream);
        for (std::uint64_t run = 0; run < runs; ++run) ASSERT_EQ(decompressed(device_.get(), stream, array), values);
      }
}

TEST_F(Equality, StencilOfManyChunks_SameBytesAndValues) {
  // Several chunks of every shape, more than one wave where devices are small.
  const std::uint64_t planes = setting("QUERN_GPU_PLANES", 256);
  for (const char* layout :
       {"raster:1d", "raster:2d:1", "raster:3d:1,2", "levels:1d", "levels:2d:1", "levels:3d:1,2"}) {
    SCOPED_TRACE(layout);
    const OwnedArray array =
        quern::testing::make_array(DType::f32, quern::testing::shape_of({planes, 200, 300}), Data::smooth);
    CompressOptions options = options_of(BoundKind::rel, 1e-4);
    options.codec = "stencil";
    options.settings = {{"layout", layout}};
    compare(array, options);
    if (HasFatalFailure()) return;
  }
}

/// Streams of the host, which encodes.
TEST_F(Equality, Interp_SameValues) {
  const std::uint64_t planes = std::min<std::uint64_t>(setting("QUERN_GPU_PLANES", 64), 64);
  const std::uint64_t runs = std::min<std::uint64_t>(setting("QUERN_GPU_RUNS", 3), 100);
  Thinning thinning;
  for (const DType dtype : {DType::f32, DType::f64, DType::u8})
    for (const char* layout : {"1d", "2d:1", "3d:1,2"})
      for (const Data data : {Data::smooth, Data::nan_block}) {
        if (!thinning.takes()) continue;
        SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + layout + " " + quern::testing::data_name(data));
        const OwnedArray array = quern::testing::make_array(dtype, quern::testing::shape_of({planes, 100, 130}), data);
        CompressOptions options = options_of(BoundKind::rel, 1e-3);
        options.codec = "interp";
        options.settings = {{"layout", layout}};
        const auto stream = compressed(nullptr, array, options);
        const auto values = decompressed(nullptr, stream, array);
        for (std::uint64_t run = 0; run < runs; ++run) ASSERT_EQ(decompressed(device_.get(), stream, array), values);
      }
}

TEST_F(Equality, ManyRuns_SameBytesAndValues) {
  const std::uint64_t planes = setting("QUERN_GPU_PLANES", 256);
  const OwnedArray array =
      quern::testing::make_array(DType::f32, quern::testing::shape_of({planes, 100, 100}), Data::smooth);
  const CompressOptions options = options_of(BoundKind::rel, 1e-3);
  const auto stream = compressed(nullptr, array, options);
  const auto values = decompressed(nullptr, stream, array);
  for (std::uint64_t run = 0; run < setting("QUERN_GPU_RUNS", 100); ++run) {
    ASSERT_EQ(compressed(device_.get(), array, options), stream) << "run " << run;
    ASSERT_EQ(decompressed(device_.get(), stream, array), values) << "run " << run;
  }
}

}  // namespace
}  // namespace quern

int main(int argc, char** argv) {
  const auto devices = quern::cuda_devices();
  if (!devices.ok()) {
    std::printf("SKIP: %s\n", devices.status().text().c_str());
    return 77;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
