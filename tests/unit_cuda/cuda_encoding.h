// Chunks through the stencil kernels that encode, with memory of exactly the size it needs.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "kernels/cuda/stencil_encode_cuda.h"
#include "tests/simt/cuda_test.h"
#include "tests/unit_stencil/encode_cases.h"

namespace quern::codec::stencil::test {

/// What encode_with() runs: one chunk, one launch a program.
class DeviceRun {
 public:
  kernels::RasterEncodeAnswer encode(std::span<const std::uint8_t> program, std::uint32_t work_bytes, Bytes& elements,
                                     const Bytes& special) {
    work_ = std::make_unique<Buffer>(work_bytes);
    elements_ = upload(elements);
    const auto classes = special.empty() ? nullptr : upload(special);
    return run<kernels::RasterEncodeAnswer>(&kernels::stencil_raster_encode_async, program,
                                            classes == nullptr ? nullptr : classes->data());
  }
  std::vector<std::uint32_t> exceptions(std::uint32_t at, std::uint32_t count) const {
    std::vector<std::uint32_t> list(count);
    if (count > 0) {
      EXPECT_EQ(cudaMemcpy(list.data(), work_->data() + at, count * sizeof(std::uint32_t), cudaMemcpyDeviceToHost),
                cudaSuccess);
    }
    return list;
  }
  std::vector<std::uint32_t> write_lanes(std::span<const std::uint8_t> program, std::vector<std::uint16_t>& words) {
    const auto answer = run<kernels::RowLanesAnswer>(&kernels::stencil_row_lanes_async, program, nullptr);
    const std::vector<std::uint8_t> bytes = elements_->get();
    std::memcpy(words.data(), bytes.data(), words.size() * sizeof(std::uint16_t));
    return {std::begin(answer.words), std::end(answer.words)};
  }

 private:
  using Buffer = quern::testing::DeviceBuffer<std::uint8_t>;

  static std::unique_ptr<Buffer> upload(std::span<const std::uint8_t> bytes) {
    return std::make_unique<Buffer>(std::vector<std::uint8_t>(bytes.begin(), bytes.end()));
  }
  template <class Answer, class Launch>
  Answer run(Launch launch, std::span<const std::uint8_t> bytes, const std::uint8_t* special) {
    const auto program = upload(bytes);
    quern::testing::DeviceBuffer<Answer> answer(1);
    const std::vector<kernels::EncodeTask> tasks{
        {program->data(), work_->data(), elements_->data(), special, answer.data()}};
    quern::testing::DeviceBuffer<kernels::EncodeTask> device_tasks(tasks);
    quern::testing::Stream stream;
    EXPECT_EQ(launch(device_tasks.data(), 1, stream), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess) << simt::failure();
    return answer.get()[0];
  }

  std::unique_ptr<Buffer> work_;
  std::unique_ptr<Buffer> elements_;
};

/// Encodes all chunks of a case and compares them with the host's; how many the kernels coded.
inline std::size_t compare_with_host(const EncodeCase& c) {
  std::size_t coded = 0;
  for (std::uint64_t chunk = 0; chunk < c.coding->chunks(); ++chunk) {
    DeviceRun run;
    Bytes out;
    Bytes elements;
    Bytes special;
    const Encoded encoded = encode_with(run, *c.coding, chunk, out, elements, special);
    EXPECT_EQ(simt::failure(), "");
    const Bytes expected = c.coding->encode(chunk);
    if (encoded == Encoded::raw) {
      EXPECT_EQ(expected[0], static_cast<std::uint8_t>(Mode::raw));
    }
    if (encoded != Encoded::coded) continue;
    EXPECT_EQ(out, expected);
    ++coded;
  }
  return coded;
}

}  // namespace quern::codec::stencil::test
