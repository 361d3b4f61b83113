// Writing and reading the trailer.
#include "libcompress/format/frame/trailer.h"

#include "libcompress/format/frame/checksum.h"
#include "libcompress/format/writer.h"

namespace quern {

void TrailerBuilder::add(std::uint64_t segment_bytes) {
  Writer(index_).varint(segment_bytes);
  ++segments_;
}

Vector<std::uint8_t> TrailerBuilder::finish(std::uint64_t header_checksum, std::uint64_t bytes_before) const {
  Vector<std::uint8_t> out;
  out.reserve(index_.size() + kFooterBytes);
  Writer w(out);
  w.bytes(index_);
  put_footer_sizes(w, index_.size(), bytes_before);
  put_footer_end(w, bound_checksum64(header_checksum, segments_, out));
  return out;
}

Result<Footer> parse_footer(std::span<const std::uint8_t> bytes) {
  Footer footer;
  QUERN_RETURN_IF_ERROR(status_of(read_footer(bytes, footer)));
  return footer;
}

Result<Vector<std::uint64_t>> parse_trailer(std::span<const std::uint8_t> trailer, std::uint64_t header_checksum,
                                            std::uint64_t header_bytes, std::uint64_t segments) {
  QUERN_ASSIGN_OR_RETURN(const Footer footer, parse_footer(trailer));
  QUERN_RETURN_IF_ERROR(status_of(check_index_bytes(footer, trailer.size(), segments)));
  const auto covered = trailer.first(trailer.size() - kFooterUncheckedBytes);
  if (static_cast<std::uint32_t>(bound_checksum64(header_checksum, segments, covered)) != footer.check)
    return status_of({FormatFault::trailer_damaged});
  IndexWalk walk(trailer.first(trailer.size() - kFooterBytes), footer, header_bytes);
  Vector<std::uint64_t> offsets;
  offsets.reserve(static_cast<std::size_t>(segments) + 1);
  offsets.push_back(header_bytes);
  for (std::uint64_t s = 0; s < segments && walk.fault().ok(); ++s) offsets.push_back(walk.next());
  walk.finish();
  QUERN_RETURN_IF_ERROR(status_of(walk.fault()));
  return offsets;
}

}  // namespace quern
