// The metadata section: free bytes, packed by zstd when that makes them fewer.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

#include "libcompress/format/frame/header_frame.h"

namespace quern {

/// The section of at most kMaxMetadataBytes of metadata. What it views is `metadata` or `room`, which is replaced. May
/// throw std::bad_alloc.
MetadataView pack_metadata(std::span<const std::uint8_t> metadata, Vector<std::uint8_t>& room);

/// Allocates the metadata's bytes. Fails with `corrupt` when they do not unpack to that size.
Result<Vector<std::uint8_t>> unpack_metadata(const MetadataView& view);

}  // namespace quern
