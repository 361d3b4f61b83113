// Chunks of several parts to bytes: the number of the first part, sizes of all inner chunks, inner chunks.
#include "codecs/stencil/parts/parted_encoder.h"

#include <algorithm>
#include <new>
#include <utility>

#include <quern/parts.h>

#include "codecs/stencil/parts/dense_box.h"
#include "codecs/stencil/plan/sample_block.h"
#include "codecs/stencil/reference_chunk.h"
#include "libcompress/format/writer.h"

namespace quern::codec::stencil {
namespace {

constexpr std::size_t kMostNumberBytes = 2;  // of a varint below kMostParts
static_assert(kMostParts <= UINT64_C(1) << (7 * kMostNumberBytes));
constexpr std::size_t kSizeBytes = sizeof(std::uint32_t);

class PartedEncoder : public ChunkEncoder, public PartedChunkEncoder {
 public:
  PartedEncoder(const Shape& array, const Partition& partition, Vector<std::uint8_t> params, Vector<PartEncoding> parts)
      : parts_(std::move(parts)), beside_(partition.reference.has_value()) {
    plan_.grid = partition_grid(array, partition.chunk_slices);
    plan_.params = std::move(params);
    places_ = place_parts(array, partition.parts);
    for (std::size_t i = 0; i < places_.size(); ++i)
      if (places_[i].begin % partition.chunk_slices == 0) firsts_.push_back(i);
    measure();
  }

  const CodecPlan& plan() const override { return plan_; }
  std::size_t max_chunk_bytes() const override { return max_chunk_bytes_; }
  std::size_t scratch_bytes() const override { return scratch_bytes_; }

  /// Of the only chunk; the elements alone do not tell which parts one of several has.
  Result<std::size_t> encode(const ConstBox3& in, std::span<std::uint8_t> out,
                             std::span<std::uint8_t> scratch) const override {
    if (firsts_.size() != 1) return Status(StatusCode::internal, "a chunk of parts is encoded without its number");
    return encode_numbered(0, in, nullptr, out, scratch);
  }

  Result<std::size_t> encode_numbered(std::uint64_t number, const ConstBox3& in, const ConstBox3* reference,
                                      std::span<std::uint8_t> out, std::span<std::uint8_t> scratch) const override {
    if (number >= firsts_.size() || in.extents[1] != plan_.grid.extents[1] || in.extents[2] != plan_.grid.extents[2])
      return Status(StatusCode::invalid_argument, "box is no chunk of the plan");
    const std::size_t first = firsts_[number];
    if (in.extents[0] != places_[last_of(number)].end() - places_[first].begin)
      return Status(StatusCode::invalid_argument, "box is no chunk of the plan");
    if (out.size() < max_chunk_bytes()) return Status(StatusCode::destination_too_small, "chunk buffer is too small");
    if (scratch.size() < scratch_bytes()) return Status(StatusCode::invalid_argument, "scratch is too small");
    try {
      return encode_parts(number, in, beside_ ? reference : nullptr, out, scratch);
    } catch (const std::bad_alloc&) {
      return Status(StatusCode::out_of_memory, "stencil: out of memory while encoding");
    }
  }

 private:
  std::size_t last_of(std::uint64_t number) const {
    return number + 1 < firsts_.size() ? firsts_[number + 1] - 1 : places_.size() - 1;
  }

  void measure() {
    std::uint64_t most_chunks = 0;
    std::size_t trial = 0;
    for (std::uint64_t k = 0; k < firsts_.size(); ++k) {
      std::uint64_t chunks = 0;
      for (std::size_t i = firsts_[k]; i <= last_of(k); ++i) chunks += places_[i].chunks();
      most_chunks = std::max(most_chunks, chunks);
    }
    for (const PartEncoding& part : parts_) {
      trial = std::max(trial, stencil::max_chunk_bytes(part.spec));
      scratch_bytes_ =
          std::max(scratch_bytes_, beside_ ? encode_beside_scratch_bytes(part.spec) : encode_scratch_bytes(part.spec));
    }
    // An inner chunk ends as no more than a mode and its elements; one at a time takes what trials need.
    const std::uint64_t raw =
        plan_.grid.chunk[0] * plan_.grid.chunk[1] * plan_.grid.chunk[2] * dtype_bytes(parts_[0].spec.dtype);
    max_chunk_bytes_ = kMostNumberBytes + static_cast<std::size_t>(most_chunks * (kSizeBytes + 1) + raw) + trial;
  }

  Result<std::size_t> encode_parts(std::uint64_t number, const ConstBox3& in, const ConstBox3* reference,
                                   std::span<std::uint8_t> out, std::span<std::uint8_t> scratch) const {
    const std::size_t width = dtype_bytes(parts_[0].spec.dtype);
    AlignedBuffer rooms[3];
    QUERN_ASSIGN_OR_RETURN(const std::uint8_t* const data,
                           dense_elements(in.data, in.extents, in.strides, width, rooms[0]));
    QUERN_ASSIGN_OR_RETURN(const std::uint8_t* const special,
                           dense_elements(in.special, in.extents, in.special_strides, 1, rooms[1]));
    const std::uint8_t* given = nullptr;
    if (reference != nullptr) {
      QUERN_ASSIGN_OR_RETURN(given,
                             dense_elements(reference->data, reference->extents, reference->strides, width, rooms[2]));
    }
    Vector<std::uint8_t> head;
    Writer writer(head);
    writer.varint(firsts_[number]);
    std::size_t at = head.size();
    for (std::size_t i = firsts_[number]; i <= last_of(number); ++i)
      at += static_cast<std::size_t>(places_[i].chunks()) * kSizeBytes;
    const std::uint64_t slice = in.extents[1] * in.extents[2];
    std::uint64_t done = 0;
    for (std::size_t i = firsts_[number]; i <= last_of(number); ++i) {
      const PartPlace& place = places_[i];
      const std::uint64_t elems = place.part.slices * slice;
      // A part without a special element is coded as if the segment had no mask.
      const std::uint8_t* const marks =
          any_special(special == nullptr ? nullptr : special + done, elems) ? special + done : nullptr;
      for (std::uint64_t c = 0; c < place.chunks(); ++c) {
        const ConstBox3 box = chunk_of_array(place.grid, c, data + done * width, width, marks);
        std::size_t bytes = 0;
        if (!all_special(box)) {
          const ConstBox3 before =
              given == nullptr ? ConstBox3() : chunk_of_array(place.grid, c, given + done * width, width, nullptr);
          QUERN_ASSIGN_OR_RETURN(
              bytes, encode_inner(parts_[i], box, given == nullptr ? nullptr : &before, out.subspan(at), scratch));
        }
        writer.u32(static_cast<std::uint32_t>(bytes));
        at += bytes;
      }
      done += elems;
    }
    std::copy(head.begin(), head.end(), out.begin());
    return at;
  }

  static Result<std::size_t> encode_inner(const PartEncoding& part, const ConstBox3& box, const ConstBox3* reference,
                                          std::span<std::uint8_t> out, std::span<std::uint8_t> scratch) {
    if (reference != nullptr) return encode_chunk_beside(part.spec, box, *reference, out, scratch);
    if (part.encoded) {
      const std::span<const std::uint8_t> made = part.encoded->find(box);
      std::copy(made.begin(), made.end(), out.begin());
      if (!made.empty()) return made.size();
    }
    return encode_chunk(part.spec, box, out, scratch);
  }

  CodecPlan plan_;
  Vector<PartEncoding> parts_;
  Vector<PartPlace> places_;
  Vector<std::size_t> firsts_;  ///< the first part of each chunk
  bool beside_;
  std::size_t max_chunk_bytes_ = 0;
  std::size_t scratch_bytes_ = 0;
};

class BesidePartedEncoder final : public PartedEncoder, public ReferenceChunkEncoder {
 public:
  using PartedEncoder::PartedEncoder;
  Result<std::size_t> encode_beside(const ConstBox3& in, const ConstBox3& reference, std::span<std::uint8_t> out,
                                    std::span<std::uint8_t> scratch) const override {
    if (plan().grid.counts()[0] != 1)
      return Status(StatusCode::internal, "a chunk of parts is encoded without its number");
    return encode_numbered(0, in, &reference, out, scratch);
  }
};

}  // namespace

Result<std::unique_ptr<ChunkEncoder>> make_parted_encoder(const Shape& array, std::uint64_t chunk_slices,
                                                          Vector<PartEncoding> parts,
                                                          const std::optional<ReferenceId>& reference) {
  Partition partition{chunk_slices, {}, reference};
  for (const PartEncoding& part : parts) partition.parts.push_back(part.part);
  Vector<std::uint8_t> params = write_partition(partition);
  if (!read_partition(params, array).ok())
    return Status(StatusCode::internal, "stencil: the plan has parts that no reader takes");
  std::unique_ptr<ChunkEncoder> encoder;
  if (reference)
    encoder = std::make_unique<BesidePartedEncoder>(array, partition, std::move(params), std::move(parts));
  else
    encoder = std::make_unique<PartedEncoder>(array, partition, std::move(params), std::move(parts));
  return encoder;
}

}  // namespace quern::codec::stencil
