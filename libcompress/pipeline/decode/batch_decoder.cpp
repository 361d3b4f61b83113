// The stages of a batch on its way back.
#include "libcompress/pipeline/decode/batch_decoder.h"

#include <algorithm>

#include "libcompress/core/run_tasks.h"
#include "libcompress/pipeline/boxes.h"
#include "libcompress/pipeline/pass_progress.h"

namespace quern {
namespace {

// What a hole is filled with.
std::uint64_t hole_bits(const Header& header) {
  if (!header.fill_bits.empty()) return header.fill_bits.front();
  switch (header.dtype) {
    case DType::f16: return 0x7E00;
    case DType::bf16: return 0x7FC0;
    case DType::f32: return 0x7FC00000;
    case DType::f64: return UINT64_C(0x7FF8000000000000);
    default: return 0;
  }
}

// The first segment is a full one, or all there is.
std::uint64_t mask_memory(const Header& header, const SegmentLayout& layout) {
  if (layout.segments() == 0) return 0;
  return mask::decode_bytes(layout.segment_box(0).extents, mask::last_form(header.may_have_mask_levels()));
}

std::uint64_t scratch_bytes_of(const ChunkDecoder* codec, const LevelTarget& target) {
  if (codec == nullptr) return 0;
  return target.level > 0 ? codec->level_scratch_bytes() : codec->scratch_bytes();
}

}  // namespace

BatchDecoder::BatchDecoder(const Header& header, const SegmentLayout& layout, const ChunkDecoder* codec,
                           bool keep_going, TaskRunner& runner)
    : BatchDecoder(header, layout, LevelTarget::whole(header.shape, layout), codec, keep_going, runner) {}

BatchDecoder::BatchDecoder(const Header& header, const SegmentLayout& layout, const LevelTarget& target,
                           const ChunkDecoder* codec, bool keep_going, TaskRunner& runner)
    : header_(header),
      layout_(layout),
      target_(target),
      codec_(codec),
      beside_(dynamic_cast<const ReferenceChunkDecoder*>(codec)),
      keep_going_(keep_going),
      runner_(runner),
      element_bytes_(dtype_bytes(header.dtype)),
      hole_bits_(hole_bits(header)),
      mask_limit_(mask_memory(header, layout)),
      scratch_(static_cast<std::size_t>(scratch_bytes_of(codec, target))) {}

std::uint64_t BatchDecoder::bytes_per_segment() const {
  if (layout_.segments() == 0) return 0;
  // Of a coarse level the mask of its points, too: classes and verbatim cells.
  const std::uint64_t points = target_.level > 0 ? target_.layout.max_segment_elems() : 0;
  return sizeof(SegmentJob) + max_segment_bytes(layout_, 0) + mask_limit_ + 9 * points;
}

std::uint64_t BatchDecoder::scratch_bytes() const {
  return std::min<std::uint64_t>(runner_.width(), layout_.chunks()) * scratch_bytes_of(codec_, target_);
}

MutableBox3 BatchDecoder::chunk_out(const SegmentJob& job, std::size_t k) const {
  const GridBox segment = target_.layout.segment_box(job.segment);
  const GridBox chunk = target_.layout.chunk_box(job.segment, k);
  const std::uint64_t at = (chunk.begin[0] - segment.begin[0]) * job.out.strides[0] +
                           (chunk.begin[1] - segment.begin[1]) * job.out.strides[1] +
                           (chunk.begin[2] - segment.begin[2]);
  return {static_cast<std::uint8_t*>(job.out.data) + at * element_bytes_, chunk.extents, job.out.strides};
}

ConstBox3 BatchDecoder::chunk_reference(const SegmentJob& job, std::size_t k) const {
  const GridBox segment = layout_.segment_box(job.segment);
  const GridBox chunk = layout_.chunk_box(job.segment, k);
  const std::uint64_t at = (chunk.begin[0] - segment.begin[0]) * job.reference.strides[0] +
                           (chunk.begin[1] - segment.begin[1]) * job.reference.strides[1] +
                           (chunk.begin[2] - segment.begin[2]);
  return {static_cast<const std::uint8_t*>(job.reference.data) + at * element_bytes_, chunk.extents,
          job.reference.strides};
}

void BatchDecoder::add_special(const SegmentJob& job, std::size_t k, MutableBox3& box) const {
  if (job.mask.empty()) return;
  const GridBox segment = layout_.segment_box(job.segment);
  const GridBox chunk = layout_.chunk_box(job.segment, k);
  box.special_strides = {segment.extents[1] * segment.extents[2], segment.extents[2]};
  box.special = job.mask.classes.data() + (chunk.begin[0] - segment.begin[0]) * box.special_strides[0] +
                (chunk.begin[1] - segment.begin[1]) * box.special_strides[1] + (chunk.begin[2] - segment.begin[2]);
}

// Of a segment read in part every chunk is checked by itself.
void BatchDecoder::check_beginnings(SegmentJob& job) const {
  ParsedSegment& parsed = job.parsed;
  parsed.status = {};
  std::uint64_t at = parsed.chunks_at;
  for (std::size_t k = 0; k < parsed.count; ++k) {
    const ChunkBeginning& beginning = job.beginnings[k];
    Status& status = parsed.chunk_status[k];
    status = {};
    const bool inside = at <= job.bytes.size() && beginning.bytes <= job.bytes.size() - at;
    if (inside)
      parsed.chunks[k].bytes =
          job.bytes.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(beginning.bytes));
    FormatFault what = FormatFault::none;
    if (!inside)
      what = FormatFault::chunk_cut;
    else if (parsed.chunks[k].form != ChunkForm::masked && level_check(parsed.chunks[k].bytes) != beginning.check)
      what = FormatFault::chunk_damaged;
    if (what != FormatFault::none) status = status_of({what, job.segment, layout_.first_chunk(job.segment) + k});
    if (parsed.status.ok()) parsed.status = status;
    at += beginning.bytes;
  }
}

Status BatchDecoder::check(SegmentJob& job) const {
  job.mask = {};
  job.level_mask = {};
  job.decoded = 0;
  if (job.in_part) {
    check_beginnings(job);
  } else {
    parse_segment(job.bytes, layout_, {header_.checksum, job.segment}, job.parsed);
  }
  ParsedSegment& parsed = job.parsed;
  if (!job.read_status.ok()) parsed.status = job.read_status;
  if (!parsed.status.ok() && !keep_going_) return parsed.status;
  if (parsed.head_intact && !parsed.mask.empty()) {
    const Status read = read_mask(job);
    if (!read.ok()) {
      if (!keep_going_) return read;
      parsed.head_intact = false;
      parsed.status = read;
    }
  }
  if (!parsed.head_intact)
    for (std::size_t k = 0; k < parsed.count; ++k) parsed.chunk_status[k] = parsed.status;
  return {};
}

Status BatchDecoder::read_mask(SegmentJob& job) const {
  const Index3 extents = layout_.segment_box(job.segment).extents;
  QUERN_ASSIGN_OR_RETURN(job.mask, mask::decode_mask(job.parsed.mask, extents, header_.dtype, mask_limit_,
                                                     mask::last_form(header_.may_have_mask_levels())));
  if (target_.level > 0)
    job.level_mask = pick_mask(job.mask, extents, target_.form, target_.layout.segment_box(job.segment).extents);
  return {};
}

Status BatchDecoder::decode_chunk(SegmentJob& job, std::size_t k) {
  const ChunkPiece& piece = job.parsed.chunks[k];
  MutableBox3 out = chunk_out(job, k);
  MutableBox3 chunk{nullptr, layout_.chunk_box(job.segment, k).extents, {}};
  switch (piece.form) {
    case ChunkForm::raw:
      if (target_.level > 0) {
        pick_points(piece.bytes.data(), chunk.extents, target_.form, element_bytes_, out);
      } else {
        scatter(piece.bytes.data(), element_bytes_, out);
      }
      return {};
    case ChunkForm::masked: fill_box(out, element_bytes_, 0); return {};
    case ChunkForm::coded: break;
  }
  if (codec_ == nullptr)
    return Status(StatusCode::corrupt, "segment {0}, chunk {1} is coded in a stream without a codec",
                  static_cast<std::int64_t>(job.segment),
                  static_cast<std::int64_t>(layout_.first_chunk(job.segment) + k));
  QUERN_ASSIGN_OR_RETURN(auto scratch, scratch_.lend());
  if (target_.level > 0) {
    add_special(job, k, chunk);
    return codec_->decode_level(piece.bytes, chunk, target_.level, out, scratch.span());
  }
  add_special(job, k, out);
  if (check_faults_) return decode_without_faults(job, k, out, scratch.span());
  if (beside_ != nullptr && job.reference.data != nullptr)
    return beside_->decode_beside(piece.bytes, chunk_reference(job, k), out, scratch.span());
  return codec_->decode(piece.bytes, out, scratch.span());
}

Status BatchDecoder::finish(SegmentJob& job) const {
  if (check_faults_) QUERN_RETURN_IF_ERROR(find_faults(job));
  const mask::SegmentMask& mask = target_.level > 0 ? job.level_mask : job.mask;
  if (!mask.empty())
    QUERN_RETURN_IF_ERROR(mask::restore_specials(job.out, header_.dtype, mask, job.out.extents, {0, 0, 0}));
  for (std::size_t k = 0; k < job.parsed.count; ++k)
    if ((job.wanted >> k & 1) != 0 && !job.parsed.chunk_status[k].ok())
      fill_box(chunk_out(job, k), element_bytes_, hole_bits_);
  return {};
}

void BatchDecoder::list_holes(const SegmentJob& job, Vector<Hole>& holes) const {
  for (std::size_t k = 0; k < job.parsed.count; ++k) {
    if ((job.wanted >> k & 1) == 0 || job.parsed.chunk_status[k].ok()) continue;
    const GridBox box = layout_.chunk_box(job.segment, k);
    holes.push_back(
        {job.segment, layout_.first_chunk(job.segment) + k, box.begin, box.extents, job.parsed.chunk_status[k]});
  }
}

Status BatchDecoder::decode(std::span<SegmentJob> jobs, Vector<Hole>& holes) {
  std::size_t intact = jobs.size();
  const Status failed = run_tasks(
      runner_, jobs.size(), [&](std::size_t i) { return check(jobs[i]); }, &intact);
  // What comes before a damaged segment may fail too, and comes first then: the size of the batch must not show.
  QUERN_RETURN_IF_ERROR(decode_checked(jobs.first(intact), holes));
  return failed;
}

Status BatchDecoder::decode_by_batch(std::span<SegmentJob> jobs) {
  Vector<CheckedChunk> chunks;
  const auto for_chunks = [&](const auto& visit) {
    for (SegmentJob& job : jobs)
      for (std::size_t k = 0; k < job.parsed.count; ++k)
        if ((job.wanted >> k & 1) != 0 && job.parsed.chunk_status[k].ok() &&
            job.parsed.chunks[k].form == ChunkForm::coded)
          visit(job, k);
  };
  for_chunks([&](const SegmentJob& job, std::size_t k) {
    CheckedChunk& chunk = chunks.emplace_back();
    chunk.bytes = job.parsed.chunks[k].bytes;
    chunk.out = chunk_out(job, k);
    add_special(job, k, chunk.out);
  });
  QUERN_RETURN_IF_ERROR(batch_->decode_chunks(chunks));
  std::size_t next = 0;
  for_chunks([&](SegmentJob& job, std::size_t k) {
    job.decoded |= static_cast<std::uint64_t>(chunks[next++].done ? 1 : 0) << k;
  });
  return {};
}

Status BatchDecoder::decode_checked(std::span<SegmentJob> jobs, Vector<Hole>& holes) {
  if (batch_ != nullptr) QUERN_RETURN_IF_ERROR(decode_by_batch(jobs));
  QUERN_RETURN_IF_ERROR(run_tasks(runner_, jobs.size() * kMaxSegmentChunks, [&](std::size_t i) -> Status {
    SegmentJob& job = jobs[i / kMaxSegmentChunks];
    const std::size_t k = i % kMaxSegmentChunks;
    if (k >= job.parsed.count || (job.wanted >> k & 1) == 0 || !job.parsed.chunk_status[k].ok()) return {};
    if ((job.decoded >> k & 1) != 0) return {};
    if (progress_ != nullptr && !progress_->begin_chunk()) return Status(StatusCode::cancelled, "cancelled");
    job.parsed.chunk_status[k] = decode_chunk(job, k);
    if (progress_ != nullptr) progress_->end_chunk(target_.layout.chunk_box(job.segment, k).elems());
    return keep_going_ ? Status() : job.parsed.chunk_status[k];
  }));
  QUERN_RETURN_IF_ERROR(run_tasks(runner_, jobs.size(), [&](std::size_t i) { return finish(jobs[i]); }));
  if (keep_going_)
    for (const SegmentJob& job : jobs) list_holes(job, holes);
  return {};
}

}  // namespace quern
