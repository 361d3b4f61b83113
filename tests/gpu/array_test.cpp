// Arrays in device memory: queued, in batches and from a graph, with the bytes and values of the CPU, run after run.
#include <algorithm>
#include <string>

#include <quern/device_metrics.h>

#include "tests/gpu/device_job.h"
#include "tests/gpu/settings.h"

namespace quern::testing {
namespace {

/// Compresses all arrays in one call and decompresses the streams in another.
void compare(const std::vector<OwnedArray>& arrays, const CompressOptions& options, std::uint64_t times = 1) {
  const OwnedArray& like = arrays.front();
  auto coder = device_compressor(0, like.dtype, like.shape, options);
  ASSERT_TRUE(coder.ok()) << coder.status().text();
  std::vector<Bytes> expected, values;
  std::vector<std::uint64_t> sizes;
  std::size_t most = 1;
  for (const OwnedArray& array : arrays) {
    expected.push_back(on_host(array, options));
    sizes.push_back(expected.back().size());
    most = std::max(most, expected.back().size());
    OwnedArray back = array;
    ASSERT_EQ(decoded_on_host(expected.back(), back), StatusCode::ok);
    values.emplace_back(back.bytes.begin(), back.bytes.end());
  }
  DeviceJob job(**coder, arrays.size(), like.bytes.size(), most);
  job.room().put(sizes);
  Stream queue;
  for (std::uint64_t run = 0; run < times; ++run) {
    SCOPED_TRACE("run " + std::to_string(run));
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      job.array(i).put({arrays[i].bytes.begin(), arrays[i].bytes.end()});
      job.stream(i).put(Bytes(most, 0x5c));
    }
    ASSERT_TRUE(job.compress(queue).ok());
    ASSERT_EQ(cudaStreamSynchronize(queue), cudaSuccess);
    ASSERT_EQ(job.statuses(), std::vector<std::int32_t>(arrays.size(), 0));
    ASSERT_EQ(job.sizes(), sizes);
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      ASSERT_EQ(job.stream(i).get(sizes[i]), expected[i]) << "array " << i;
      job.array(i).put(Bytes(like.bytes.size(), 0xa5));
    }
    ASSERT_TRUE(job.decompress(queue).ok());
    ASSERT_EQ(cudaStreamSynchronize(queue), cudaSuccess);
    ASSERT_EQ(job.statuses(), std::vector<std::int32_t>(arrays.size(), 0));
    for (std::size_t i = 0; i < arrays.size(); ++i) ASSERT_EQ(job.array(i).get(), values[i]) << "array " << i;
  }
}

TEST(DeviceArrays, EveryTypeDataAndBound_SameBytesAndValues) {
  Thinning thinning;
  for (const DType dtype : all_dtypes()) {
    std::vector<OwnedArray> arrays;
    for (const Data data : all_data())
      if (thinning.takes()) arrays.push_back(make_array(dtype, shape_of({37, 141}), data));
    if (arrays.empty()) continue;
    SCOPED_TRACE(dtype_name(dtype));
    compare(arrays, lorenzo(BoundKind::rel, 1e-3));
    compare(arrays, lorenzo(BoundKind::lossless, 0));
    if (is_float(dtype)) compare(arrays, lorenzo(BoundKind::pwrel, 1e-2));
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(DeviceArrays, ManyRuns_SameBytesAndValues) {
  const std::uint64_t planes = std::min<std::uint64_t>(setting("QUERN_GPU_PLANES", 30), 30);
  for (const Data data : {Data::smooth, Data::land})
    compare({make_array(DType::f32, shape_of({planes, 100, 100}), data)}, lorenzo(BoundKind::rel, 1e-3),
            setting("QUERN_GPU_RUNS", 100));
}

TEST(DeviceArrays, Graph_ReplaysBothWays) {
  const CompressOptions options = lorenzo(BoundKind::rel, 1e-3);
  const OwnedArray first = make_array(DType::f32, shape_of({40, 90}), Data::noise);
  auto coder = device_compressor(0, first.dtype, first.shape, options);
  ASSERT_TRUE(coder.ok());
  DeviceJob job(**coder, 1, first.bytes.size(), 2 * first.bytes.size());
  Stream queue;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(queue, cudaStreamCaptureModeGlobal), cudaSuccess);
  ASSERT_TRUE(job.compress(queue).ok());
  ASSERT_TRUE(job.decompress(queue).ok());
  ASSERT_EQ(cudaStreamEndCapture(queue, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  for (const Data data : {Data::noise, Data::land, Data::constant}) {
    const OwnedArray array = make_array(DType::f32, first.shape, data);
    const Bytes expected = on_host(array, options);
    job.array(0).put({array.bytes.begin(), array.bytes.end()});
    job.stream(0).put(Bytes(2 * first.bytes.size(), 0x5c));
    job.room().put({expected.size()});
    ASSERT_EQ(cudaGraphLaunch(exec, queue), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(queue), cudaSuccess);
    EXPECT_EQ(job.statuses(), std::vector<std::int32_t>{0});
    EXPECT_EQ(job.stream(0).get(expected.size()), expected);
  }
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST(DeviceArrays, CallsThatWait_TheStreamReportAndValuesOfTheHost) {
  Thinning thinning;
  for (const Data data : {Data::smooth, Data::land, Data::nan_block, Data::noise})
    for (const double bound : {1e-3, 1e-9}) {
      if (!thinning.takes()) continue;
      SCOPED_TRACE(std::string(data_name(data)) + " " + std::to_string(bound));
      const OwnedArray array = make_array(DType::f32, shape_of({20, 70, 90}), data);
      const CompressOptions options = lorenzo(BoundKind::rel, bound);
      Vector<std::uint8_t> expected;
      VectorSink sink(expected);
      const auto host = compress(array.view(), options, builtin_codecs(), {}, sink);
      ASSERT_TRUE(host.ok()) << host.status().text();
      DeviceBuffer<std::uint8_t> values(array.bytes.size());
      values.put({array.bytes.begin(), array.bytes.end()});
      Bytes stream(expected.size(), 0x5c);
      const auto report = compress_device_array(0, values.data(), array.dtype, array.shape, options, stream);
      ASSERT_TRUE(report.ok()) << report.status().text();
      EXPECT_EQ(stream, Bytes(expected.begin(), expected.end()));
      EXPECT_EQ(report->output_bytes, host->output_bytes);
      EXPECT_EQ(report->masked_elems, host->masked_elems);
      EXPECT_EQ(report->chunks, host->chunks);
      EXPECT_EQ(report->raw_chunks, host->raw_chunks);
      EXPECT_EQ(report->enforced.value, host->enforced.value);
      EXPECT_EQ(report->reason, host->reason);
      EXPECT_EQ(report->codec_id, host->codec_id);
      EXPECT_TRUE(report->on_device);
      if (bound == 1e-3) {
        CompressOptions checked = options;
        checked.settings.emplace_back("verify", "fault");
        Bytes again(expected.size(), 0x5c);
        const auto verified = compress_device_array(0, values.data(), array.dtype, array.shape, checked, again);
        ASSERT_TRUE(verified.ok()) << verified.status().text();
        EXPECT_EQ(again, stream);
      }
      Bytes less(expected.size() - 1);
      EXPECT_EQ(compress_device_array(0, values.data(), array.dtype, array.shape, options, less).status().code(),
                StatusCode::destination_too_small);

      OwnedArray back = array;
      ASSERT_EQ(decoded_on_host(stream, back), StatusCode::ok);
      values.put(Bytes(array.bytes.size(), 0xa5));
      const Status decoded = decompress_device_array(0, stream, values.data(), array.dtype, array.shape);
      ASSERT_TRUE(decoded.ok()) << decoded.text();
      EXPECT_EQ(values.get(), Bytes(back.bytes.begin(), back.bytes.end()));
      if (bound == 1e-3) {
        values.put(Bytes(array.bytes.size(), 0xa5));
        ASSERT_TRUE(decompress_device_array(0, stream, values.data(), array.dtype, array.shape, true).ok());
        EXPECT_EQ(values.get(), Bytes(back.bytes.begin(), back.bytes.end()));
      }
      stream[stream.size() / 2] ^= 1;
      EXPECT_FALSE(decompress_device_array(0, stream, values.data(), array.dtype, array.shape).ok());
    }
}

TEST(DeviceArrays, BoundAndQualityFoundThere_AreTheHosts) {
  Thinning thinning;
  for (const DType dtype : all_dtypes())
    for (const Data data : {Data::smooth, Data::land, Data::nan_block, Data::noise}) {
      if (!thinning.takes()) continue;
      SCOPED_TRACE(dtype_name(dtype) + std::string(" ") + data_name(data));
      OwnedArray array = make_array(dtype, shape_of({20, 70, 90}), data);
      const Bytes stream = on_host(array, lorenzo(BoundKind::rel, 1e-2));
      OwnedArray back = array;
      ASSERT_EQ(decoded_on_host(stream, back), StatusCode::ok);
      DeviceBuffer<std::uint8_t> x(array.bytes.size()), y(array.bytes.size());
      y.put({back.bytes.begin(), back.bytes.end()});
      // As it is, and with one byte of one element wrong.
      for (const unsigned flip : {0x00u, 0x7fu}) {
        auto& byte = array.bytes[array.bytes.size() / 3];
        byte = static_cast<std::uint8_t>(byte ^ flip);
        x.put({array.bytes.begin(), array.bytes.end()});
        const auto expected = measure_quality(array.view(), back.view(), {{}, true, 0}, {});
        const auto found = measure_quality_on_device({0, dtype, array.shape, x.data(), y.data()}, {}, true);
        ASSERT_TRUE(expected.ok() && found.ok()) << found.status().text();
        EXPECT_EQ(found->valid, expected->valid);
        EXPECT_EQ(found->specials_lost, expected->specials_lost);
        EXPECT_EQ(found->max_error, expected->max_error);
        EXPECT_EQ(found->max_error_index, expected->max_error_index);
        EXPECT_NEAR(found->mse, expected->mse, 1e-12 * expected->mse);
        ASSERT_EQ(found->ssim.has_value(), expected->ssim.has_value());
        EXPECT_NEAR(found->ssim.value_or(0), expected->ssim.value_or(0), 1e-9);

        MemorySource source(stream);
        const auto info = inspect(source, builtin_codecs());
        ASSERT_TRUE(info.ok());
        const auto host = check_bound(array.view(), back.view(), info->enforced, {info->fill_bits}, {});
        const auto device = check_device_stream(0, x.data(), dtype, array.shape, stream);
        ASSERT_TRUE(host.ok() && device.ok()) << device.status().text();
        EXPECT_EQ(device->violations, host->violations);
        EXPECT_EQ(device->specials_lost, host->specials_lost);
        ASSERT_EQ(device->first.size(), std::min<std::size_t>(host->first.size(), 1));
        if (!host->first.empty()) {
          EXPECT_EQ(device->first.front().index, host->first.front().index);
        }
      }
    }
}

}  // namespace
}  // namespace quern::testing
