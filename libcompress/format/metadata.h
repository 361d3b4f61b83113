// The metadata section: free bytes, packed by zstd when that makes them fewer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <quern/status.h>

#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern {

/// Appends the section; `metadata` is at most kMaxMetadataBytes.
void write_metadata(Writer& out, std::span<const std::uint8_t> metadata);

/// Reads the section. Allocates at most kMaxMetadataBytes.
Result<std::vector<std::uint8_t>> read_metadata(Reader& in);

}  // namespace quern
