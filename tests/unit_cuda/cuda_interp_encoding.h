// Chunks encoded by the interp kernels, with memory of exactly the size that they need.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "kernels/interp/cuda/entry_points.h"
#include "tests/simt/cuda_test.h"
#include "tests/unit_interp/encode_cases.h"

namespace quern::codec::interp::test {

/// What encode_with() runs: one chunk.
class DeviceRun {
 public:
  void open(std::uint32_t work_bytes, const Bytes& elements, const Bytes& special) {
    work_ = std::make_unique<Buffer>(work_bytes);
    elements_ = std::make_unique<Buffer>(elements);
    special_ = special.empty() ? nullptr : std::make_unique<Buffer>(special);
  }
  kernels::InterpEncodeResult encode(std::span<const std::uint8_t> job) {
    return run<kernels::InterpEncodeResult>(&kernels::interp_encode_async, job);
  }
  std::vector<std::uint32_t> list(std::uint32_t at, std::uint32_t count) const {
    std::vector<std::uint32_t> numbers(count);
    if (count > 0) {
      EXPECT_EQ(cudaMemcpy(numbers.data(), work_->data() + at, count * sizeof(std::uint32_t), cudaMemcpyDeviceToHost),
                cudaSuccess);
    }
    return numbers;
  }
  kernels::InterpWriteResult write(std::span<const std::uint8_t> job, std::vector<std::uint16_t>& words) {
    const auto result = run<kernels::InterpWriteResult>(&kernels::interp_write_async, job);
    const Bytes bytes = elements_->get();
    if (!words.empty()) std::memcpy(words.data(), bytes.data(), words.size() * sizeof(std::uint16_t));
    return result;
  }

 private:
  using Buffer = quern::testing::DeviceBuffer<std::uint8_t>;

  template <class KernelResult, class Launch>
  KernelResult run(const Launch& launch, std::span<const std::uint8_t> bytes) {
    Buffer job(Bytes(bytes.begin(), bytes.end()));
    quern::testing::DeviceBuffer<KernelResult> result(1);
    quern::testing::DeviceBuffer<kernels::EncodeTask> tasks(
        std::vector<kernels::EncodeTask>{{job.data(), work_->data(), elements_->data(),
                                          special_ == nullptr ? nullptr : special_->data(), result.data()}});
    quern::testing::Stream stream;
    EXPECT_EQ(launch(tasks.data(), 1, stream), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess) << simt::failure();
    return result.get()[0];
  }

  std::unique_ptr<Buffer> work_;
  std::unique_ptr<Buffer> elements_;
  std::unique_ptr<Buffer> special_;
};

}  // namespace quern::codec::interp::test
