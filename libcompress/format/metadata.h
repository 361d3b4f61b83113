// The metadata section: free bytes, packed by zstd when that makes them fewer.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern {

/// Appends the section; `metadata` is at most kMaxMetadataBytes.
void write_metadata(Writer& out, std::span<const std::uint8_t> metadata);

/// The section as it lies in bytes somebody else owns.
struct MetadataView {
  std::span<const std::uint8_t> stored;
  std::uint64_t bytes = 0;  ///< of the metadata, unpacked; at most kMaxMetadataBytes
  bool is_packed = false;
};
Result<MetadataView> view_metadata(Reader& in);

/// Allocates the metadata's bytes. Fails with `corrupt` when they do not unpack to that size.
Result<Vector<std::uint8_t>> unpack_metadata(const MetadataView& view);

}  // namespace quern
