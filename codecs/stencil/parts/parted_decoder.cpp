// Bytes to chunks of several parts. The bytes are hostile: every number is held against what is there.
#include "codecs/stencil/parts/parted_decoder.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include <quern/parts.h>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/parts/dense_box.h"
#include "codecs/stencil/plan/array_levels.h"
#include "codecs/stencil/plan/sample_block.h"
#include "codecs/stencil/reference_chunk.h"
#include "libcompress/core/arena.h"
#include "libcompress/core/level_points.h"
#include "libcompress/format/reader.h"

namespace quern::codec::stencil {
namespace {

constexpr std::uint64_t kSizeBytes = sizeof(std::uint32_t);

Status corrupt(const char* text) { return Status(StatusCode::corrupt, text); }

/// Chunks of whole slices, as if walked in levels along all axes but the leading one: what its coarse levels are.
Layout levels_layout(const Shape& array, std::uint64_t chunk_slices) {
  Layout layout{1, static_cast<std::uint8_t>(array.rank() - 1), true};
  layout.sequential = chunk_slices > 1;
  return layout;
}

class PartedDecoder : public ChunkDecoder, public PartedChunkDecoder {
 public:
  PartedDecoder(DType dtype, const Shape& array, const Partition& partition, const kernels::StencilKernels& kernels)
      : dtype_(dtype),
        array_(array),
        chunk_slices_(partition.chunk_slices),
        grid_(partition_grid(array, partition.chunk_slices)),
        places_(place_parts(array, partition.parts)),
        kernels_(kernels),
        beside_(partition.reference.has_value()),
        coarse_(levels_layout(array, partition.chunk_slices)),
        coarse_form_(levels_form(array, coarse_, grid_)),
        levels_(beside_ ? 0 : count_levels(array, coarse_, grid_, coarse_form_)) {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const auto same = [&](const PartPlace& other) {
        return other.part.slices == places_[i].part.slices && other.part.layout == places_[i].part.layout;
      };
      if (i > 0 && same(places_[i - 1])) continue;
      const ChunkSpec spec = spec_of(places_[i]);
      scratch_bytes_ =
          std::max(scratch_bytes_, beside_ ? decode_beside_scratch_bytes(spec) : decode_scratch_bytes(spec));
    }
  }

  const ChunkGrid& grid() const override { return grid_; }
  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  Status decode(std::span<const std::uint8_t> in, const MutableBox3& out,
                std::span<std::uint8_t> scratch) const override {
    return decode_box(in, nullptr, out, scratch);
  }
  unsigned levels() const override { return levels_; }
  LevelForm level_form(unsigned level) const override {
    return array_level(array_, coarse_, grid_, coarse_form_, level);
  }
  std::size_t level_scratch_bytes() const override {
    Arena arena(nullptr);
    static_cast<void>(arena.take<std::uint8_t>(chunk_bytes()));
    return arena.used() + scratch_bytes_;
  }
  /// Points of the whole chunk: its parts have no levels in common.
  Status decode_level(std::span<const std::uint8_t> in, const MutableBox3& chunk, unsigned level,
                      const MutableBox3& out, std::span<std::uint8_t> scratch) const override {
    if (level == 0 || level > levels_) return Status(StatusCode::unsupported, "stencil: there is no such level");
    if (scratch.size() < level_scratch_bytes()) return Status(StatusCode::invalid_argument, "scratch is too small");
    Arena arena(scratch.data());
    MutableBox3 whole = chunk;
    whole.data = arena.take<std::uint8_t>(chunk_bytes());
    whole.strides = {chunk.extents[1] * chunk.extents[2], chunk.extents[2]};
    QUERN_RETURN_IF_ERROR(decode_box(in, nullptr, whole, scratch.subspan(arena.used())));
    pick_points(static_cast<const std::uint8_t*>(whole.data), chunk.extents, level_form(level), dtype_bytes(dtype_),
                out);
    return {};
  }

  Vector<ArrayPart> parts() const override {
    Vector<ArrayPart> list;
    for (const PartPlace& place : places_) list.push_back({place.part.slices, layout_text(place.part.layout)});
    return list;
  }

 protected:
  /// `reference`: the same box of it, or null.
  Status decode_box(std::span<const std::uint8_t> in, const ConstBox3* reference, const MutableBox3& out,
                    std::span<std::uint8_t> scratch) const {
    if (out.extents[0] == 0 || out.extents[0] > chunk_slices_ || out.extents[1] != grid_.extents[1] ||
        out.extents[2] != grid_.extents[2])
      return Status(StatusCode::invalid_argument, "box is no chunk of the grid");
    if (scratch.size() < scratch_bytes_) return Status(StatusCode::invalid_argument, "scratch is too small");
    const std::size_t width = dtype_bytes(dtype_);
    AlignedBuffer rooms[3];
    QUERN_ASSIGN_OR_RETURN(const std::uint8_t* const special,
                           dense_elements(out.special, out.extents, out.special_strides, 1, rooms[0]));
    const std::uint8_t* given = nullptr;
    if (reference != nullptr) {
      QUERN_ASSIGN_OR_RETURN(given,
                             dense_elements(reference->data, reference->extents, reference->strides, width, rooms[1]));
    }
    if (is_dense(out.extents, out.strides))
      return decode_parts(in, given, special, out.extents, static_cast<std::uint8_t*>(out.data), scratch);
    QUERN_RETURN_IF_ERROR(rooms[2].resize(out.elems() * width));
    QUERN_RETURN_IF_ERROR(decode_parts(in, given, special, out.extents, rooms[2].data(), scratch));
    const std::size_t row_bytes = static_cast<std::size_t>(out.extents[2]) * width;
    for (std::size_t r = 0; r < out.extents[0] * out.extents[1]; ++r)
      std::memcpy(static_cast<std::uint8_t*>(out.data) + row_offset(out, r) * width, rooms[2].data() + r * row_bytes,
                  row_bytes);
    return {};
  }

 private:
  ChunkSpec spec_of(const PartPlace& place) const { return {dtype_, place.grid.chunk, &kernels_, place.form}; }
  std::size_t chunk_bytes() const {
    return static_cast<std::size_t>(grid_.chunk[0] * grid_.chunk[1] * grid_.chunk[2]) * dtype_bytes(dtype_);
  }

  /// Elements in C order at `data`, and so are `given` and `special`, which may be null.
  Status decode_parts(std::span<const std::uint8_t> in, const std::uint8_t* given, const std::uint8_t* special,
                      const std::array<std::uint64_t, 3>& extents, std::uint8_t* data,
                      std::span<std::uint8_t> scratch) const {
    Reader reader(in);
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t first, reader.varint(places_.size() - 1));
    const std::uint64_t begin = places_[first].begin;
    if (begin % chunk_slices_ != 0) return corrupt("stencil: a chunk begins within its parts");
    std::uint64_t left = extents[0];
    std::uint64_t chunks = 0;
    std::size_t end = first;
    for (; left > 0 && end < places_.size() && places_[end].part.slices <= left; ++end) {
      left -= places_[end].part.slices;
      chunks += places_[end].chunks();
    }
    if (left > 0) return corrupt("stencil: a chunk holds the parts of another one");
    if (chunks > reader.remaining() / kSizeBytes) return corrupt("stencil: a chunk ends within the sizes of its parts");
    Reader content(in.subspan(reader.position() + static_cast<std::size_t>(chunks * kSizeBytes)));
    const std::uint64_t slice = extents[1] * extents[2];
    std::uint64_t done = 0;
    for (std::size_t i = first; i < end; ++i) {
      const std::uint64_t elems = places_[i].part.slices * slice;
      const std::uint8_t* const marks = special == nullptr ? nullptr : special + done;
      QUERN_RETURN_IF_ERROR(decode_part(places_[i], given == nullptr ? nullptr : given + done * dtype_bytes(dtype_),
                                        any_special(marks, elems) ? marks : nullptr, data + done * dtype_bytes(dtype_),
                                        reader, content, scratch));
      done += elems;
    }
    return content.expect_end();
  }

  Status decode_part(const PartPlace& place, const std::uint8_t* given, const std::uint8_t* marks, std::uint8_t* data,
                     Reader& sizes, Reader& content, std::span<std::uint8_t> scratch) const {
    const std::size_t width = dtype_bytes(dtype_);
    const ChunkSpec spec = spec_of(place);
    for (std::uint64_t c = 0; c < place.chunks(); ++c) {
      const ConstBox3 box = chunk_of_array(place.grid, c, data, width, marks);
      const MutableBox3 to{data + (static_cast<const std::uint8_t*>(box.data) - data), box.extents, box.strides,
                           box.special, box.special_strides};
      QUERN_ASSIGN_OR_RETURN(const std::uint32_t size, sizes.u32());
      QUERN_ASSIGN_OR_RETURN(const std::span<const std::uint8_t> bytes, content.bytes(size));
      if (size == 0) {
        if (!all_special(box)) return corrupt("stencil: a part has no bytes for elements that no mask holds");
        zero(to, width);
      } else if (given == nullptr && beside_ && needs_reference(bytes[0])) {
        return Status(StatusCode::reference_missing, "a chunk was predicted from an array that is missing");
      } else if (given != nullptr) {
        QUERN_RETURN_IF_ERROR(
            decode_chunk_beside(spec, bytes, chunk_of_array(place.grid, c, given, width, nullptr), to, scratch));
      } else {
        QUERN_RETURN_IF_ERROR(decode_chunk(spec, bytes, to, scratch));
      }
    }
    return {};
  }

  static void zero(const MutableBox3& box, std::size_t width) {
    for (std::size_t r = 0; r < box.extents[0] * box.extents[1]; ++r)
      std::memset(static_cast<std::uint8_t*>(box.data) + row_offset(box, r) * width, 0,
                  static_cast<std::size_t>(box.extents[2]) * width);
  }

  DType dtype_;
  Shape array_;
  std::uint64_t chunk_slices_;
  ChunkGrid grid_;
  Vector<PartPlace> places_;
  const kernels::StencilKernels& kernels_;
  bool beside_;
  Layout coarse_;
  LevelsForm coarse_form_;
  unsigned levels_;
  std::size_t scratch_bytes_ = 0;
};

class BesidePartedDecoder final : public PartedDecoder, public ReferenceChunkDecoder {
 public:
  BesidePartedDecoder(DType dtype, const Shape& array, const Partition& partition,
                      const kernels::StencilKernels& kernels)
      : PartedDecoder(dtype, array, partition, kernels), reference_(*partition.reference) {}
  const ReferenceId& reference() const override { return reference_; }
  /// A chunk whose reference nobody has; it may hold inner chunks that need none.
  Status decode(std::span<const std::uint8_t> in, const MutableBox3& out,
                std::span<std::uint8_t> scratch) const override {
    return named(PartedDecoder::decode(in, out, scratch));
  }
  Status decode_beside(std::span<const std::uint8_t> in, const ConstBox3& reference, const MutableBox3& out,
                       std::span<std::uint8_t> scratch) const override {
    return named(decode_box(in, &reference, out, scratch));
  }

 private:
  Status named(Status status) const {
    return status.code() == StatusCode::reference_missing ? missing_reference(reference_) : status;
  }

  ReferenceId reference_;
};

}  // namespace

std::unique_ptr<ChunkDecoder> make_parted_decoder(DType dtype, const Shape& array, const Partition& partition,
                                                  const kernels::StencilKernels& kernels) {
  if (partition.reference) return std::make_unique<BesidePartedDecoder>(dtype, array, partition, kernels);
  return std::make_unique<PartedDecoder>(dtype, array, partition, kernels);
}

}  // namespace quern::codec::stencil
