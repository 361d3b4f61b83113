// Walking back over trailers.
#include "libcompress/pipeline/decode/stream_index.h"

#include <array>

namespace quern {
namespace {

std::int64_t number(std::uint64_t value) { return static_cast<std::int64_t>(value); }

}  // namespace

Result<Footer> read_footer(ByteSource& source, std::uint64_t end) {
  if (end < kFooterBytes)
    return Status(StatusCode::truncated, "the stream has no trailer: {0} bytes are left for it", number(end));
  QUERN_RETURN_IF_ERROR(source.seek(end - kFooterBytes));
  std::array<std::uint8_t, kFooterBytes> bytes{};
  QUERN_ASSIGN_OR_RETURN(const std::size_t have, read_up_to(source, bytes));
  QUERN_ASSIGN_OR_RETURN(const Footer footer, parse_footer({bytes.data(), have}));
  if (footer.stream_bytes > end)
    return Status(StatusCode::corrupt, "the trailer claims a stream of {0} bytes; {1} are there",
                  number(footer.stream_bytes), number(end));
  return footer;
}

Status need_index_memory(std::uint64_t trailer_bytes, std::uint64_t segments, std::uint64_t memory_limit) {
  const std::uint64_t needed = trailer_bytes + 8 * (segments + 1);
  if (needed <= memory_limit) return {};
  return Status(StatusCode::memory_limit, "the stream's index needs {0} bytes; the limit is {1}", number(needed),
                number(memory_limit));
}

Status load_stream_index(ByteSource& source, const IndexedStream& stream, std::uint64_t memory_limit,
                         StreamIndex& index, std::uint64_t& fetched) {
  // Several streams may follow one another: walk back from the end until the one that begins here.
  std::uint64_t end = source.size();
  Footer footer;
  while (true) {
    QUERN_ASSIGN_OR_RETURN(footer, read_footer(source, end));
    fetched += kFooterBytes;
    if (end - footer.stream_bytes <= stream.start) break;
    end -= footer.stream_bytes;
  }
  if (end - footer.stream_bytes != stream.start || footer.stream_bytes < stream.header_bytes + kFooterBytes ||
      footer.index_bytes > footer.stream_bytes - stream.header_bytes - kFooterBytes)
    return Status(StatusCode::corrupt, "the trailer does not fit the stream");
  if (stream.segments > footer.index_bytes)
    return Status(StatusCode::corrupt, "the trailer does not have one size for each of {0} segments",
                  number(stream.segments));
  QUERN_RETURN_IF_ERROR(need_index_memory(footer.index_bytes + kFooterBytes, stream.segments, memory_limit));
  Vector<std::uint8_t> trailer(static_cast<std::size_t>(footer.index_bytes) + kFooterBytes);
  QUERN_RETURN_IF_ERROR(source.seek(end - trailer.size()));
  QUERN_ASSIGN_OR_RETURN(const std::size_t have, read_up_to(source, trailer));
  fetched += have;
  QUERN_ASSIGN_OR_RETURN(index.offsets, parse_trailer({trailer.data(), have}, stream.header_checksum,
                                                      stream.header_bytes, stream.segments));
  index.trailer_bytes = trailer.size();
  return {};
}

}  // namespace quern
