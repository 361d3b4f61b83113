// Arrays in device memory without races, by what CUDA orders: header, plan, masks, segments and trailer, both ways.
#include <random>
#include <string>

#include "tests/gpu/device_job.h"
#include "tests/simt/cuda_test.h"

namespace quern::testing {
namespace {

class ArrayCoderRaces : public CudaTest {};

TEST_F(ArrayCoderRaces, CompressingAndDecompressingWholeAndDamagedStreams_HaveNone) {
  simt::Options run;
  run.watch_races = true;
  std::mt19937_64 random(29);
  for (const DType dtype : {DType::f32, DType::f64, DType::u8, DType::i16})
    for (const Data data : {Data::land, Data::smooth, Data::random_bits}) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + data_name(data));
      simt::reset(run);
      ++run.seed;
      const OwnedArray array = make_array(dtype, shape_of({33, 80}), data);
      const CompressOptions options = lorenzo(BoundKind::rel, 1e-3);
      const Bytes expected = on_host(array, options);
      auto coder = device_compressor(0, dtype, array.shape, options);
      ASSERT_TRUE(coder.ok()) << coder.status().text();
      DeviceJob job(**coder, 1, array.bytes.size(), expected.size());
      job.array(0).put({array.bytes.begin(), array.bytes.end()});
      Stream queue;
      ASSERT_TRUE(job.compress(queue).ok());
      ASSERT_EQ(cudaStreamSynchronize(queue), cudaSuccess) << simt::failure();
      ASSERT_EQ(job.stream(0).get(), expected);
      Bytes damaged = expected;
      damaged[random() % damaged.size()] ^= 0x10;
      for (const Bytes& stream : {expected, damaged}) {
        job.stream(0).put(stream);
        ASSERT_TRUE(job.decompress(queue).ok());
        ASSERT_EQ(cudaStreamSynchronize(queue), cudaSuccess) << simt::failure();
        EXPECT_EQ(job.statuses()[0] == 0, stream == expected);
      }
    }
}

TEST_F(ArrayCoderRaces, MasksByLevels_HaveNone) {
  simt::Options run;
  run.watch_races = true;
  CompressOptions options = lorenzo(BoundKind::rel, 1e-3);
  options.settings = {{"mask", "2"}};
  for (const Data data : {Data::nan_scattered, Data::nan_block, Data::inf_scattered})
    for (const Shape& shape : {shape_of({3000}), shape_of({6, 17, 40})}) {
      SCOPED_TRACE(std::string(data_name(data)) + " " + shape.text());
      simt::reset(run);
      ++run.seed;
      const OwnedArray array = make_array(DType::f32, shape, data);
      const Bytes stream = on_host(array, options);
      OwnedArray expected = array;
      ASSERT_EQ(decoded_on_host(stream, expected), StatusCode::ok);
      auto coder = device_compressor(0, DType::f32, shape, options);
      ASSERT_TRUE(coder.ok()) << coder.status().text();
      DeviceJob job(**coder, 1, array.bytes.size(), stream.size());
      job.array(0).put({array.bytes.begin(), array.bytes.end()});
      Stream queue;
      ASSERT_TRUE(job.compress(queue).ok());
      ASSERT_EQ(cudaStreamSynchronize(queue), cudaSuccess) << simt::failure();
      ASSERT_EQ(job.stream(0).get(), stream);
      ASSERT_TRUE(job.decompress(queue).ok());
      ASSERT_EQ(cudaStreamSynchronize(queue), cudaSuccess) << simt::failure();
      ASSERT_EQ(job.array(0).get(), Bytes(expected.bytes.begin(), expected.bytes.end()));
    }
}

}  // namespace
}  // namespace quern::testing
