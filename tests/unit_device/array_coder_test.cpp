// Arrays in a device's memory (the simulator's): bytes and values as on the host, one array or many, queued or replayed
// from a graph, and what becomes of arguments and streams that make no sense.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/gpu/device_job.h"
#include "tests/simt/cuda_test.h"
#include "tests/support/thorough.h"

namespace quern {
namespace {

using quern::testing::Bytes;
using quern::testing::Data;
using quern::testing::decoded_on_host;
using quern::testing::DeviceBuffer;
using quern::testing::DeviceJob;
using quern::testing::lorenzo;
using quern::testing::on_host;
using quern::testing::OwnedArray;
using quern::testing::shape_of;
using quern::testing::Stream;

class ArrayCoderTest : public quern::testing::CudaTest {
 protected:
  static std::unique_ptr<DeviceArrayCoder> compressor(const OwnedArray& like, const CompressOptions& options) {
    auto coder = device_compressor(0, like.dtype, like.shape, options);
    EXPECT_TRUE(coder.ok()) << coder.status().text();
    return coder.ok() ? std::move(coder).value() : nullptr;
  }
  static Bytes bytes_of(const OwnedArray& array) { return {array.bytes.begin(), array.bytes.end()}; }

  /// Compresses arrays of one type and shape in one call, and decompresses what came out in another.
  void compare(const std::vector<OwnedArray>& arrays, const CompressOptions& options) {
    const OwnedArray& like = arrays.front();
    const auto coder = compressor(like, options);
    ASSERT_NE(coder, nullptr);
    std::vector<Bytes> expected;
    std::size_t most = 1;
    for (const OwnedArray& array : arrays) {
      expected.push_back(on_host(array, options));
      most = std::max(most, expected.back().size());
    }
    DeviceJob job(*coder, arrays.size(), like.bytes.size(), most);
    for (std::size_t i = 0; i < arrays.size(); ++i) job.array(i).put(bytes_of(arrays[i]));
    std::vector<std::uint64_t> room;
    for (const Bytes& bytes : expected) room.push_back(bytes.size());
    job.room().put(room);  // exactly what each takes
    Stream queue;
    const Status queued = job.compress(queue);
    ASSERT_TRUE(queued.ok()) << queued.text();
    ASSERT_EQ(cudaStreamSynchronize(queue), cudaSuccess) << simt::failure();
    ASSERT_EQ(simt::failure(), "");
    EXPECT_EQ(job.statuses(), std::vector<std::int32_t>(arrays.size(), 0));
    EXPECT_EQ(job.sizes(), room);
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      ASSERT_EQ(job.stream(i).get(expected[i].size()), expected[i]) << "array " << i;
      job.array(i).put(Bytes(like.bytes.size(), 0xa5));
    }
    ASSERT_TRUE(job.decompress(queue).ok());
    ASSERT_EQ(cudaStreamSynchronize(queue), cudaSuccess) << simt::failure();
    ASSERT_EQ(simt::failure(), "");
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      OwnedArray back = like;
      ASSERT_EQ(decoded_on_host(expected[i], back), StatusCode::ok);
      EXPECT_EQ(job.outcomes()[i].status, 0);
      EXPECT_EQ(job.outcomes()[i].bytes, like.bytes.size());
      ASSERT_EQ(job.array(i).get(), bytes_of(back)) << "array " << i;
    }
  }
  void compare(const OwnedArray& array, const CompressOptions& options) { compare(std::vector{array}, options); }
};

TEST_F(ArrayCoderTest, EveryTypeAndKindOfData_BytesAsOnTheHost) {
  // Neighbouring types share the kinds of data.
  std::size_t turn = 0;
  for (const DType dtype : quern::testing::all_dtypes()) {
    ++turn;
    for (const Data data : quern::testing::all_data()) {
      if (!quern::testing::thorough() && ++turn % 2 != 0) continue;
      const OwnedArray array = quern::testing::make_array(dtype, shape_of({3, 17, 40}), data);
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + quern::testing::data_name(data));
      compare(array, lorenzo(BoundKind::rel, 1e-3));
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(ArrayCoderTest, EveryBound_BytesAsOnTheHost) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i16})
    for (const Data data : {Data::land, Data::noise, Data::minus_zero, Data::nan_scattered}) {
      const OwnedArray array = quern::testing::make_array(dtype, shape_of({40, 90}), data);
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + quern::testing::data_name(data));
      compare(array, lorenzo(BoundKind::lossless, 0));
      compare(array, lorenzo(BoundKind::abs, 0.01));
      compare(array, lorenzo(BoundKind::abs, 0));
      if (is_float(dtype)) compare(array, lorenzo(BoundKind::pwrel, 0.01));
      CompressOptions given = lorenzo(BoundKind::rel, 0.01);
      given.range = ValueRange{-1.5, 7};
      compare(array, given);
      if (HasFatalFailure()) return;
    }
}

TEST_F(ArrayCoderTest, StepsWithSlack_BytesAsOnTheHost) {
  // Codes of some 20000, of which every few hundredth misses the bound under a step of twice the bound; and larger
  // ones.
  for (const double bound : {0.2, 0.01})
    for (const Shape& shape : {shape_of({5000}), shape_of({40, 90}), shape_of({9, 17, 40})}) {
      OwnedArray array = quern::testing::make_array(DType::f32, shape, Data::smooth);
      for (std::uint64_t i = 0; i < shape.elems(); ++i)
        quern::testing::store_element(array, i, 12000 + static_cast<double>(i * 40503 % 65536) / 1024);
      SCOPED_TRACE(shape.text());
      compare(array, lorenzo(BoundKind::abs, bound));
      if (HasFatalFailure()) return;
    }
}

TEST_F(ArrayCoderTest, EdgeShapes_BytesAsOnTheHost) {
  for (const Shape& shape : quern::testing::edge_shapes())
    for (const Data data : {Data::smooth, Data::nan_block}) {
      const OwnedArray array = quern::testing::make_array(DType::f32, shape, data);
      SCOPED_TRACE(shape.text());
      CompressOptions options = lorenzo(BoundKind::abs, 1e-2);
      if (!device_compressor(0, array.dtype, shape, options).ok()) options.settings = {{"layout", "1d"}};
      compare(array, options);
      if (HasFatalFailure()) return;
    }
}

TEST_F(ArrayCoderTest, FillsMetadataAndSearch_BytesAsOnTheHost) {
  OwnedArray array = quern::testing::make_array(DType::f32, shape_of({60, 100}), Data::smooth);
  std::mt19937 random(7);
  for (std::size_t i = 0; i < array.shape.elems(); ++i) {
    if (random() % 5 == 0) quern::testing::store_element(array, i, -9999);
    if (random() % 50 == 0) quern::testing::store_element(array, i, 0);
  }
  CompressOptions options = lorenzo(BoundKind::rel, 1e-3);
  options.fill_bits = {0xc61c3c00, 0};  // -9999 and 0
  options.metadata.assign(3000, 'm');
  compare(array, options);
  options.find_repeated = false;
  compare(array, options);
  options.fill_bits.clear();
  compare(array, options);
}

TEST_F(ArrayCoderTest, OneArray_TakesTheLaunchesOfTheTable) {
  // docs/gpu-design.md, "Launches of a call".
  struct Case {
    Shape shape;
    BoundKind kind;
    std::uint64_t compress;
    std::uint64_t decompress;
  };
  for (const Case& c :
       {Case{shape_of({5000}), BoundKind::abs, 19, 14}, Case{shape_of({40, 90}), BoundKind::abs, 23, 14},
        Case{shape_of({9, 17, 40}), BoundKind::abs, 26, 14}, Case{shape_of({9, 17, 40}), BoundKind::rel, 27, 14}}) {
    SCOPED_TRACE(c.shape.text());
    const OwnedArray array = quern::testing::make_array(DType::f32, c.shape, Data::smooth);
    const CompressOptions options = lorenzo(c.kind, 1e-2);
    const Bytes expected = on_host(array, options);
    const auto coder = compressor(array, options);
    DeviceJob job(*coder, 1, array.bytes.size(), expected.size());
    job.array(0).put(bytes_of(array));
    job.room().put({expected.size()});
    Stream queue;
    const std::uint64_t before = simt::counters().launches;
    ASSERT_TRUE(job.compress(queue).ok());
    const std::uint64_t between = simt::counters().launches;
    EXPECT_EQ(between - before, c.compress);
    ASSERT_EQ(cudaStreamSynchronize(queue), cudaSuccess) << simt::failure();
    ASSERT_EQ(job.sizes(), std::vector<std::uint64_t>{expected.size()});
    ASSERT_TRUE(job.decompress(queue).ok());
    EXPECT_EQ(simt::counters().launches - between, c.decompress);
    ASSERT_EQ(cudaStreamSynchronize(queue), cudaSuccess) << simt::failure();
    EXPECT_EQ(job.outcomes()[0].status, 0);
  }
}

TEST_F(ArrayCoderTest, RelativeBound_NoHostWaitsForTheRange) {
  const OwnedArray array = quern::testing::make_array(DType::f32, shape_of({40, 90}), Data::smooth);
  DeviceBuffer<std::uint8_t> values(bytes_of(array));
  const auto waits_of = [&](BoundKind kind) {
    const CompressOptions options = lorenzo(kind, 1e-2);
    Bytes stream(on_host(array, options).size());
    const auto before = simt::counters();
    EXPECT_TRUE(compress_device_array(0, values.data(), array.dtype, array.shape, options, stream).ok());
    const auto& after = simt::counters();
    return std::pair(after.synchronizations - before.synchronizations, after.copies[cudaMemcpyDeviceToHost]);
  };
  const auto absolute = waits_of(BoundKind::abs);
  const auto relative = waits_of(BoundKind::rel);
  EXPECT_EQ(relative.first, absolute.first);
  EXPECT_EQ(relative.second, 2 * absolute.second);  // outcome and stream of two calls
  const auto coder = compressor(array, lorenzo(BoundKind::rel, 1e-2));
  DeviceJob job(*coder, 1, array.bytes.size(), 2 * array.bytes.size());
  job.array(0).put(bytes_of(array));
  Stream queue;
  const auto before = simt::counters().synchronizations;
  ASSERT_TRUE(job.compress(queue).ok());
  EXPECT_EQ(simt::counters().synchronizations, before);
  ASSERT_EQ(cudaStreamSynchronize(queue), cudaSuccess) << simt::failure();
  EXPECT_EQ(job.outcomes()[0].status, 0);
}

TEST_F(ArrayCoderTest, ForcedLayouts_BytesAsOnTheHost) {
  const OwnedArray array = quern::testing::make_array(DType::f64, shape_of({7, 40, 50}), Data::land);
  for (const char* layout : {"1d", "2d:1", "2d:2", "3d:1,2"}) {
    CompressOptions options = lorenzo(BoundKind::abs, 1e-4);
    options.settings = {{"layout", layout}};
    SCOPED_TRACE(layout);
    compare(array, options);
  }
}

TEST_F(ArrayCoderTest, ManySegmentsWithMasks_BytesAsOnTheHost) {
  simt::Options run;
  run.idle_steps = 2'000'000'000;  // a warp has a quarter of a million cells to itself
  simt::reset(run);
  // Three segments at least, of which not all have special values; some chunks have nothing else.
  OwnedArray array = quern::testing::make_array(DType::f64, shape_of({20, 100, 300}), Data::smooth);
  for (std::size_t i = 250000; i < 300000; ++i) quern::testing::store_element(array, i, i % 9 == 0 ? -0.0 : NAN);
  for (const char* layout : {"1d", "3d:1,2"}) {
    CompressOptions options = lorenzo(BoundKind::abs, 1e-3);
    options.settings = {{"layout", layout}};
    SCOPED_TRACE(layout);
    compare(array, options);
  }
}

TEST_F(ArrayCoderTest, Batch_EachArrayAsAlone) {
  std::vector<OwnedArray> arrays;
  for (const Data data : quern::testing::all_data())
    arrays.push_back(quern::testing::make_array(DType::f32, shape_of({30, 70}), data));
  compare(arrays, lorenzo(BoundKind::rel, 1e-2));
  compare(arrays, lorenzo(BoundKind::abs, 1e-2));
}

TEST_F(ArrayCoderTest, Batch_OneThatFails_OthersUntouched) {
  const CompressOptions options = lorenzo(BoundKind::abs, 1e-3);
  std::vector<OwnedArray> arrays(3, quern::testing::make_array(DType::f32, shape_of({20, 45}), Data::noise));
  const Bytes expected = on_host(arrays[0], options);
  const auto coder = compressor(arrays[0], options);
  DeviceJob job(*coder, 3, arrays[0].bytes.size(), expected.size());
  for (std::size_t i = 0; i < 3; ++i) job.array(i).put(bytes_of(arrays[i]));
  for (const std::uint64_t room : {UINT64_C(0), UINT64_C(11), UINT64_C(70), std::uint64_t{expected.size() - 1}}) {
    SCOPED_TRACE(room);
    job.room().put({expected.size(), room, expected.size()});
    job.stream(1).put(Bytes(expected.size(), 0x77));
    Stream queue;
    ASSERT_TRUE(job.compress(queue).ok());
    ASSERT_EQ(cudaStreamSynchronize(queue), cudaSuccess) << simt::failure();
    const auto too_small = static_cast<std::int32_t>(StatusCode::destination_too_small);
    EXPECT_EQ(job.statuses(), (std::vector<std::int32_t>{0, too_small, 0}));
    EXPECT_EQ(job.sizes(), (std::vector<std::uint64_t>{expected.size(), 0, expected.size()}));
    EXPECT_EQ(job.stream(0).get(), expected);
    EXPECT_EQ(job.stream(2).get(), expected);
    const Bytes short_one = job.stream(1).get();
    EXPECT_TRUE(std::all_of(short_one.begin() + static_cast<std::ptrdiff_t>(room), short_one.end(),
                            [](std::uint8_t b) { return b == 0x77; }));
  }
}

TEST_F(ArrayCoderTest, EverySeedAndResidency_SameBytes) {
  const OwnedArray array = quern::testing::make_array(DType::f32, shape_of({9, 60, 130}), Data::land);
  std::uint64_t own = 0;  // of each residency: the seed it is tried with
  for (const unsigned resident : {1u, 3u, 32u}) {
    ++own;
    for (const std::uint64_t seed : {1u, 2u, 3u}) {
      if (!quern::testing::thorough() && seed != own) continue;
      simt::Options run;
      run.seed = seed;
      run.resident_blocks = resident;
      simt::reset(run);
      SCOPED_TRACE(std::to_string(seed) + " " + std::to_string(resident));
      compare(array, lorenzo(BoundKind::rel, 1e-3));
    }
  }
}

TEST_F(ArrayCoderTest, Calls_NeitherAllocateNorWait) {
  const OwnedArray array = quern::testing::make_array(DType::f32, shape_of({20, 45}), Data::land);
  const CompressOptions options = lorenzo(BoundKind::rel, 1e-3);
  const Bytes expected = on_host(array, options);
  const auto coder = compressor(array, options);
  DeviceJob job(*coder, 1, array.bytes.size(), expected.size());
  job.array(0).put(bytes_of(array));
  Stream queue;
  const simt::Counters before = simt::counters();
  ASSERT_TRUE(job.compress(queue).ok());
  ASSERT_TRUE(job.decompress(queue).ok());
  const simt::Counters& after = simt::counters();
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.host_allocations, before.host_allocations);
  EXPECT_EQ(after.synchronizations, before.synchronizations);
  EXPECT_EQ(after.queries, before.queries);
  EXPECT_EQ(after.copies, before.copies);
  ASSERT_EQ(cudaStreamSynchronize(queue), cudaSuccess);
  EXPECT_EQ(job.stream(0).get(), expected);
}

TEST_F(ArrayCoderTest, Graph_NewBytesForNewValuesAtEachLaunch) {
  const CompressOptions options = lorenzo(BoundKind::rel, 1e-3);
  const OwnedArray first = quern::testing::make_array(DType::f32, shape_of({20, 45}), Data::land);
  const auto coder = compressor(first, options);
  DeviceJob job(*coder, 1, first.bytes.size(), 8192);
  Stream queue;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(queue, cudaStreamCaptureModeGlobal), cudaSuccess);
  ASSERT_TRUE(job.compress(queue).ok());
  ASSERT_TRUE(job.decompress(queue).ok());
  ASSERT_EQ(cudaStreamEndCapture(queue, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  for (const Data data : {Data::land, Data::noise, Data::constant, Data::all_nan}) {
    SCOPED_TRACE(quern::testing::data_name(data));
    const OwnedArray array = quern::testing::make_array(DType::f32, first.shape, data);
    const Bytes expected = on_host(array, options);
    job.array(0).put(bytes_of(array));
    // The stream's size is what decompressing is given; its room was more.
    job.room().put({expected.size()});
    ASSERT_EQ(cudaGraphLaunch(exec, queue), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(queue), cudaSuccess) << simt::failure();
    EXPECT_EQ(job.statuses(), std::vector<std::int32_t>{0});
    EXPECT_EQ(job.stream(0).get(expected.size()), expected);
    OwnedArray back = array;
    ASSERT_EQ(decoded_on_host(expected, back), StatusCode::ok);
    EXPECT_EQ(job.array(0).get(), bytes_of(back));
  }
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(ArrayCoderTest, DamagedStreams_RefusedAsOnTheHost) {
  OwnedArray array = quern::testing::make_array(DType::f32, shape_of({12, 40}), Data::land);
  CompressOptions options = lorenzo(BoundKind::rel, 1e-3);
  options.metadata = {1, 2, 3};
  const Bytes good = on_host(array, options);
  const auto coder = device_decompressor(0, array.dtype, array.shape);
  ASSERT_TRUE(coder.ok());
  DeviceJob job(**coder, 1, array.bytes.size(), good.size() + 64);
  Stream queue;
  const auto refused = [&](const Bytes& bytes) {
    OwnedArray host = array;
    const StatusCode expected = decoded_on_host(bytes, host);
    job.stream(0).put(bytes);
    job.room().put({bytes.size()});
    ASSERT_TRUE(job.decompress(queue).ok());
    ASSERT_EQ(cudaStreamSynchronize(queue), cudaSuccess) << simt::failure();
    ASSERT_EQ(simt::failure(), "");
    ASSERT_EQ(job.statuses()[0] == 0, expected == StatusCode::ok)
        << "device " << job.statuses()[0] << " host " << static_cast<int>(expected);
  };
  std::mt19937 random(3);
  for (std::size_t i = 0; i < good.size(); ++i) {
    SCOPED_TRACE("byte " + std::to_string(i));
    Bytes bad = good;
    bad[i] = static_cast<std::uint8_t>(bad[i] ^ (1u << random() % 8));
    refused(bad);
    if (HasFatalFailure()) return;
  }
  for (std::size_t n = 0; n < good.size(); n += 1 + n / 40) {
    SCOPED_TRACE("first " + std::to_string(n));
    refused(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n)));
    if (HasFatalFailure()) return;
  }
  Bytes longer = good;
  longer.resize(good.size() + 5, 0);
  refused(longer);
  refused(good);
}

TEST_F(ArrayCoderTest, StreamsOfOthers_StatusTells) {
  const OwnedArray array = quern::testing::make_array(DType::f32, shape_of({12, 40}), Data::smooth);
  const auto status_of = [&](const OwnedArray& written, CompressOptions options) {
    const Bytes bytes = on_host(written, options);
    auto coder = device_decompressor(0, array.dtype, array.shape);
    DeviceJob job(**coder, 1, array.bytes.size(), bytes.size());
    job.stream(0).put(bytes);
    Stream queue;
    EXPECT_TRUE(job.decompress(queue).ok());
    EXPECT_EQ(cudaStreamSynchronize(queue), cudaSuccess) << simt::failure();
    return static_cast<StatusCode>(job.statuses()[0]);
  };
  EXPECT_EQ(status_of(array, lorenzo(BoundKind::abs, 1e-3)), StatusCode::ok);
  CompressOptions columns = lorenzo(BoundKind::abs, 1e-3);
  columns.settings = {{"layout", "3d:2,2"}};  // no encoder chooses that by itself
  EXPECT_EQ(status_of(array, columns), StatusCode::unsupported);
  CompressOptions by_levels = lorenzo(BoundKind::abs, 1e-3);
  by_levels.settings = {{"mask", "2"}};
  EXPECT_EQ(status_of(array, by_levels), StatusCode::ok);
  CompressOptions lossless;
  lossless.codec = "lossless";
  EXPECT_EQ(status_of(array, lossless), StatusCode::unsupported);
  EXPECT_EQ(status_of(quern::testing::make_array(DType::f32, shape_of({40, 12}), Data::smooth),
                      lorenzo(BoundKind::abs, 1e-3)),
            StatusCode::invalid_argument);
  EXPECT_EQ(
      status_of(quern::testing::make_array(DType::i32, shape_of({12, 40}), Data::smooth), lorenzo(BoundKind::abs, 1)),
      StatusCode::invalid_argument);
}

TEST_F(ArrayCoderTest, MasksOfEachForm_BytesAsOnTheHost) {
  CompressOptions options = lorenzo(BoundKind::abs, 1e-2);
  unsigned turn = 0;
  for (const DType dtype : {DType::f16, DType::f32, DType::f64})
    for (const Data data : {Data::nan_scattered, Data::nan_block, Data::all_nan, Data::inf_scattered})
      for (const Shape& shape : {shape_of({5000}), shape_of({61, 90}), shape_of({9, 17, 40})}) {
        SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + quern::testing::data_name(data) + " " + shape.text());
        const OwnedArray array = quern::testing::make_array(dtype, shape, data);
        options.settings = {{"mask", ++turn % 3 == 0 ? "1" : "2"}};
        compare(array, options);
        if (HasFatalFailure()) return;
      }
}

TEST_F(ArrayCoderTest, WrongArguments_RefusedBeforeAnythingIsQueued) {
  const OwnedArray array = quern::testing::make_array(DType::f32, shape_of({12, 40}), Data::smooth);
  const auto coder = compressor(array, lorenzo(BoundKind::abs, 1e-3));
  DeviceBuffer<std::uint8_t> workspace(coder->workspace_bytes(1));
  DeviceArrays call;
  call.array = workspace.data();
  const std::uint64_t launches = simt::counters().launches;
  EXPECT_EQ(coder->compress(call, workspace.data(), workspace.count() - 1, nullptr).code(),
            StatusCode::destination_too_small);
  EXPECT_EQ(coder->compress(call, workspace.data() + 1, workspace.count(), nullptr).code(),
            StatusCode::invalid_argument);
  EXPECT_EQ(coder->compress(call, nullptr, workspace.count(), nullptr).code(), StatusCode::invalid_argument);
  call.count = 0;
  EXPECT_EQ(coder->compress(call, workspace.data(), workspace.count(), nullptr).code(), StatusCode::invalid_argument);
  call.count = 2;
  EXPECT_EQ(coder->decompress(call, workspace.data(), workspace.count(), nullptr).code(), StatusCode::invalid_argument);
  EXPECT_EQ(simt::counters().launches, launches);
  CompressOptions options = lorenzo(BoundKind::abs, 1e-3);
  options.codec = "auto";
  EXPECT_EQ(device_compressor(0, array.dtype, array.shape, options).status().code(), StatusCode::unsupported);
  EXPECT_EQ(device_compressor(0, array.dtype, array.shape, lorenzo(BoundKind::psnr, 60)).status().code(),
            StatusCode::unsupported);
  options = lorenzo(BoundKind::abs, 1e-3);
  options.settings = {{"mask", "3"}};
  EXPECT_EQ(device_compressor(0, array.dtype, array.shape, options).status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(device_compressor(0, DType::i32, array.shape, lorenzo(BoundKind::pwrel, 0.1)).status().code(),
            StatusCode::invalid_bound);
  EXPECT_EQ(device_compressor(0, DType::f32, shape_of({200000, 3}), lorenzo(BoundKind::abs, 0.1)).status().code(),
            StatusCode::unsupported);
}

}  // namespace
}  // namespace quern
