// The decoder that a header names.
#pragma once

#include <memory>

#include <quern/codec.h>
#include <quern/status.h>

#include "libcompress/format/grid/header.h"

namespace quern {

/// Null where all chunks are stored as they are. Fails with `unknown_codec` or `unsupported_version`, and with `corrupt`
/// where header and codec do not agree. May throw std::bad_alloc.
Result<std::unique_ptr<ChunkDecoder>> open_codec(const Header& header, const Registry& registry);

}  // namespace quern
