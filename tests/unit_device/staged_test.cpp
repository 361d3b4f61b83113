// Arrays in host memory, segments on a device (of the simulator): bytes and values as without it. Which types, data
// and shapes is tests/gpu's matter; here are the ways a device can fail, and orders it can run in.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

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

class StagedTest : public testing::SimulatedDeviceTest {
 protected:
  void TearDown() override {
    SimulatedDeviceTest::TearDown();
    EXPECT_GT(simt::counters().launches, 0u);
  }

  Vector<std::uint8_t> compress_on(Device* device, const OwnedArray& array, const CompressOptions& options,
                                   CompressReport* told = nullptr) {
    Vector<std::uint8_t> bytes;
    VectorSink sink(bytes);
    Execution execution;
    execution.device = device;
    const auto report = compress(array.view(), options, builtin_codecs(), execution, sink);
    EXPECT_TRUE(report.ok()) << report.status().text();
    if (report.ok() && device != nullptr && report->codec == "lorenzo") {
      EXPECT_TRUE(report->on_device);
    }
    if (report.ok() && told != nullptr) *told = report.value();
    return bytes;
  }

  Status decompress_on(Device* device, std::span<const std::uint8_t> stream, OwnedArray& out) {
    MemorySource source(stream);
    Execution execution;
    execution.device = device;
    return decompress(source, {out.bytes.data(), out.dtype, out.shape}, builtin_codecs(), execution).status();
  }

  /// Same bytes, same values, both ways, and the same account of masks and raw chunks.
  void compare(const OwnedArray& array, const CompressOptions& options, CompressReport* told = nullptr) {
    CompressReport host, device;
    const auto expected = compress_on(nullptr, array, options, &host);
    const auto stream = compress_on(device_.get(), array, options, &device);
    EXPECT_EQ(device.masked_elems, host.masked_elems);
    EXPECT_EQ(device.raw_chunks, host.raw_chunks);
    if (told != nullptr) *told = host;
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
};

CompressOptions lorenzo_options(BoundKind kind, double value) {
  CompressOptions options;
  options.codec = "lorenzo";
  options.bound = {kind, value};
  return options;
}

TEST_F(StagedTest, SegmentsAndSeeds_BytesAsOnTheHost) {
  // A few segments, ragged at every end. Chunks of wide elements have fewer of them, so that less makes a segment.
  struct Case {
    std::string_view layout;
    DType dtype;
    std::uint64_t width;
    std::uint64_t seed;
  };
  for (const Case& c : {Case{"1d", DType::u8, 800, 1}, Case{"2d:1", DType::f64, 230, 2},
                        Case{"3d:1,2", DType::f64, 230, 1}, Case{"3d:1,2", DType::f64, 230, 2}}) {
    if (quern::testing::kInstrumented && c.layout == "1d") continue;
    SCOPED_TRACE(std::string(c.layout) + " " + std::to_string(c.seed));
    const OwnedArray array =
        quern::testing::make_array(c.dtype, quern::testing::shape_of({15, 100, c.width}), Data::noise);
    CompressOptions options = lorenzo_options(BoundKind::abs, 2);
    options.settings = {{"layout", String(c.layout)}};
    const auto expected = compress_on(nullptr, array, options);
    device_.reset();
    // A warp masks a segment of a million cells, and nothing ends meanwhile.
    simt::reset({.seed = c.seed, .idle_steps = UINT64_C(4) << 30});
    device_ = std::move(open_cuda_device(1)).value();
    ASSERT_EQ(compress_on(device_.get(), array, options), expected);
    OwnedArray back = array;
    back.bytes.assign(array.bytes.size(), 0);
    ASSERT_TRUE(decompress_on(device_.get(), expected, back).ok());
    OwnedArray on_host = back;
    ASSERT_TRUE(decompress_on(nullptr, expected, on_host).ok());
    ASSERT_EQ(back.bytes, on_host.bytes);
  }
}

TEST_F(StagedTest, MasksOfEachForm_BytesAsOnTheHost) {
  const OwnedArray array =
      quern::testing::make_array(DType::f32, quern::testing::shape_of({9, 50, 67}), Data::nan_block);
  CompressOptions options = lorenzo_options(BoundKind::abs, 1e-2);
  options.settings = {{"mask", "1"}};
  compare(array, options);
  options.settings = {{"mask", "2"}};
  compare(array, options);
  const auto expected = compress_on(nullptr, array, options);
  Vector<std::uint8_t> bytes;
  VectorSink sink(bytes);
  Execution execution;
  execution.device = device_.get();
  const auto report = compress(array.view(), options, builtin_codecs(), execution, sink);
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_TRUE(report->on_device);
  ASSERT_EQ(bytes, expected);
  OwnedArray on_host = array, on_device = array;
  ASSERT_TRUE(decompress_on(nullptr, expected, on_host).ok());
  const std::uint64_t launches = simt::counters().launches;
  ASSERT_TRUE(decompress_on(device_.get(), expected, on_device).ok());
  EXPECT_GT(simt::counters().launches, launches);
  ASSERT_EQ(on_device.bytes, on_host.bytes);
}

TEST_F(StagedTest, Incompressible_RawChunksAsOnTheHost) {
  for (const DType dtype : {DType::u8, DType::f16, DType::f32, DType::f64, DType::i64})
    compare(quern::testing::make_array(dtype, quern::testing::shape_of({3, 50, 67}), Data::random_bits),
            lorenzo_options(BoundKind::lossless, 0));
}

/// 17 segments of 33 chunks of 64-bit elements, of few elements each: lanes are used again, and windows begin where
/// earlier ones ended.
const Shape kManySegments = quern::testing::shape_of({136, 1, 2112});

TEST_F(StagedTest, MoreSegmentsThanLanesHold_WindowsMoveOn) {
  CompressOptions options = lorenzo_options(BoundKind::rel, 1e-4);
  options.settings = {{"layout", "3d:1,2"}};
  CompressReport report;
  compare(quern::testing::make_array(DType::f64, kManySegments, Data::offset_signal), options, &report);
  EXPECT_EQ(report.chunks, 17u * 33u);
  options.bound = {BoundKind::lossless, 0};
  compare(quern::testing::make_array(DType::f64, kManySegments, Data::random_bits), options);
}

TEST_F(StagedTest, MasksInManySegments_MadeAndRestoredOnTheDevice) {
  // Some segments have a mask, some do not, some are nothing but special values.
  OwnedArray array = quern::testing::make_array(DType::f64, kManySegments, Data::offset_signal);
  for (std::uint64_t i = 0; i < array.shape.elems(); ++i) {
    const std::uint64_t z = i / 2112, x = i % 2112;
    const bool gap = (z / 8 % 3 == 0 && (x * 7 + z * z) % 1000 < 300) || z / 16 == 5;
    if (gap) store_element(array, i, std::numeric_limits<double>::quiet_NaN());
    if (z / 8 == 7 && x > 1000) store_element(array, i, -9999);
  }
  CompressOptions options = lorenzo_options(BoundKind::abs, 1e-2);
  options.settings = {{"layout", "3d:1,2"}};
  options.fill_bits = {std::bit_cast<std::uint64_t>(-9999.0)};
  device_.reset();
  simt::reset({.idle_steps = UINT64_C(4) << 30});
  device_ = std::move(open_cuda_device(0)).value();
  CompressReport report;
  compare(array, options, &report);
  EXPECT_EQ(report.chunks, 17u * 33u);
  EXPECT_GT(report.masked_elems, array.shape.elems() / 10);
}

TEST_F(StagedTest, DamagedAndSealedAgain_AsOnTheHost) {
  // Damage that checksums do not find: tables, chunks and masks that no encoder writes.
  for (const Data data : {Data::nan_block, Data::offset_signal}) {
    const OwnedArray array = quern::testing::make_array(DType::f32, quern::testing::shape_of({2, 40, 70}), data);
    const auto stream = compress_on(nullptr, array, lorenzo_options(BoundKind::rel, 1e-2));
    std::size_t decoded = 0;
    for (std::size_t i = 0; i < stream.size(); i += 1 + stream.size() / 400) {
      Vector<std::uint8_t> damaged = stream;
      damaged[i] ^= static_cast<std::uint8_t>(1 + i % 255);
      damaged = fuzz::reseal(damaged);
      OwnedArray on_host = array;
      OwnedArray on_device = array;
      on_host.bytes.assign(array.bytes.size(), 0xa5);
      on_device.bytes.assign(array.bytes.size(), 0xa5);
      const Status expected = decompress_on(nullptr, damaged, on_host);
      const Status status = decompress_on(device_.get(), damaged, on_device);
      ASSERT_EQ(status.text(), expected.text()) << "byte " << i;
      ASSERT_EQ(simt::failure(), "");
      if (!expected.ok()) continue;
      ++decoded;
      ASSERT_EQ(on_device.bytes, on_host.bytes) << "byte " << i;
    }
    EXPECT_GT(decoded, 0u);
  }
}

TEST_F(StagedTest, CodecWithoutKernels_HostDoesIt) {
  const OwnedArray array = quern::testing::make_array(DType::f32, quern::testing::shape_of({40, 50}), Data::smooth);
  CompressOptions options;
  options.codec = "lossless";
  Vector<std::uint8_t> bytes;
  VectorSink sink(bytes);
  Execution execution;
  execution.device = device_.get();
  const auto report = compress(array.view(), options, builtin_codecs(), execution, sink);
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->on_device);
  EXPECT_EQ(bytes, compress_on(nullptr, array, options));
  compare(array, lorenzo_options(BoundKind::abs, 1e-3));
}

TEST_F(StagedTest, EveryByteDamaged_RefusedAsOnTheHost) {
  const OwnedArray array =
      quern::testing::make_array(DType::f32, quern::testing::shape_of({2, 40, 70}), Data::nan_block);
  const auto stream = compress_on(device_.get(), array, lorenzo_options(BoundKind::rel, 1e-2));
  for (std::size_t i = 0; i < stream.size(); i += 1 + stream.size() / 400) {
    auto damaged = stream;
    damaged[i] ^= static_cast<std::uint8_t>(1 + i % 255);
    OwnedArray on_host = array;
    OwnedArray on_device = array;
    const Status expected = decompress_on(nullptr, damaged, on_host);
    const Status status = decompress_on(device_.get(), damaged, on_device);
    ASSERT_FALSE(expected.ok());
    ASSERT_EQ(status.text(), expected.text()) << "byte " << i;
    ASSERT_EQ(simt::failure(), "");
  }
}

TEST_F(StagedTest, EveryAllocationFails_StatusAndNothingLost) {
  const OwnedArray array = quern::testing::make_array(DType::f32, quern::testing::shape_of({9, 40, 70}), Data::smooth);
  const CompressOptions options = lorenzo_options(BoundKind::abs, 1e-2);
  const auto stream = compress_on(device_.get(), array, options);
  for (std::uint64_t n = 1; n <= 8; ++n) {
    device_ = std::move(open_cuda_device(0)).value();  // without memory from before
    simt::fail_allocation(n);
    Vector<std::uint8_t> bytes;
    VectorSink sink(bytes);
    Execution execution;
    execution.device = device_.get();
    EXPECT_EQ(compress(array.view(), options, builtin_codecs(), execution, sink).status().code(),
              StatusCode::out_of_memory);
    device_ = std::move(open_cuda_device(0)).value();
    simt::fail_allocation(n);
    OwnedArray back = array;
    EXPECT_EQ(decompress_on(device_.get(), stream, back).code(), StatusCode::out_of_memory);
  }
  simt::fail_allocation(0);
  compare(array, options);
}

TEST(CudaDevices, NoneOrWrongNumber_Said) {
  simt::reset({.devices = 0});
  EXPECT_EQ(open_cuda_device(0).status().code(), StatusCode::device_unavailable);
  simt::reset({.devices = 2});
  EXPECT_EQ(open_cuda_device(2).status().code(), StatusCode::device_unavailable);
  EXPECT_EQ(open_cuda_device(-1).status().code(), StatusCode::device_unavailable);
  EXPECT_EQ(cuda_devices()->size(), 2u);
}

}  // namespace
}  // namespace quern
