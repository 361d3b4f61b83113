// What a stream's header says, without an allocation but that of packed metadata.
#include <algorithm>
#include <bit>
#include <cstring>

#include <quern/quern.h>

#include "libcompress/capi/barrier.h"
#include "libcompress/capi/one_shot.h"
#include "libcompress/capi/versioned.h"
#include "libcompress/format/frame/metadata.h"
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

/// A header that points into the stream's bytes, and its size.
struct FoundHeader {
  HeaderView view;
  std::uint64_t bytes = 0;
};

Result<FoundHeader> find_header(std::span<const std::uint8_t> bytes) {
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
  return FoundHeader{header, size};
}

Status inspect(std::span<const std::uint8_t> bytes, quern_stream_info* info) {
  QUERN_RETURN_IF_ERROR(check_struct(info));
  QUERN_ASSIGN_OR_RETURN(const FoundHeader header, find_header(bytes));
  write_struct(make_info(header.view, header.bytes), info);
  return {};
}

Status copy_metadata(std::span<const std::uint8_t> stream, void* bytes, std::uint64_t capacity, std::uint64_t* needed) {
  QUERN_ASSIGN_OR_RETURN(const FoundHeader header, find_header(stream));
  const std::uint64_t size = header.view.metadata.bytes;
  if (needed != nullptr) *needed = size;
  if (size > capacity)
    return Status(StatusCode::destination_too_small, "the stream has {0} bytes of metadata; there is room for {1}",
                  static_cast<std::int64_t>(size), static_cast<std::int64_t>(capacity));
  QUERN_ASSIGN_OR_RETURN(const auto metadata, unpack_metadata(header.view.metadata));
  if (!metadata.empty()) std::memcpy(bytes, metadata.data(), metadata.size());
  return {};
}

Status copy_fill(std::span<const std::uint8_t> stream, std::uint32_t index, void* element) {
  QUERN_ASSIGN_OR_RETURN(const FoundHeader header, find_header(stream));
  const std::size_t count = header.view.fill_count();
  if (index >= count)
    return Status(StatusCode::invalid_argument, "the stream declares {0} fill values; number {1} was asked for",
                  static_cast<std::int64_t>(count), index);
  const std::size_t width = dtype_bytes(header.view.dtype);
  const auto stored = header.view.fills.subspan(index * width, width);
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(element, stored.data(), width);
  } else {
    std::reverse_copy(stored.begin(), stored.end(), static_cast<std::uint8_t*>(element));
  }
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

quern_status quern_stream_metadata(const void* stream, uint64_t size, void* bytes, uint64_t capacity,
                                   uint64_t* needed) {
  using namespace quern;
  return capi::guarded(capi::thread_error(), [&]() -> Status {
    if ((stream == nullptr && size != 0) || (bytes == nullptr && capacity != 0))
      return capi::null_argument("quern_stream_metadata: the stream or the place for the metadata is NULL");
    return capi::copy_metadata(capi::stream_bytes(stream, size), bytes, capacity, needed);
  });
}

quern_status quern_stream_fill(const void* stream, uint64_t size, uint32_t index, void* element) {
  using namespace quern;
  return capi::guarded(capi::thread_error(), [&]() -> Status {
    if ((stream == nullptr && size != 0) || element == nullptr)
      return capi::null_argument("quern_stream_fill: the stream or the place for the element is NULL");
    return capi::copy_fill(capi::stream_bytes(stream, size), index, element);
  });
}
