// Parsing with the decoder's own functions, then tables with all that the rules say of taps, contexts and borders.
#include "codecs/stencil/device/levels_job.h"

#include <algorithm>

#include "codecs/stencil/device/job_parts.h"
#include "codecs/stencil/device/levels_tables.h"
#include "codecs/stencil/levels/model.h"
#include "codecs/stencil/levels/view.h"
#include "coding/stream_reader.h"
#include "kernels/common/job_task.h"
#include "kernels/stencil/level_job.h"
#include "libcompress/core/element_of.h"

namespace quern::codec::stencil {
namespace {

using kernels::LevelJob;
using kernels::LevelStage;
using kernels::StreamSection;

class JobMaker {
 public:
  JobMaker(const ChunkSpec& spec, const MutableBox3& box)
      : spec_(spec), masked_(box.special != nullptr), view_(box, spec.form), axes_(view_.axes), tables_(axes_) {
    // Chunks with groups that are not linear are no jobs; others have no bits for them, whatever the stream has.
    view_.axes.edges = false;
  }

  bool make(std::span<const std::uint8_t> in, Vector<std::uint8_t>& out) {
    Vector<Predictor> predictors(LevelsModel::predictor_count(axes_));
    model_.predictors = predictors.data();
    if (!read_levels_model(in, axes_, model_).ok() || model_.format.masked != masked_) return false;
    Reader reader(in);
    if (!parts_.take_starts(model_.distributions, head_.serving)) return false;
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
      coding::StreamReader streams;
      if (!streams.open(in.subspan(at, static_cast<std::size_t>(bytes[s]))).ok()) return false;
      at += static_cast<std::size_t>(bytes[s]);
      parts_.take_streams(streams, sections_.emplace_back());
    }
    return true;
  }

  void lay_out_levels() {
    std::array<std::uint32_t, 2> places{};
    for (unsigned level = 0; level <= axes_.top(); ++level) {
      LevelStage& stage = stages_.emplace_back();
      for (std::size_t a = 0; a < axes_.rank; ++a)
        stage.points[tables_.pad + a] = static_cast<std::uint32_t>(axes_.points(a, level));
      stage.quantum = model_.quantum(level);
      stage.section = level > own_ ? 0 : own_ - level;
      stage.opens_section = level == axes_.top() || level < own_;
      stage.ends_section = level <= own_;
      places[level & 1] = std::max(places[level & 1], tables_.lay_out_views(level, stage));
      const CodedClasses classes(axes_, level);
      stage.class_count = static_cast<std::uint32_t>(classes.count);
      std::copy(classes.list.begin(), classes.list.end(), stage.classes);
      for (const bool later : {false, true}) {
        if (later && axes_.planes() == 1) continue;
        stage.plans[later ? 1 : 0] = static_cast<std::uint32_t>(tables_.plans.size());
        for (std::size_t i = 0; i < classes.count; ++i) tables_.plan_class(model_, level, later, classes.list[i]);
      }
    }
    std::uint32_t bytes = 0;
    const auto take = [&](std::uint32_t count, std::size_t width) {
      const std::uint32_t begin = bytes;
      bytes += static_cast<std::uint32_t>(kernels::job_aligned(count * width));
      return begin;
    };
    for (const std::size_t i : {0, 1}) {
      head_.values[i] = take(places[i], sizeof(double));
      head_.residuals[i] = take(places[i], sizeof(std::uint32_t));
    }
    head_.head.work_bytes = bytes;
  }

  void append(Vector<std::uint8_t>& out) {
    JobAppender job(out, sizeof head_);
    head_.element = element_of(spec_.dtype);
    head_.linear_border = model_.border == Border::linear;
    head_.masked = masked_;
    head_.top = static_cast<std::uint8_t>(axes_.top());
    head_.sequential_axis = axes_.sequential ? static_cast<std::uint32_t>(tables_.pad) : kernels::kNoAxis;
    for (std::size_t a = 0; a < axes_.rank; ++a) {
      head_.extents[tables_.pad + a] = static_cast<std::uint32_t>(axes_.extents[a]);
      head_.strides[tables_.pad + a] = view_.strides[a];
      head_.special_strides[tables_.pad + a] = view_.special_strides[a];
    }
    head_.base = model_.format.base;
    head_.unit = model_.format.unit();
    head_.low = model_.format.low;
    head_.high = model_.format.high;
    head_.weight_bits = model_.format.weight_bits;
    head_.table_count = static_cast<std::uint32_t>(parts_.starts.size());
    head_.exception_count = static_cast<std::uint32_t>(parts_.exceptions.size());
    head_.stages = job.add(stages_);
    head_.plans = job.add(tables_.plans);
    head_.taps = job.add(tables_.taps);
    head_.magnitude_taps = job.add(tables_.magnitude_taps);
    head_.spreads = job.add(tables_.spreads);
    head_.sections = job.add(sections_);
    head_.starts = job.add(parts_.starts);
    head_.exceptions = job.add(parts_.exceptions);
    parts_.pad_words();
    head_.words = job.add(parts_.words);
    head_.head.bytes = job.bytes();
    job.set_head(head_);
  }

  const ChunkSpec& spec_;
  bool masked_;
  LevelsView view_;
  const LevelAxes& axes_;
  LevelTables tables_;
  LevelsModel model_;
  unsigned own_ = 0;
  LevelJob head_;
  Vector<LevelStage> stages_;
  Vector<StreamSection> sections_;
  JobParts parts_;
};

}  // namespace

bool append_levels_job(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& box,
                       Vector<std::uint8_t>& out) {
  if (!spec.form.levels || in.empty() || in[0] != static_cast<std::uint8_t>(Mode::levels)) return false;
  return JobMaker(spec, box).make(in.subspan(1), out);
}

}  // namespace quern::codec::stencil
