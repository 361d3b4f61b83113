// Segment heads one after another, masks of a batch side by side, counts added up in order.
#include <quern/survey.h>

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <vector>

#include "libcompress/core/run_tasks.h"
#include "libcompress/core/task_runner.h"
#include "libcompress/format/grid/header.h"
#include "libcompress/format/grid/segment.h"
#include "libcompress/pipeline/mask/mask.h"
#include "libcompress/pipeline/mask/scan.h"

namespace quern {
namespace {

/// One segment's head and what its mask holds.
struct Head {
  std::uint64_t segment = 0;
  std::vector<std::uint8_t> bytes;
  MaskSurvey found;
};

/// Counts masked cells by the kind of their bits.
template <class W>
void count_kinds(const mask::SegmentMask& mask, std::span<const std::uint64_t> fill_bits, MaskSurvey& found) {
  const auto fills = mask::fill_words<W>(fill_bits);
  const auto add = [&](std::uint64_t bits, std::uint64_t elems) {
    const auto word = static_cast<typename W::Word>(bits);
    if (W::kFloat && (word & W::kMagnitude) > W::kInfinity) {
      found.nan_elems += elems;
    } else if (W::kFloat && (word & W::kMagnitude) == W::kInfinity) {
      found.infinite_elems += elems;
    } else if (std::find(fills.begin(), fills.end(), word) != fills.end()) {
      found.fill_elems += elems;
    } else {
      found.repeated_elems += elems;
    }
  };
  std::array<std::uint64_t, 256> cells_of_class{};
  for (const std::uint8_t c : mask.classes) ++cells_of_class[c];
  for (std::size_t k = 0; k < mask.specials.size(); ++k) add(mask.specials[k], cells_of_class[k + 1]);
  for (const std::uint64_t bits : mask.verbatim) add(bits, 1);
}

class Survey {
 public:
  Survey(ByteSource& source, const Execution& execution, std::uint64_t offset)
      : source_(source), execution_(execution), runner_(execution), at_(offset) {}

  Result<MaskSurvey> run() {
    QUERN_RETURN_IF_ERROR(source_.seek(at_));
    QUERN_ASSIGN_OR_RETURN(ReadHeader read, read_header(source_));
    header_ = std::move(read.header);
    layout_ = SegmentLayout(header_.grid, header_.dtype, header_.has_level_tables());
    at_ += read.bytes;
    const std::uint64_t segments = layout_.segments();
    if (segments == 0) return total_;
    QUERN_ASSIGN_OR_RETURN(const std::size_t at_once, segments_at_once());
    std::vector<Head> heads(at_once);
    for (std::uint64_t next = 0; next < segments;) {
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(at_once, segments - next));
      for (std::size_t i = 0; i < count; ++i) QUERN_RETURN_IF_ERROR(read_head(next + i, heads[i]));
      QUERN_RETURN_IF_ERROR(run_tasks(runner_.get(), count, [&](std::size_t i) { return examine(heads[i]); }));
      for (std::size_t i = 0; i < count; ++i) add(heads[i].found);
      next += count;
      if (execution_.progress && !execution_.progress(next, segments))
        return Status(StatusCode::cancelled, "cancelled after {0} segments", static_cast<std::int64_t>(next));
    }
    return total_;
  }

 private:
  /// How many masks may be decoded side by side; the first segment is the largest.
  Result<std::size_t> segments_at_once() {
    // A head holds at most as many bytes as the mask it decodes to has cells and values.
    mask_limit_ = mask::decode_bytes(layout_.segment_box(0).extents, last_form());
    const std::uint64_t needed =
        2 * mask_limit_ + sizeof(ParsedSegment) + (layout_.has_level_tables() ? kMaxLevelTableBytes : 0);
    if (needed > execution_.memory_limit)
      return Status(StatusCode::memory_limit, "{0} bytes are needed at least; the limit is {1}",
                    static_cast<std::int64_t>(needed), static_cast<std::int64_t>(execution_.memory_limit));
    const std::uint64_t possible = execution_.memory_limit / needed;
    return static_cast<std::size_t>(std::clamp<std::uint64_t>(runner_.get().width(), 1, possible));
  }

  /// Reads `bytes` of the segment's start; a source that ends early gives fewer.
  Status read_start(std::uint64_t bytes, std::vector<std::uint8_t>& out) {
    out.clear();
    if (at_ >= source_.size()) return {};
    QUERN_RETURN_IF_ERROR(source_.seek(at_));
    out.resize(static_cast<std::size_t>(std::min(bytes, source_.size() - at_)));
    QUERN_ASSIGN_OR_RETURN(const std::size_t have, read_up_to(source_, out));
    out.resize(have);
    return {};
  }

  Status read_head(std::uint64_t segment, Head& head) {
    head.segment = segment;
    QUERN_RETURN_IF_ERROR(read_start(kSegmentPrefixBytes, head.bytes));
    const auto size = read_segment_size(head.bytes, layout_, segment);
    const auto bytes = segment_head_bytes(head.bytes, layout_, segment);
    for (const Status& status : {size.status(), bytes.status()}) {
      if (status.code() == StatusCode::truncated)
        return Status(StatusCode::truncated, "segment {0}: the stream ends where it should begin",
                      static_cast<std::int64_t>(segment));
      QUERN_RETURN_IF_ERROR(status);
    }
    QUERN_RETURN_IF_ERROR(read_start(*bytes, head.bytes));
    at_ += *size;
    return {};
  }

  Status examine(Head& head) const {
    head.found = {};
    const auto parsed = std::make_unique<ParsedSegment>();
    parse_segment(head.bytes, layout_, {header_.checksum, head.segment}, *parsed);
    if (!parsed->head_intact) return parsed->status;
    for (std::size_t k = 0; k < parsed->count; ++k) {
      if (parsed->chunks[k].form == ChunkForm::masked) ++head.found.empty_chunks;
      if (parsed->chunks[k].form == ChunkForm::raw) ++head.found.raw_chunks;
    }
    if (parsed->mask.empty()) return {};
    head.found.mask_bytes = parsed->mask.size();
    head.found.masked_segments = 1;
    head.found.level_masks = mask::is_by_levels(parsed->mask, layout_.segment_box(head.segment).extents) ? 1 : 0;
    QUERN_ASSIGN_OR_RETURN(const mask::SegmentMask mask,
                           mask::decode_mask(parsed->mask, layout_.segment_box(head.segment).extents, header_.dtype,
                                             mask_limit_, last_form()));
    mask::with_words(header_.dtype,
                     [&](auto words) { count_kinds<decltype(words)>(mask, header_.fill_bits, head.found); });
    return {};
  }

  mask::MaskForm last_form() const { return mask::last_form(header_.may_have_mask_levels()); }

  void add(const MaskSurvey& found) {
    total_.nan_elems += found.nan_elems;
    total_.infinite_elems += found.infinite_elems;
    total_.fill_elems += found.fill_elems;
    total_.repeated_elems += found.repeated_elems;
    total_.mask_bytes += found.mask_bytes;
    total_.masked_segments += found.masked_segments;
    total_.level_masks += found.level_masks;
    total_.empty_chunks += found.empty_chunks;
    total_.raw_chunks += found.raw_chunks;
  }

  ByteSource& source_;
  const Execution& execution_;
  RunnerHandle runner_;
  std::uint64_t at_;  // where the next segment begins in the source
  Header header_;
  SegmentLayout layout_;
  std::uint64_t mask_limit_ = 0;
  MaskSurvey total_;
};

}  // namespace

Result<MaskSurvey> survey_masks(ByteSource& source, const Execution& execution, std::uint64_t offset) {
  if (!source.can_seek())
    return Status(StatusCode::unsupported, "a survey needs a source that can seek; this one cannot");
  try {
    return Survey(source, execution, offset).run();
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, "out of memory");
  }
}

}  // namespace quern
