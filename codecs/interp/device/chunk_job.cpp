// Parsing with the decoder's own functions, then tables of levels and classes.
#include "codecs/interp/device/chunk_job.h"

#include <optional>

#include "codecs/interp/device/job_tables.h"
#include "codecs/interp/elements.h"
#include "codecs/interp/exceptions.h"
#include "codecs/interp/head.h"
#include "codecs/interp/sections.h"
#include "coding/job_streams.h"
#include "kernels/interp/interp_job.h"

namespace quern::codec::interp {
namespace {

using kernels::InterpClassPlan;
using kernels::InterpJob;
using kernels::InterpSection;
using kernels::JobException;

class JobMaker {
 public:
  JobMaker(const DeviceState& state, const MutableBox3& box)
      : state_(state), box_(box), extents_(chunk_extents(box.extents)) {}

  bool make(std::span<const std::uint8_t> in, Vector<std::uint8_t>& out) {
    if (!device_takes(state_.tile)) return false;
    job_.wide = in[0] == static_cast<std::uint8_t>(Mode::wide);
    in = in.subspan(1);
    ChunkHead head;
    if (!read_head(in, state_.tile, head).ok() || !take_exceptions(in)) return false;
    if (!streams_.take_starts(head.distributions, job_.serving)) return false;
    tables_.emplace(state_.tile, extents_, state_.predictors, head.contexts);
    if (!take_sections(in)) return false;
    lay_out_work();
    append(head.values, out);
    return true;
  }

 private:
  std::uint64_t elems() const { return std::uint64_t{extents_[0]} * extents_[1] * extents_[2]; }

  bool take_exceptions(std::span<const std::uint8_t>& in) {
    return with_element(state_.dtype, [&](auto element) {
      using Bits = typename decltype(element)::Bits;
      const auto records = interp::take_exceptions<Bits>(in, elems());
      return records.ok() && for_exceptions<Bits>(*records, [&](std::size_t index, Bits bits) {
                               exceptions_.push_back({std::uint64_t{bits}, job_number(index)});
                             }).ok();
    });
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
      for (InterpClassPlan& plan : tables_->classes) {
        if (plan.section != s) continue;
        if (section.end == 0) section.first = plan.first;
        section.end = plan.first + plan.count;
      }
      if (section.end == 0) {
        if (!streams.finished()) return false;
        continue;
      }
      for (InterpClassPlan& plan : tables_->classes)
        if (plan.section == s) plan.section = static_cast<std::uint8_t>(sections_.size());
      streams_.take_streams(streams, section.lanes);
      sections_.push_back(section);
    }
    return true;
  }

  void lay_out_work() {
    JobWork work;
    const auto coarse = tables_->coarse_points();
    job_.codes = work.take(tables_->coded, sizeof(std::int32_t));
    job_.anchors = work.take(tables_->anchors(), job_.wide ? sizeof(std::int64_t) : sizeof(std::int32_t));
    for (const std::size_t i : {0, 1}) job_.magnitudes[i] = work.take(coarse[i], sizeof(std::uint16_t));
    job_.work_bytes = work.bytes();
  }

  void append(const coding::ValueFormat& values, Vector<std::uint8_t>& out) {
    coding::JobAppender job(out, sizeof job_);
    describe_chunk(state_.dtype, state_.tile, extents_, box_.strides, values, *tables_, job_);
    job_.table_count = job_number(streams_.starts.size());
    job_.exception_count = job_number(exceptions_.size());
    job_.levels = job.add(tables_->levels);
    job_.classes = job.add(tables_->classes);
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
  std::optional<JobTables> tables_;
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
