// The metadata section in both its forms.
#include "libcompress/format/metadata.h"

#include <zstd.h>

#include "libcompress/format/limits.h"

namespace quern {
namespace {

constexpr int kPackLevel = 19;  // at most 1 MiB once a stream

std::vector<std::uint8_t> pack(std::span<const std::uint8_t> metadata) {
  std::vector<std::uint8_t> packed(ZSTD_compressBound(metadata.size()));
  const std::size_t n = ZSTD_compress(packed.data(), packed.size(), metadata.data(), metadata.size(), kPackLevel);
  packed.resize(ZSTD_isError(n) != 0 ? 0 : n);
  return packed;
}

}  // namespace

void write_metadata(Writer& out, std::span<const std::uint8_t> metadata) {
  if (!metadata.empty()) {
    const std::vector<std::uint8_t> packed = pack(metadata);
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

Result<std::vector<std::uint8_t>> unpack_metadata(const MetadataView& view) {
  if (!view.is_packed) return std::vector<std::uint8_t>(view.stored.begin(), view.stored.end());
  std::vector<std::uint8_t> metadata(static_cast<std::size_t>(view.bytes));
  const std::size_t n = ZSTD_decompress(metadata.data(), metadata.size(), view.stored.data(), view.stored.size());
  if (ZSTD_isError(n) != 0 || n != view.bytes)
    return Status(StatusCode::corrupt, "the metadata section does not unpack to its {0} bytes",
                  static_cast<std::int64_t>(view.bytes));
  return metadata;
}

}  // namespace quern
