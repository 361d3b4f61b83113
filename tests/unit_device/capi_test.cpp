// Plans for arrays in device memory through the C interface, on the simulator: one array, a batch, and what is refused.
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/simt/cuda_test.h"
#include "tests/unit_capi/handles.h"

namespace quern::testing {
namespace {

struct DestroyPlan {
  void operator()(quern_plan* plan) const { quern_plan_destroy(plan); }
};
using PlanHandle = std::unique_ptr<quern_plan, DestroyPlan>;

constexpr std::size_t kElems = 30 * 50;

std::vector<float> wave(double shift) {
  std::vector<float> values(kElems);
  for (std::size_t i = 0; i < kElems; ++i)
    values[i] = static_cast<float>(std::sin(0.01 * static_cast<double>(i) + shift));
  return values;
}

class DevicePlan : public CudaTest {
 protected:
  static quern_array on_device(void* data) {
    quern_array array = make_array(QUERN_F32, {30, 50}, data);
    array.memory = QUERN_MEMORY_CUDA;
    return array;
  }
  PlanHandle make(const char* settings, const quern_array& like, quern_status expected = QUERN_OK) {
    quern_plan* plan = nullptr;
    EXPECT_EQ(quern_plan_create(context_.get(), make_params(settings).get(), &like, &plan), expected)
        << quern_last_error(context_.get());
    return PlanHandle(plan);
  }
  std::vector<std::uint8_t> on_host(std::vector<float> values) {
    const quern_array array = make_array(QUERN_F32, {30, 50}, values.data());
    return compressed(context_.get(), make_params(kSettings).get(), array);
  }

  static constexpr const char* kSettings = "rel=1e-4 codec=lorenzo";
  ContextHandle context_ = make_context();
};

TEST_F(DevicePlan, OneArray_BytesOfTheHostAndBack) {
  DeviceBuffer<float> values(wave(0));
  quern_array array = on_device(values.data());
  const PlanHandle plan = make(kSettings, array);
  std::uint64_t room = 0, workspace_bytes = 0, reading = 0;
  ASSERT_EQ(quern_plan_bound(plan.get(), &room), QUERN_OK);
  ASSERT_EQ(quern_plan_workspace(plan.get(), &workspace_bytes), QUERN_OK);
  ASSERT_EQ(quern_decompress_workspace(&array, &reading), QUERN_OK);
  EXPECT_LE(reading, workspace_bytes);
  DeviceBuffer<std::uint8_t> workspace(workspace_bytes), stream(room), less(reading);
  DeviceBuffer<std::uint64_t> size(1);
  Stream queue;
  ASSERT_EQ(quern_compress_async(context_.get(), plan.get(), &array, workspace.data(), workspace_bytes, stream.data(),
                                 room, size.data(), queue),
            QUERN_OK)
      << quern_last_error(context_.get());
  ASSERT_EQ(cudaStreamSynchronize(queue), cudaSuccess);
  const auto expected = on_host(wave(0));
  ASSERT_EQ(size.get()[0], expected.size());
  EXPECT_EQ(stream.get(expected.size()), expected);
  quern_outcome outcome;
  std::memcpy(&outcome, workspace.get(sizeof outcome).data(), sizeof outcome);
  EXPECT_EQ(outcome.status, QUERN_OK);
  EXPECT_EQ(outcome.bytes, expected.size());

  values.put(std::vector<float>(kElems, 7));
  ASSERT_EQ(quern_decompress_async(context_.get(), stream.data(), expected.size(), &array, less.data(), reading, queue),
            QUERN_OK)
      << quern_last_error(context_.get());
  ASSERT_EQ(cudaStreamSynchronize(queue), cudaSuccess);
  std::vector<float> back(kElems);
  quern_array host = make_array(QUERN_F32, {30, 50}, back.data());
  ASSERT_EQ(quern_decompress(context_.get(), expected.data(), expected.size(), &host), QUERN_OK);
  EXPECT_EQ(values.get(), back);
}

TEST_F(DevicePlan, OneShotCalls_TakeArraysOfTheDevice) {
  for (const char* settings : {"rel=1e-4 codec=lorenzo", "rel=1e-3", "psnr=60 codec=stencil"}) {
    SCOPED_TRACE(settings);
    const ParamsHandle params = make_params(settings);
    std::vector<float> host_values = wave(0);
    const auto expected = compressed(context_.get(), params.get(), make_array(QUERN_F32, {30, 50}, host_values.data()));
    DeviceBuffer<float> values(wave(0));
    quern_array array = on_device(values.data());
    const auto stream = compressed(context_.get(), params.get(), array);
    EXPECT_EQ(stream, expected);

    std::vector<float> back(kElems);
    quern_array host = make_array(QUERN_F32, {30, 50}, back.data());
    ASSERT_EQ(quern_decompress(context_.get(), stream.data(), stream.size(), &host), QUERN_OK);
    values.put(std::vector<float>(kElems, 7));
    ASSERT_EQ(quern_decompress(context_.get(), stream.data(), stream.size(), &array), QUERN_OK)
        << quern_last_error(context_.get());
    EXPECT_EQ(values.get(), back);

    const std::uint64_t begin[2] = {3, 10}, end[2] = {9, 31};
    DeviceBuffer<float> part(6 * 21);
    quern_array box = make_array(QUERN_F32, {6, 21}, part.data());
    box.memory = QUERN_MEMORY_CUDA;
    ASSERT_EQ(quern_decompress_region(context_.get(), stream.data(), stream.size(), begin, end, &box), QUERN_OK);
    EXPECT_EQ(part.get()[0], back[3 * 50 + 10]);
    EXPECT_EQ(part.get()[6 * 21 - 1], back[8 * 50 + 30]);

    quern_quality same = QUERN_QUALITY_INIT;
    ASSERT_EQ(quern_compare(context_.get(), params.get(), &host, &array, &same), QUERN_OK)
        << quern_last_error(context_.get());
    EXPECT_EQ(same.max_error, 0);
  }
  quern_array elsewhere = on_device(nullptr);
  float one = 1;
  elsewhere.data = &one;
  elsewhere.device = 7;
  std::uint64_t size = 0;
  std::uint8_t room[64];
  EXPECT_EQ(quern_compress(context_.get(), make_params(kSettings).get(), &elsewhere, room, 64, &size, nullptr),
            QUERN_ERROR_DEVICE_UNAVAILABLE);
}

TEST_F(DevicePlan, StreamsOfOtherCodecs_AreRefusedInTheOutcomeAndTakenByOneShotCalls) {
  // The last has a feature that must be understood: level tables.
  for (const auto& [settings, rows] :
       {std::pair("rel=1e-4 codec=stencil layout=raster", 30), std::pair("rel=1e-1 codec=stencil layout=wavelet", 30),
        std::pair("rel=0 codec=lossless", 30), std::pair("rel=1e-4 codec=stencil layout=levels", 1400)}) {
    SCOPED_TRACE(settings);
    const auto rows_of = [&](void* data) {
      return make_array(QUERN_F32, {static_cast<std::uint64_t>(rows), 50}, data);
    };
    std::vector<float> host_values(static_cast<std::size_t>(rows) * 50);
    for (std::size_t i = 0; i < host_values.size(); ++i)
      host_values[i] = static_cast<float>(std::sin(0.01 * static_cast<double>(i)));
    const ParamsHandle params = make_params(settings);
    const auto bytes = compressed(context_.get(), params.get(), rows_of(host_values.data()));
    const std::vector<float> sevens(host_values.size(), 7);
    DeviceBuffer<float> values(sevens);
    DeviceBuffer<std::uint8_t> stream(bytes);
    quern_array array = rows_of(values.data());
    array.memory = QUERN_MEMORY_CUDA;
    std::uint64_t workspace_bytes = 0;
    ASSERT_EQ(quern_decompress_workspace(&array, &workspace_bytes), QUERN_OK);
    DeviceBuffer<std::uint8_t> workspace(workspace_bytes);
    Stream queue;
    ASSERT_EQ(quern_decompress_async(context_.get(), stream.data(), bytes.size(), &array, workspace.data(),
                                     workspace_bytes, queue),
              QUERN_OK)
        << quern_last_error(context_.get());
    ASSERT_EQ(cudaStreamSynchronize(queue), cudaSuccess);
    quern_outcome outcome;
    std::memcpy(&outcome, workspace.get(sizeof outcome).data(), sizeof outcome);
    EXPECT_EQ(outcome.status, QUERN_ERROR_UNSUPPORTED);
    EXPECT_EQ(outcome.bytes, 0u);
    EXPECT_EQ(values.get(), sevens);
    ASSERT_EQ(quern_decompress(context_.get(), bytes.data(), bytes.size(), &array), QUERN_OK)
        << quern_last_error(context_.get());
    const std::vector<float> back = values.get();
    for (std::size_t i = 0; i < back.size(); ++i) ASSERT_NEAR(back[i], host_values[i], 0.21) << i;

    quern_plan* plan = nullptr;
    EXPECT_EQ(quern_plan_create(context_.get(), params.get(), &array, &plan), QUERN_ERROR_UNSUPPORTED);
    EXPECT_NE(std::strstr(quern_last_error(context_.get()), "quern_decompress"), nullptr)
        << quern_last_error(context_.get());
  }
}

TEST_F(DevicePlan, Batch_StreamsOfTheHostAndBack) {
  constexpr std::uint32_t kCount = 5;
  std::vector<std::unique_ptr<DeviceBuffer<float>>> values;
  std::vector<std::unique_ptr<DeviceBuffer<std::uint8_t>>> streams;
  std::vector<void*> value_pointers, stream_pointers;
  const PlanHandle plan = make(kSettings, on_device(nullptr));
  std::uint64_t room = 0, workspace_bytes = 0;
  ASSERT_EQ(quern_plan_bound(plan.get(), &room), QUERN_OK);
  ASSERT_EQ(quern_batch_workspace(plan.get(), kCount, &workspace_bytes), QUERN_OK);
  for (std::uint32_t i = 0; i < kCount; ++i) {
    values.push_back(std::make_unique<DeviceBuffer<float>>(wave(i)));
    streams.push_back(std::make_unique<DeviceBuffer<std::uint8_t>>(room));
    value_pointers.push_back(values.back()->data());
    stream_pointers.push_back(streams.back()->data());
  }
  DeviceBuffer<void*> arrays(value_pointers), targets(stream_pointers);
  DeviceBuffer<std::uint64_t> capacities(std::vector<std::uint64_t>(kCount, room)), sizes(kCount);
  DeviceBuffer<quern_status> statuses(kCount);
  DeviceBuffer<std::uint8_t> workspace(workspace_bytes);
  Stream queue;
  ASSERT_EQ(
      quern_batch_compress_async(context_.get(), plan.get(), arrays.data(), kCount, workspace.data(), workspace_bytes,
                                 targets.data(), capacities.data(), sizes.data(), statuses.data(), queue),
      QUERN_OK)
      << quern_last_error(context_.get());
  // The sizes stay on the device: the next call reads them there.
  ASSERT_EQ(quern_batch_decompress_async(context_.get(), plan.get(), targets.data(), sizes.data(), kCount,
                                         workspace.data(), workspace_bytes, arrays.data(), statuses.data(), queue),
            QUERN_OK);
  ASSERT_EQ(cudaStreamSynchronize(queue), cudaSuccess);
  EXPECT_EQ(statuses.get(), std::vector<quern_status>(kCount, QUERN_OK));
  for (std::uint32_t i = 0; i < kCount; ++i) {
    const auto expected = on_host(wave(i));
    ASSERT_EQ(sizes.get()[i], expected.size());
    EXPECT_EQ(streams[i]->get(expected.size()), expected);
    std::vector<float> back(kElems);
    quern_array host = make_array(QUERN_F32, {30, 50}, back.data());
    ASSERT_EQ(quern_decompress(context_.get(), expected.data(), expected.size(), &host), QUERN_OK);
    EXPECT_EQ(values[i]->get(), back);
  }
}

TEST_F(DevicePlan, WhatDoesNotFit_IsRefusedWithAReason) {
  DeviceBuffer<float> values(wave(0));
  quern_array array = on_device(values.data());
  make("rel=1e-4", array, QUERN_ERROR_UNSUPPORTED);
  EXPECT_STREQ(quern_last_error(context_.get()),
               "plans for arrays in device memory: name a codec that has kernels for them, as in codec=lorenzo; others "
               "(and auto, which may mean one) take quern_compress and quern_decompress");
  make("psnr=60 codec=lorenzo", array, QUERN_ERROR_UNSUPPORTED);
  quern_array strided = array;
  strided.strides[0] = 100;
  strided.strides[1] = 2;
  make(kSettings, strided, QUERN_ERROR_UNSUPPORTED);
  quern_array elsewhere = array;
  elsewhere.device = 7;
  make(kSettings, elsewhere, QUERN_ERROR_DEVICE_UNAVAILABLE);

  const PlanHandle plan = make(kSettings, array);
  std::vector<float> host_values(kElems);
  const quern_array host = make_array(QUERN_F32, {30, 50}, host_values.data());
  DeviceBuffer<std::uint8_t> workspace(64), stream(64);
  EXPECT_EQ(quern_compress_async(context_.get(), plan.get(), &host, workspace.data(), 64, stream.data(), 64, nullptr,
                                 nullptr),
            QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_compress_async(context_.get(), plan.get(), &array, workspace.data(), 64, stream.data(), 64, nullptr,
                                 nullptr),
            QUERN_ERROR_DESTINATION_TOO_SMALL);
  EXPECT_EQ(
      quern_compress_async(context_.get(), plan.get(), &array, workspace.data(), 64, nullptr, 64, nullptr, nullptr),
      QUERN_ERROR_INVALID_ARGUMENT);
  const PlanHandle host_plan = make(kSettings, host);
  std::uint64_t bytes = 0;
  EXPECT_EQ(quern_batch_workspace(host_plan.get(), 3, &bytes), QUERN_ERROR_UNSUPPORTED);
}

}  // namespace
}  // namespace quern::testing
