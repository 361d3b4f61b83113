// Jobs, what is fitted between them, and bytes from what comes of them.
#include "codecs/stencil/device/levels_encode_steps.h"

#include <algorithm>
#include <cstring>

#include "codecs/stencil/device/job_parts.h"
#include "codecs/stencil/device/levels_tables.h"
#include "codecs/stencil/elements.h"
#include "codecs/stencil/exceptions.h"
#include "codecs/stencil/levels/rows.h"
#include "codecs/stencil/levels/sections.h"
#include "coding/stream_words.h"
#include "coding/token_cost.h"
#include "kernels/common/lanes.h"
#include "libcompress/core/element_of.h"
#include "libcompress/format/writer.h"

namespace quern::codec::stencil {
namespace {

using kernels::LevelEncodeStep;

/// One exception for so many elements: a chunk with more gains little.
constexpr std::uint32_t kElemsPerException = 8;
constexpr std::uint32_t kLeastExceptions = 64;
/// Values are far below what sums of weights times them allow.
constexpr double kMostValue = 0x1p45;
/// Chunks of fewer elements are not worth their jobs.
constexpr std::size_t kLeastElems = 512;
/// Planes of few points are mostly what fills them up: lists may be so much longer than there are elements.
constexpr std::size_t kMostFilling = 2;

/// What the device has gathered, 64 bits each.
template <class T>
Vector<T> numbers_of(std::span<const std::uint8_t> samples) {
  Vector<T> numbers(samples.size() / sizeof(T));
  if (!numbers.empty()) std::memcpy(numbers.data(), samples.data(), samples.size());
  return numbers;
}

}  // namespace

bool LevelsEncoding::start(const EncodeSpec& chunk_spec, const ConstBox3& chunk, std::span<std::uint8_t> scratch,
                           Vector<std::uint8_t>& out) {
  if (!chunk_spec.form.levels) return false;
  places_ = lattice_places(chunk_spec, chunk);
  const bool on_lattice = !places_.numbers.empty();
  if (on_lattice) places_.box.data = places_.numbers.data();
  spec_ = on_lattice ? places_.spec : chunk_spec;
  in_ = on_lattice ? places_.box : chunk;
  raw_bytes_ = in_.elems() * dtype_bytes(spec_.dtype);
  array_bytes_ = in_.elems() * dtype_bytes(chunk_spec.dtype);
  const LevelsView view(in_, spec_.form);
  if (view.axes.elems() < kLeastElems || (view.axes.sequential && view.axes.planes() == 1)) return false;
  LevelsValueFormat format;
  bool narrow = false;
  if (!choose_levels_format(spec_, in_, scratch, format, narrow)) return false;
  coarser_ = {};
  if (!code_coarser_levels(spec_, in_, format, narrow, scratch, coarser_)) return false;
  coarser_.model.predictors = coarser_.predictors.data();
  lay_out();
  if (job_.first[stage_.class_count] * view.axes.planes() > kMostFilling * view.axes.elems() + kLeastElems)
    return false;
  load_special();
  coded_ = 0;
  if (view.axes.sequential) {
    step_ = LevelEncodeStep::round;
    rounds_ = PlaneRounds(loop_rounds(spec_.effort));
    sample_all_predictors();
  } else {
    step_ = LevelEncodeStep::open;
    sample_predictor(stage_.classes[0], false);
  }
  append(out);
  return true;
}

void LevelsEncoding::load_special() {
  special_.clear();
  if (in_.special == nullptr) return;
  const LevelsView view(in_, spec_.form);
  const LevelAxes& axes = view.axes;
  special_.resize(axes.elems());
  std::uint8_t* const masks = special_.data() + first_of_levels(axes)[0];
  const CodePlaces places(axes, 0);
  const CodedClasses classes(axes, 0);
  const std::size_t step = view.row_step(0, view.special_strides);
  for (std::size_t i = 0; i < classes.count; ++i) {
    const ClassRows rows(axes, 0, classes.list[i], false);
    const ClassExtents extents = extents_of_class(axes, 0, rows.parity_class);
    for (std::size_t r = 0; r < rows.rows * axes.planes(); ++r) {
      const RowIndex index = index_in_class(extents, axes.rank, r);
      const std::uint8_t* const from = in_.special + view.row_start(rows.parity_class, 0, index, view.special_strides);
      std::uint8_t* const to = masks + places.of(rows.parity_class, r);
      for (std::size_t x = 0; x < rows.columns; ++x) to[x] = from[x * step] != 0 ? 1 : 0;
    }
  }
}

/// The level's classes, the working memory, and what does not change from job to job.
void LevelsEncoding::lay_out() {
  const LevelsView view(in_, spec_.form);
  const LevelAxes& axes = view.axes;
  const LevelsModel& model = coarser_.model;
  LevelTables tables(axes);
  stage_ = {};
  for (std::size_t a = 0; a < axes.rank; ++a)
    stage_.points[tables.pad + a] = static_cast<std::uint32_t>(axes.points(a, 0));
  stage_.quantum = model.quantum(0);
  const std::uint32_t places = tables.lay_out_views(0, stage_);
  const CodedClasses classes(axes, 0);
  stage_.class_count = static_cast<std::uint32_t>(classes.count);
  std::copy_n(classes.list.begin(), classes.count, stage_.classes);

  job_ = {};
  std::uint32_t plane = 0;
  std::uint64_t most_samples = 0;
  std::uint64_t all_samples = 0;
  std::uint64_t context_samples = 0;
  for (std::size_t i = 0; i < classes.count; ++i) {
    job_.first[i] = plane;
    for (const bool later : {false, true}) {
      if (later && !axes.sequential) continue;
      const ClassRows rows(axes, 0, classes.list[i], later);
      if (!later) {
        // Those of later planes may begin at any lane.
        const std::size_t before = axes.planes() > 1 ? kernels::kLanes - 1 : 0;
        plane += static_cast<std::uint32_t>((before + rows.rows * rows.columns + kernels::kLanes - 1) /
                                            kernels::kLanes * kernels::kLanes);
      }
      const SampledRows own = predictor_rows(rows, spec_.effort);
      const std::uint64_t groups = groups_of(axes, 0, classes.list[i], later).count;
      most_samples = std::max(most_samples, own.rows.size() * own.columns * groups);
      all_samples += own.rows.size() * own.columns * groups;
      const SampledRows around = context_rows(rows, spec_.effort);
      const FeatureList features = fitted_features(axes, 0, classes.list[i], later, spec_.effort);
      context_samples += around.rows.size() * around.columns * (features.count + 1);
    }
  }
  most_samples = std::max(axes.sequential ? all_samples : most_samples, context_samples);
  job_.first[classes.count] = plane;
  const auto total = static_cast<std::uint32_t>(plane * axes.planes());
  std::uint64_t bytes = 0;
  const auto take = [&](std::uint64_t wanted) {
    const auto begin = static_cast<std::uint32_t>(bytes);
    bytes += kernels::job_aligned(wanted);
    return begin;
  };
  kernels::LevelJob& head = job_.level;
  // When values are no longer needed, words of lanes lie in their place.
  const std::uint64_t words =
      std::uint64_t{total} * kernels::kMostResidualWords + kernels::kMostStreamLanes * kernels::kStateWords;
  head.values[0] = take(std::max(places * sizeof(double), words * sizeof(std::uint16_t)));
  head.residuals[0] = take(places * sizeof(std::uint32_t));
  job_.codes = take(total * sizeof(std::int32_t));
  job_.symbols = take(total * sizeof(std::uint16_t));
  job_.missed = take(total / kernels::kLanes * sizeof(std::uint32_t));
  job_.exceptions = static_cast<std::uint32_t>(axes.elems() / kElemsPerException) + kLeastExceptions;
  job_.exception_list = take(job_.exceptions * sizeof(std::uint32_t));
  samples_at_ = take(most_samples * sizeof(std::uint64_t));
  head.head.work_bytes = static_cast<std::uint32_t>(bytes);

  head.element = element_of(spec_.dtype);
  head.sequential_axis = axes.sequential ? static_cast<std::uint32_t>(tables.pad) : kernels::kNoAxis;
  head.linear_border = model.border == Border::linear;
  head.masked = in_.special != nullptr;
  const auto dense = view.dense();
  for (std::size_t a = 0; a < axes.rank; ++a) {
    head.extents[tables.pad + a] = static_cast<std::uint32_t>(axes.extents[a]);
    head.strides[tables.pad + a] = dense[a];
    head.special_strides[tables.pad + a] = dense[a];
  }
  head.base = model.format.base;
  head.unit = model.format.unit();
  head.low = model.format.low;
  head.high = model.format.high;
  head.weight_bits = model.format.weight_bits;
  job_.bound = spec_.bound;
  job_.inverse = 1 / model.format.unit();
  job_.most = kMostValue;
}

void LevelsEncoding::add_sampling(std::size_t parity_class, const SampledRows& rows, std::size_t first_feature) {
  kernels::LevelSampling& sampling = samplings_.emplace_back();
  sampling.parity_class = static_cast<std::uint32_t>(parity_class);
  sampling.columns = static_cast<std::uint32_t>(rows.columns);
  sampling.rows = static_cast<std::uint32_t>(sample_rows_.size());
  sampling.row_count = static_cast<std::uint32_t>(rows.rows.size());
  sampling.features = static_cast<std::uint32_t>(first_feature);
  sampling.feature_count = static_cast<std::uint32_t>(features_.size() - first_feature);
  sampling.out = samples_at_ + samples_bytes_;
  for (std::size_t r = 0; r < rows.rows.size(); ++r)
    sample_rows_.push_back({static_cast<std::uint32_t>(rows.rows[r]), static_cast<std::uint32_t>(rows.first[r])});
  samples_bytes_ += sampling.row_count * sampling.feature_count * sampling.columns *
                    static_cast<std::uint32_t>(sizeof(std::uint64_t));
}

/// What the predictor of a class is fitted to.
void LevelsEncoding::sample_predictor(std::size_t c, bool later) {
  const LevelsView view(in_, spec_.form);
  const GroupList list = groups_of(view.axes, 0, c, later);
  const std::size_t first = features_.size();
  for (std::size_t g = 0; g < list.count; ++g) {
    kernels::LevelFeature& feature = features_.emplace_back();
    feature.kind = kernels::LevelFeatureKind::values;
    feature.first = static_cast<std::uint32_t>(value_taps_.size());
    feature.count = list.groups[g].pair ? 2 : 1;
    value_taps_.emplace_back(c, list.groups[g].offset);
    if (list.groups[g].pair) value_taps_.emplace_back(c, LevelTables::opposite(list.groups[g].offset));
  }
  add_sampling(c, predictor_rows(ClassRows(view.axes, 0, c, later), spec_.effort), first);
}

void LevelsEncoding::sample_all_predictors() {
  for (std::size_t i = 0; i < stage_.class_count; ++i)
    for (const bool later : {false, true}) sample_predictor(stage_.classes[i], later);
}

/// What contexts of all classes are fitted to.
void LevelsEncoding::sample_contexts() {
  const LevelsView view(in_, spec_.form);
  const LevelAxes& axes = view.axes;
  const std::size_t pad = kMaxAxes - axes.rank;
  for (std::size_t i = 0; i < stage_.class_count * (axes.planes() > 1 ? 2 : 1); ++i) {
    const std::size_t c = stage_.classes[i % stage_.class_count];
    const bool later = i >= stage_.class_count;
    const std::size_t first = features_.size();
    const FeatureList list = fitted_features(axes, 0, c, later, spec_.effort);
    for (std::size_t f = 0; f <= list.count; ++f) {
      kernels::LevelFeature& feature = features_.emplace_back();
      if (f < list.count && !counts_magnitudes(list.list[f])) {
        feature.kind = kernels::LevelFeatureKind::spread;
        feature.first = static_cast<std::uint32_t>(spreads_.size());
        spreads_.emplace_back(c, list.list[f]);
        continue;
      }
      feature.kind = kernels::LevelFeatureKind::magnitudes;
      feature.first = static_cast<std::uint32_t>(magnitude_taps_.size());
      if (f == list.count) {
        magnitude_taps_.emplace_back(c, Offset{});
      } else {
        const FeatureOffsets offsets = feature_offsets(axes, 0, list.list[f]);
        for (std::size_t o = 0; o < offsets.count; ++o) magnitude_taps_.emplace_back(c, offsets.list[o]);
        if (list.list[f] == kAboveFeature || list.list[f] == kSidesFeature)
          feature.along = static_cast<std::uint32_t>(pad + axes.rank - 2);
        if (list.list[f] == kBackFeature) feature.along = static_cast<std::uint32_t>(pad + axes.rank - 3);
      }
      feature.count = static_cast<std::uint32_t>(magnitude_taps_.size()) - feature.first;
    }
    add_sampling(c, context_rows(ClassRows(axes, 0, c, later), spec_.effort), first);
  }
}

/// Appends the job of the step, with what it samples.
void LevelsEncoding::append(Vector<std::uint8_t>& out) {
  const LevelsView view(in_, spec_.form);
  LevelTables tables(view.axes);
  const bool planes = view.axes.planes() > 1;
  stage_.plans[1] = stage_.class_count;
  for (std::size_t i = 0; i < stage_.class_count * (planes ? 2 : 1); ++i) {
    tables.plan_class(coarser_.model, 0, i >= stage_.class_count, stage_.classes[i % stage_.class_count]);
    if (step_ == LevelEncodeStep::symbols) continue;
    // Contexts come when their weights are known.
    kernels::ClassPlan& plan = tables.plans.back();
    plan.magnitude_tap_count = plan.spread_count = plan.constant = 0;
  }
  const auto first_value_tap = static_cast<std::uint32_t>(tables.taps.size());
  const auto first_magnitude_tap = static_cast<std::uint32_t>(tables.magnitude_taps.size());
  const auto first_spread = static_cast<std::uint32_t>(tables.spreads.size());
  for (const auto& [c, offset] : value_taps_) tables.add_tap(c, offset, 1.0, tables.taps);
  for (const auto& [c, offset] : magnitude_taps_) tables.add_tap(c, offset, 1u, tables.magnitude_taps);
  for (const auto& [c, feature] : spreads_) tables.add_spread(coarser_.model.format.fraction_bits, c, feature, 1);
  for (kernels::LevelFeature& feature : features_)
    feature.first += feature.kind == kernels::LevelFeatureKind::values       ? first_value_tap
                     : feature.kind == kernels::LevelFeatureKind::magnitudes ? first_magnitude_tap
                                                                             : first_spread;
  kernels::LevelEncodeJob head = job_;
  head.step = step_;
  head.coded = static_cast<std::uint32_t>(coded_);
  JobAppender job(out, sizeof head);
  Vector<kernels::LevelStage> stages;
  stages.push_back(stage_);
  head.level.stages = job.add(stages);
  head.level.plans = job.add(tables.plans);
  head.level.taps = job.add(tables.taps);
  head.level.magnitude_taps = job.add(tables.magnitude_taps);
  head.level.spreads = job.add(tables.spreads);
  head.samplings = job.add(samplings_);
  head.sample_rows = job.add(sample_rows_);
  head.features = job.add(features_);
  head.sampling_count = static_cast<std::uint32_t>(samplings_.size());
  if (step_ == LevelEncodeStep::open || step_ == LevelEncodeStep::round) {
    head.coarser_values = job.add(coarser_.values);
    head.coarser_magnitudes = job.add(coarser_.magnitudes);
  }
  head.level.head.bytes = job.bytes();
  job.set_head(head);
  samplings_.clear();
  sample_rows_.clear();
  features_.clear();
  value_taps_.clear();
  magnitude_taps_.clear();
  spreads_.clear();
}

/// Returns what is behind the predictor's sums.
const double* LevelsEncoding::fit_predictor(std::size_t c, bool later, const double* sums) {
  const LevelsView view(in_, spec_.form);
  const std::size_t room = row_room(view.axes.extents[view.axes.rank - 1]);
  Vector<double> originals(room);
  Vector<std::int64_t> targets(room + kernels::kStencilBlock);
  const GroupList list = groups_of(view.axes, 0, c, later);
  const ClassRows class_rows(view.axes, 0, c, later);
  with_element(spec_.dtype, [&](auto element) {
    LevelRows<decltype(element)> rows(spec_, in_, view, coarser_.model.format,
                                      {originals.data(), targets.data(), special_.data()});
    rows.open(0);
    choose_predictor_from(sums, view.axes, 0, class_rows, CodePlaces(view.axes, 0), {&rows, rows.special(0), nullptr},
                          list, LevelsFitting(spec_), fit_room_, coarser_.model);
  });
  const SampledRows sampled = predictor_rows(class_rows, spec_.effort);
  return sums + sampled.rows.size() * sampled.columns * list.count;
}

void LevelsEncoding::fit_contexts(std::span<const std::uint8_t> samples) {
  const auto all = numbers_of<std::uint64_t>(samples);
  const std::uint64_t* numbers = all.data();
  const LevelsView view(in_, spec_.form);
  const CodePlaces places(view.axes, 0);
  const std::uint8_t* const special = special_.empty() ? nullptr : special_.data() + first_of_levels(view.axes)[0];
  for (const bool later : {false, true}) {
    if (later && view.axes.planes() == 1) continue;
    for (std::size_t i = 0; i < stage_.class_count; ++i) {
      const std::size_t c = stage_.classes[i];
      const ClassRows rows(view.axes, 0, c, later);
      context_samples_.start(fitted_features(view.axes, 0, c, later, spec_.effort));
      add_context_samples_from(numbers, rows, places, special, spec_.effort, sample_memory_, context_samples_);
      const SampledRows sampled = context_rows(rows, spec_.effort);
      numbers += sampled.rows.size() * sampled.columns * (context_samples_.features.count + 1);
      fit_class_contexts(0, later, c, LevelsFitting(spec_), context_samples_, coarser_.model);
      sample_memory_.give_back();
    }
  }
  step_ = LevelEncodeStep::symbols;
}

void LevelsEncoding::next(const kernels::RasterEncodeResult& result, std::span<const std::uint8_t> samples,
                          Vector<std::uint8_t>& job) {
  samples_bytes_ = 0;
  const bool classes = step_ == LevelEncodeStep::open || step_ == LevelEncodeStep::code;
  classes ? next_class(samples) : next_round(result, samples);
  append(job);
}

/// As code_classes() of the host's encoder.
void LevelsEncoding::next_class(std::span<const std::uint8_t> samples) {
  if (step_ == LevelEncodeStep::code) ++coded_;
  if (coded_ == stage_.class_count) return fit_contexts(samples);
  fit_predictor(stage_.classes[coded_], false, numbers_of<double>(samples).data());
  step_ = LevelEncodeStep::code;
  if (coded_ + 1 < stage_.class_count)
    sample_predictor(stage_.classes[coded_ + 1], false);
  else
    sample_contexts();
}

/// After the last round there are contexts.
void LevelsEncoding::next_round(const kernels::RasterEncodeResult& result, std::span<const std::uint8_t> samples) {
  if (step_ == LevelEncodeStep::planes) {
    const auto cost = [&] {
      coding::TokenCounts counts{};
      for (std::size_t t = 0; t < counts.size(); ++t) counts[t] = result.counts[0][t];
      return coding::token_cost(counts);
    };
    const PlaneRounds::Next next = rounds_.coded(cost, &coarser_.model.predictor(0, false, 0));
    if (next == PlaneRounds::Next::end) return fit_contexts(samples);
    if (next == PlaneRounds::Next::code_again) return code_planes();
  }
  const auto sums = numbers_of<double>(samples);
  const double* at = sums.data();
  for (std::size_t i = 0; i < stage_.class_count; ++i)
    for (const bool later : {false, true}) at = fit_predictor(stage_.classes[i], later, at);
  code_planes();
}

/// The job that codes all planes, and samples for what comes then.
void LevelsEncoding::code_planes() {
  step_ = LevelEncodeStep::planes;
  ++coded_;
  if (rounds_.last())
    sample_contexts();
  else
    sample_all_predictors();
}

template <class Element>
void LevelsEncoding::add_exceptions(std::span<const std::uint32_t> numbers, Exceptions& out) const {
  const LevelsView view(in_, spec_.form);
  const auto dense = view.dense();
  for (const std::uint32_t number : numbers) {
    const std::size_t plane = number / job_.first[stage_.class_count];
    const std::size_t in_plane = number % job_.first[stage_.class_count];
    std::size_t i = 0;
    while (in_plane >= job_.first[i + 1]) ++i;
    const ClassRows rows(view.axes, 0, stage_.classes[i], false);
    const std::size_t before = plane * rows.rows * rows.columns;
    const std::size_t point = before + in_plane - job_.first[i] - before % kernels::kLanes;
    const std::size_t x = point % rows.columns;
    const RowIndex index =
        index_in_class(extents_of_class(view.axes, 0, rows.parity_class), view.axes.rank, point / rows.columns);
    const auto* const from = static_cast<const typename Element::Bits*>(in_.data) +
                             view.row_start(rows.parity_class, 0, index, view.strides);
    out.emplace_back(view.row_start(rows.parity_class, 0, index, dense) + x * view.row_step(0, dense),
                     from[x * view.row_step(0, view.strides)]);
  }
}

LevelsEncoding::Choice LevelsEncoding::choose(const kernels::RasterEncodeResult& result,
                                              std::span<const std::uint32_t> exceptions, Vector<std::uint8_t>& out) {
  const LevelsView view(in_, spec_.form);
  const LevelAxes& axes = view.axes;
  LevelsModel& model = coarser_.model;
  coding::BinCounts counts = coarser_.counts;
  coding::TokenCounts tokens{};
  for (std::size_t l = 0; l < kernels::kContextBins; ++l)
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      counts[l][t] += result.counts[l][t];
      tokens[t] += result.counts[l][t];
    }
  coarser_.bits[0] = coding::token_cost(tokens) >> 12;
  Exceptions all = coarser_.exceptions;
  head_.assign(1, static_cast<std::uint8_t>(Mode::levels));
  const std::uint64_t bits = coding::fit_distributions(counts, model.distributions) >> 12;
  if (bits / 8 + all.size() + exceptions.size() >= raw_bytes_) return Choice::raw;
  write_levels_model(model, axes, head_);
  Writer writer(head_);
  with_element(spec_.dtype, [&](auto element) {
    using Bits = typename decltype(element)::Bits;
    add_exceptions<decltype(element)>(exceptions, all);
    std::sort(all.begin(), all.end());
    Vector<std::pair<std::uint64_t, Bits>> own;
    for (const auto& [index, bits_of] : all) own.emplace_back(index, static_cast<Bits>(bits_of));
    write_exceptions(own, writer);
  });
  const unsigned own = own_sections(coarser_.bits, axes.top());
  if (own == 0) return Choice::host;  // the finest level shares its lanes with those above
  writer.u8(static_cast<std::uint8_t>(own));
  Arena needed(nullptr);
  const SectionWriter unused(needed, nullptr, spec_.raw_bytes(), spec_.kernels);
  Vector<std::uint8_t> memory(needed.used() + 64);
  Vector<std::uint16_t> words(SectionWriter::room(spec_.raw_bytes()));
  Arena arena(memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64);
  SectionWriter sections(arena, words.data(), spec_.raw_bytes(), spec_.kernels);
  sections.fill_entries(model.distributions);
  const LevelResiduals residuals{&axes,         axes.elems(),          first_of_levels(axes),
                                 coarser_.bits, coarser_.codes.data(), coarser_.symbols.data()};
  payload_.clear();
  for (unsigned s = 0; s < own; ++s) {
    const std::size_t before = payload_.size();
    if (!sections.write(residuals, s == 0 ? axes.top() : own - s, own - s, payload_,
                        static_cast<std::size_t>(raw_bytes_)))
      return Choice::raw;
    writer.varint(payload_.size() - before);
  }

  lane_bits_ = section_stream_bits(axes, 0, coarser_.bits[0]);
  kernels::RowLanesJob lanes;
  JobParts parts;
  if (!parts.take_starts(model.distributions, lanes.serving)) return Choice::host;
  lanes.head.kind = kernels::JobKind::levels;
  lanes.by_points = true;
  const auto points = static_cast<std::uint32_t>(job_.first[stage_.class_count] * axes.planes());
  const Vector<kernels::RowSection> lane_rows{{1u << lane_bits_, points >> lane_bits_}};
  lanes.mask = (1u << lane_bits_) - 1;
  lanes.codes = job_.codes;
  lanes.symbols = job_.symbols;
  lanes.words = job_.level.values[0];
  lanes.most_words = static_cast<std::uint32_t>(most_words());
  lanes.head.work_bytes = work_bytes();
  append_lanes_job(lane_rows, parts, lanes, out);
  return Choice::lanes;
}

LevelsEncoding::Choice LevelsEncoding::write(std::span<const std::uint32_t> lane_words, const std::uint16_t* words,
                                             std::span<std::uint8_t> out, std::size_t& bytes) const {
  const std::size_t lanes = std::size_t{1} << lane_bits_;
  // Where a lane might not have had room on the host, that may have chosen to have a single one.
  const std::size_t room = SectionWriter::room(spec_.raw_bytes()) / lanes;
  const std::size_t lattice_bytes = places_.numbers.empty() ? 0 : kLatticeHead;
  Vector<std::uint8_t> head(lattice_bytes);
  if (lattice_bytes != 0) write_lattice(places_.lattice, head);
  head.insert(head.end(), head_.begin(), head_.end());
  head.insert(head.end(), payload_.begin(), payload_.end());
  Writer writer(head);
  writer.u8(static_cast<std::uint8_t>(lane_bits_));
  for (std::size_t lane = 0; lane < lanes; ++lane)
    if (lane_words[lane] + coding::StreamWriter::words_wanted(lanes) > room) return Choice::host;
  const std::uint64_t total = coding::write_lane_sizes(lane_words.first(lanes), writer);
  bytes = head.size() + 2 * static_cast<std::size_t>(total);
  if (bytes - lattice_bytes > raw_bytes_ || (lattice_bytes != 0 && bytes > array_bytes_)) return Choice::raw;
  coding::put_head_and_words(head, {words, static_cast<std::size_t>(total)}, out);
  return Choice::lanes;
}

}  // namespace quern::codec::stencil
