// Chunks of the interp codec on a device, with memory of exactly the size that they need.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/interp/cuda/entry_points.h"
#include "kernels/interp/interp_job.h"
#include "tests/simt/cuda_test.h"
#include "tests/unit_interp/chunk_cases.h"

namespace quern::codec::interp::test {

/// Decodes chunks of an array over what `back` holds; whether each was good. Chunks without a job are the host's.
inline std::vector<bool> decode_on_device(const CodedChunks& coded, const std::vector<Vector<std::uint8_t>>& stored,
                                          Vector<std::uint8_t>& back) {
  using quern::testing::DeviceBuffer;
  std::vector<std::unique_ptr<DeviceBuffer<std::uint8_t>>> memory;
  const auto upload = [&](const Vector<std::uint8_t>& bytes) {
    memory.push_back(
        std::make_unique<DeviceBuffer<std::uint8_t>>(std::vector<std::uint8_t>(bytes.begin(), bytes.end())));
    return memory.back()->data();
  };
  std::vector<bool> good(stored.size(), true);
  std::vector<std::size_t> numbers;
  std::vector<kernels::JobTask> tasks;
  for (std::size_t n = 0; n < stored.size(); ++n) {
    Vector<std::uint8_t> job;
    if (!coded.append_job(stored[n], coded.box(n, back.data()), job))
      good[n] = coded.decode_on_host(stored[n], coded.box(n, back.data())).ok();
  }
  std::uint8_t* const values = upload(back);
  for (std::size_t n = 0; n < stored.size(); ++n) {
    const MutableBox3 box = coded.box(n, back.data());
    Vector<std::uint8_t> job;
    if (!coded.append_job(stored[n], box, job)) continue;
    kernels::InterpJob head;
    std::memcpy(&head, job.data(), sizeof head);
    kernels::JobTask task;
    task.job = upload(job);
    memory.push_back(std::make_unique<DeviceBuffer<std::uint8_t>>(head.work_bytes));
    task.work = memory.back()->data();
    task.out = values + (static_cast<std::uint8_t*>(box.data) - back.data());
    tasks.push_back(task);
    numbers.push_back(n);
  }
  if (tasks.empty()) return good;
  DeviceBuffer<kernels::JobTask> device_tasks(tasks);
  DeviceBuffer<std::uint32_t> damaged(tasks.size());
  quern::testing::Stream stream;
  EXPECT_EQ(kernels::interp_decode_async(device_tasks.data(), static_cast<std::uint32_t>(tasks.size()), damaged.data(),
                                         stream),
            cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess) << simt::failure();
  EXPECT_EQ(cudaMemcpy(back.data(), values, back.size(), cudaMemcpyDeviceToHost), cudaSuccess);
  const auto results = damaged.get();
  for (std::size_t i = 0; i < numbers.size(); ++i) good[numbers[i]] = results[i] == 0;
  return good;
}

/// Decodes an array on the host.
inline Vector<std::uint8_t> expected_of(const CodedChunks& coded) {
  Vector<std::uint8_t> expected(coded.bytes());
  for (std::uint64_t n = 0; n < coded.count(); ++n)
    EXPECT_TRUE(coded.decode_on_host(coded.stored[n], coded.box(n, expected.data())).ok());
  return expected;
}

}  // namespace quern::codec::interp::test
