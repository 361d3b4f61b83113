// From chunks to the launches of the kernels that encode them.
#include "codecs/interp/device/interp_encode_device.h"

#include <algorithm>
#include <cstring>

#include "codecs/interp/device/chunk_encoding.h"
#include "codecs/interp/device/state.h"
#include "kernels/interp/cuda/entry_points.h"

namespace quern::codec::interp {
namespace {

using cuda::EncodeStep;
using kernels::InterpEncodeResult;
using kernels::InterpWriteResult;
using Outcome = DeviceEncoding::Outcome;

template <class T>
T read(std::span<const std::uint8_t> bytes) {
  T value;
  std::memcpy(static_cast<void*>(&value), bytes.data(), sizeof value);
  return value;
}

class Chunk final : public cuda::ChunkEncoding {
 public:
  explicit Chunk(const ChunkSpec& spec) : spec_(spec) {}

  bool start(const ConstBox3& in, std::span<std::uint8_t> scratch, Vector<std::uint8_t>& job) override {
    in_ = &in;
    return encoding_.start(spec_, in, scratch, job);
  }
  const ConstBox3& box() const override { return *in_; }
  std::size_t element_bytes() const override { return dtype_bytes(spec_.dtype); }
  std::uint64_t work_bytes() const override { return encoding_.work_bytes(); }

  cuda::WorkPiece wanted(std::span<const std::uint8_t> result) const override {
    const auto counted = read<InterpEncodeResult>(result);
    if (counted.left != 0) return {};
    return {encoding_.exception_list(), std::uint64_t{counted.exceptions} * sizeof(std::uint32_t)};
  }
  EncodeStep next(std::span<const std::uint8_t> result, std::span<const std::uint8_t> piece,
                  Vector<std::uint8_t>& job) override {
    Vector<std::uint32_t> exceptions(piece.size() / sizeof(std::uint32_t));
    if (!exceptions.empty()) std::memcpy(exceptions.data(), piece.data(), piece.size());
    return step_of(encoding_.choose(read<InterpEncodeResult>(result), exceptions, job), EncodeStep::write);
  }
  std::uint64_t written(std::span<const std::uint8_t> result) const override {
    const auto streams = read<InterpWriteResult>(result);
    std::uint64_t words = 0;
    for (const auto& section : streams.words)
      for (const std::uint32_t n : section) words += n;
    return words > encoding_.most_words() ? 0 : words * sizeof(std::uint16_t);
  }
  EncodeStep finish(std::span<const std::uint8_t> result, std::span<const std::uint8_t> bytes,
                    std::span<std::uint8_t> out, std::size_t& size) const override {
    const std::span words(reinterpret_cast<const std::uint16_t*>(bytes.data()), bytes.size() / sizeof(std::uint16_t));
    return step_of(encoding_.write(read<InterpWriteResult>(result), words, out, size), EncodeStep::done);
  }

 private:
  static EncodeStep step_of(Outcome outcome, EncodeStep coded) {
    switch (outcome) {
      case Outcome::coded: return coded;
      case Outcome::raw: return EncodeStep::raw;
      default: return EncodeStep::host;
    }
  }

  ChunkSpec spec_;
  const ConstBox3* in_ = nullptr;
  DeviceEncoding encoding_;
};

class EncodeKernels final : public cuda::JobEncodeKernels {
 public:
  std::unique_ptr<cuda::ChunkEncoding> chunk(std::span<const std::uint8_t> state) const override {
    return std::unique_ptr<cuda::ChunkEncoding>(new Chunk(spec_of_encoder_state(state)));
  }
  cuda::EncodeRoom room(std::span<const std::uint8_t> state) const override {
    const DeviceEncoding::Room room = DeviceEncoding::room(spec_of_encoder_state(state));
    return {room.first_job, room.later_job, room.work, room.kept};
  }
  std::size_t result_bytes() const override { return std::max(sizeof(InterpEncodeResult), sizeof(InterpWriteResult)); }
  cudaError_t encode(const kernels::EncodeTask* tasks, std::uint32_t count, cudaStream_t queue) const override {
    return kernels::interp_encode_async(tasks, count, queue);
  }
  cudaError_t write(const kernels::EncodeTask* tasks, std::uint32_t count, cudaStream_t queue) const override {
    return kernels::interp_write_async(tasks, count, queue);
  }
};

}  // namespace

const cuda::JobEncodeKernels* interp_encode_kernels(std::span<const std::uint8_t> state) {
  static const EncodeKernels kernels;
  return state.size() == sizeof(ChunkSpec) ? &kernels : nullptr;
}

}  // namespace quern::codec::interp
