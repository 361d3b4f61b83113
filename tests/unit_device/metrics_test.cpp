// Bound and quality of arrays in device memory through the C interface, on the simulator: what the host says of them,
// and that nothing but results leaves the device.
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <quern/device_metrics.h>

#include "tests/simt/cuda_test.h"
#include "tests/unit_capi/handles.h"

namespace quern::testing {
namespace {

constexpr std::uint64_t kRows = 60, kColumns = 70;
constexpr std::size_t kElems = kRows * kColumns;
constexpr float kFill = -999;

/// A wave with a NaN, an infinity, zeros of both signs and fill values.
std::vector<float> field() {
  std::vector<float> values(kElems);
  for (std::size_t i = 0; i < kElems; ++i) values[i] = static_cast<float>(std::sin(0.01 * static_cast<double>(i)));
  values[5] = std::numeric_limits<float>::quiet_NaN();
  values[1000] = std::numeric_limits<float>::infinity();
  values[1001] = -0.0f;
  values[1002] = 0.0f;
  for (std::size_t i = 2000; i < 2100; ++i) values[i] = kFill;
  return values;
}

/// Settings, with the fill value.
ParamsHandle params_of(const char* settings) {
  ParamsHandle params = make_params(settings);
  EXPECT_EQ(quern_params_add_fill(params.get(), QUERN_F32, &kFill), QUERN_OK);
  return params;
}

quern_array host_array(std::vector<float>& values) { return make_array(QUERN_F32, {kRows, kColumns}, values.data()); }
quern_array device_array(DeviceBuffer<float>& values) {
  quern_array array = make_array(QUERN_F32, {kRows, kColumns}, values.data());
  array.memory = QUERN_MEMORY_CUDA;
  return array;
}

class DeviceMetrics : public CudaTest {
 protected:
  std::vector<std::uint8_t> stream_of(std::vector<float> values, const char* settings) {
    return compressed(context_.get(), params_of(settings).get(), host_array(values));
  }

  /// The same status and verdict for an array in either memory.
  void expect_verdict_of_host(std::vector<float> values, const std::vector<std::uint8_t>& stream,
                              quern_status expected) {
    quern_verdict on_host = QUERN_VERDICT_INIT, on_device = QUERN_VERDICT_INIT;
    const quern_array host = host_array(values);
    EXPECT_EQ(quern_verify(context_.get(), &host, stream.data(), stream.size(), &on_host), expected)
        << quern_last_error(context_.get());
    DeviceBuffer<float> buffer(values);
    const quern_array device = device_array(buffer);
    const std::uint64_t before = bytes_to_host();
    EXPECT_EQ(quern_verify(context_.get(), &device, stream.data(), stream.size(), &on_device), expected)
        << quern_last_error(context_.get());
    copied_ = bytes_to_host() - before;
    EXPECT_EQ(on_device.violations, on_host.violations);
    EXPECT_EQ(on_device.specials_lost, on_host.specials_lost);
    EXPECT_EQ(on_device.first_index, on_host.first_index);
    EXPECT_EQ(on_device.first_error, on_host.first_error);
  }

  static std::uint64_t bytes_to_host() { return simt::counters().copied_bytes[cudaMemcpyDeviceToHost]; }
  bool stayed_on_device() const { return copied_ < 1024; }

  ContextHandle context_ = make_context();
  std::uint64_t copied_ = 0;  ///< by the last call from the device to the host
};

TEST_F(DeviceMetrics, StreamsThatTheDeviceDecodes_AreVerifiedThere) {
  for (const char* settings : {"rel=1e-3 codec=lorenzo", "pwrel=1e-2 codec=lorenzo", "lossless codec=lorenzo"}) {
    SCOPED_TRACE(settings);
    const auto stream = stream_of(field(), settings);
    expect_verdict_of_host(field(), stream, QUERN_OK);
    EXPECT_TRUE(stayed_on_device());

    std::vector<float> other = field();
    other[3210] += 0.5f;
    other[4000] += 0.25f;
    expect_verdict_of_host(other, stream, QUERN_ERROR_BOUND_NOT_MET);
    EXPECT_TRUE(stayed_on_device());
    other[1001] = 0.0f;
    other[2050] = -998;
    expect_verdict_of_host(other, stream, QUERN_ERROR_BOUND_NOT_MET);
    EXPECT_TRUE(stayed_on_device());
  }
}

TEST_F(DeviceMetrics, StreamsOfOtherCodecs_AreVerifiedByWayOfTheHost) {
  for (const char* settings : {"rel=1e-3 codec=stencil", "lossless codec=lossless"}) {
    SCOPED_TRACE(settings);
    const auto stream = stream_of(field(), settings);
    expect_verdict_of_host(field(), stream, QUERN_OK);
    EXPECT_GE(copied_, kElems * sizeof(float));
    std::vector<float> other = field();
    other[3210] += 0.5f;
    expect_verdict_of_host(other, stream, QUERN_ERROR_BOUND_NOT_MET);
  }
}

TEST_F(DeviceMetrics, DamagedAndForeignStreams_FailAsOnTheHost) {
  auto stream = stream_of(field(), "rel=1e-3 codec=lorenzo");
  stream[stream.size() / 2] ^= 0x10;
  expect_verdict_of_host(field(), stream, QUERN_ERROR_CHECKSUM_MISMATCH);
  stream.resize(stream.size() / 2);
  expect_verdict_of_host(field(), stream, QUERN_ERROR_TRUNCATED);
  std::vector<float> narrow(kElems);
  const quern_array half = make_array(QUERN_F32, {kRows, kColumns / 2}, narrow.data());
  const auto other = compressed(context_.get(), make_params("rel=1e-3 codec=lorenzo").get(), half);
  expect_verdict_of_host(field(), other, QUERN_ERROR_INVALID_SHAPE);
}

/// What the host measures, up to the order of sums.
void expect_quality(const quern_quality& got, const quern_quality& expected) {
  EXPECT_EQ(got.elements, expected.elements);
  EXPECT_EQ(got.valid, expected.valid);
  EXPECT_EQ(got.specials_lost, expected.specials_lost);
  EXPECT_EQ(got.min, expected.min);
  EXPECT_EQ(got.max, expected.max);
  EXPECT_EQ(got.max_error, expected.max_error);
  EXPECT_EQ(got.max_pointwise_rel, expected.max_pointwise_rel);
  EXPECT_EQ(got.max_ulp, expected.max_ulp);
  EXPECT_NEAR(got.mse, expected.mse, 1e-12 * expected.mse);
  EXPECT_NEAR(got.nrmse, expected.nrmse, 1e-12 * expected.nrmse);
  EXPECT_NEAR(got.psnr_db, expected.psnr_db, 1e-10);
  EXPECT_NEAR(got.ssim, expected.ssim, 1e-9);
}

TEST_F(DeviceMetrics, TwoArraysOfADevice_AreComparedThere) {
  std::vector<float> original = field(), back = field();
  for (std::size_t i = 0; i < kElems; i += 3) back[i] += 1e-3f;
  back[1001] = 0.0f;
  const quern_array host[2] = {host_array(original), host_array(back)};
  DeviceBuffer<float> buffers[2] = {DeviceBuffer<float>(original), DeviceBuffer<float>(back)};
  const quern_array device[2] = {device_array(buffers[0]), device_array(buffers[1])};
  const ParamsHandle params = params_of("");
  for (const quern_params* with :
       {static_cast<const quern_params*>(nullptr), static_cast<const quern_params*>(params.get())}) {
    quern_quality expected = QUERN_QUALITY_INIT, got = QUERN_QUALITY_INIT;
    ASSERT_EQ(quern_compare(context_.get(), with, &host[0], &host[1], &expected), QUERN_OK);
    ASSERT_GT(expected.specials_lost, 0u);
    ASSERT_FALSE(std::isnan(expected.ssim));
    const std::uint64_t before = bytes_to_host();
    ASSERT_EQ(quern_compare(context_.get(), with, &device[0], &device[1], &got), QUERN_OK)
        << quern_last_error(context_.get());
    EXPECT_LT(bytes_to_host() - before, 1024u);
    expect_quality(got, expected);
  }
  // One of them on the host: both are measured there.
  quern_quality expected = QUERN_QUALITY_INIT, got = QUERN_QUALITY_INIT;
  ASSERT_EQ(quern_compare(context_.get(), nullptr, &host[0], &host[1], &expected), QUERN_OK);
  ASSERT_EQ(quern_compare(context_.get(), nullptr, &device[0], &host[1], &got), QUERN_OK);
  expect_quality(got, expected);
}

TEST_F(DeviceMetrics, MoreFillValuesThanKernelsTake_AreTheHosts) {
  std::vector<float> values = field();
  DeviceBuffer<float> buffer(values);
  DevicePair pair{0, DType::f32, Shape::make(std::vector<std::uint64_t>{kRows, kColumns}).value(), buffer.data(),
                  buffer.data()};
  ValidityRule validity;
  for (std::uint64_t i = 0; i < 256; ++i) validity.fill_bits.push_back(i);
  EXPECT_EQ(measure_quality_on_device(pair, validity, true).status().code(), StatusCode::unsupported);
  EXPECT_EQ(check_bound_on_device(pair, {BoundKind::abs, 1}, validity).status().code(), StatusCode::unsupported);
  validity.fill_bits.pop_back();
  EXPECT_TRUE(measure_quality_on_device(pair, validity, true).ok());
  EXPECT_EQ(check_bound_on_device(pair, {BoundKind::abs, 1}, validity).value().violations, 0u);
}

TEST_F(DeviceMetrics, WhatCannotBeAsked_IsRefused) {
  std::vector<float> values = field();
  DeviceBuffer<float> buffer(values);
  const DevicePair pair{0, DType::f32, Shape::make(std::vector<std::uint64_t>{kRows, kColumns}).value(), buffer.data(),
                        buffer.data()};
  for (const EnforcedBound bound :
       {EnforcedBound{BoundKind::abs, -1}, EnforcedBound{BoundKind::pwrel, 2}, EnforcedBound{BoundKind::rel, 1e-3}})
    EXPECT_EQ(check_bound_on_device(pair, bound, {}).status().code(), StatusCode::invalid_bound);
  DevicePair nowhere = pair;
  nowhere.reconstructed = nullptr;
  EXPECT_EQ(measure_quality_on_device(nowhere, {}, true).status().code(), StatusCode::invalid_argument);
  DevicePair elsewhere = pair;
  elsewhere.ordinal = 7;
  EXPECT_EQ(measure_quality_on_device(elsewhere, {}, true).status().code(), StatusCode::device_unavailable);
  EXPECT_EQ(check_bound_on_device(elsewhere, {BoundKind::abs, 1}, {}).status().code(), StatusCode::device_unavailable);
}

TEST_F(DeviceMetrics, ArraysWithoutElements_HaveNothingWrong) {
  const DevicePair pair{0, DType::f64, Shape::make(std::vector<std::uint64_t>{0, 5}).value(), nullptr, nullptr};
  EXPECT_EQ(check_bound_on_device(pair, {BoundKind::abs, 1}, {}).value().violations, 0u);
  EXPECT_EQ(measure_quality_on_device(pair, {}, true).value().valid, 0u);
}

}  // namespace
}  // namespace quern::testing
