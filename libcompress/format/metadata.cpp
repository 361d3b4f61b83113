// The metadata section in both its forms.
#include "libcompress/format/metadata.h"

#include <new>

#include "libcompress/format/limits.h"
#include "libcompress/format/zstd_frame.h"

namespace quern {
namespace {

constexpr int kPackLevel = 19;  // at most 1 MiB once a stream

Vector<std::uint8_t> pack(std::span<const std::uint8_t> metadata) {
  Vector<std::uint8_t> packed(metadata.size());  // a frame that is not smaller is not wanted
  const auto n = zstd_pack(metadata, kPackLevel, packed);
  if (!n.ok()) throw std::bad_alloc();
  packed.resize(*n);
  return packed;
}

}  // namespace

void write_metadata(Writer& out, std::span<const std::uint8_t> metadata) {
  if (!metadata.empty()) {
    const Vector<std::uint8_t> packed = pack(metadata);
    const std::size_t plain_cost = varint_bytes(metadata.size() << 1) + metadata.size();
    const std::size_t packed_cost = varint_bytes(packed.size() << 1) + varint_bytes(metadata.size()) + packed.size();
    if (!packed.empty() && packed_cost < plain_cost) {
      out.varint(static_cast<std::uint64_t>(packed.size()) << 1 | 1);
      out.varint(metadata.size());
      out.bytes(packed);
      return;
    }
  }
  out.varint(static_cast<std::uint64_t>(metadata.size()) << 1);
  out.bytes(metadata);
}

Result<MetadataView> view_metadata(Reader& in) {
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t head, in.varint(kMaxMetadataBytes << 1 | 1));
  MetadataView view;
  view.is_packed = (head & 1) != 0;
  view.bytes = head >> 1;
  if (view.is_packed) {
    QUERN_ASSIGN_OR_RETURN(view.bytes, in.varint(kMaxMetadataBytes));
  }
  QUERN_ASSIGN_OR_RETURN(view.stored, in.bytes(head >> 1));
  return view;
}

Result<Vector<std::uint8_t>> unpack_metadata(const MetadataView& view) {
  if (!view.is_packed) return Vector<std::uint8_t>(view.stored.begin(), view.stored.end());
  Vector<std::uint8_t> metadata(static_cast<std::size_t>(view.bytes));
  if (const Status status = zstd_unpack(view.stored, metadata); status.code() == StatusCode::out_of_memory)
    return status;
  else if (!status.ok())
    return Status(StatusCode::corrupt, "the metadata section does not unpack to its {0} bytes",
                  static_cast<std::int64_t>(view.bytes));
  return metadata;
}

}  // namespace quern
