// Headers in vectors: limits on what is written, metadata packed and unpacked, reading from a source.
#include "libcompress/format/grid/header.h"

#include <array>

#include "libcompress/format/frame/metadata.h"
#include "libcompress/format/grid/limits.h"
#include "libcompress/format/reader.h"

namespace quern {

Status check_grid(const ChunkGrid& grid, const Shape& shape) {
  if (grid_fits(grid, shape)) return {};
  return Status(StatusCode::corrupt, "the chunk grid does not fit the array");
}

Result<Vector<std::uint8_t>> serialize_header(Header& header) {
  if (header.params.size() > kMaxParamsBytes)
    return Status(StatusCode::internal, "the codec wants {0} bytes of parameters; {1} is the limit",
                  static_cast<std::int64_t>(header.params.size()), static_cast<std::int64_t>(kMaxParamsBytes));
  if (header.metadata.size() > kMaxMetadataBytes)
    return Status(StatusCode::invalid_argument, "the metadata has {0} bytes; {1} is the limit",
                  static_cast<std::int64_t>(header.metadata.size()), static_cast<std::int64_t>(kMaxMetadataBytes));
  if (header.fill_bits.size() > kMaxFillValues)
    return Status(StatusCode::invalid_argument, "{0} fill values are declared; {1} is the limit",
                  static_cast<std::int64_t>(header.fill_bits.size()), static_cast<std::int64_t>(kMaxFillValues));
  HeaderView view{header, {}, header.params, {}};
  std::array<std::uint8_t, kMaxFillValues * sizeof(std::uint64_t)> fill_room;
  ByteWriter fills(fill_room);
  for (const std::uint64_t bits : header.fill_bits) fills.unsigned_of(bits, dtype_bytes(header.dtype));
  view.fills = {fill_room.data(), fills.size()};
  Vector<std::uint8_t> metadata_room;
  view.metadata = pack_metadata(header.metadata, metadata_room);
  Vector<std::uint8_t> bytes(static_cast<std::size_t>(header_bytes(view)));
  compose_header(view, bytes);
  header.checksum = view.checksum;
  return bytes;
}

Result<HeaderView> view_header(std::span<const std::uint8_t> bytes) {
  HeaderView header;
  QUERN_RETURN_IF_ERROR(status_of(view_header(bytes, header)));
  return header;
}

Result<Header> parse_header(std::span<const std::uint8_t> bytes) {
  QUERN_ASSIGN_OR_RETURN(const HeaderView view, view_header(bytes));
  Header header;
  static_cast<HeaderFields&>(header) = view;
  header.fill_bits.resize(view.fill_count());
  Reader fills(view.fills);
  for (std::uint64_t& bits : header.fill_bits) {
    QUERN_ASSIGN_OR_RETURN(bits, fills.unsigned_of(dtype_bytes(view.dtype)));
  }
  header.params.assign(view.params.begin(), view.params.end());
  QUERN_ASSIGN_OR_RETURN(header.metadata, unpack_metadata(view.metadata));
  return header;
}

Result<ReadHeader> read_header(ByteSource& source) {
  QUERN_ASSIGN_OR_RETURN(const Vector<std::uint8_t> bytes, read_header_bytes(source));
  ReadHeader result;
  result.bytes = bytes.size();
  QUERN_ASSIGN_OR_RETURN(result.header, parse_header(bytes));
  return result;
}

}  // namespace quern
