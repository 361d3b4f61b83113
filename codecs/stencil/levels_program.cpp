// Parsing with the decoder's own functions, then tables with all that the rules say of taps, contexts and borders.
#include "codecs/stencil/levels_program.h"

#include <algorithm>
#include <cmath>

#include "codecs/stencil/lane_sources.h"
#include "codecs/stencil/levels_context.h"
#include "codecs/stencil/levels_model.h"
#include "codecs/stencil/levels_view.h"
#include "codecs/stencil/program_parts.h"
#include "kernels/core/level_program.h"
#include "kernels/core/program_task.h"

namespace quern::codec::stencil {
namespace {

using kernels::ClassPlan;
using kernels::kLevelAxes;
using kernels::LevelProgram;
using kernels::LevelSection;
using kernels::LevelSpread;
using kernels::LevelStage;
using kernels::LevelTap;

static_assert(kLevelAxes == kMaxAxes && kernels::kLevelClasses == kParityClasses);
static_assert(kernels::kMostContextMagnitude == kMaxContextMagnitude && kernels::kMostSpread == kMaxSpread);
static_assert(kernels::kSpreadFractionBits == kSpreadBits);

class ProgramMaker {
 public:
  ProgramMaker(const ChunkSpec& spec, const MutableBox3& box)
      : spec_(spec),
        masked_(box.special != nullptr),
        view_(box, spec.form),
        axes_(view_.axes),
        pad_(kMaxAxes - axes_.rank) {}

  bool make(std::span<const std::uint8_t> in, Vector<std::uint8_t>& out) {
    Vector<Predictor> predictors(LevelsModel::predictor_count(axes_));
    model_.predictors = predictors.data();
    if (!read_levels_model(in, axes_, model_).ok() || model_.values.masked != masked_) return false;
    Reader reader(in);
    if (!parts_.take_starts(model_.values, head_.serving)) return false;
    if (!parts_.take_exceptions(spec_.dtype, reader, axes_.elems()) || !take_sections(reader, in)) return false;
    lay_out_levels();
    append(out);
    return true;
  }

 private:
  bool take_sections(Reader& reader, std::span<const std::uint8_t> in) {
    const auto own = reader.u8();
    if (!own.ok() || *own > axes_.top()) return false;
    own_ = *own;
    std::array<std::uint64_t, kMaxLevels> bytes{};
    std::uint64_t known = 0;
    for (std::size_t s = 0; s < own_; ++s) {
      const auto size = reader.varint(1 + spec_.raw_bytes());
      if (!size.ok()) return false;
      known += bytes[s] = *size;
    }
    const std::uint64_t left = reader.remaining();
    if (known > left) return false;
    bytes[own_] = left - known;
    std::size_t at = reader.position();
    for (std::size_t s = 0; s <= own_; ++s) {
      LaneSources lanes;
      if (!lanes.open(in.subspan(at, static_cast<std::size_t>(bytes[s]))).ok()) return false;
      at += static_cast<std::size_t>(bytes[s]);
      parts_.take_lanes(lanes, sections_.emplace_back());
    }
    return true;
  }

  void lay_out_levels() {
    std::array<std::uint32_t, 2> places{};
    for (unsigned level = 0; level <= axes_.top(); ++level) {
      LevelStage& stage = stages_.emplace_back();
      for (std::size_t a = 0; a < axes_.rank; ++a)
        stage.points[pad_ + a] = static_cast<std::uint32_t>(axes_.points(a, level));
      stage.quantum = model_.quantum(level);
      stage.section = level > own_ ? 0 : own_ - level;
      stage.opens_section = level == axes_.top() || level < own_;
      stage.ends_section = level <= own_;
      places[level & 1] = std::max(places[level & 1], lay_out_views(level, stage));
      const CodedClasses classes(axes_, level);
      stage.class_count = static_cast<std::uint32_t>(classes.count);
      std::copy(classes.list.begin(), classes.list.end(), stage.classes);
      for (const bool later : {false, true}) {
        if (later && axes_.planes() == 1) continue;
        stage.plans[later ? 1 : 0] = static_cast<std::uint32_t>(plans_.size());
        for (std::size_t i = 0; i < classes.count; ++i) plan_class(level, later, classes.list[i]);
      }
    }
    std::uint32_t bytes = 0;
    const auto take = [&](std::uint32_t count, std::size_t width) {
      const std::uint32_t begin = bytes;
      bytes += static_cast<std::uint32_t>(kernels::program_aligned(count * width));
      return begin;
    };
    for (const std::size_t i : {0, 1}) {
      head_.values[i] = take(places[i], sizeof(double));
      head_.residuals[i] = take(places[i], sizeof(std::uint32_t));
    }
    head_.head.work_bytes = bytes;
  }

  /// Returns how many places the level's arrays have.
  std::uint32_t lay_out_views(unsigned level, LevelStage& stage) const {
    std::uint32_t at = kernels::kLeftMargin;
    for (std::size_t c = 0; c < kParityClasses; ++c) {
      if (!axes_.exists(c, level)) continue;
      kernels::LevelView& view = stage.views[c];
      std::fill(std::begin(view.extents), std::end(view.extents), 1u);
      view.rows = 1;
      for (std::size_t a = 0; a < axes_.rank; ++a) {
        view.extents[pad_ + a] = static_cast<std::uint32_t>(axes_.class_points(c, level, a));
        if (a + 1 < axes_.rank) view.rows *= view.extents[pad_ + a];
      }
      view.stride = kernels::kLeftMargin + view.extents[kMaxAxes - 1] + kernels::kRightMargin;
      view.first = at;
      at += view.rows * view.stride;
    }
    return at;
  }

  /// Class of a neighbour, and steps between the indices of a point in its class and of the neighbour in its own.
  std::uint8_t resolve(std::size_t parity_class, const Offset& offset, std::int8_t* step) const {
    std::size_t in_class = 0;
    for (std::size_t a = 0; a < axes_.rank; ++a) {
      const int place = static_cast<int>(axes_.parity(parity_class, a)) + offset[a];
      const bool halved = axes_.hierarchical(a);
      in_class = in_class << 1 | (static_cast<unsigned>(place) & (halved ? 1u : 0u));
      step[pad_ + a] = static_cast<std::int8_t>(halved ? place >> 1 : offset[a]);
    }
    return static_cast<std::uint8_t>(in_class);
  }
  static Offset opposite(const Offset& offset) {
    Offset result{};
    for (std::size_t a = 0; a < kMaxAxes; ++a) result[a] = static_cast<std::int8_t>(-offset[a]);
    return result;
  }

  void plan_class(unsigned level, bool later, std::size_t c) {
    ClassPlan plan;
    plan.taps = static_cast<std::uint32_t>(taps_.size());
    const GroupList groups = groups_of(axes_, level, c, later);
    const GroupWeights& weights = model_.predictor(level, later, c).weights;
    for (std::size_t g = 0; g < groups.count; ++g) {
      if (weights[g] == 0) continue;
      add_tap(c, groups.groups[g].offset, static_cast<double>(weights[g]), taps_);
      if (groups.groups[g].pair) add_tap(c, opposite(groups.groups[g].offset), static_cast<double>(weights[g]), taps_);
    }
    plan.tap_count = static_cast<std::uint32_t>(taps_.size()) - plan.taps;

    plan.magnitude_taps = static_cast<std::uint32_t>(magnitude_taps_.size());
    plan.spreads = static_cast<std::uint32_t>(spreads_.size());
    const ContextWeights& contexts = context_weights(model_, level, later, c);
    plan.constant = contexts.constant;
    const FeatureList features(axes_, level, c, later);
    for (std::size_t i = 0; i < features.count; ++i) {
      const std::size_t f = features.list[i];
      const std::uint32_t weight = contexts.weights[f];
      if (weight == 0) continue;
      if (f == kAboveFeature) {
        plan.above = weight;
      } else if (f == kSidesFeature) {
        plan.sides = weight;
      } else if (f == kBackFeature) {
        plan.back = weight;
      } else if (counts_magnitudes(f)) {
        const FeatureOffsets offsets = feature_offsets(axes_, level, f);
        for (std::size_t o = 0; o < offsets.count; ++o) add_tap(c, offsets.list[o], weight, magnitude_taps_);
      } else {
        add_spread(c, f, weight);
      }
    }
    plan.magnitude_tap_count = static_cast<std::uint32_t>(magnitude_taps_.size()) - plan.magnitude_taps;
    plan.spread_count = static_cast<std::uint32_t>(spreads_.size()) - plan.spreads;
    plans_.push_back(plan);
  }

  template <class Weight>
  void add_tap(std::size_t c, const Offset& offset, Weight weight, Vector<LevelTap<Weight>>& to) const {
    LevelTap<Weight>& tap = to.emplace_back();
    tap.weight = weight;
    tap.in_class = resolve(c, offset, tap.step);
  }

  /// As add_spread of levels_context.h.
  void add_spread(std::size_t c, std::size_t feature, std::uint32_t weight) {
    const auto fraction_bits = static_cast<int>(model_.values.fraction_bits);
    LevelSpread& spread = spreads_.emplace_back();
    spread.weight = weight;
    Offset offset{};
    if (feature == kChangeFeature) {
      offset[0] = -1;
      spread.predicted_factor = -1;
      spread.scale = std::ldexp(1.0, static_cast<int>(kSpreadBits) - fraction_bits);
      spread.first_class = resolve(c, offset, spread.first_step);
      spread.second_class = resolve(c, offset, spread.second_step);
      return;
    }
    const bool bend = feature < kSlopeFeature;
    offset[feature - (bend ? kBendFeature : kSlopeFeature)] = 1;
    spread.second_factor = bend ? 1 : -1;
    spread.predicted_factor = bend ? -2 : 0;
    spread.scale = std::ldexp(1.0, static_cast<int>(kSpreadBits) - 1 - fraction_bits);
    spread.first_class = resolve(c, offset, spread.first_step);
    spread.second_class = resolve(c, opposite(offset), spread.second_step);
  }

  void append(Vector<std::uint8_t>& out) {
    ProgramAppender program(out, sizeof head_);
    head_.element = static_cast<kernels::Element>(spec_.dtype);
    head_.linear_border = model_.border == Border::linear;
    head_.masked = masked_;
    head_.top = static_cast<std::uint8_t>(axes_.top());
    head_.sequential_axis = axes_.sequential ? static_cast<std::uint32_t>(pad_) : kernels::kNoAxis;
    for (std::size_t a = 0; a < axes_.rank; ++a) {
      head_.extents[pad_ + a] = static_cast<std::uint32_t>(axes_.extents[a]);
      head_.strides[pad_ + a] = view_.strides[a];
      head_.special_strides[pad_ + a] = view_.special_strides[a];
    }
    head_.base = model_.values.base;
    head_.unit = model_.values.unit();
    head_.low = model_.values.low;
    head_.high = model_.values.high;
    head_.weight_bits = model_.values.weight_bits;
    head_.table_count = static_cast<std::uint32_t>(parts_.starts.size());
    head_.exception_count = static_cast<std::uint32_t>(parts_.exceptions.size());
    head_.stages = program.add(stages_);
    head_.plans = program.add(plans_);
    head_.taps = program.add(taps_);
    head_.magnitude_taps = program.add(magnitude_taps_);
    head_.spreads = program.add(spreads_);
    head_.sections = program.add(sections_);
    head_.starts = program.add(parts_.starts);
    head_.exceptions = program.add(parts_.exceptions);
    // Lanes fetch words in aligned pieces.
    constexpr std::size_t kPiece = 2 * kernels::kLevelWordAlignment;
    parts_.words.resize((parts_.words.size() + kPiece - 1) / kPiece * kPiece);
    head_.words = program.add(parts_.words);
    head_.head.bytes = program.bytes();
    program.set_head(head_);
  }

  const ChunkSpec& spec_;
  bool masked_;
  LevelsView view_;
  const LevelAxes& axes_;
  std::size_t pad_;
  LevelsModel model_;
  unsigned own_ = 0;
  LevelProgram head_;
  Vector<LevelStage> stages_;
  Vector<ClassPlan> plans_;
  Vector<LevelTap<double>> taps_;
  Vector<LevelTap<std::uint32_t>> magnitude_taps_;
  Vector<LevelSpread> spreads_;
  Vector<LevelSection> sections_;
  ProgramParts parts_;
};

}  // namespace

bool append_levels_program(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& box,
                           Vector<std::uint8_t>& out) {
  if (!spec.form.levels || in.empty() || in[0] != static_cast<std::uint8_t>(Mode::levels)) return false;
  return ProgramMaker(spec, box).make(in.subspan(1), out);
}

}  // namespace quern::codec::stencil
