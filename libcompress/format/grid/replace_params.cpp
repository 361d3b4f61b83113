#include "libcompress/format/grid/replace_params.h"

#include <algorithm>
#include <memory>

#include "libcompress/format/frame/trailer.h"
#include "libcompress/format/grid/header.h"
#include "libcompress/format/grid/segment.h"

namespace quern {

Status replace_params(std::span<const std::uint8_t> stream, std::span<const std::uint8_t> params, ByteSink& out) {
  MemorySource source(stream);
  QUERN_ASSIGN_OR_RETURN(ReadHeader read, read_header(source));
  Header& header = read.header;
  const std::uint64_t checksum_before = header.checksum;
  header.params.assign(params.begin(), params.end());
  QUERN_ASSIGN_OR_RETURN(const Vector<std::uint8_t> head, serialize_header(header));
  QUERN_RETURN_IF_ERROR(out.write(head));

  const SegmentLayout layout(header.grid, header.dtype, header.has_level_tables());
  TrailerBuilder trailer;
  std::uint64_t at = read.bytes;
  auto parsed = std::make_unique<ParsedSegment>();
  Vector<std::uint8_t> segment;
  for (std::uint64_t s = 0; s < layout.segments(); ++s) {
    const auto rest = stream.subspan(static_cast<std::size_t>(at));
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t size, read_segment_size(rest, layout, s));
    parse_segment(rest.first(static_cast<std::size_t>(std::min<std::uint64_t>(size, rest.size()))), layout,
                  {checksum_before, s}, *parsed);
    QUERN_RETURN_IF_ERROR(parsed->status);
    assemble_segment(layout, {header.checksum, s}, parsed->mask, {parsed->chunks.data(), parsed->count}, segment,
                     parsed->level_table);
    QUERN_RETURN_IF_ERROR(out.write(segment));
    trailer.add(size);
    at += size;
  }
  const Vector<std::uint8_t> old_end = trailer.finish(checksum_before, at);
  const auto found = stream.subspan(static_cast<std::size_t>(at));
  if (!std::equal(found.begin(), found.end(), old_end.begin(), old_end.end()))
    return Status(StatusCode::corrupt, "the trailer is damaged: it does not match the segments before it");
  return out.write(trailer.finish(header.checksum, at - read.bytes + head.size()));
}

}  // namespace quern
