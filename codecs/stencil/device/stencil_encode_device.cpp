// From chunks to the launches of the kernels that encode them.
#include "codecs/stencil/device/stencil_encode_device.h"

#include <algorithm>
#include <cstring>

#include "codecs/stencil/device/levels_encode_steps.h"
#include "codecs/stencil/device/raster_encode.h"
#include "codecs/stencil/device/state.h"
#include "codecs/stencil/device/wavelet_encode_steps.h"
#include "kernels/stencil/cuda/encode_entry_points.h"

namespace quern::codec::stencil {
namespace {

using cuda::EncodeStep;
using kernels::RasterEncodeResult;
using kernels::RowLanesJob;
using kernels::RowLanesResult;

template <class T>
T read(std::span<const std::uint8_t> bytes) {
  T value;
  std::memcpy(static_cast<void*>(&value), bytes.data(), sizeof value);
  return value;
}

Vector<std::uint32_t> exceptions_of(std::span<const std::uint8_t> piece) {
  Vector<std::uint32_t> list(piece.size() / sizeof(std::uint32_t));
  if (!list.empty()) std::memcpy(list.data(), piece.data(), piece.size());
  return list;
}

/// What all encodings have in common.
template <class Encoding>
class JobChunk : public cuda::ChunkEncoding {
 public:
  explicit JobChunk(const EncodeSpec& spec) : spec_(spec) {}

  bool start(const ConstBox3& in, std::span<std::uint8_t> scratch, Vector<std::uint8_t>& job) final {
    return encoding_.start(spec_, in, scratch, job);
  }
  const ConstBox3& box() const final { return encoding_.box(); }
  std::size_t element_bytes() const final { return dtype_bytes(encoding_.dtype()); }
  std::uint64_t work_bytes() const final { return encoding_.work_bytes(); }
  std::uint64_t written(std::span<const std::uint8_t> result) const final {
    std::uint64_t words = 0;
    for (const std::uint32_t n : read<RowLanesResult>(result).words) words += n;
    return words > encoding_.most_words() ? 0 : words * sizeof(std::uint16_t);
  }

 protected:
  /// Of a chunk that is not worth coding.
  EncodeStep not_worth() const { return encoding_.may_be_raw() ? EncodeStep::raw : EncodeStep::host; }

  EncodeSpec spec_;
  Encoding encoding_;
};

class RasterChunk final : public JobChunk<RasterEncoding> {
 public:
  using JobChunk::JobChunk;

  cuda::WorkPiece wanted(std::span<const std::uint8_t> result) const override {
    const auto counted = read<RasterEncodeResult>(result);
    if (counted.left != 0) return {};
    return {encoding_.exception_list(), counted.exceptions * sizeof(std::uint32_t)};
  }
  EncodeStep next(std::span<const std::uint8_t> result, std::span<const std::uint8_t> piece,
                  Vector<std::uint8_t>& job) override {
    const auto counted = read<RasterEncodeResult>(result);
    if (counted.left != 0) return EncodeStep::host;
    return encoding_.choose(counted, exceptions_of(piece), job) ? EncodeStep::write : not_worth();
  }
  EncodeStep finish(std::span<const std::uint8_t> result, std::span<const std::uint8_t> bytes,
                    std::span<std::uint8_t> out, std::size_t& size) const override {
    size = 0;
    if (written(result) == 0) return not_worth();
    const auto lanes = read<RowLanesResult>(result);
    size = encoding_.write(lanes.words, reinterpret_cast<const std::uint16_t*>(bytes.data()), out);
    return size == 0 ? not_worth() : EncodeStep::done;
  }
};

/// Of encodings with jobs that gather what the host fits models to.
template <class Encoding>
class FittedChunk final : public JobChunk<Encoding> {
 public:
  using JobChunk<Encoding>::JobChunk;

  cuda::WorkPiece wanted(std::span<const std::uint8_t> result) const override {
    const auto counted = read<RasterEncodeResult>(result);
    if (counted.left != 0) return {};
    if (encoding_.gathers()) return {encoding_.samples_at(), encoding_.samples_bytes()};
    return {encoding_.exception_list(), counted.exceptions * sizeof(std::uint32_t)};
  }
  EncodeStep next(std::span<const std::uint8_t> result, std::span<const std::uint8_t> piece,
                  Vector<std::uint8_t>& job) override {
    const auto counted = read<RasterEncodeResult>(result);
    if (counted.left != 0) return EncodeStep::host;
    if (encoding_.gathers()) {
      encoding_.next(counted, piece, job);
      return EncodeStep::encode;
    }
    return after(encoding_.choose(counted, exceptions_of(piece), job), EncodeStep::write);
  }
  EncodeStep finish(std::span<const std::uint8_t> result, std::span<const std::uint8_t> bytes,
                    std::span<std::uint8_t> out, std::size_t& size) const override {
    size = 0;
    // Of lanes that have too many words the host may make a single one.
    if (this->written(result) == 0) return EncodeStep::host;
    const auto lanes = read<RowLanesResult>(result);
    return after(encoding_.write(lanes.words, reinterpret_cast<const std::uint16_t*>(bytes.data()), out, size),
                 EncodeStep::done);
  }

 private:
  using JobChunk<Encoding>::encoding_;

  EncodeStep after(typename Encoding::Choice choice, EncodeStep lanes) const {
    switch (choice) {
      case Encoding::Choice::lanes: return lanes;
      case Encoding::Choice::raw: return this->not_worth();
      default: return EncodeStep::host;
    }
  }
};
using LevelsChunk = FittedChunk<LevelsEncoding>;
using WaveletChunk = FittedChunk<WaveletEncoding>;

/// Room for the last job of a chunk.
constexpr std::uint64_t kLanesJobBytes = sizeof(RowLanesJob) + 2 * kernels::kJobAlignment +
                                         sizeof(kernels::RowSection) +
                                         kernels::kContextBins * sizeof(kernels::StreamStarts);

/// What chunks of all kinds have in common: results, and the kernel that writes lanes.
template <class Chunk>
class RowLanesKernels : public cuda::JobEncodeKernels {
 public:
  std::unique_ptr<cuda::ChunkEncoding> chunk(std::span<const std::uint8_t> state) const final {
    return std::unique_ptr<cuda::ChunkEncoding>(new Chunk(spec_of_encoder_state(state)));
  }
  std::size_t result_bytes() const final {
    static_assert(sizeof(RowLanesResult) <= sizeof(RasterEncodeResult));
    return sizeof(RasterEncodeResult);
  }
  cudaError_t write(const kernels::EncodeTask* tasks, std::uint32_t count, cudaStream_t queue) const final {
    return kernels::stencil_row_lanes_async(tasks, count, queue);
  }
};

class RasterKernels final : public RowLanesKernels<RasterChunk> {
 public:
  cuda::EncodeRoom room(std::span<const std::uint8_t> state) const override {
    // Values, codes and symbols; in chunks of one plane targets and means, too; and the list of exceptions.
    constexpr std::uint64_t kWork = 8 + 4 + 2 + 8 + 8 + 1;
    constexpr std::uint64_t kFirstJob = UINT64_C(1) << 16;  // taps and sums, of which there are few
    const EncodeSpec spec = spec_of_encoder_state(state);
    return {kFirstJob, kLanesJobBytes, kWork * (spec.raw_bytes() / dtype_bytes(spec.dtype)), 0};
  }
  cudaError_t encode(const kernels::EncodeTask* tasks, std::uint32_t count, cudaStream_t queue) const override {
    return kernels::stencil_raster_encode_async(tasks, count, queue);
  }
};

class LevelsKernels final : public RowLanesKernels<LevelsChunk> {
 public:
  cuda::EncodeRoom room(std::span<const std::uint8_t> state) const override {
    const EncodeSpec spec = spec_of_encoder_state(state);
    const std::uint64_t elems = spec.raw_bytes() / dtype_bytes(spec.dtype);
    std::uint64_t coarser = (spec.form.inner + 1) / 2;
    for (const std::uint64_t extent : spec.most) coarser *= (extent + 1) / 2;
    // Values and residuals with halos, codes and symbols, which points miss the bound and the list of them; samples.
    constexpr std::uint64_t kWork = 9 + 5 + 4 + 2 + 1;
    const std::uint64_t samples = UINT64_C(4) << (spec.form.sequential ? 22 : 20);
    // Along a sequential axis nothing is left out.
    if (spec.form.sequential) coarser *= 2;
    // Of coarser points codes and symbols, too; and which of all are special.
    constexpr std::uint64_t kKept = LevelsEncoding::kCoarserBytes + 4 + 2;
    constexpr std::uint64_t kTables = LevelsEncoding::kMostTableBytes;
    return {kTables + LevelsEncoding::kCoarserBytes * coarser, kTables, kWork * elems + samples,
            kKept * coarser + elems};
  }
  cudaError_t encode(const kernels::EncodeTask* tasks, std::uint32_t count, cudaStream_t queue) const override {
    return kernels::stencil_levels_encode_async(tasks, count, queue);
  }
};

class WaveletKernels final : public RowLanesKernels<WaveletChunk> {
 public:
  cuda::EncodeRoom room(std::span<const std::uint8_t> state) const override {
    const EncodeSpec spec = spec_of_encoder_state(state);
    const std::uint64_t elems = spec.raw_bytes() / dtype_bytes(spec.dtype);
    // Values and room, magnitudes, codes and symbols, these three of corrections, too; the list of exceptions; samples.
    constexpr std::uint64_t kWork = 16 + 2 * (4 + 4 + 2) + 1;
    const std::uint64_t samples = std::min(64 * elems, WaveletEncoding::kMostSampleBytes / 4);
    const std::uint64_t tables = WaveletEncoding::most_job_bytes(elems);
    return {tables, tables, kWork * elems + samples, 2 * tables};
  }
  cudaError_t encode(const kernels::EncodeTask* tasks, std::uint32_t count, cudaStream_t queue) const override {
    return kernels::stencil_wavelet_encode_async(tasks, count, queue);
  }
};

}  // namespace

const cuda::JobEncodeKernels* stencil_encode_kernels(std::span<const std::uint8_t> state) {
  static const RasterKernels raster;
  static const LevelsKernels levels;
  static const WaveletKernels wavelet;
  if (state.empty()) return nullptr;
  const LevelsForm form = spec_of_encoder_state(state).form;
  if (form.wavelet) return &wavelet;
  return form.levels ? static_cast<const cuda::JobEncodeKernels*>(&levels) : &raster;
}

}  // namespace quern::codec::stencil
