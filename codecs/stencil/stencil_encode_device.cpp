// From chunks in raster order to the launches of the kernels that encode them.
#include "codecs/stencil/stencil_encode_device.h"

#include <cstring>

#include "codecs/stencil/device_state.h"
#include "codecs/stencil/raster_encode.h"
#include "kernels/cuda/stencil_encode_cuda.h"

namespace quern::codec::stencil {
namespace {

using kernels::RasterEncodeAnswer;
using kernels::RowLanesAnswer;
using kernels::RowLanesProgram;

template <class T>
T read(std::span<const std::uint8_t> bytes) {
  T value;
  std::memcpy(static_cast<void*>(&value), bytes.data(), sizeof value);
  return value;
}

class RasterChunk final : public cuda::ChunkEncoding {
 public:
  explicit RasterChunk(const ChunkSpec& spec) : spec_(spec) {}

  bool start(const ConstBox3& in, std::span<std::uint8_t> scratch, Vector<std::uint8_t>& program) override {
    return encoding_.start(spec_, in, scratch, program);
  }
  const ConstBox3& box() const override { return encoding_.box(); }
  std::size_t element_bytes() const override { return dtype_bytes(encoding_.dtype()); }
  std::uint64_t work_bytes() const override { return encoding_.work_bytes(); }
  bool may_be_raw() const override { return encoding_.may_be_raw(); }

  bool left(std::span<const std::uint8_t> answer) const override { return read<RasterEncodeAnswer>(answer).left != 0; }
  cuda::WorkPiece wanted(std::span<const std::uint8_t> answer) const override {
    return {encoding_.exception_list(), read<RasterEncodeAnswer>(answer).exceptions * sizeof(std::uint32_t)};
  }
  bool choose(std::span<const std::uint8_t> answer, std::span<const std::uint8_t> piece,
              Vector<std::uint8_t>& program) override {
    Vector<std::uint32_t> exceptions(piece.size() / sizeof(std::uint32_t));
    if (!exceptions.empty()) std::memcpy(exceptions.data(), piece.data(), piece.size());
    return encoding_.choose(read<RasterEncodeAnswer>(answer), exceptions, program);
  }

  std::uint64_t written(std::span<const std::uint8_t> answer) const override {
    std::uint64_t words = 0;
    for (const std::uint32_t n : read<RowLanesAnswer>(answer).words) words += n;
    return words > encoding_.most_words() ? 0 : words * sizeof(std::uint16_t);
  }
  std::size_t finish(std::span<const std::uint8_t> answer, std::span<const std::uint8_t> bytes,
                     std::span<std::uint8_t> out) const override {
    const auto lanes = read<RowLanesAnswer>(answer);
    return encoding_.write(lanes.words, reinterpret_cast<const std::uint16_t*>(bytes.data()), out);
  }

 private:
  ChunkSpec spec_;
  RasterEncoding encoding_;
};

class Kernels final : public cuda::ProgramEncodeKernels {
 public:
  bool serves(std::span<const std::uint8_t> state) const override {
    return !state.empty() && !spec_of_encoder_state(state).form.levels;
  }
  std::unique_ptr<cuda::ChunkEncoding> chunk(std::span<const std::uint8_t> state) const override {
    return std::unique_ptr<cuda::ChunkEncoding>(new RasterChunk(spec_of_encoder_state(state)));
  }
  std::size_t answer_bytes() const override {
    static_assert(sizeof(RowLanesAnswer) <= sizeof(RasterEncodeAnswer));
    return sizeof(RasterEncodeAnswer);
  }
  std::size_t second_program_bytes() const override {
    constexpr std::size_t kAlignment = 16;
    return sizeof(RowLanesProgram) + kAlignment + kLevels * sizeof(kernels::LevelStarts);
  }
  // Values, codes and symbols; in chunks of one plane targets and means, too; and the list of exceptions.
  std::size_t work_bytes_per_element() const override { return 8 + 4 + 2 + 8 + 8 + 1; }
  cudaError_t encode(const kernels::EncodeTask* tasks, std::uint32_t count, cudaStream_t queue) const override {
    return kernels::stencil_raster_encode_async(tasks, count, queue);
  }
  cudaError_t write(const kernels::EncodeTask* tasks, std::uint32_t count, cudaStream_t queue) const override {
    return kernels::stencil_row_lanes_async(tasks, count, queue);
  }
};

}  // namespace

const cuda::ProgramEncodeKernels& stencil_encode_kernels() {
  static const Kernels kernels;
  return kernels;
}

}  // namespace quern::codec::stencil
