// Segments held against the array after they were put together, where a codec asks for it: what a hardware fault
// has changed is encoded once more by other instructions, and fails the call when it is changed again.
#include <algorithm>

#include "libcompress/pipeline/boxes.h"
#include "libcompress/pipeline/encode/batch_encoder.h"

namespace quern {
namespace {

Status fault_in_chunk(std::uint64_t chunk, std::uint64_t part) {
  return Status(StatusCode::hardware_fault,
                "chunk {0}, tile {1}: a hardware fault changed what was encoded, and changed it again in the "
                "second attempt; nothing of this call can be relied on",
                static_cast<std::int64_t>(chunk), static_cast<std::int64_t>(part));
}

Status fault_in_segment(std::uint64_t segment) {
  return Status(StatusCode::hardware_fault,
                "segment {0}: a hardware fault changed its table, mask or checksum, and changed it again in the "
                "second attempt; nothing of this call can be relied on",
                static_cast<std::int64_t>(segment));
}

}  // namespace

Status BatchEncoder::assemble_without_faults(Slot& slot, std::uint64_t segment, const ArrayWindow& window) {
  QUERN_RETURN_IF_ERROR(assemble(slot, segment, window));
  if (find_faults(slot, segment, window).ok()) return {};
  QUERN_RETURN_IF_ERROR(encode_otherwise(slot, segment, window));
  QUERN_RETURN_IF_ERROR(assemble(slot, segment, window));
  return find_faults(slot, segment, window);
}

/// Everything from the caller's values on: the working copy may be what a fault has changed.
Status BatchEncoder::encode_otherwise(Slot& slot, std::uint64_t segment, const ArrayWindow& window) {
  QUERN_RETURN_IF_ERROR(find_mask(slot, segment, window));
  for (std::size_t k = 0; k < slot.count; ++k) {
    if (slot.all_masked[k]) {
      slot.pieces[k] = {ChunkForm::masked, {}, chunk_check({})};
      continue;
    }
    QUERN_ASSIGN_OR_RETURN(auto scratch, scratch_.lend());
    QUERN_ASSIGN_OR_RETURN(
        const std::size_t bytes,
        setup_.encoder->encode_otherwise(chunk_input(slot, segment, k, window), chunk_place(slot, k), scratch.span()));
    QUERN_RETURN_IF_ERROR(keep_coded(slot, segment, k, bytes, window));
  }
  return {};
}

/// The assembled bytes are what is read: a fault before this call shows in them, one behind it shows in the checksum,
/// which is compared here first.
Status BatchEncoder::find_faults(Slot& slot, std::uint64_t segment, const ArrayWindow& window) {
  ParsedSegment parsed;
  parse_segment(slot.out, setup_.layout, {setup_.header.checksum, segment}, parsed);
  if (!parsed.status.ok() || parsed.count != slot.count) return fault_in_segment(segment);
  QUERN_ASSIGN_OR_RETURN(auto scratch, scratch_.lend());
  for (std::size_t k = 0; k < parsed.count; ++k) {
    const ChunkPiece& piece = parsed.chunks[k];
    const std::uint64_t chunk = setup_.layout.first_chunk(segment) + k;
    if (piece.form == ChunkForm::coded) {
      const auto part = setup_.encoder->find_fault(chunk_input(slot, segment, k, window), piece.bytes, scratch.span());
      if (part) return fault_in_chunk(chunk, *part);
    } else if (piece.form == ChunkForm::raw) {
      const ConstBox3 user = user_box(setup_.layout.chunk_box(segment, k), window);
      if (!same_bytes(user, element_bytes_, piece.bytes.data())) return fault_in_chunk(chunk, 0);
    }
  }
  return find_mask_fault(slot, segment, parsed.mask, window);
}

/// Chunks hold the working copy; with the special values of the stored mask it must be the caller's segment.
Status BatchEncoder::find_mask_fault(Slot& slot, std::uint64_t segment, std::span<const std::uint8_t> stored,
                                     const ArrayWindow& window) const {
  const bool coded = std::any_of(slot.pieces.begin(), slot.pieces.begin() + static_cast<std::ptrdiff_t>(slot.count),
                                 [](const ChunkPiece& piece) { return piece.form != ChunkForm::raw; });
  if (!coded || (slot.mask.empty() && stored.empty())) return {};
  if (slot.mask.empty() || stored.empty()) return fault_in_segment(segment);
  const GridBox box = setup_.layout.segment_box(segment);
  const mask::MaskForm form = mask::last_form(setup_.header.may_have_mask_levels());
  const std::uint64_t most = mask::decode_bytes(box.extents, form);
  const auto mask = mask::decode_mask(stored, box.extents, setup_.header.dtype, most, form);
  if (!mask.ok()) return fault_in_segment(segment);
  const MutableBox3 copy{slot.copy.data(), box.extents, {box.extents[1] * box.extents[2], box.extents[2]}};
  QUERN_RETURN_IF_ERROR(mask::restore_specials(copy, setup_.header.dtype, *mask, box.extents, {0, 0, 0}));
  return same_bytes(user_box(box, window), element_bytes_, slot.copy.data()) ? Status() : fault_in_segment(segment);
}

}  // namespace quern
