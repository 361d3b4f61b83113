// A chunk in levels whose finest level is coded by a device (kernels/stencil/level_encode_job.h), by the rules of
// encode_levels and to the same bytes. Jobs follow each other: open, a class at a time, symbols, lanes; with a
// sequential axis round, all classes some times, symbols, lanes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include <quern/codec.h>
#include <quern/memory.h>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/device/levels_coarser.h"
#include "codecs/stencil/lattice/chunk.h"
#include "codecs/stencil/levels/context_fit.h"
#include "codecs/stencil/levels/fit.h"
#include "codecs/stencil/levels/plane_rounds.h"
#include "codecs/stencil/levels/view.h"
#include "kernels/stencil/level_encode_job.h"
#include "kernels/stencil/raster_encode_job.h"

namespace quern::codec::stencil {

class LevelsEncoding {
 public:
  /// Jobs have no more bytes, but the first has values and magnitudes of coarser points, too.
  static constexpr std::uint64_t kMostTableBytes = UINT64_C(1) << 16;
  static constexpr std::uint64_t kCoarserBytes = sizeof(double) + sizeof(std::uint32_t);  ///< of a point

  /// What is left to do for a chunk.
  enum class Choice : std::uint8_t { lanes, raw, host };

  /// Codes the coarser levels and appends the first job, for the elements (and classes) of box(), side by side on
  /// the device. False when the chunk is encode_chunk's. The box stays. May throw std::bad_alloc.
  bool start(const EncodeSpec& spec, const ConstBox3& in, std::span<std::uint8_t> scratch, Vector<std::uint8_t>& job);

  /// What the device gets: the chunk, or of a chunk on a lattice the integers in its place; and their type.
  const ConstBox3& box() const { return in_; }
  DType dtype() const { return spec_.dtype; }
  /// What is not worth coding is raw, but of a chunk on a lattice encode_chunk may make something else.
  bool may_be_raw() const { return places_.numbers.empty(); }
  std::uint32_t work_bytes() const { return job_.level.head.work_bytes; }

  /// Whether a job still gathers samples: then next() wants these bytes of the working memory, and appends the
  /// job after it. May throw std::bad_alloc.
  bool gathers() const { return step_ != kernels::LevelEncodeStep::symbols; }
  std::uint32_t samples_at() const { return samples_at_; }
  std::uint32_t samples_bytes() const { return samples_bytes_; }
  void next(const kernels::RasterEncodeResult& result, std::span<const std::uint8_t> samples,
            Vector<std::uint8_t>& job);

  /// Bytes of the working memory before the list of exceptions, when symbols are made.
  std::uint32_t exception_list() const { return job_.exception_list; }
  /// After the program that makes symbols, unless its result leaves the chunk to the host: appends the last one. May
  /// throw std::bad_alloc.
  Choice choose(const kernels::RasterEncodeResult& result, std::span<const std::uint32_t> exceptions,
                Vector<std::uint8_t>& job);

  /// After the last one: writes the chunk from the words of its lanes, one lane after another, and tells how many bytes
  /// it has. `out` has room for max_chunk_bytes. May throw std::bad_alloc.
  Choice write(std::span<const std::uint32_t> lane_words, const std::uint16_t* words, std::span<std::uint8_t> out,
               std::size_t& bytes) const;
  /// Words that lanes may have for the chunk to be worth coding.
  std::uint64_t most_words() const { return raw_bytes_ / 2; }

 private:
  using Exceptions = Vector<std::pair<std::uint64_t, std::uint64_t>>;

  void lay_out();
  void load_special();
  void append(Vector<std::uint8_t>& out);
  void sample_predictor(std::size_t parity_class, bool later);
  void sample_all_predictors();
  void sample_contexts();
  void next_class(std::span<const std::uint8_t> samples);
  void next_round(const kernels::RasterEncodeResult& result, std::span<const std::uint8_t> samples);
  void code_planes();
  void add_sampling(std::size_t parity_class, const SampledRows& rows, std::size_t first_feature);
  const double* fit_predictor(std::size_t parity_class, bool later, const double* sums);
  void fit_contexts(std::span<const std::uint8_t> samples);
  template <class Element>
  void add_exceptions(std::span<const std::uint32_t> numbers, Exceptions& out) const;

  LatticePlaces places_;
  EncodeSpec spec_;  ///< of the box
  ConstBox3 in_;
  std::uint64_t raw_bytes_ = 0;    ///< of the box
  std::uint64_t array_bytes_ = 0;  ///< of the chunk's elements
  CoarserLevels coarser_;
  SampleMemory sample_memory_;
  ContextSamples context_samples_;  ///< of a class
  FitRoom fit_room_;
  Vector<std::uint8_t> special_;  ///< of the finest level in the order of coding, behind room for the others

  kernels::LevelEncodeJob job_;
  kernels::LevelStage stage_;
  kernels::LevelEncodeStep step_ = kernels::LevelEncodeStep::open;
  std::size_t coded_ = 0;  ///< classes; with a sequential axis, how often all of them are
  PlaneRounds rounds_;     ///< with a sequential axis
  std::uint32_t samples_at_ = 0;
  std::uint32_t samples_bytes_ = 0;  ///< of the job appended last
  /// What the next job samples; taps are numbered behind those of the classes.
  Vector<kernels::LevelSampling> samplings_;
  Vector<kernels::LevelSampleRow> sample_rows_;
  Vector<kernels::LevelFeature> features_;
  Vector<std::pair<std::size_t, Offset>> value_taps_;  ///< class of the point, and offset
  Vector<std::pair<std::size_t, Offset>> magnitude_taps_;
  Vector<std::pair<std::size_t, std::size_t>> spreads_;  ///< class of the point, and feature

  Vector<std::uint8_t> head_;     ///< of the chunk, up to the last section's size
  Vector<std::uint8_t> payload_;  ///< sections of the coarser levels
  unsigned lane_bits_ = 0;
};

}  // namespace quern::codec::stencil
