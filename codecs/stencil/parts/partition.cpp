// Stored parameters of arrays in parts; docs/format-stencil.md.
#include "codecs/stencil/parts/partition.h"

#include <algorithm>
#include <array>
#include <string>

#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern::codec::stencil {
namespace {

constexpr std::uint8_t kPartsMark = 0xFF;  // no array has so many axes to merge
constexpr std::size_t kLeastPartBytes = 4;

Status no_parts(const char* why) { return Status(StatusCode::corrupt, why); }

}  // namespace

bool names_parts(std::span<const std::uint8_t> params) { return !params.empty() && params[0] == kPartsMark; }

Vector<std::uint8_t> write_partition(const Partition& partition) {
  Vector<std::uint8_t> params;
  Writer writer(params);
  writer.u8(kPartsMark);
  writer.varint(partition.chunk_slices);
  writer.varint(partition.parts.size());
  for (const Part& part : partition.parts) {
    writer.varint(part.slices);
    writer.u8(part.layout.first);
    writer.u8(part.layout.second);
    writer.u8(order_number(part.layout));
  }
  if (partition.reference) write_reference(*partition.reference, writer);
  return params;
}

Result<Partition> read_partition(std::span<const std::uint8_t> params, const Shape& shape) {
  Reader reader(params);
  QUERN_RETURN_IF_ERROR(reader.skip(1));
  Partition partition;
  if (shape.rank() < 2) return no_parts("stencil: parts of an array without a leading axis");
  QUERN_ASSIGN_OR_RETURN(partition.chunk_slices, reader.varint(shape[0]));
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t count, reader.varint(std::min(shape[0], kMostParts)));
  if (partition.chunk_slices == 0 || count == 0 || count > reader.remaining() / kLeastPartBytes)
    return no_parts("stencil: an array in no parts");
  std::uint64_t end = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    Part part;
    QUERN_ASSIGN_OR_RETURN(part.slices, reader.varint(shape[0] - end));
    if (part.slices == 0) return no_parts("stencil: a part without slices");
    const std::uint64_t next_chunk = (end / partition.chunk_slices + 1) * partition.chunk_slices;
    end += part.slices;
    if (end > next_chunk) return no_parts("stencil: a part goes on in the next chunk");
    QUERN_ASSIGN_OR_RETURN(part.layout.first, reader.u8());
    QUERN_ASSIGN_OR_RETURN(part.layout.second, reader.u8());
    QUERN_ASSIGN_OR_RETURN(const std::uint8_t order, reader.u8());
    const std::size_t rank = part_shape(shape, part.slices).rank();
    if (!set_order(order, part.layout) || part.layout.first > part.layout.second || part.layout.second > rank)
      return no_parts("stencil: a part has an unknown layout");
    partition.parts.push_back(part);
  }
  if (end != shape[0]) return no_parts("stencil: parts do not add up to the leading axis");
  if (reader.remaining() > 0) {
    QUERN_ASSIGN_OR_RETURN(partition.reference, read_reference(reader));
  }
  QUERN_RETURN_IF_ERROR(reader.expect_end());
  return partition;
}

std::uint64_t fewest_chunk_slices(std::span<const std::uint64_t> slices) {
  Vector<std::uint64_t> ends;
  std::uint64_t all = 0;
  for (const std::uint64_t n : slices) ends.push_back(all += n);
  for (const std::uint64_t chunk : ends) {
    std::uint64_t multiple = chunk;
    while (multiple < all && std::binary_search(ends.begin(), ends.end(), multiple)) multiple += chunk;
    if (multiple >= all) return chunk;
  }
  return all;
}

ChunkGrid partition_grid(const Shape& array, std::uint64_t chunk_slices) {
  const Layout axes{1, static_cast<std::uint8_t>(array.rank() - 1)};
  ChunkGrid grid = merged_grid(array, axes);
  grid.chunk[0] = chunk_slices;
  return grid;
}

Shape part_shape(const Shape& array, std::uint64_t slices) {
  std::array<std::uint64_t, kMaxRank> extents{};
  const std::size_t left_out = slices == 1 ? 1 : 0;
  for (std::size_t a = left_out; a < array.rank(); ++a) extents[a - left_out] = a == 0 ? slices : array[a];
  return Shape::try_make({extents.data(), array.rank() - left_out}).value_or(Shape());
}

Vector<PartPlace> place_parts(const Shape& array, std::span<const Part> parts) {
  Vector<PartPlace> places;
  std::uint64_t begin = 0;
  for (const Part& part : parts) {
    PartPlace place;
    place.begin = begin;
    place.part = part;
    place.shape = part_shape(array, part.slices);
    place.grid = make_grid(place.shape, part.layout);
    place.form = levels_form(place.shape, part.layout, place.grid);
    places.push_back(place);
    begin += part.slices;
  }
  return places;
}

String layout_text(const Layout& layout) {
  const char* const order = layout.wavelet      ? "wavelet"
                            : layout.sequential ? "planes"
                            : layout.levels     ? "levels"
                                                : "raster";
  const std::string axes = layout.second == 0 ? "1d"
                           : layout.first == 0
                               ? "2d:" + std::to_string(layout.second)
                               : "3d:" + std::to_string(layout.first) + "," + std::to_string(layout.second);
  return String((order + (":" + axes)).c_str());
}

}  // namespace quern::codec::stencil
