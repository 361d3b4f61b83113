// Chunks through the stencil kernels that encode, with memory of exactly the size it needs.
#pragma once

#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "kernels/stencil/cuda/encode_entry_points.h"
#include "tests/simt/cuda_test.h"
#include "tests/unit_stencil/encode_levels_cases.h"
#include "tests/unit_stencil/encode_steps.h"
#include "tests/unit_stencil/encode_wavelet_cases.h"

namespace quern::codec::stencil::test {

/// What encode_with() and encode_steps_with() run: one chunk, one launch a job, steps by `launch`.
class DeviceRun {
 public:
  using Launch = cudaError_t (*)(const kernels::EncodeTask*, std::uint32_t, cudaStream_t);
  explicit DeviceRun(Launch launch) : launch_(launch) {}

  void open(std::uint32_t work_bytes, const Bytes& elements, const Bytes& special) {
    work_ = std::make_unique<Buffer>(work_bytes);
    elements_ = upload(elements);
    special_ = special.empty() ? nullptr : upload(special);
  }
  kernels::RasterEncodeResult encode(std::span<const std::uint8_t> job, std::uint32_t work_bytes, Bytes& elements,
                                     const Bytes& special) {
    open(work_bytes, elements, special);
    return run<kernels::RasterEncodeResult>(launch_, job);
  }
  kernels::RasterEncodeResult step(std::span<const std::uint8_t> job) {
    return run<kernels::RasterEncodeResult>(launch_, job);
  }
  Bytes work(std::uint32_t at, std::size_t bytes) const {
    Bytes piece(bytes);
    if (bytes > 0) {
      EXPECT_EQ(cudaMemcpy(piece.data(), work_->data() + at, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
    }
    return piece;
  }
  std::vector<std::uint32_t> exceptions(std::uint32_t at, std::uint32_t count) const {
    std::vector<std::uint32_t> list(count);
    const Bytes bytes = work(at, count * sizeof(std::uint32_t));
    if (count > 0) std::memcpy(list.data(), bytes.data(), bytes.size());
    return list;
  }
  std::vector<std::uint32_t> write_lanes(std::span<const std::uint8_t> job, std::vector<std::uint16_t>& words) {
    const auto result = run<kernels::RowLanesResult>(&kernels::stencil_row_lanes_async, job);
    const std::vector<std::uint8_t> bytes = elements_->get();
    std::memcpy(words.data(), bytes.data(), words.size() * sizeof(std::uint16_t));
    return {std::begin(result.words), std::end(result.words)};
  }

 private:
  using Buffer = quern::testing::DeviceBuffer<std::uint8_t>;

  static std::unique_ptr<Buffer> upload(std::span<const std::uint8_t> bytes) {
    return std::make_unique<Buffer>(std::vector<std::uint8_t>(bytes.begin(), bytes.end()));
  }
  template <class KernelResult>
  KernelResult run(Launch launch, std::span<const std::uint8_t> bytes) {
    const auto job = upload(bytes);
    quern::testing::DeviceBuffer<KernelResult> result(1);
    const std::vector<kernels::EncodeTask> tasks{{job->data(), work_->data(), elements_->data(),
                                                  special_ == nullptr ? nullptr : special_->data(), result.data()}};
    quern::testing::DeviceBuffer<kernels::EncodeTask> device_tasks(tasks);
    quern::testing::Stream stream;
    EXPECT_EQ(launch(device_tasks.data(), 1, stream), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess) << simt::failure();
    return result.get()[0];
  }

  Launch launch_;
  std::unique_ptr<Buffer> work_;
  std::unique_ptr<Buffer> elements_;
  std::unique_ptr<Buffer> special_;
};

/// Encodes all chunks of a case by `layout`, one of levels (and planes), raster and wavelet, and compares them with the
/// host's; how many the kernels coded.
inline std::size_t compare_with_host(const EncodeCase& c, std::string_view layout) {
  const DeviceRun::Launch launch = layout == "levels"    ? &kernels::stencil_levels_encode_async
                                   : layout == "wavelet" ? &kernels::stencil_wavelet_encode_async
                                                         : &kernels::stencil_raster_encode_async;
  std::size_t coded = 0;
  for (std::uint64_t chunk = 0; chunk < c.coding->chunks(); ++chunk) {
    DeviceRun run(launch);
    Bytes out;
    Bytes elements;
    Bytes special;
    StepsTrace trace;
    const Encoded encoded = layout == "levels" ? encode_steps_with<LevelsEncoding>(run, *c.coding, chunk, out, trace)
                            : layout == "wavelet"
                                ? encode_steps_with<WaveletEncoding>(run, *c.coding, chunk, out, trace)
                                : encode_with(run, *c.coding, chunk, out, elements, special);
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

/// The same for cases, each with a seed of its own, until one fails.
inline std::size_t compare_with_host(const std::vector<EncodeCase>& cases, std::string_view layout,
                                     simt::Options options) {
  std::size_t coded = 0;
  for (const EncodeCase& c : cases) {
    SCOPED_TRACE(c.name);
    ++options.seed;
    simt::reset(options);
    coded += compare_with_host(c, layout);
    if (::testing::Test::HasFailure()) break;
  }
  return coded;
}

/// Without those that are larger.
inline std::vector<EncodeCase> not_above(std::size_t bytes, std::vector<EncodeCase> cases) {
  std::erase_if(cases, [&](const EncodeCase& c) { return c.coding->data().size() > bytes; });
  return cases;
}

}  // namespace quern::codec::stencil::test
