// Arrays of the stencil and the interp codec compressed with a device of the simulator: the bytes of the host, and who
// made them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>

#include <quern/compress.h>
#include <quern/device.h>
#include <quern/stream_io.h>

#include "tests/simt/simt.h"
#include "tests/support/array_cases.h"
#include "tests/unit_device/simulated_device.h"

namespace quern {
namespace {

using quern::testing::Data;
using quern::testing::make_array;
using quern::testing::OwnedArray;
using quern::testing::shape_of;

class JobEncodeTest : public testing::SimulatedDeviceTest {
 protected:
  static CompressOptions stencil(BoundKind kind, double bound, const char* layout = "raster") {
    CompressOptions options;
    options.codec = "stencil";
    options.bound = {kind, bound};
    options.settings = {{"layout", layout}};
    return options;
  }
  static CompressOptions for_psnr(double bound) {
    CompressOptions options = stencil(BoundKind::rel, bound, "wavelet");
    options.goal = "psnr";
    return options;
  }
  static Result<CompressReport> compress_on(Device* device, const OwnedArray& array, const CompressOptions& options,
                                            Vector<std::uint8_t>& bytes) {
    VectorSink sink(bytes);
    Execution execution;
    execution.device = device;
    return compress(array.view(), options, builtin_codecs(), execution, sink);
  }
  /// Same bytes; how many launches it took.
  std::uint64_t compare(const OwnedArray& array, const CompressOptions& options) {
    Vector<std::uint8_t> expected;
    Vector<std::uint8_t> bytes;
    const auto host = compress_on(nullptr, array, options, expected);
    EXPECT_TRUE(host.ok()) << host.status().text();
    const std::uint64_t before = simt::counters().launches;
    const auto report = compress_on(device_.get(), array, options, bytes);
    EXPECT_TRUE(report.ok()) << report.status().text() << " " << simt::failure();
    EXPECT_TRUE(report.ok() && report->on_device);
    EXPECT_EQ(bytes, expected);
    if (report.ok() && host.ok()) {
      EXPECT_EQ(report->masked_elems, host->masked_elems);
      EXPECT_EQ(report->raw_chunks, host->raw_chunks);
    }
    return simt::counters().launches - before;
  }
};

TEST_F(JobEncodeTest, TypesAndData_BytesOfTheHost) {
  for (const DType dtype : quern::testing::all_dtypes()) {
    if (dtype == DType::i64 || dtype == DType::u64) continue;
    for (const Data data : {Data::smooth, Data::nan_scattered, Data::nan_block, Data::land, Data::inf_scattered,
                            Data::minus_zero, Data::spike}) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + quern::testing::data_name(data));
      compare(make_array(dtype, shape_of({5, 13, 22}), data), stencil(BoundKind::rel, 1e-3));
    }
  }
}

TEST_F(JobEncodeTest, Smooth_TakesTwoLaunches) {
  for (const char* layout : {"raster", "raster:1d", "raster:2d:1"})
    EXPECT_EQ(
        compare(make_array(DType::f32, shape_of({9, 21, 34}), Data::smooth), stencil(BoundKind::rel, 1e-3, layout)),
        2u);
}

TEST_F(JobEncodeTest, LevelsTakeALaunchAClassAndThree) {
  // What comes before the first class, symbols, and lanes. Of fewer axes there are fewer classes.
  const auto launches = [&](std::initializer_list<std::uint64_t> extents) {
    return compare(make_array(DType::f64, shape_of(extents), Data::smooth), stencil(BoundKind::rel, 1e-8, "levels"));
  };
  EXPECT_EQ(launches({11, 23, 40}), 7u + 3u);
  EXPECT_EQ(launches({90, 100}), 3u + 3u);
  EXPECT_EQ(launches({9000}), 1u + 3u);
}

TEST_F(JobEncodeTest, PlanesTakeALaunchARound) {
  // One before the first round, two rounds, perhaps the first of them again, symbols, and lanes.
  for (const auto& shape : {shape_of({11, 45, 40}), shape_of({25, 400}), shape_of({5, 12, 21, 30})}) {
    const auto array = make_array(DType::f64, shape, Data::smooth);
    const std::uint64_t launches = compare(array, stencil(BoundKind::rel, 1e-8, "planes"));
    EXPECT_TRUE(launches == 5 || launches == 6) << shape.text() << " " << launches;
  }
  CompressOptions quick = stencil(BoundKind::rel, 1e-8, "planes");
  quick.goal = "speed";
  EXPECT_EQ(compare(make_array(DType::f64, shape_of({11, 45, 40}), Data::smooth), quick), 4u);
}

TEST_F(JobEncodeTest, Planes_BytesOfTheHost) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::u16})
    for (const Data data : {Data::smooth, Data::nan_block, Data::inf_scattered, Data::noise, Data::land}) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + quern::testing::data_name(data));
      compare(make_array(dtype, shape_of({9, 40, 41}), data), stencil(BoundKind::rel, 1e-4, "planes"));
    }
}

TEST_F(JobEncodeTest, Levels_BytesOfTheHost) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::i16})
    for (const Data data : {Data::smooth, Data::nan_block, Data::inf_scattered, Data::noise, Data::land}) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + quern::testing::data_name(data));
      compare(make_array(dtype, shape_of({16, 23, 32}), data), stencil(BoundKind::rel, 1e-4, "levels"));
    }
}

TEST_F(JobEncodeTest, LevelsOfChunksOfManyKinds_BytesOfTheHost) {
  // Lines of which some are constant, some raw, some have few residuals and the last has few elements, in more than one
  // wave.
  device_.reset();
  simt::reset({.memory_bytes = UINT64_C(160) << 20});
  device_ = std::move(open_cuda_device(0)).value();
  OwnedArray array = make_array(DType::f32, shape_of({1049000}), Data::smooth);
  std::uint32_t bits = 1;
  for (std::uint64_t i = 0; i < array.shape.elems(); ++i) {
    bits = bits * 1664525 + 1013904223;
    const std::uint64_t kind = i / 131072 % 4;
    const float value = kind == 1 ? 3.0F : kind == 2 ? static_cast<float>(bits) * 1e3F : 1e-3F * static_cast<float>(i);
    if (kind != 0) std::memcpy(array.bytes.data() + 4 * i, &value, 4);
  }
  EXPECT_GT(compare(array, stencil(BoundKind::abs, 1e-3, "levels")), 4u);
}

TEST_F(JobEncodeTest, WhatTheDeviceLeaves_BytesOfTheHost) {
  for (const Data data : {Data::constant, Data::zeros, Data::noise, Data::random_bits, Data::all_nan, Data::wide_range,
                          Data::denormal, Data::alternating_extremes, Data::ramp}) {
    SCOPED_TRACE(quern::testing::data_name(data));
    for (const DType dtype : {DType::f32, DType::i16})
      compare(make_array(dtype, shape_of({4, 13, 22}), data), stencil(BoundKind::abs, 1e-3));
  }
}

TEST_F(JobEncodeTest, Lattices_BytesOfTheHost) {
  OwnedArray array = make_array(DType::f64, shape_of({6, 20, 30}), Data::smooth);
  for (std::uint64_t i = 0; i < array.shape.elems(); ++i) {
    double v = 0;
    std::memcpy(&v, array.bytes.data() + 8 * i, 8);
    v = std::round(v * 100 + 1000) / 100;  // no zero with a sign
    std::memcpy(array.bytes.data() + 8 * i, &v, 8);
  }
  EXPECT_EQ(compare(array, stencil(BoundKind::abs, 4e-3)), 2u);
}

TEST_F(JobEncodeTest, ManyChunksAndLanes_BytesOfTheHost) {
  // More chunks of a line than a lane takes when the device is small; some of them constant, some raw.
  device_.reset();
  simt::reset({.memory_bytes = UINT64_C(96) << 20});
  device_ = std::move(open_cuda_device(0)).value();
  OwnedArray array = make_array(DType::f32, shape_of({1100000}), Data::smooth);
  std::uint32_t bits = 1;
  for (std::uint64_t i = 0; i < array.shape.elems(); ++i) {
    bits = bits * 1664525 + 1013904223;
    const float value = i / 262144 == 2 ? 3.0F : static_cast<float>(bits) * 1e3F;
    if (i / 262144 == 2 || i / 262144 == 1) std::memcpy(array.bytes.data() + 4 * i, &value, 4);
  }
  EXPECT_GT(compare(array, stencil(BoundKind::abs, 1e-3)), 2u);
}

TEST_F(JobEncodeTest, TheWaveletTakesFiveLaunches) {
  // Transforms, codes, symbols, corrections, lanes. For a PSNR the step of coefficients is given.
  for (const auto& shape : {shape_of({11, 45, 40}), shape_of({70, 90}), shape_of({9000}), shape_of({5, 12, 21, 30})})
    for (const double bound : {1e-2, 1e-5})
      EXPECT_EQ(compare(make_array(DType::f64, shape, Data::smooth), for_psnr(bound)), 5u) << shape.text() << bound;
}

TEST_F(JobEncodeTest, TheWavelet_BytesOfTheHost) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i32, DType::u16})
    for (const Data data : {Data::smooth, Data::nan_block, Data::inf_scattered, Data::noise, Data::land,
                            Data::minus_zero, Data::spike, Data::wide_range}) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + quern::testing::data_name(data));
      compare(make_array(dtype, shape_of({9, 40, 41}), data), for_psnr(1e-4));
    }
}

TEST_F(JobEncodeTest, TheWaveletOfASmallChunk_TriesSteps) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto array = make_array(dtype, shape_of({11, 45, 40}), Data::smooth);
    const std::uint64_t launches = compare(array, stencil(BoundKind::rel, 1e-3, "wavelet"));
    // Three steps, and either the last one's corrections again or one of the others.
    EXPECT_TRUE(launches == 12 || launches == 14) << launches;
  }
}

TEST_F(JobEncodeTest, TheWaveletOfALargeChunk_TakesTheStepOfItsMiddle) {
  const OwnedArray array = make_array(DType::f32, shape_of({66, 90, 90}), Data::smooth);
  EXPECT_EQ(compare(array, stencil(BoundKind::rel, 1e-3, "wavelet")), 5u);
}

TEST_F(JobEncodeTest, InterpTakesThreeLaunches) {
  CompressOptions options = stencil(BoundKind::rel, 1e-3, "auto");
  options.codec = "interp";
  for (const auto& shape : {shape_of({9000}), shape_of({70, 90}), shape_of({11, 45, 40}), shape_of({5, 12, 21, 30})})
    EXPECT_EQ(compare(make_array(DType::f64, shape, Data::smooth), options), 3u) << shape.text();
}

TEST_F(JobEncodeTest, Interp_BytesOfTheHost) {
  CompressOptions options = stencil(BoundKind::rel, 1e-4, "auto");
  options.codec = "interp";
  for (const DType dtype : {DType::f32, DType::f64, DType::i32})
    for (const Data data : {Data::smooth, Data::nan_block, Data::inf_scattered, Data::noise, Data::land,
                            Data::minus_zero, Data::spike, Data::wide_range}) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + quern::testing::data_name(data));
      compare(make_array(dtype, shape_of({9, 20, 31}), data), options);
    }
  options.bound = {BoundKind::abs, 1e-3};
  compare(make_array(DType::f32, shape_of({4, 13, 22}), Data::constant), options);
}

TEST_F(JobEncodeTest, EveryAllocationFails_StatusAndNothingLost) {
  const OwnedArray array = make_array(DType::f32, shape_of({9, 20, 30}), Data::smooth);
  for (const auto& [layout, allocations] :
       {std::pair("raster", 4u), std::pair("levels", 5u), std::pair("wavelet", 4u)}) {
    CompressOptions options = stencil(BoundKind::rel, 1e-3, layout);
    options.goal = "psnr";
    for (std::uint64_t n = 1; n <= allocations; ++n) {
      device_ = std::move(open_cuda_device(0)).value();  // without memory from before
      simt::fail_allocation(n);
      Vector<std::uint8_t> bytes;
      EXPECT_EQ(compress_on(device_.get(), array, options, bytes).status().code(), StatusCode::out_of_memory) << n;
    }
    simt::fail_allocation(0);
    compare(array, options);
  }
}

}  // namespace
}  // namespace quern
