// Jobs, and bytes from what comes of them.
#include "codecs/stencil/device/wavelet_encode_steps.h"

#include <algorithm>
#include <cstring>

#include "codecs/stencil/device/job_parts.h"
#include "codecs/stencil/elements.h"
#include "codecs/stencil/exceptions.h"
#include "codecs/stencil/levels/view.h"
#include "codecs/stencil/wavelet/chunk.h"
#include "codecs/stencil/wavelet/lifting.h"
#include "coding/stream_words.h"
#include "coding/stream_writer.h"
#include "coding/token_cost.h"
#include "libcompress/core/element_of.h"

namespace quern::codec::stencil {
namespace {

using kernels::WaveletEncodeStep;
using kernels::WaveletSampleHead;
using kernels::WaveletSampleRow;

static_assert(kernels::kWaveletFeatureRows == kWaveletFeatures && kWest == 0);

/// Chunks of fewer elements are not worth the launches.
constexpr std::size_t kLeastElems = 512;
/// One exception for so many elements: a chunk with more gains little.
constexpr std::uint32_t kElemsPerException = 8;

/// Looks of a job that samples have numbers of features for weights.
WaveletWeights feature_numbers() {
  WaveletWeights numbers{};
  for (std::size_t f = 0; f < kWaveletFeatures; ++f) numbers[f] = static_cast<std::uint16_t>(f);
  return numbers;
}

std::uint64_t table_bytes(const WaveletPlans& plans) {
  return plans.bands.size() * sizeof(kernels::WaveletBandPlan) + plans.taps.size() * sizeof(kernels::WaveletTap) +
         plans.lifts.size() * sizeof(kernels::WaveletLift);
}

}  // namespace

bool WaveletEncoding::start(const EncodeSpec& chunk_spec, const ConstBox3& chunk, std::span<std::uint8_t> scratch,
                            Vector<std::uint8_t>& out) {
  if (!chunk_spec.form.wavelet) return false;
  places_ = lattice_places(chunk_spec, chunk);
  const bool on_lattice = !places_.numbers.empty();
  if (on_lattice) places_.box.data = places_.numbers.data();
  spec_ = on_lattice ? places_.spec : chunk_spec;
  in_ = on_lattice ? places_.box : chunk;
  // What stands in for special elements is made by the host.
  if (!spec_.form.wavelet || in_.special != nullptr || in_.elems() < kLeastElems) return false;
  raw_bytes_ = in_.elems() * dtype_bytes(spec_.dtype);
  array_bytes_ = in_.elems() * dtype_bytes(chunk_spec.dtype);
  ChunkRange range;
  if (!wavelet_range(spec_, in_, scratch, range)) return false;
  const WaveletAxes plain = wavelet_axes(LevelsView(in_, spec_.form));
  const auto units = wavelet_units(spec_, range, plain);
  if (!units) return false;
  units_ = *units;
  const Result<double> step = wavelet_step(spec_, in_, range, scratch);
  if (!step.ok()) return false;
  trying_ = *step == 0 && !spec_.for_psnr;
  tried_ = 0;
  step_ = *step != 0 ? *step : first_wavelet_step(spec_.for_psnr);
  fitted_ = false;
  corrections_fitted_ = false;
  constants_.assign(kMaxWaveletGroups, 0);
  model_ = {};
  model_.format.base = units_.base;
  model_.format.step = units_.unit;
  model_.constants = constants_.data();
  model_.axes = plain;
  transforms_ = wavelet_transforms(plain);
  if (!lay_out()) return false;
  try_transforms();
  append(out);
  return true;
}

/// The working memory, and what does not change from job to job. False when tables might be too large.
bool WaveletEncoding::lay_out() {
  const LevelsView view(in_, spec_.form);
  const auto elems = static_cast<std::uint32_t>(axes().elems());
  job_ = {};
  kernels::WaveletJob& head = job_.wavelet;
  set_wavelet_places(axes(), view.dense(), view.dense(), head);
  head.element = element_of(spec_.dtype);
  head.base = units_.base;
  head.unit = units_.unit;
  job_.bound = spec_.bound;
  job_.inverse = 1 / units_.unit;
  job_.correction = wavelet_step_units(units_, kWaveletCorrection);
  job_.exceptions = elems / kElemsPerException + 1;

  // The transform that has most of something.
  std::size_t bands = 0;
  const CorrectionRows rows(axes(), effort_);
  std::uint64_t numbers = rows.wanted * rows.columns * kWaveletFeatures;
  std::uint64_t job_bytes = 0;
  std::uint64_t all_bytes = 0;
  for (const WaveletAxes& transform : transforms_) {
    WaveletModel trial = model_;
    trial.axes = transform;
    trial.weights = feature_numbers();
    WaveletPlans plans;
    plans.add_bands(trial);
    bands += plans.bands.size();
    std::uint64_t sample_rows = 0;
    std::uint64_t samples = 0;
    for_bands(transform, [&](const WaveletBand& band) {
      const std::size_t sampled = sampled_rows(band, elems, effort_);
      sample_rows += sampled;
      samples += sampled * band.columns() * kWaveletFeatures;
      return true;
    });
    numbers = std::max(numbers, samples);
    sample_rows = std::max<std::uint64_t>(sample_rows, rows.wanted);
    job_bytes = std::max(job_bytes, table_bytes(plans) + sample_rows * sizeof(WaveletSampleRow));
    plans.taps.clear();
    plans.add_lifts(transform);
    all_bytes += table_bytes(plans);
  }
  numbers = std::max<std::uint64_t>(numbers, bands * kernels::kResidualTokens);
  constexpr std::uint64_t kRest = UINT64_C(1) << 14;  // heads, taps of corrections and lifts, of which there are few
  if (std::max(job_bytes, all_bytes) + kRest > most_job_bytes(elems)) return false;
  if (numbers * sizeof(std::uint32_t) > kMostSampleBytes) return false;

  std::uint64_t bytes = 0;
  const auto take = [&](std::uint64_t wanted) {
    const auto begin = static_cast<std::uint32_t>(bytes);
    bytes += kernels::job_aligned(wanted);
    return begin;
  };
  // When values are no longer needed, words of lanes lie in their place.
  const std::uint64_t words =
      std::uint64_t{2} * elems * kernels::kMostResidualWords + kernels::kMostStreamLanes * kernels::kStateWords;
  const std::uint64_t values = kernels::job_aligned(elems * sizeof(double));
  head.values = take(std::max(2 * values, words * sizeof(std::uint16_t)));
  head.room = head.values + static_cast<std::uint32_t>(values);
  head.magnitudes = take(elems * sizeof(std::uint32_t));
  head.corrections = take(elems * sizeof(std::uint32_t));
  job_.codes = take(2 * elems * sizeof(std::int32_t));
  job_.symbols = take(2 * elems * sizeof(std::uint16_t));
  job_.exception_list = take(job_.exceptions * sizeof(std::uint32_t));
  job_.samples = take(sizeof(WaveletSampleHead) + numbers * sizeof(std::uint32_t));
  head.head.work_bytes = static_cast<std::uint32_t>(bytes);
  return bytes <= UINT32_MAX;
}

void WaveletEncoding::append(Vector<std::uint8_t>& out) {
  kernels::WaveletJob& head = job_.wavelet;
  head.lift_count = static_cast<std::uint32_t>(plans_.lifts.size());
  job_.trial_count = static_cast<std::uint32_t>(trials_.size());
  job_.sample_row_count = static_cast<std::uint32_t>(sample_rows_.size());
  JobAppender job(out, sizeof job_);
  head.bands = job.add(plans_.bands);
  head.taps = job.add(plans_.taps);
  head.lifts = job.add(plans_.lifts);
  job_.trials = job.add(trials_);
  job_.sample_rows = job.add(sample_rows_);
  head.head.bytes = job.bytes();
  job.set_head(job_);
}

/// The job that counts the codes of all transforms.
void WaveletEncoding::try_transforms() {
  job_.step = WaveletEncodeStep::transforms;
  plans_ = {};
  trials_.clear();
  sample_rows_.clear();
  WaveletModel trial = model_;
  trial.step = wavelet_step_units(units_, first_wavelet_step(spec_.for_psnr));
  for (const WaveletAxes& transform : transforms_) {
    trial.axes = transform;
    kernels::WaveletTrial parts;
    parts.bands = static_cast<std::uint32_t>(plans_.bands.size());
    parts.lifts = static_cast<std::uint32_t>(plans_.lifts.size());
    plans_.add_bands(trial);
    plans_.add_lifts(transform);
    parts.band_count = static_cast<std::uint32_t>(plans_.bands.size()) - parts.bands;
    parts.lift_count = static_cast<std::uint32_t>(plans_.lifts.size()) - parts.lifts;
    trials_.push_back(parts);
  }
  samples_bytes_ = static_cast<std::uint32_t>(plans_.bands.size() * sizeof(coding::TokenCounts));
}

/// As the host's encoder.
void WaveletEncoding::choose_transform(std::span<const std::uint8_t> counts) {
  std::uint64_t least = UINT64_MAX;
  for (std::size_t t = 0; t < trials_.size(); ++t) {
    std::uint64_t cost = 0;
    for (std::uint32_t b = 0; b < trials_[t].band_count; ++b) {
      coding::TokenCounts tokens;
      std::memcpy(tokens.data(), counts.data() + (trials_[t].bands + b) * sizeof tokens, sizeof tokens);
      cost += coding::token_cost(tokens);
    }
    if (cost >= least) continue;
    least = cost;
    model_.axes = transforms_[t];
  }
  trials_.clear();
}

/// The job that codes with a step.
void WaveletEncoding::begin_step() {
  model_.step = wavelet_step_units(units_, step_);
  WaveletModel sampled = model_;
  sampled.weights = feature_numbers();
  plans_.add_bands(sampled);
  job_.wavelet.band_count = static_cast<std::uint32_t>(plans_.bands.size());
  job_.found = 0;
  plan_samples(false);
  job_.step = WaveletEncodeStep::quantize;
}

/// As best_step() of the host's encoder, a step after each trial, and the best once more if it was not the last.
void WaveletEncoding::after_trial(const kernels::RasterEncodeResult& result) {
  const std::uint64_t bits = fit_distributions(result, result.exceptions);
  const bool pays = tried_ == 0 || bits < least_;
  if (pays) {
    best_step_ = step_;
    least_ = bits;
  }
  switch (tried_++) {
    case 0: step_ = kWaveletSteps[1]; break;
    case 1: step_ = pays ? kWaveletSteps[2] : kSmallWaveletStep; break;
    default: trying_ = false;
  }
  if (!trying_ && pays) return plan_corrections();
  if (!trying_) step_ = best_step_;
  begin_step();
}

/// The job that makes symbols of corrections.
void WaveletEncoding::plan_corrections() {
  plans_.add_bands(model_);
  if (model_.correction != 0) plans_.add_corrections(model_);
  job_.wavelet.correction = static_cast<double>(model_.correction);
  sample_rows_.clear();
  samples_bytes_ = 0;
  job_.step = WaveletEncodeStep::correct;
}

/// Bands, or corrections, with rows that are samples of them.
void WaveletEncoding::plan_samples(bool corrections) {
  sample_rows_.clear();
  std::uint32_t numbers = 0;
  const auto add = [&](std::size_t band, std::size_t row, std::size_t columns) {
    sample_rows_.push_back({static_cast<std::uint32_t>(band), static_cast<std::uint32_t>(row), numbers});
    numbers += static_cast<std::uint32_t>(columns * kWaveletFeatures);
  };
  std::size_t number = 0;
  for_bands(axes(), [&](const WaveletBand& band) {
    const std::size_t wanted = sampled_rows(band, axes().elems(), effort_);
    for (std::size_t i = 0; i < wanted && !corrections; ++i) add(number, i * band.rows() / wanted, band.columns());
    ++number;
    return true;
  });
  if (corrections) {
    const CorrectionRows rows(axes(), effort_);
    for (std::size_t r = 0; r < rows.rows; ++r)
      if (rows.sampled(r)) add(number, r, rows.columns);
  }
  samples_bytes_ = static_cast<std::uint32_t>(sizeof(WaveletSampleHead) + numbers * sizeof(std::uint32_t));
}

void WaveletEncoding::next(const kernels::RasterEncodeResult& result, std::span<const std::uint8_t> samples,
                           Vector<std::uint8_t>& out) {
  kernels::WaveletJob& head = job_.wavelet;
  plans_ = {};
  switch (job_.step) {
    case WaveletEncodeStep::transforms:
      choose_transform(samples);
      begin_step();
      break;
    case WaveletEncodeStep::quantize: {
      fit_coefficients(samples);
      plans_.add_bands(model_);
      WaveletModel sampled = model_;
      sampled.correction_weights = feature_numbers();
      plans_.add_corrections(sampled);
      plan_samples(true);
      for (const std::size_t i : {0, 1}) head.offsets[i] = model_.offsets[i];
      job_.step = WaveletEncodeStep::code;
      break;
    }
    case WaveletEncodeStep::code:
      fit_corrections(samples);
      static_assert(sizeof counts_ == sizeof result.counts);
      std::memcpy(counts_.data(), result.counts, sizeof counts_);
      job_.found = result.exceptions;
      plan_corrections();
      break;
    case WaveletEncodeStep::correct: after_trial(result); break;
  }
  plans_.add_lifts(axes());
  append(out);
}

/// As sample_row() of the host's encoder.
void WaveletEncoding::add_samples(const WaveletSampleRow& row, const std::uint32_t* numbers, std::size_t group,
                                  std::size_t columns, float weight, WaveletSamples& to) const {
  const std::uint32_t* const own = numbers + row.out;
  std::array<std::uint32_t, kWaveletFeatures> features{};
  for (std::size_t x = 0; x < columns; ++x) {
    for (std::size_t f = kNearFeatures; f < kWaveletFeatures; ++f) features[f] = own[f * columns + x];
    features[kWest] = x > 0 ? own[x - 1] : 0;
    features[kWestOfWest] = x > 1 ? own[x - 2] : 0;
    to.add(group, features, own[x], weight);
  }
}

namespace {

struct SamplesSeen {
  WaveletSampleHead head;
  Vector<std::uint32_t> numbers;

  explicit SamplesSeen(std::span<const std::uint8_t> bytes) : numbers((bytes.size() - sizeof head) / 4) {
    std::memcpy(static_cast<void*>(&head), bytes.data(), sizeof head);
    if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data() + sizeof head, 4 * numbers.size());
  }
};

}  // namespace

void WaveletEncoding::fit_coefficients(std::span<const std::uint8_t> bytes) {
  const SamplesSeen seen(bytes);
  WaveletExcess excess;
  for (std::size_t i = 0; i < 2; ++i) {
    excess.sums[i] = seen.head.excess[i];
    excess.counts[i] = seen.head.counts[i];
  }
  model_.offsets = wavelet_offsets(excess);
  WaveletSamples samples(wavelet_groups(axes()));
  std::size_t row = 0;
  for_bands(axes(), [&](const WaveletBand& band) {
    const std::size_t wanted = sampled_rows(band, axes().elems(), effort_);
    const float weight = static_cast<float>(band.rows()) / static_cast<float>(wanted);
    for (std::size_t i = 0; i < wanted; ++i, ++row)
      add_samples(sample_rows_[row], seen.numbers.data(), band.group, band.columns(), weight, samples);
    return true;
  });
  samples.fit(*spec_.kernels, fitted_ ? kWaveletRoundsAgain : effort_.rounds, fitted_, spec_.parts.contexts,
              model_.weights, model_.constants);
  fitted_ = true;
}

void WaveletEncoding::fit_corrections(std::span<const std::uint8_t> bytes) {
  const SamplesSeen seen(bytes);
  model_.correction = seen.head.corrected != 0 ? static_cast<unsigned>(job_.correction) : 0;
  if (model_.correction == 0) return;
  const CorrectionRows rows(axes(), effort_);
  WaveletSamples samples(1);
  for (const WaveletSampleRow& row : sample_rows_)
    add_samples(row, seen.numbers.data(), 0, rows.columns, rows.weight(), samples);
  samples.fit(*spec_.kernels, corrections_fitted_ ? kWaveletRoundsAgain : effort_.rounds, corrections_fitted_,
              spec_.parts.contexts, model_.correction_weights, &model_.correction_constant);
  corrections_fitted_ = true;
}

/// Bits, in units of 2^-12, that all takes, as code() of the host's encoder.
std::uint64_t WaveletEncoding::fit_distributions(const kernels::RasterEncodeResult& result, std::size_t exceptions) {
  coding::BinCounts counts = counts_;
  for (std::size_t l = 0; l < kernels::kContextBins; ++l)
    for (std::size_t t = 0; t < counts[l].size(); ++t) counts[l][t] += result.counts[l][t];
  const std::uint64_t bits = coding::fit_distributions(counts, model_.distributions);
  stored_.clear();
  write_wavelet_model(model_, stored_);
  return bits + (std::uint64_t{stored_.size() + exceptions * (dtype_bytes(spec_.dtype) + 2)} << 15);
}

WaveletEncoding::Choice WaveletEncoding::choose(const kernels::RasterEncodeResult& result,
                                                std::span<const std::uint32_t> exceptions, Vector<std::uint8_t>& out) {
  const std::uint64_t bits = fit_distributions(result, exceptions.size());
  if (bits >> 15 >= raw_bytes_) return Choice::host;
  lane_bits_ = coding::choose_stream_bits(bits >> 15);
  head_.assign(1, static_cast<std::uint8_t>(Mode::wavelet));
  head_.insert(head_.end(), stored_.begin(), stored_.end());
  Writer writer(head_);
  const LevelsView view(in_, spec_.form);
  with_element(spec_.dtype, [&](auto element) {
    using Bits = typename decltype(element)::Bits;
    const std::size_t columns = axes().extents[axes().rank - 1];
    Vector<std::pair<std::uint64_t, Bits>> list;
    for (const std::uint32_t index : exceptions)
      list.emplace_back(
          index,
          static_cast<const Bits*>(
              in_.data)[chunk_row(axes(), view, index / columns).at + index % columns * view.strides[axes().rank - 1]]);
    write_exceptions(list, writer);
  });

  kernels::RowLanesJob lanes;
  JobParts parts;
  if (!parts.take_starts(model_.distributions, lanes.serving)) return Choice::host;
  Vector<kernels::RowSection> sections;
  for (const kernels::WaveletBandPlan& band : plans_.bands)
    sections.push_back({band.rows, band.extents[kMaxAxes - 1], band.rows_before, band.codes_before});
  lanes.head.kind = kernels::JobKind::wavelet;
  lanes.mask = (1u << lane_bits_) - 1;
  lanes.codes = job_.codes;
  lanes.symbols = job_.symbols;
  lanes.words = job_.wavelet.values;
  lanes.most_words = static_cast<std::uint32_t>(most_words());
  lanes.head.work_bytes = work_bytes();
  append_lanes_job(sections, parts, lanes, out);
  return Choice::lanes;
}

WaveletEncoding::Choice WaveletEncoding::write(std::span<const std::uint32_t> lane_words, const std::uint16_t* words,
                                               std::span<std::uint8_t> out, std::size_t& bytes) const {
  const std::size_t lanes = std::size_t{1} << lane_bits_;
  const std::size_t lattice_bytes = places_.numbers.empty() ? 0 : kLatticeHead;
  Vector<std::uint8_t> head(lattice_bytes);
  if (lattice_bytes != 0) write_lattice(places_.lattice, head);
  head.insert(head.end(), head_.begin(), head_.end());
  Writer writer(head);
  writer.u8(static_cast<std::uint8_t>(lane_bits_));
  const std::uint64_t total = coding::write_lane_sizes(lane_words.first(lanes), writer);
  bytes = head.size() + 2 * static_cast<std::size_t>(total);
  if (bytes - lattice_bytes > raw_bytes_ || (lattice_bytes != 0 && bytes > array_bytes_)) return Choice::host;
  coding::put_head_and_words(head, {words, static_cast<std::size_t>(total)}, out);
  return Choice::lanes;
}

}  // namespace quern::codec::stencil
