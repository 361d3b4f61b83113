// A chunk under the wavelet that a device encodes (kernels/stencil/wavelet_encode_job.h), by the rules of
// encode_wavelet and to the same bytes. Jobs follow each other: transforms, then quantize, code and correct with
// one step of coefficients or some, lanes.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include <quern/codec.h>
#include <quern/memory.h>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/device/levels_encode_steps.h"
#include "codecs/stencil/device/wavelet_plans.h"
#include "codecs/stencil/lattice/chunk.h"
#include "codecs/stencil/wavelet/choices.h"
#include "codecs/stencil/wavelet/fit.h"
#include "codecs/stencil/wavelet/model.h"
#include "coding/distribution_fit.h"
#include "kernels/stencil/raster_encode_job.h"
#include "kernels/stencil/wavelet_encode_job.h"

namespace quern::codec::stencil {

/// The range of a chunk that encode_chunk would give to encode_wavelet, and that is not constant; false of others. The
/// scratch is that of encode_chunk.
bool wavelet_range(const EncodeSpec& spec, const ConstBox3& in, std::span<std::uint8_t> scratch, ChunkRange& range);

/// As LevelsEncoding.
class WaveletEncoding {
 public:
  /// Jobs of chunks of no more elements have no more bytes.
  static constexpr std::uint64_t most_job_bytes(std::uint64_t elems) {
    constexpr std::uint64_t kMost = UINT64_C(1) << 20;
    const std::uint64_t bytes = (UINT64_C(1) << 16) + 8 * elems;
    return bytes < kMost ? bytes : kMost;
  }
  static constexpr std::uint64_t kMostSampleBytes = UINT64_C(16) << 20;
  using Choice = LevelsEncoding::Choice;

  /// Chooses units and step and appends the first job. False when the chunk is encode_chunk's. The box stays. May
  /// throw std::bad_alloc.
  bool start(const EncodeSpec& spec, const ConstBox3& in, std::span<std::uint8_t> scratch, Vector<std::uint8_t>& job);

  const ConstBox3& box() const { return in_; }
  DType dtype() const { return spec_.dtype; }
  bool may_be_raw() const { return false; }
  std::uint32_t work_bytes() const { return job_.wavelet.head.work_bytes; }

  bool gathers() const { return trying_ || job_.step != kernels::WaveletEncodeStep::correct; }
  std::uint32_t samples_at() const { return job_.samples; }
  std::uint32_t samples_bytes() const { return samples_bytes_; }
  void next(const kernels::RasterEncodeResult& result, std::span<const std::uint8_t> samples,
            Vector<std::uint8_t>& job);

  std::uint32_t exception_list() const { return job_.exception_list; }
  Choice choose(const kernels::RasterEncodeResult& result, std::span<const std::uint32_t> exceptions,
                Vector<std::uint8_t>& job);

  Choice write(std::span<const std::uint32_t> lane_words, const std::uint16_t* words, std::span<std::uint8_t> out,
               std::size_t& bytes) const;
  std::uint64_t most_words() const { return raw_bytes_ / 2; }

 private:
  const WaveletAxes& axes() const { return model_.axes; }
  bool lay_out();
  void append(Vector<std::uint8_t>& out);
  void plan_samples(bool corrections);
  void try_transforms();
  void choose_transform(std::span<const std::uint8_t> counts);
  void begin_step();
  void plan_corrections();
  void after_trial(const kernels::RasterEncodeResult& result);
  std::uint64_t fit_distributions(const kernels::RasterEncodeResult& result, std::size_t exceptions);
  void fit_coefficients(std::span<const std::uint8_t> samples);
  void fit_corrections(std::span<const std::uint8_t> samples);
  void add_samples(const kernels::WaveletSampleRow& row, const std::uint32_t* numbers, std::size_t group,
                   std::size_t columns, float weight, WaveletSamples& to) const;

  LatticePlaces places_;
  EncodeSpec spec_;  ///< of the box
  ConstBox3 in_;
  std::uint64_t raw_bytes_ = 0;    ///< of the box
  std::uint64_t array_bytes_ = 0;  ///< of the chunk's elements
  WaveletUnits units_;
  double step_ = 0;      ///< of coefficients, in errors allowed
  bool trying_ = false;  ///< what is coded with it may not be what is written
  std::size_t tried_ = 0;
  double best_step_ = 0;
  std::uint64_t least_ = 0;  ///< bits with that, as fit_distributions() says
  WaveletEffort effort_;
  WaveletModel model_;
  Vector<std::uint16_t> constants_;
  bool fitted_ = false;  ///< weights are there from another step
  bool corrections_fitted_ = false;
  coding::BinCounts counts_{};   ///< of coefficients
  Vector<std::uint8_t> stored_;  ///< form of the model

  kernels::WaveletEncodeJob job_;
  WaveletPlans plans_;  ///< of the job appended last; so below
  Vector<WaveletAxes> transforms_;
  Vector<kernels::WaveletTrial> trials_;
  Vector<kernels::WaveletSampleRow> sample_rows_;
  std::uint32_t samples_bytes_ = 0;

  Vector<std::uint8_t> head_;  ///< of the chunk, up to its lanes
  unsigned lane_bits_ = 0;
};

}  // namespace quern::codec::stencil
