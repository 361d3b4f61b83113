// What a stream's header says, without an allocation.
#include <algorithm>
#include <cstring>

#include <quern/quern.h>

#include "libcompress/capi/barrier.h"
#include "libcompress/capi/versioned.h"
#include "libcompress/format/grid/header.h"
#include "libcompress/format/grid/layout.h"

namespace quern::capi {
namespace {

quern_stream_info make_info(const HeaderView& header, std::uint64_t header_bytes) {
  quern_stream_info info = QUERN_STREAM_INFO_INIT;
  info.dtype = static_cast<quern_dtype>(header.dtype);
  info.rank = static_cast<std::uint32_t>(header.shape.rank());
  std::copy_n(header.shape.extents().data(), header.shape.rank(), info.extents);
  info.codec_id = header.codec_id;
  info.codec_version = header.codec_version;
  info.requested_kind = static_cast<quern_bound_kind>(header.requested.kind);
  info.requested_value = header.requested.value;
  info.enforced_kind = static_cast<quern_bound_kind>(header.enforced.kind);
  info.enforced_value = header.enforced.value;
  info.header_bytes = header_bytes;
  info.chunks = SegmentLayout(header.grid, header.dtype).chunks();
  info.metadata_bytes = header.metadata.bytes;
  info.fills = static_cast<std::uint32_t>(header.fill_count());
  info.format_major = header.major;
  info.format_minor = header.minor;
  return info;
}

Status inspect(std::span<const std::uint8_t> bytes, quern_stream_info* info) {
  QUERN_RETURN_IF_ERROR(check_struct(info));
  const auto prefix = bytes.first(std::min(bytes.size(), kHeaderPrefixBytes));
  if (!begins_like_stream(prefix)) return Status(StatusCode::bad_magic, "these bytes do not begin a quern stream");
  if (prefix.size() < kHeaderPrefixBytes)
    return Status(StatusCode::truncated, "the data ends after {0} bytes, inside the header",
                  static_cast<std::int64_t>(bytes.size()));
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t size, header_size(prefix));
  if (bytes.size() < size)
    return Status(StatusCode::truncated, "the data ends after {0} bytes of the header's {1}",
                  static_cast<std::int64_t>(bytes.size()), static_cast<std::int64_t>(size));
  QUERN_ASSIGN_OR_RETURN(const HeaderView header, view_header(bytes.first(static_cast<std::size_t>(size))));
  write_struct(make_info(header, size), info);
  return {};
}

}  // namespace
}  // namespace quern::capi

quern_status quern_inspect(const void* stream, uint64_t size, quern_stream_info* info) {
  using namespace quern;
  return capi::guarded(capi::thread_error(), [&]() -> Status {
    if (stream == nullptr && size != 0) return capi::null_argument("quern_inspect: the stream is NULL");
    return capi::inspect({static_cast<const std::uint8_t*>(stream), static_cast<std::size_t>(size)}, info);
  });
}
