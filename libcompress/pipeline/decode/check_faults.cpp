// What was decoded, held against its segment once more, where the caller asks for it.
#include "libcompress/pipeline/boxes.h"
#include "libcompress/pipeline/decode/batch_decoder.h"

namespace quern {
namespace {

ConstBox3 as_const(const MutableBox3& box) {
  return {box.data, box.extents, box.strides, box.special, box.special_strides};
}

Status fault_in_chunk(std::uint64_t chunk, std::uint64_t part) {
  return Status(StatusCode::hardware_fault,
                "chunk {0}, tile {1}: a hardware fault changed what was decoded, and changed it again in the "
                "second attempt; nothing of this call can be relied on",
                static_cast<std::int64_t>(chunk), static_cast<std::int64_t>(part));
}

}  // namespace

Status BatchDecoder::decode_without_faults(const SegmentJob& job, std::size_t k, const MutableBox3& out,
                                           std::span<std::uint8_t> scratch) const {
  const std::span<const std::uint8_t> bytes = job.parsed.chunks[k].bytes;
  // Where the values lie is worked out again: a fault may have changed what `decode` was told.
  const auto place = [&] {
    MutableBox3 box = chunk_out(job, k);
    add_special(job, k, box);
    return box;
  };
  const auto find_fault = [&] { return codec_->find_fault(bytes, as_const(place()), scratch); };
  if (codec_->decode(bytes, out, scratch).ok() && !find_fault()) return {};
  QUERN_RETURN_IF_ERROR(codec_->decode_otherwise(bytes, place(), scratch));
  const auto part = find_fault();
  return part ? fault_in_chunk(layout_.first_chunk(job.segment) + k, *part) : Status();
}

/// Comes behind the comparison of the values: what changed in the stored bytes before it shows in their checksum now.
/// Raw chunks are compared here, and the mask is decoded again.
Status BatchDecoder::find_faults(const SegmentJob& job) const {
  const Status fault(StatusCode::hardware_fault, "segment {0}: a hardware fault changed it while it was decoded",
                     static_cast<std::int64_t>(job.segment));
  if (!job.parsed.status.ok()) return {};  // known to be damaged
  ParsedSegment again;
  parse_segment(job.bytes, layout_, {header_.checksum, job.segment}, again);
  if (!again.status.ok() || again.count != job.parsed.count) return fault;
  for (std::size_t k = 0; k < again.count; ++k) {
    if ((job.wanted >> k & 1) == 0) continue;
    const ChunkPiece& piece = again.chunks[k];
    if (piece.form != job.parsed.chunks[k].form) return fault;
    if (piece.form == ChunkForm::raw && !same_bytes(as_const(chunk_out(job, k)), element_bytes_, piece.bytes.data()))
      return fault;
  }
  if (again.mask.empty()) return job.mask.empty() ? Status() : fault;
  QUERN_ASSIGN_OR_RETURN(const mask::SegmentMask mask,
                         mask::decode_mask(again.mask, layout_.segment_box(job.segment).extents, header_.dtype,
                                           mask_limit_, mask::last_form(header_.may_have_mask_levels())));
  return mask == job.mask ? Status() : fault;
}

}  // namespace quern
