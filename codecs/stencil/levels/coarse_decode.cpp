// Each mode's way to a coarse level. The bytes are hostile: whatever they are, nothing is read or written out of
// bounds.
#include "codecs/stencil/levels/coarse_chunk.h"

#include <cstring>

#include "codecs/stencil/lattice/chunk.h"
#include "codecs/stencil/levels/chunk.h"
#include "codecs/stencil/wavelet/chunk.h"
#include "libcompress/core/arena.h"

namespace quern::codec::stencil {
namespace {

/// Points of a chunk whose elements, in C order, are at hand; of a constant one there is a single element.
void pick_points(const std::uint8_t* elements, bool constant, std::size_t width, const MutableBox3& chunk,
                 const LevelForm& form, const MutableBox3& out) {
  auto* const to = static_cast<std::uint8_t*>(out.data);
  for (std::uint64_t i = 0; i < out.extents[0]; ++i) {
    for (std::uint64_t j = 0; j < out.extents[1]; ++j) {
      const std::uint64_t row = (form.axes[0].place(i) * chunk.extents[1] + form.axes[1].place(j)) * chunk.extents[2];
      for (std::uint64_t x = 0; x < out.extents[2]; ++x)
        std::memcpy(to + (i * out.strides[0] + j * out.strides[1] + x) * width,
                    elements + (constant ? 0 : (row + form.axes[2].place(x)) * width), width);
    }
  }
}

/// Of chunks that have no coarse form of their own: all of it, then its points.
Status decode_and_pick(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& chunk,
                       const LevelForm& form, const MutableBox3& out, std::span<std::uint8_t> scratch) {
  Arena arena(scratch.data());
  std::uint8_t* const elements = arena.take<std::uint8_t>(spec.raw_bytes());
  if (arena.used() > scratch.size()) return Status(StatusCode::internal, "stencil: scratch is too small for a chunk");
  MutableBox3 whole = chunk;
  whole.data = elements;
  whole.strides = {chunk.extents[1] * chunk.extents[2], chunk.extents[2]};
  QUERN_RETURN_IF_ERROR(decode_chunk(spec, in, whole, scratch.subspan(arena.used())));
  pick_points(elements, false, dtype_bytes(spec.dtype), chunk, form, out);
  return {};
}

}  // namespace

std::size_t coarse_scratch_bytes(const ChunkSpec& spec) {
  Arena arena(nullptr);
  static_cast<void>(arena.take<std::uint8_t>(spec.raw_bytes()));
  return arena.used() + decode_scratch_bytes(spec);
}

Status decode_coarse(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& chunk,
                     const LevelForm& form, unsigned level, const MutableBox3& out, std::span<std::uint8_t> scratch) {
  if (!spec.form.levels && !spec.form.wavelet)
    return Status(StatusCode::unsupported, "stencil: these chunks have no levels");
  for (std::size_t a = 0; a < 3; ++a)
    if (out.extents[a] != form.axes[a].points(chunk.extents[a]))
      return Status(StatusCode::invalid_argument, "stencil: the box is not what the level has of the chunk");
  if (in.empty()) return Status(StatusCode::corrupt, "stencil: a chunk is empty");
  std::span<const std::uint8_t> content = in.subspan(1);
  switch (static_cast<Mode>(in[0])) {
    case Mode::lattice: {
      QUERN_ASSIGN_OR_RETURN(const Lattice lattice, read_lattice(spec.dtype, content));
      QUERN_RETURN_IF_ERROR(decode_coarse(integer_spec(spec), content, integer_box(spec.dtype, chunk), form, level,
                                          integer_box(spec.dtype, out), scratch));
      spread_lattice(lattice, spec.dtype, out);
      return {};
    }
    case Mode::levels:
    case Mode::levels_edges:
      return decode_levels_coarse(spec, content, in[0] == static_cast<std::uint8_t>(Mode::levels_edges), chunk, form,
                                  level, out, scratch);
    case Mode::wavelet: return decode_wavelet_coarse(spec, content, chunk, form, level, out, scratch);
    case Mode::raw:
    case Mode::constant: {
      const bool constant = in[0] == static_cast<std::uint8_t>(Mode::constant);
      const std::size_t width = dtype_bytes(spec.dtype);
      if (content.size() != (constant ? 1 : chunk.elems()) * width)
        return Status(StatusCode::corrupt, "stencil: a chunk has the wrong size");
      pick_points(content.data(), constant, width, chunk, form, out);
      return {};
    }
    case Mode::raster:
    case Mode::prequantized:
    case Mode::differences:
    case Mode::beside: break;
  }
  return decode_and_pick(spec, in, chunk, form, out, scratch);
}

}  // namespace quern::codec::stencil
