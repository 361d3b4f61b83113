// The metadata section in both its forms.
#include "libcompress/format/frame/metadata.h"

#include <new>

#include "libcompress/format/frame/limits.h"
#include "libcompress/format/zstd_frame.h"

namespace quern {
namespace {

constexpr int kPackLevel = 19;  // at most 1 MiB once a stream

}  // namespace

MetadataView pack_metadata(std::span<const std::uint8_t> metadata, Vector<std::uint8_t>& room) {
  const MetadataView plain{metadata, metadata.size(), false};
  if (metadata.empty()) return plain;
  room.resize(metadata.size());  // a frame that is not smaller is not wanted
  const auto n = zstd_pack(metadata, kPackLevel, room);
  if (!n.ok()) throw std::bad_alloc();
  const MetadataView packed{{room.data(), *n}, metadata.size(), true};
  const std::size_t plain_cost = varint_bytes(metadata.size() << 1) + metadata.size();
  const std::size_t packed_cost = varint_bytes(*n << 1) + varint_bytes(metadata.size()) + *n;
  return *n > 0 && packed_cost < plain_cost ? packed : plain;
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
