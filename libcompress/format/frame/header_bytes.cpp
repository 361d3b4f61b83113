// Reading a header in two steps: prefix, rest.
#include "libcompress/format/frame/header_bytes.h"

namespace quern {

WriterId this_writer() { return {1, QUERN_VERSION_MAJOR, QUERN_VERSION_MINOR, QUERN_VERSION_PATCH}; }

Result<std::uint64_t> header_size(std::span<const std::uint8_t> prefix) {
  std::uint64_t size = 0;
  QUERN_RETURN_IF_ERROR(status_of(header_size(prefix, size)));
  return size;
}

Result<Vector<std::uint8_t>> read_header_bytes(ByteSource& source) {
  Vector<std::uint8_t> bytes(kHeaderPrefixBytes);
  QUERN_ASSIGN_OR_RETURN(const std::size_t have, read_up_to(source, bytes));
  if (have < bytes.size()) {
    if (!begins_like_stream({bytes.data(), have})) return status_of({FormatFault::not_a_stream});
    return Status(StatusCode::truncated, "the data ends after {0} bytes, inside the header",
                  static_cast<std::int64_t>(have));
  }
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t size, header_size(bytes));
  bytes.resize(static_cast<std::size_t>(size));
  QUERN_ASSIGN_OR_RETURN(const std::size_t rest, read_up_to(source, std::span(bytes).subspan(kHeaderPrefixBytes)));
  if (rest < bytes.size() - kHeaderPrefixBytes)
    return Status(StatusCode::truncated, "the data ends after {0} bytes, inside the header",
                  static_cast<std::int64_t>(kHeaderPrefixBytes + rest));
  return bytes;
}

}  // namespace quern
