// Parsing with the decoder's own functions, then tables of levels and classes.
#include "codecs/interp/device/chunk_job.h"

#include <algorithm>

#include "codecs/interp/elements.h"
#include "codecs/interp/exceptions.h"
#include "codecs/interp/head.h"
#include "codecs/interp/level_grid.h"
#include "codecs/interp/sections.h"
#include "coding/job_streams.h"
#include "kernels/interp/interp_job.h"
#include "libcompress/core/element_of.h"

namespace quern::codec::interp {
namespace {

using kernels::InterpClassPlan;
using kernels::InterpJob;
using kernels::InterpLevelPlan;
using kernels::InterpSection;
using kernels::JobException;

std::uint32_t narrow(std::uint64_t n) { return static_cast<std::uint32_t>(n); }

class JobMaker {
 public:
  JobMaker(const DeviceState& state, const MutableBox3& box)
      : state_(state), box_(box), extents_(chunk_extents(box.extents)) {}

  bool make(std::span<const std::uint8_t> in, Vector<std::uint8_t>& out) {
    if (tile_points() > kernels::kInterpMostTilePoints) return false;
    const std::uint8_t mode = in[0];
    in = in.subspan(1);
    ChunkHead head;
    if (!read_head(in, state_.tile, head).ok() || !take_exceptions(in)) return false;
    if (!streams_.take_starts(head.distributions, job_.serving)) return false;
    add_plans(head.contexts);
    if (!take_sections(in)) return false;
    job_.wide = mode == static_cast<std::uint8_t>(Mode::wide);
    job_.fraction_bits = static_cast<std::uint8_t>(head.values.fraction_bits);
    job_.base = head.values.base;
    job_.unit = head.values.unit();
    lay_out_work();
    append(out);
    return true;
  }

 private:
  std::uint64_t elems() const { return std::uint64_t{extents_[0]} * extents_[1] * extents_[2]; }

  /// Of a whole tile and its ends.
  std::uint64_t tile_points() const {
    std::uint64_t points = 1;
    for (const std::uint8_t log : state_.tile.logs) points *= log == 0 ? 1 : (std::uint64_t{1} << log) + 1;
    return points;
  }

  bool take_exceptions(std::span<const std::uint8_t>& in) {
    return with_element(state_.dtype, [&](auto element) {
      using Bits = typename decltype(element)::Bits;
      const auto records = interp::take_exceptions<Bits>(in, elems());
      return records.ok() && for_exceptions<Bits>(*records, [&](std::size_t index, Bits bits) {
                               exceptions_.push_back({std::uint64_t{bits}, narrow(index)});
                             }).ok();
    });
  }

  /// The anchors, then the classes that have points, and the levels that have such classes.
  void add_plans(const Contexts& contexts) {
    const unsigned top = state_.tile.levels();
    for (unsigned level = top + 1; level-- > 0;) {
      const LevelShape shape(state_.tile, level, extents_);
      if (level < top && !shape.adds_points()) continue;
      InterpLevelPlan plan;
      for (std::size_t a = 0; a < kernels::kInterpAxes; ++a) {
        plan.points[a] = narrow(shape.points[a]);
        plan.coarse[a] = narrow(shape.coarse[a]);
      }
      plan.level = static_cast<std::uint8_t>(level);
      plan.halved = static_cast<std::uint8_t>(shape.halved);
      plan.class_begin = narrow(classes_.size());
      if (level == top) add_class(shape, 0, {}, {}, plan);
      for (const std::uint8_t c : kernels::kInterpClassOrder)
        if (level < top && (c & ~shape.halved) == 0)
          add_class(shape, c, state_.predictors[level][c - 1u], contexts[level][c - 1u], plan);
      plan.class_end = narrow(classes_.size());
      levels_.push_back(plan);
    }
  }
  void add_class(const LevelShape& shape, unsigned c, kernels::InterpPredictor predictor,
                 kernels::InterpContext context, InterpLevelPlan& level) {
    level.first[c] = coded_;
    if (shape.count(c) == 0) return;
    InterpClassPlan plan;
    for (std::size_t a = 0; a < kernels::kInterpAxes; ++a)
      plan.extents[a] = narrow((c >> a & 1) != 0 ? shape.points[a] - shape.coarse[a] : shape.coarse[a]);
    plan.first = coded_;
    plan.count = narrow(shape.count(c));
    plan.context = context;
    plan.predictor = predictor;
    plan.point_class = static_cast<std::uint8_t>(c);
    plan.level = static_cast<std::uint8_t>(levels_.size());
    plan.section = static_cast<std::uint8_t>(section_of(state_.tile, shape.level));
    coded_ += plan.count;
    classes_.push_back(plan);
  }

  /// Those without codes are checked here; the device has the others, which get new numbers.
  bool take_sections(std::span<const std::uint8_t> in) {
    const unsigned count = section_count(state_.tile);
    SectionBytes sections;
    if (!sections.open(in, count, count).ok()) return false;
    for (unsigned s = 0; s < count; ++s) {
      coding::StreamReader streams;
      if (!streams.open(sections.bytes[s]).ok()) return false;
      InterpSection section;
      for (InterpClassPlan& plan : classes_) {
        if (plan.section != s) continue;
        if (section.end == 0) section.first = plan.first;
        section.end = plan.first + plan.count;
      }
      if (section.end == 0) {
        if (!streams.finished()) return false;
        continue;
      }
      for (InterpClassPlan& plan : classes_)
        if (plan.section == s) plan.section = static_cast<std::uint8_t>(sections_.size());
      streams_.take_streams(streams, section.lanes);
      sections_.push_back(section);
    }
    return true;
  }

  void lay_out_work() {
    std::uint64_t bytes = 0;
    const auto take = [&](std::uint64_t count, std::size_t width) {
      const std::uint64_t begin = bytes;
      bytes += kernels::job_aligned(count * width);
      return narrow(begin);
    };
    const auto points = [](const std::uint32_t* extents) {
      return std::uint64_t{extents[0]} * extents[1] * extents[2];
    };
    std::array<std::uint64_t, 2> coarse{};
    for (std::size_t n = 1; n < levels_.size(); ++n) coarse[n & 1] = std::max(coarse[n & 1], points(levels_[n].coarse));
    job_.codes = take(coded_, sizeof(std::int32_t));
    job_.anchors = take(points(levels_[0].points), job_.wide ? sizeof(std::int64_t) : sizeof(std::int32_t));
    for (const std::size_t i : {0, 1}) job_.magnitudes[i] = take(coarse[i], sizeof(std::uint16_t));
    job_.work_bytes = narrow(bytes);
  }

  void append(Vector<std::uint8_t>& out) {
    coding::JobAppender job(out, sizeof job_);
    job_.element = element_of(state_.dtype);
    for (std::size_t a = 0; a < kernels::kInterpAxes; ++a) {
      job_.tile_logs[a] = state_.tile.logs[a];
      job_.extents[a] = narrow(extents_[a]);
    }
    job_.strides[0] = box_.strides[0];
    job_.strides[1] = box_.strides[1];
    job_.level_count = narrow(levels_.size());
    job_.class_count = narrow(classes_.size());
    job_.table_count = narrow(streams_.starts.size());
    job_.exception_count = narrow(exceptions_.size());
    job_.levels = job.add(levels_);
    job_.classes = job.add(classes_);
    job_.sections = job.add(sections_);
    job_.starts = job.add(streams_.starts);
    job_.exceptions = job.add(exceptions_);
    streams_.pad_words();
    job_.words = job.add(streams_.words);
    job_.bytes = job.bytes();
    job.set_head(job_);
  }

  const DeviceState& state_;
  const MutableBox3& box_;
  Extents extents_;
  InterpJob job_;
  std::uint32_t coded_ = 0;
  Vector<InterpLevelPlan> levels_;
  Vector<InterpClassPlan> classes_;
  Vector<InterpSection> sections_;
  Vector<JobException> exceptions_;
  coding::JobStreams streams_;
};

}  // namespace

bool append_chunk_job(const DeviceState& state, std::span<const std::uint8_t> in, const MutableBox3& box,
                      Vector<std::uint8_t>& out) {
  if (in.empty()) return false;
  const auto mode = static_cast<Mode>(in[0]);
  if (mode != Mode::narrow && mode != Mode::wide) return false;
  return JobMaker(state, box).make(in, out);
}

}  // namespace quern::codec::interp
