// The three stages of a batch.
#include "libcompress/pipeline/encode/batch_encoder.h"

#include <algorithm>
#include <cstring>

#include "libcompress/core/run_tasks.h"
#include "libcompress/pipeline/boxes.h"
#include "libcompress/pipeline/pass_progress.h"

namespace quern {
namespace {

constexpr std::size_t kPlaceAlign = 64;
constexpr std::uint64_t kScanElems = UINT64_C(1) << 18;  // of a part of a segment that one task scans
constexpr std::uint64_t kWorthLeaving = 4096;            // bytes of a chunk that make a cut before them worth its entry

std::size_t place_size(const StreamSetup& setup) {
  std::size_t bytes = static_cast<std::size_t>(setup.layout.full_chunk_bytes());
  if (setup.encoder != nullptr) bytes = std::max(bytes, setup.encoder->max_chunk_bytes());
  return (bytes + kPlaceAlign - 1) / kPlaceAlign * kPlaceAlign;
}

GridBox relative(const GridBox& box, const GridBox& origin) {
  GridBox out = box;
  for (std::size_t a = 0; a < 3; ++a) out.begin[a] -= origin.begin[a];
  return out;
}

}  // namespace

BatchEncoder::BatchEncoder(const StreamSetup& setup, const CompressOptions& options, TaskRunner& runner)
    : setup_(setup),
      options_(options),
      runner_(runner),
      element_bytes_(dtype_bytes(setup.header.dtype)),
      place_bytes_(place_size(setup)),
      scratch_(setup.encoder != nullptr ? setup.encoder->scratch_bytes() : 0) {}

std::uint64_t BatchEncoder::bytes_per_segment() const {
  const SegmentLayout& layout = setup_.layout;
  if (layout.segments() == 0) return 0;
  const std::uint64_t elems = layout.max_segment_elems();
  // Chunk places, assembled bytes, working copy, one class byte a cell.
  return sizeof(Slot) + layout.segment_chunks(0) * place_bytes_ + max_segment_bytes(layout, 0) +
         elems * (element_bytes_ + 1);
}

std::uint64_t BatchEncoder::scratch_bytes() const {
  return setup_.encoder != nullptr ? runner_.width() * setup_.encoder->scratch_bytes() : 0;
}

ConstBox3 BatchEncoder::user_box(const GridBox& box, const ArrayWindow& window) const {
  const auto& extents = setup_.layout.grid().extents;
  return {window.data + (setup_.layout.flat(box.begin) - window.begin) * element_bytes_,
          box.extents,
          {extents[1] * extents[2], extents[2]}};
}

ConstBox3 BatchEncoder::reference_box(const GridBox& box) const {
  return user_box(box, {static_cast<const std::uint8_t*>(setup_.reference.data), 0});
}

std::span<std::uint8_t> BatchEncoder::chunk_place(Slot& slot, std::size_t k) const {
  return slot.chunks.span().subspan(k * place_bytes_, place_bytes_);
}

// Segments are large and few: each is scanned by all threads.
Status BatchEncoder::scan_values(std::uint64_t first, std::size_t count, const ArrayWindow& window) {
  if (setup_.encoder == nullptr) return {};
  struct Part {
    std::size_t slot;
    ConstBox3 box;
    kernels::ScanCounts found;
  };
  Vector<Part> parts;
  for (std::size_t i = 0; i < count; ++i) {
    const ConstBox3 whole = user_box(setup_.layout.segment_box(first + i), window);
    const std::size_t axis = whole.extents[0] > 1 ? 0 : 1;
    const std::uint64_t end = whole.extents[axis];
    const std::uint64_t row_elems = std::max<std::uint64_t>(whole.elems() / std::max<std::uint64_t>(end, 1), 1);
    const std::uint64_t step = (kScanElems / row_elems / mask::kScanRows + 1) * mask::kScanRows;
    for (std::uint64_t at = 0; at < end; at += step) {
      Part part{i, whole, {}};
      part.box.data = static_cast<const std::uint8_t*>(whole.data) + at * whole.strides[axis] * element_bytes_;
      part.box.extents[axis] = std::min(step, end - at);
      parts.push_back(part);
    }
  }
  QUERN_RETURN_IF_ERROR(run_tasks(runner_, parts.size(), [&](std::size_t i) -> Status {
    QUERN_ASSIGN_OR_RETURN(parts[i].found,
                           mask::scan(parts[i].box, setup_.header.dtype, options_.fill_bits, setup_.all_ordinary));
    return {};
  }));
  for (std::size_t i = 0; i < count; ++i) slots_[i].scan = {};
  for (const Part& part : parts) {
    kernels::ScanCounts& sum = slots_[part.slot].scan;
    sum.any_mandatory |= part.found.any_mandatory;
    sum.negative_zeros += part.found.negative_zeros;
    sum.equal_pairs += part.found.equal_pairs;
  }
  return {};
}

Status BatchEncoder::find_mask(Slot& slot, std::uint64_t segment, const ArrayWindow& window) const {
  slot.count = static_cast<std::size_t>(setup_.layout.segment_chunks(segment));
  slot.mask = {};
  slot.mask_bytes.clear();
  slot.all_masked.fill(false);
  QUERN_RETURN_IF_ERROR(slot.chunks.resize(slot.count * place_bytes_));
  if (setup_.encoder == nullptr) return {};  // raw chunks hold special values as they are
  const GridBox box = setup_.layout.segment_box(segment);
  const ConstBox3 user = user_box(box, window);
  const mask::Views views = setup_.mask_views.all();
  const mask::MaskForm form = mask::last_form(setup_.header.may_have_mask_levels());
  const mask::RepeatedRule rule{options_.find_repeated, setup_.header.enforced, views, form};
  QUERN_ASSIGN_OR_RETURN(slot.mask,
                         mask::find_specials(user, setup_.header.dtype, options_.fill_bits, rule, slot.scan));
  if (slot.mask.empty()) return {};
  QUERN_RETURN_IF_ERROR(mask::encode_mask(slot.mask, box.extents, setup_.header.dtype, slot.mask_bytes, views, form));
  QUERN_RETURN_IF_ERROR(slot.copy.resize(box.elems() * element_bytes_));
  gather(user, element_bytes_, slot.copy.data());
  const std::array<std::uint64_t, 2> strides{box.extents[1] * box.extents[2], box.extents[2]};
  QUERN_RETURN_IF_ERROR(mask::fill_gaps({slot.copy.data(), box.extents, strides}, setup_.header.dtype, slot.mask));
  mark_masked_chunks(slot, segment);
  return {};
}

void BatchEncoder::mark_masked_chunks(Slot& slot, std::uint64_t segment) const {
  const GridBox box = setup_.layout.segment_box(segment);
  for (std::size_t k = 0; k < slot.count; ++k) {
    const GridBox chunk = relative(setup_.layout.chunk_box(segment, k), box);
    const std::uint64_t origin = (chunk.begin[0] * box.extents[1] + chunk.begin[1]) * box.extents[2] + chunk.begin[2];
    bool all = true;
    for_each_row(chunk.extents, {box.extents[1] * box.extents[2], box.extents[2]},
                 [&](std::uint64_t strided, std::uint64_t) {
                   const std::uint8_t* row = slot.mask.classes.data() + origin + strided;
                   all = all && std::memchr(row, 0, static_cast<std::size_t>(chunk.extents[2])) == nullptr;
                 });
    slot.all_masked[k] = all;
  }
}

void BatchEncoder::store_raw(Slot& slot, std::uint64_t segment, std::size_t k, const ArrayWindow& window) const {
  const GridBox box = setup_.layout.chunk_box(segment, k);
  const auto place = chunk_place(slot, k).first(static_cast<std::size_t>(box.elems() * element_bytes_));
  gather(user_box(box, window), element_bytes_, place.data());
  slot.pieces[k] = {ChunkForm::raw, place, chunk_check(place)};
}

// Where the chunk may end for readers of coarse levels; nowhere if that saves them little.
Status BatchEncoder::cut_levels(Slot& slot, std::size_t k, const GridBox& box) const {
  QUERN_ASSIGN_OR_RETURN(const auto cuts, setup_.encoder->level_cuts(slot.pieces[k].bytes, box.extents));
  LevelCuts& out = slot.cuts[k];
  std::uint64_t end = slot.pieces[k].bytes.size();
  while (out.count < std::min(cuts.size(), out.bytes.size())) {
    const std::uint64_t cut = cuts[cuts.size() - 1 - out.count];
    if (end - cut < kWorthLeaving) break;
    out.bytes[out.count++] = end = cut;
  }
  std::reverse(out.bytes.begin(), out.bytes.begin() + static_cast<std::ptrdiff_t>(out.count));
  return {};
}

ConstBox3 BatchEncoder::chunk_input(const Slot& slot, std::uint64_t segment, std::size_t k,
                                    const ArrayWindow& window) const {
  const GridBox box = setup_.layout.chunk_box(segment, k);
  ConstBox3 in = user_box(box, window);
  if (slot.mask.empty()) return in;
  const GridBox whole = setup_.layout.segment_box(segment);
  const Index3 at = relative(box, whole).begin;
  const std::uint64_t origin = (at[0] * whole.extents[1] + at[1]) * whole.extents[2] + at[2];
  in.data = slot.copy.data() + origin * element_bytes_;
  in.strides = {whole.extents[1] * whole.extents[2], whole.extents[2]};
  in.special = slot.mask.classes.data() + origin;
  in.special_strides = in.strides;
  return in;
}

Status BatchEncoder::keep_coded(Slot& slot, std::uint64_t segment, std::size_t k, std::size_t bytes,
                                const ArrayWindow& window) const {
  if (bytes > setup_.encoder->max_chunk_bytes() || bytes == 0)
    return Status(StatusCode::internal, "the codec wrote {0} bytes for a chunk, at most {1} being announced",
                  static_cast<std::int64_t>(bytes), static_cast<std::int64_t>(setup_.encoder->max_chunk_bytes()));
  const GridBox box = setup_.layout.chunk_box(segment, k);
  if (bytes >= box.elems() * element_bytes_) {
    store_raw(slot, segment, k, window);
    return {};
  }
  const auto place = chunk_place(slot, k).first(bytes);
  slot.pieces[k] = {ChunkForm::coded, place, chunk_check(place)};
  return setup_.layout.has_level_tables() ? cut_levels(slot, k, box) : Status();
}

Status BatchEncoder::encode_chunk(Slot& slot, std::uint64_t segment, std::size_t k, const ArrayWindow& window) {
  slot.cuts[k].count = 0;
  if (slot.all_masked[k]) {
    slot.pieces[k] = {ChunkForm::masked, {}, chunk_check({})};
    return {};
  }
  if (setup_.encoder == nullptr) {
    store_raw(slot, segment, k, window);
    return {};
  }
  QUERN_ASSIGN_OR_RETURN(auto scratch, scratch_.lend());
  const ConstBox3 in = chunk_input(slot, segment, k, window);
  const auto place = chunk_place(slot, k);
  const auto encode = [&]() -> Result<std::size_t> {
    if (setup_.parted == nullptr && setup_.beside == nullptr) return setup_.encoder->encode(in, place, scratch.span());
    const ConstBox3 reference =
        setup_.beside == nullptr ? ConstBox3() : reference_box(setup_.layout.chunk_box(segment, k));
    if (setup_.parted == nullptr) return setup_.beside->encode_beside(in, reference, place, scratch.span());
    return setup_.parted->encode_numbered(setup_.layout.first_chunk(segment) + k, in,
                                          setup_.beside == nullptr ? nullptr : &reference, place, scratch.span());
  };
  QUERN_ASSIGN_OR_RETURN(const std::size_t bytes, encode());
  return keep_coded(slot, segment, k, bytes, window);
}

/// Offers all chunks that are to be coded to the batch, and keeps what it made of them.
Status BatchEncoder::encode_by_batch(std::uint64_t first, std::size_t count, const ArrayWindow& window) {
  for (std::size_t i = 0; i < count; ++i) slots_[i].encoded.fill(false);
  if (batch_ == nullptr || setup_.encoder == nullptr) return {};
  struct Place {
    std::size_t slot;
    std::size_t k;
  };
  Vector<Place> places;
  Vector<ChunkToEncode> chunks;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < slots_[i].count; ++k) {
      if (slots_[i].all_masked[k]) continue;
      places.push_back({i, k});
      ChunkToEncode& chunk = chunks.emplace_back();
      chunk.in = chunk_input(slots_[i], first + i, k, window);
      chunk.place = chunk_place(slots_[i], k);
    }
  }
  QUERN_RETURN_IF_ERROR(batch_->encode_chunks(chunks));
  return run_tasks(runner_, chunks.size(), [&](std::size_t i) -> Status {
    Slot& slot = slots_[places[i].slot];
    const std::size_t k = places[i].k;
    if (chunks[i].state == ChunkToEncode::State::left) return {};
    slot.encoded[k] = true;
    slot.cuts[k].count = 0;
    if (chunks[i].state == ChunkToEncode::State::coded)
      return keep_coded(slot, first + places[i].slot, k, chunks[i].bytes, window);
    store_raw(slot, first + places[i].slot, k, window);
    return {};
  });
}

Status BatchEncoder::assemble(Slot& slot, std::uint64_t segment, const ArrayWindow& window) const {
  std::uint64_t payload = slot.mask_bytes.size();
  for (std::size_t k = 0; k < slot.count; ++k) payload += slot.pieces[k].bytes.size();
  const std::uint64_t raw = setup_.layout.segment_box(segment).elems() * element_bytes_;
  slot.level_table.clear();
  const bool has_cuts = std::any_of(slot.cuts.begin(), slot.cuts.begin() + static_cast<std::ptrdiff_t>(slot.count),
                                    [](const LevelCuts& cuts) { return cuts.count > 0; });
  if (has_cuts) {
    put_level_table({slot.pieces.data(), slot.count}, {slot.cuts.data(), slot.count}, slot.level_table);
    if (payload + slot.level_table.size() > raw) slot.level_table.clear();
  }
  if (payload > raw) {
    // The mask does not pay: raw chunks hold special values as they are.
    slot.mask_bytes.clear();
    for (std::size_t k = 0; k < slot.count; ++k)
      if (slot.pieces[k].form != ChunkForm::raw) store_raw(slot, segment, k, window);
  }
  assemble_segment(setup_.layout, {setup_.header.checksum, segment}, slot.mask_bytes, {slot.pieces.data(), slot.count},
                   slot.out, slot.level_table);
  return {};
}

Status BatchEncoder::encode(std::uint64_t first, std::size_t count, const ArrayWindow& window) {
  if (slots_.size() < count) slots_.resize(count);
  QUERN_RETURN_IF_ERROR(scan_values(first, count, window));
  QUERN_RETURN_IF_ERROR(
      run_tasks(runner_, count, [&](std::size_t i) { return find_mask(slots_[i], first + i, window); }));
  QUERN_RETURN_IF_ERROR(encode_by_batch(first, count, window));
  QUERN_RETURN_IF_ERROR(run_tasks(runner_, count * kMaxSegmentChunks, [&](std::size_t i) -> Status {
    Slot& slot = slots_[i / kMaxSegmentChunks];
    const std::size_t k = i % kMaxSegmentChunks;
    if (k >= slot.count || slot.encoded[k]) return {};
    const std::uint64_t segment = first + i / kMaxSegmentChunks;
    if (progress_ != nullptr && !progress_->begin_chunk()) return Status(StatusCode::cancelled, "cancelled");
    const Status status = encode_chunk(slot, segment, k, window);
    if (progress_ != nullptr) progress_->end_chunk(setup_.layout.chunk_box(segment, k).elems());
    return status;
  }));
  // No chunk is left: assembled segments take memory in their turn.
  if (first + count == setup_.layout.segments()) scratch_.clear();
  return run_tasks(runner_, count, [&](std::size_t i) {
    const bool checked = setup_.encoder != nullptr && setup_.encoder->checks_faults();
    return checked ? assemble_without_faults(slots_[i], first + i, window) : assemble(slots_[i], first + i, window);
  });
}

std::uint64_t BatchEncoder::raw_chunks(std::size_t i) const {
  const Slot& slot = slots_[i];
  return static_cast<std::uint64_t>(
      std::count_if(slot.pieces.begin(), slot.pieces.begin() + static_cast<std::ptrdiff_t>(slot.count),
                    [](const ChunkPiece& piece) { return piece.form == ChunkForm::raw; }));
}

}  // namespace quern
