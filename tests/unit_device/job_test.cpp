// Streams of codecs whose chunks a host takes apart, decoded on a device of the simulator: values and results as
// without it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include <quern/compress.h>
#include <quern/device.h>
#include <quern/stream_io.h>

#include "tests/fuzz/reseal.h"
#include "tests/simt/simt.h"
#include "tests/support/array_cases.h"
#include "tests/support/instrumented.h"
#include "tests/unit_device/simulated_device.h"

namespace quern {
namespace {

using quern::testing::Data;
using quern::testing::OwnedArray;

class JobTest : public testing::SimulatedDeviceTest {
 protected:
  static CompressOptions stencil(double bound, const char* layout = "levels") {
    CompressOptions options;
    options.codec = "stencil";
    options.bound = {BoundKind::rel, bound};
    options.settings = {{"layout", layout}};
    return options;
  }
  static Vector<std::uint8_t> compress_on_host(const OwnedArray& array, const CompressOptions& options) {
    Vector<std::uint8_t> bytes;
    VectorSink sink(bytes);
    const auto report = compress(array.view(), options, builtin_codecs(), {}, sink);
    EXPECT_TRUE(report.ok()) << report.status().text();
    return bytes;
  }
  static Result<DecompressReport> decompress_on(Device* device, std::span<const std::uint8_t> stream, OwnedArray& out) {
    MemorySource source(stream);
    Execution execution;
    execution.device = device;
    return decompress(source, {out.bytes.data(), out.dtype, out.shape}, builtin_codecs(), execution);
  }
  /// Same values; how many launches it took.
  std::uint64_t compare(const OwnedArray& array, const CompressOptions& options) {
    const auto stream = compress_on_host(array, options);
    OwnedArray expected = array;
    OwnedArray back = array;
    expected.bytes.assign(array.bytes.size(), 0xa5);
    back.bytes.assign(array.bytes.size(), 0x5a);
    EXPECT_TRUE(decompress_on(nullptr, stream, expected).ok());
    const std::uint64_t before = simt::counters().launches;
    const auto report = decompress_on(device_.get(), stream, back);
    EXPECT_TRUE(report.ok()) << report.status().text() << " " << simt::failure();
    EXPECT_TRUE(report.ok() && report->on_device);
    EXPECT_EQ(back.bytes, expected.bytes);
    return simt::counters().launches - before;
  }
};

TEST_F(JobTest, TypesAndShapes_ValuesAsOnTheHost) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::u16, DType::i32})
    for (const char* layout : {"levels", "planes", "raster", "wavelet"}) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + layout);
      EXPECT_EQ(compare(quern::testing::make_array(dtype, quern::testing::shape_of({9, 21, 34}), Data::smooth),
                        stencil(1e-2, layout)),
                3u);
    }
}

TEST_F(JobTest, Masks_RestoredByTheHost) {
  for (const Data data : {Data::nan_block, Data::nan_scattered})
    EXPECT_EQ(
        compare(quern::testing::make_array(DType::f32, quern::testing::shape_of({9, 21, 34}), data), stencil(1e-2)),
        3u);
}

/// A codec that a device decodes and the host encodes.
CompressOptions interp(BoundKind kind, double bound) {
  CompressOptions options;
  options.codec = "interp";
  options.bound = {kind, bound};
  return options;
}

TEST_F(JobTest, Interp_ValuesAsOnTheHost) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::u8})
    for (const Data data : {Data::smooth, Data::nan_block, Data::land}) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + quern::testing::data_name(data));
      EXPECT_EQ(compare(quern::testing::make_array(dtype, quern::testing::shape_of({9, 21, 34}), data),
                        interp(BoundKind::rel, 1e-3)),
                2u);
    }
}

TEST_F(JobTest, InterpDamagedAndSealedAgain_AsOnTheHost) {
  const OwnedArray array = quern::testing::make_array(DType::f32, quern::testing::shape_of({40, 70}), Data::nan_block);
  const auto stream = compress_on_host(array, interp(BoundKind::rel, 1e-2));
  std::size_t decoded = 0;
  std::size_t refused = 0;
  for (std::size_t i = 0; i < stream.size(); i += 1 + stream.size() / 60) {
    Vector<std::uint8_t> damaged = stream;
    damaged[i] ^= static_cast<std::uint8_t>(1 + i % 255);
    damaged = fuzz::reseal(damaged);
    OwnedArray expected = array;
    OwnedArray back = array;
    const auto host = decompress_on(nullptr, damaged, expected);
    const auto report = decompress_on(device_.get(), damaged, back);
    ASSERT_EQ(report.status().text(), host.status().text()) << "byte " << i;
    ASSERT_EQ(simt::failure(), "");
    ++(host.ok() ? decoded : refused);
    if (host.ok()) {
      ASSERT_EQ(back.bytes, expected.bytes) << "byte " << i;
    }
  }
  EXPECT_GT(decoded, 0u);
  EXPECT_GT(refused, 10u);
}

TEST_F(JobTest, ManyChunksAndLanes_ValuesAsOnTheHost) {
  // More chunks of a line than a lane takes when the device is small; some of them constant, some raw.
  device_.reset();
  simt::reset({.memory_bytes = UINT64_C(96) << 20});
  device_ = std::move(open_cuda_device(0)).value();
  OwnedArray array = quern::testing::make_array(DType::f32, quern::testing::shape_of({2200000}), Data::smooth);
  std::uint32_t bits = 1;
  for (std::uint64_t i = 0; i < array.shape.elems(); ++i) {
    bits = bits * 1664525 + 1013904223;
    const float value = i / 262144 == 2 ? 3.0F : static_cast<float>(bits) * 1e3F;
    if (i / 262144 == 2 || i / 262144 == 4) std::memcpy(array.bytes.data() + 4 * i, &value, 4);
  }
  CompressOptions options = stencil(1e-3);
  options.bound = {BoundKind::abs, 1e-3};
  EXPECT_GT(compare(array, options), 3u);
}

TEST_F(JobTest, ChunksOnALattice_ValuesAsOnTheHost) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const char* layout : {"levels", "planes", "raster", "wavelet"}) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + layout);
      OwnedArray array = quern::testing::make_array(dtype, quern::testing::shape_of({9, 21, 34}), Data::smooth);
      for (std::uint64_t i = 0; i < array.shape.elems(); ++i) {
        const double place = std::round(40 * std::sin(0.01 * static_cast<double>(i)) + static_cast<double>(i % 3)) / 4;
        const auto single = static_cast<float>(place);
        if (dtype == DType::f32) std::memcpy(array.bytes.data() + 4 * i, &single, 4);
        if (dtype == DType::f64) std::memcpy(array.bytes.data() + 8 * i, &place, 8);
      }
      CompressOptions options = stencil(1e-3, layout);
      options.bound = {BoundKind::abs, 0.02};
      // The codec's bytes without a lattice would be more: places are a dozen codes apart.
      EXPECT_EQ(compare(array, options), 3u);
    }
  }
}

TEST_F(JobTest, ChunksThatHardlyCompress_TakeMoreWaves) {
  if (quern::testing::kInstrumented) GTEST_SKIP() << "takes minutes when instrumented";
  OwnedArray array = quern::testing::make_array(DType::f32, quern::testing::shape_of({2400000}), Data::smooth);
  std::uint32_t bits = 1;
  for (std::uint64_t i = 0; i < array.shape.elems(); ++i) {
    bits = bits * 1664525 + 1013904223;
    const float value = static_cast<float>(bits >> 8);
    std::memcpy(array.bytes.data() + 4 * i, &value, 4);
  }
  CompressOptions options = stencil(1e-3, "raster");
  options.bound = {BoundKind::abs, 4};  // some 22 bits an element
  const std::uint64_t noise = compare(array, options);
  options.bound = {BoundKind::abs, 1e6};
  const std::uint64_t quiet = compare(array, options);
  EXPECT_EQ(quiet, 3u);
  EXPECT_EQ(noise, 6u);
}

TEST_F(JobTest, Memory_IsWhatAWaveNeeds) {
  if (quern::testing::kInstrumented) GTEST_SKIP() << "a sanitizer's memory is not what is counted";
  // Ten chunks of a megabyte of values each, all in one wave: two lanes of values, classes and jobs.
  const OwnedArray array = quern::testing::make_array(DType::f32, quern::testing::shape_of({2600000}), Data::smooth);
  const auto stream = compress_on_host(array, JobTest::stencil(1e-3));
  const auto decodes = [&](std::uint64_t limit) {
    OwnedArray back = array;
    MemorySource source(stream);
    Execution execution;
    execution.device = device_.get();
    execution.memory_limit = limit;
    return decompress(source, {back.bytes.data(), back.dtype, back.shape}, builtin_codecs(), execution).status();
  };
  const Status status = decodes(UINT64_C(120) << 20);  // the host's decoder takes half of that
  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(decodes(UINT64_C(16) << 20).code(), StatusCode::memory_limit);
}

TEST_F(JobTest, DamagedAndSealedAgain_AsOnTheHost) {
  // Damage that checksums do not find.
  for (const char* layout : {"levels", "raster", "wavelet"}) {
    const Data data = layout[0] == 'l' ? Data::nan_block : Data::smooth;
    const OwnedArray array = quern::testing::make_array(DType::f32, quern::testing::shape_of({2, 40, 70}), data);
    const auto stream = compress_on_host(array, stencil(1e-2, layout));
    std::size_t decoded = 0;
    for (std::size_t i = 0; i < stream.size(); i += 1 + stream.size() / 50) {
      Vector<std::uint8_t> damaged = stream;
      damaged[i] ^= static_cast<std::uint8_t>(1 + i % 255);
      damaged = fuzz::reseal(damaged);
      OwnedArray expected = array;
      OwnedArray back = array;
      const auto host = decompress_on(nullptr, damaged, expected);
      const auto report = decompress_on(device_.get(), damaged, back);
      ASSERT_EQ(report.status().text(), host.status().text()) << "byte " << i;
      ASSERT_EQ(simt::failure(), "");
      if (!host.ok()) continue;
      ++decoded;
      ASSERT_EQ(back.bytes, expected.bytes) << "byte " << i;
    }
    EXPECT_GT(decoded, 0u);
  }
}

TEST_F(JobTest, EveryAllocationFails_StatusAndNothingLost) {
  const OwnedArray array = quern::testing::make_array(DType::f32, quern::testing::shape_of({9, 40, 70}), Data::smooth);
  const auto stream = compress_on_host(array, stencil(1e-2));
  for (std::uint64_t n = 1; n <= 3; ++n) {
    device_ = std::move(open_cuda_device(0)).value();  // without memory from before
    simt::fail_allocation(n);
    OwnedArray back = array;
    EXPECT_EQ(decompress_on(device_.get(), stream, back).status().code(), StatusCode::out_of_memory);
  }
  simt::fail_allocation(0);
  compare(array, stencil(1e-2));
}

}  // namespace
}  // namespace quern
