// The stencil kernels without races, by what CUDA orders.
#include "tests/support/thorough.h"
#include "tests/unit_cuda/cuda_encoding.h"
#include "tests/unit_cuda/cuda_jobs.h"

namespace quern::codec::stencil::test {
namespace {

class StencilCudaRaces : public quern::testing::CudaTest {};

/// Every case, or one in three.
bool takes(std::size_t number) { return quern::testing::thorough() || number % 3 == 0; }

simt::Options watched() {
  simt::Options options;
  options.watch_races = true;
  return options;
}

TEST_F(StencilCudaRaces, Decoding_HasNone) {
  simt::Options options = watched();
  std::size_t number = 0;
  for (const LanesCase& c : cases()) {
    const auto coding = coding_of(c);
    if (coding->data().size() > 9000 || !takes(number++)) continue;
    SCOPED_TRACE(c.name);
    ++options.seed;
    simt::reset(options);
    Bytes back(coding->data().size());
    ASSERT_EQ(decode_on_device(*coding, encode_chunks(*coding), back)[0], true);
    ASSERT_EQ(simt::failure(), "");
  }
}

TEST_F(StencilCudaRaces, Encoding_HasNone) {
  std::vector<EncodeCase> some = not_above(9000, encode_cases());
  std::size_t number = 0;
  std::erase_if(some, [&](const EncodeCase&) { return !takes(number++); });
  EXPECT_GT(compare_with_host(some, "raster", watched()), quern::testing::thorough() ? 5u : 3u);
}

TEST_F(StencilCudaRaces, EncodingOfLevels_HasNone) {
  // Small ones, with residuals enough for lanes of the finest level.
  const Settings levels{{"layout", "levels"}};
  std::vector<EncodeCase> some;
  for (const LanesCase& c : {LanesCase{"volume", DType::f64, {10, 11, 15}, 1e-6, levels},
                             LanesCase{"masked plane", DType::f32, {45, 46}, 1e-5, levels, true},
                             LanesCase{"line", DType::f64, {1800}, 1e-6, levels},
                             LanesCase{"masked planes", DType::f32, {5, 22, 30}, 1e-5, {{"layout", "planes"}}, true}})
    some.push_back({c.name, coding_of(c)});
  EXPECT_EQ(compare_with_host(some, "levels", watched()), 4u);
}

TEST_F(StencilCudaRaces, EncodingUnderTheWavelet_HasNone) {
  const Settings wavelet{{"layout", "wavelet"}};
  std::vector<EncodeCase> some;
  for (const LanesCase& c :
       {LanesCase{"volume", DType::f64, {10, 11, 15}, 1e-1, wavelet},
        LanesCase{"plane", DType::f32, {45, 46}, 1e-1, wavelet}, LanesCase{"line", DType::f64, {1800}, 1e-2, wavelet}})
    some.push_back(wavelet_case(c));
  EXPECT_EQ(compare_with_host(some, "wavelet", watched()), 3u);
}

}  // namespace
}  // namespace quern::codec::stencil::test
