// measure_quality_async against measure_quality on the host: counts and extremes equal, sums to the tolerances that
// quality_cuda.h promises, and the same bits for every grid and every address.
#include <algorithm>
#include <cfloat>
#include <random>

#include <quern/metrics.h>

#include "kernels/metrics/cuda/quality_cuda.h"
#include "tests/unit_cuda_metrics/device.h"
#include "tests/unit_cuda_metrics/device_arrays.h"

namespace quern {
namespace {

using kernels::CudaPair;
using kernels::CudaQuality;
using test::Array;
using test::DeviceBytes;
using test::DeviceResult;
using test::shape_of;

struct Pair {
  Array x;
  Array y;
};

struct Call {
  std::size_t x_offset = 0;
  std::size_t y_offset = 0;
  unsigned max_ctas = kernels::kMaxArrayCtas;
};

kernels::CudaShape cuda_shape(const Shape& shape) {
  kernels::CudaShape out;
  out.rank = static_cast<unsigned>(shape.rank());
  for (std::size_t a = 0; a < shape.rank(); ++a) out.extents[a] = shape[a];
  return out;
}

CudaQuality device_quality(const Pair& pair, const std::vector<std::uint64_t>& fills, const Call& call = {},
                           bool with_ssim = true) {
  const DeviceBytes x(pair.x.bytes, call.x_offset);
  const DeviceBytes y(pair.y.bytes, call.y_offset);
  const CudaPair arrays{element_of(pair.x.dtype), cuda_shape(pair.x.shape), x.get(), y.get(), with_ssim};
  std::size_t bytes = 0;
  EXPECT_EQ(kernels::quality_workspace(arrays, bytes, call.max_ctas), cudaSuccess);
  const DeviceBytes workspace(bytes);
  const DeviceResult<CudaQuality> result;
  EXPECT_EQ(kernels::measure_quality_async(arrays, test::fills_of(fills), result.get(), workspace.get(), bytes, nullptr,
                                           call.max_ctas),
            cudaSuccess);
  return result.read();
}

void expect_near(double got, double expected, double relative, const char* what) {
  if (got == expected) return;
  EXPECT_LE(std::fabs(got - expected), relative * std::fabs(expected)) << what << ' ' << got << ' ' << expected;
}

void expect_same(const Pair& pair, const std::vector<std::uint64_t>& fills = {}, const Call& call = {}) {
  SCOPED_TRACE(testing::Message() << dtype_name(pair.x.dtype) << ' ' << pair.x.shape.text() << ", " << fills.size()
                                  << " fills, offsets " << call.x_offset << ' ' << call.y_offset << ", "
                                  << call.max_ctas << " CTAs");
  QualityOptions options;
  options.validity.fill_bits.assign(fills.begin(), fills.end());
  options.autocorrelation_lags = 0;
  const auto measured = measure_quality(pair.x.view(), pair.y.view(), options, {});
  ASSERT_TRUE(measured.ok()) << measured.status().text();
  const Quality& host = measured.value();
  const CudaQuality got = device_quality(pair, fills, call);
  EXPECT_EQ(got.elems, host.elems);
  EXPECT_EQ(got.valid, host.valid);
  EXPECT_EQ(got.specials_lost, host.specials_lost);
  EXPECT_EQ(got.min, host.min);
  EXPECT_EQ(got.max, host.max);
  EXPECT_EQ(got.max_error, host.max_error);
  EXPECT_EQ(got.max_error_index, host.max_error_index);
  EXPECT_EQ(got.max_pointwise_rel, host.max_pointwise_rel);
  EXPECT_EQ(got.max_ulp, host.max_ulp);
  expect_near(got.mse, host.mse, 1e-12, "mse");
  ASSERT_EQ(got.has_psnr != 0, host.psnr_db.has_value());
  if (got.has_psnr != 0 && got.psnr_db != *host.psnr_db) {
    EXPECT_NEAR(got.psnr_db, *host.psnr_db, 1e-10);
  }
  ASSERT_EQ(got.has_nrmse != 0, host.nrmse.has_value());
  if (got.has_nrmse != 0) expect_near(got.nrmse, *host.nrmse, 1e-12, "nrmse");
  ASSERT_EQ(got.has_ssim != 0, host.ssim.has_value());
  if (got.has_ssim != 0) {
    EXPECT_NEAR(got.ssim, *host.ssim, 1e-9);
  }
}

/// A smooth field with some noise, and its reconstruction with errors of about `error`; every `rare`-th original is a
/// special or a fill, and every fourth of their reconstructions another.
Pair make_pair(DType dtype, const Shape& shape, double error, const std::vector<std::uint64_t>& fills, unsigned rare,
               std::mt19937_64& random) {
  Pair pair{Array(dtype, shape), Array(dtype, shape)};
  std::vector<std::uint64_t> odd = test::specials_of(dtype);
  odd.insert(odd.end(), fills.begin(), fills.end());
  const double scale = dtype_bytes(dtype) == 1 ? 40 : 1000;
  const double offset = dtype_bytes(dtype) == 1 ? 60 : 1500;
  const auto unit = [&] { return static_cast<double>(random() >> 11) * 0x1p-52 - 1; };
  for (std::uint64_t i = 0; i < shape.elems(); ++i) {
    if (!odd.empty() && random() % rare == 0) {
      const std::uint64_t special = odd[random() % odd.size()];
      pair.x.set(i, special);
      pair.y.set(i, random() % 4 != 0 ? special : odd[random() % odd.size()]);
      continue;
    }
    const double x = offset + scale * (std::sin(0.02 * static_cast<double>(i)) + 0.1 * unit());
    pair.x.set(i, test::bits_near(dtype, x));
    pair.y.set(i, test::bits_near(dtype, x + error * unit()));
  }
  return pair;
}

/// Every bit pattern is as likely as any other.
Pair noise(DType dtype, const Shape& shape, std::mt19937_64& random) {
  Pair pair{Array(dtype, shape), Array(dtype, shape)};
  for (std::uint64_t i = 0; i < shape.elems(); ++i) {
    pair.x.set(i, random());
    pair.y.set(i, random() % 2 == 0 ? random() : pair.x.at(i) + random() % 7 - 3);
  }
  return pair;
}

class QualityOfType : public test::OnDeviceForType {};
class QualityMeasure : public test::OnDevice {};

TEST_P(QualityOfType, AwkwardSizes_AreTheHosts) {
  const DType dtype = GetParam();
  const std::uint64_t block = 65536 / dtype_bytes(dtype);
  for (const unsigned seed : {1u, 2u}) {
    SCOPED_TRACE(seed);
    start(seed);
    std::mt19937_64 random(seed);
    for (const std::uint64_t elems :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{31}, std::uint64_t{33}, std::uint64_t{2000}, block + 3})
      for (const unsigned rare : {20u, 1u << 30}) expect_same(make_pair(dtype, shape_of({elems}), 3, {}, rare, random));
    expect_same(noise(dtype, shape_of({3000}), random));
    expect_same(noise(dtype, shape_of({}), random));
  }
}

TEST_P(QualityOfType, WindowsOfAllShapes_AreTheHosts) {
  const DType dtype = GetParam();
  start(3);
  std::mt19937_64 random(3);
  for (const Shape& shape : {shape_of({12, 300}), shape_of({9, 11, 24})}) {
    expect_same(make_pair(dtype, shape, 3, {}, 1u << 30, random));
    expect_same(make_pair(dtype, shape, 30, {}, 500, random));
  }
}

TEST_P(QualityOfType, FillValues_DoNotCount) {
  const DType dtype = GetParam();
  start(4);
  std::mt19937_64 random(4);
  const std::uint64_t one = test::bits_near(dtype, 100.0);
  for (const std::vector<std::uint64_t>& fills : {std::vector<std::uint64_t>{0}, {one, 0, 3, 4, 5}})
    for (const unsigned rare : {2u, 400u}) {
      expect_same(make_pair(dtype, shape_of({2000}), 3, fills, rare, random), fills);
      expect_same(make_pair(dtype, shape_of({20, 30}), 3, fills, rare, random), fills);
    }
}

TEST_P(QualityOfType, AnyGridAndAddress_GivesTheSameBits) {
  const DType dtype = GetParam();
  start(5);
  std::mt19937_64 random(5);
  const std::uint64_t row = 65536 / dtype_bytes(dtype) / 8;
  const Pair pair = make_pair(dtype, shape_of({24, row + 1}), 3, {}, 300, random);
  const CudaQuality first = device_quality(pair, {});
  for (const Call& call : {Call{0, 0, 1}, Call{0, 0, 2}, Call{1, 8, 3}, Call{2, 4}}) {
    const CudaQuality other = device_quality(pair, {}, call);
    EXPECT_EQ(std::memcmp(&first, &other, sizeof first), 0) << call.x_offset << ' ' << call.max_ctas;
  }
}

INSTANTIATE_TEST_SUITE_P(AllTypes, QualityOfType, testing::ValuesIn(test::kAllTypes), test::type_name);

TEST_F(QualityMeasure, ShapesOfEveryKind_HaveTheHostsWindows) {
  start(6);
  std::mt19937_64 random(6);
  // Windows cut short, axes of 1, volumes, tiles that just end and that do not, 5 axes.
  for (const Shape& shape :
       {shape_of({6, 2}), shape_of({7, 7}), shape_of({2, 600}), shape_of({45, 9}), shape_of({38, 262}),
        shape_of({39, 263}), shape_of({3, 5, 40}), shape_of({2, 2, 2}), shape_of({38, 22, 22}), shape_of({39, 23, 23}),
        shape_of({40, 1, 9}), shape_of({9, 40, 1}), shape_of({1, 9, 40}), shape_of({1, 1, 40}), shape_of({1, 40}),
        shape_of({3, 4, 8, 9}), shape_of({2, 1, 3, 20, 10}), shape_of({5, 1, 12, 12}), shape_of({0, 5, 5})}) {
    expect_same(make_pair(DType::f32, shape, 3, {}, 1u << 30, random));
    expect_same(make_pair(DType::f32, shape, 300, {}, 2000, random));
  }
}

TEST_F(QualityMeasure, ErrorsWhoseSquaresLeaveBinary64_AreScaled) {
  start(7);
  std::mt19937_64 random(7);
  for (const int exponent : {-1070, -1022, -700, -401, -399, 0, 399, 401, 600, 1020}) {
    Pair pair{Array(DType::f64, shape_of({20, 30})), Array(DType::f64, shape_of({20, 30}))};
    for (std::uint64_t i = 0; i < 600; ++i) {
      const double x = static_cast<double>(random() % 1000);
      const double y = x + static_cast<double>(random() % 5);
      pair.x.set(i, std::bit_cast<std::uint64_t>(std::ldexp(x, exponent - 11)));
      pair.y.set(i, std::bit_cast<std::uint64_t>(std::ldexp(y, exponent - 11)));
    }
    SCOPED_TRACE(exponent);
    expect_same(pair);
  }
}

TEST_F(QualityMeasure, ExtremesThatLeaveBinary64_AreTheHosts) {
  start();
  const auto pair_of = [](std::initializer_list<double> x, std::initializer_list<double> y) {
    Pair pair{Array(DType::f64, shape_of({2, x.size() / 2})), Array(DType::f64, shape_of({2, x.size() / 2}))};
    std::memcpy(pair.x.bytes.data(), x.begin(), pair.x.bytes.size());
    std::memcpy(pair.y.bytes.data(), y.begin(), pair.y.bytes.size());
    return pair;
  };
  const double inf = HUGE_VAL;
  const double nan = std::nan("");
  expect_same(pair_of({1, 2, 3, 4}, {1, 2, 3, 4}));                             // no error
  expect_same(pair_of({5, 5, 5, 5}, {5, 5, 6, 5}));                             // no range
  expect_same(pair_of({1, 2, 3, 4}, {1, 2, inf, 4}));                           // infinite error
  expect_same(pair_of({1, 2, 3, 4}, {1, nan, inf, 4}));                         // two of them: the lowest index
  expect_same(pair_of({nan, inf, -inf, nan}, {nan, inf, -inf, nan}));           // nothing valid
  expect_same(pair_of({DBL_MAX, -DBL_MAX, 0, 1}, {DBL_MAX, -DBL_MAX, 1, 1}));   // range overflows
  expect_same(pair_of({DBL_MAX, -DBL_MAX, 0, 1}, {-DBL_MAX, -DBL_MAX, 1, 1}));  // error overflows
  expect_same(pair_of({0x1p-1074, 0, 0, 0}, {0, 0, 0x1p-1074, 0}));             // smallest of everything
  expect_same(pair_of({0x1p-1074, 1, 2, 3}, {1, 1, 2, 3}));                     // quotient overflows
  expect_same(pair_of({-0.0, 0.0, -0.0, 0.0}, {0.0, -0.0, -0.0, 1}));           // signs of zero
  expect_same(pair_of({1e-310, 2e-310, 3e-310, 1e-310}, {1e-310, 2e-310, 2e-310, 1e-310}));  // range of denormals
}

TEST_F(QualityMeasure, QuotientsThatDifferByOneStep_AreTold) {
  start(11);
  std::mt19937_64 random(11);
  for (const double ratio : {0x1.6p70, 0x1.2p80, 1e200}) {
    // Errors are reconstructions, which are so much larger. One quotient rounds to the ratio's neighbour, late in a
    // block.
    double x = 1;
    while (ratio * x / x <= ratio) x = 1 + 0x1p-52 * static_cast<double>(random() >> 12);
    Pair pair{Array(DType::f64, shape_of({8000})), Array(DType::f64, shape_of({8000}))};
    for (std::uint64_t i = 0; i < 8000; ++i) {
      const double original = i == 7000 ? x : 1;
      pair.x.set(i, std::bit_cast<std::uint64_t>(original));
      pair.y.set(i, std::bit_cast<std::uint64_t>(ratio * original));
    }
    expect_same(pair);
  }
}

TEST_F(QualityMeasure, HugeWrongValue_SpoilsItsWindowsOnly) {
  start(8);
  std::mt19937_64 random(8);
  Pair pair = make_pair(DType::f64, shape_of({50, 20, 20}), 3, {}, 1u << 30, random);
  pair.y.set(20 * 400 + 210, std::bit_cast<std::uint64_t>(1e200));
  expect_same(pair);
  pair.y.set(20 * 400 + 210, std::bit_cast<std::uint64_t>(1e9));
  expect_same(pair);
}

TEST_F(QualityMeasure, WithoutSimilarity_LeavesItOut) {
  start(9);
  std::mt19937_64 random(9);
  const Pair pair = make_pair(DType::f32, shape_of({20, 20}), 3, {}, 100, random);
  const CudaQuality got = device_quality(pair, {}, {}, false);
  EXPECT_EQ(got.has_ssim, 0u);
  EXPECT_EQ(got.mse, device_quality(pair, {}).mse);
}

TEST_F(QualityMeasure, ACallThatIsCaptured_RunsAsOftenAsWantedInItsWorkspace) {
  start(10);
  std::mt19937_64 random(10);
  const Pair pair = make_pair(DType::f64, shape_of({40, 300}), 3, {}, 100, random);
  const DeviceBytes x(pair.x.bytes);
  const DeviceBytes y(pair.y.bytes);
  const CudaPair arrays{kernels::Element::f64, cuda_shape(pair.x.shape), x.get(), y.get()};
  std::size_t bytes = 0;
  ASSERT_EQ(kernels::quality_workspace(arrays, bytes), cudaSuccess);
  constexpr std::size_t kGuard = 4096;
  const DeviceBytes workspace(std::vector<std::uint8_t>(bytes + kGuard, 0x5a));
  const DeviceResult<CudaQuality> result;
  test::run_captured(2, [&](cudaStream_t stream) {
    return kernels::measure_quality_async(arrays, {}, result.get(), workspace.get(), bytes, stream);
  });
  const CudaQuality got = result.read();
  const CudaQuality expected = device_quality(pair, {});
  EXPECT_EQ(std::memcmp(&got, &expected, sizeof got), 0);
  std::vector<std::uint8_t> after(bytes + kGuard);
  ASSERT_EQ(cudaMemcpy(after.data(), workspace.get(), after.size(), cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_TRUE(std::all_of(after.begin() + static_cast<std::ptrdiff_t>(bytes), after.end(),
                          [](std::uint8_t byte) { return byte == 0x5a; }));
}

TEST_F(QualityMeasure, BadArguments_AreRefused) {
  start();
  CudaPair pair{kernels::Element::f32, cuda_shape(shape_of({4, 4})), nullptr, nullptr};
  std::size_t bytes = 0;
  ASSERT_EQ(kernels::quality_workspace(pair, bytes), cudaSuccess);
  const DeviceBytes workspace(bytes + 256);
  const DeviceResult<CudaQuality> result;
  EXPECT_EQ(kernels::measure_quality_async(pair, {}, result.get(), workspace.get(), bytes - 1, nullptr),
            cudaErrorInvalidValue);
  void* const beside = static_cast<std::uint8_t*>(workspace.get()) + 8;
  EXPECT_EQ(kernels::measure_quality_async(pair, {}, result.get(), beside, bytes, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(kernels::measure_quality_async(pair, {}, result.get(), workspace.get(), bytes, nullptr, 0),
            cudaErrorInvalidValue);
  EXPECT_EQ(kernels::quality_workspace(pair, bytes, 0), cudaErrorInvalidValue);
  pair.shape.rank = 9;
  EXPECT_EQ(kernels::quality_workspace(pair, bytes), cudaErrorInvalidValue);
  pair.shape.rank = 2;
  pair.element = static_cast<kernels::Element>(7);
  EXPECT_EQ(kernels::quality_workspace(pair, bytes), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace quern
