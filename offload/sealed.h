// Small files that begin with a magic number and end with the XXH3-128 of all before.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"
#include "storage/content_hash.h"

namespace quern::offload {

void write_hash(Writer& out, const storage::ContentHash& hash);
Result<storage::ContentHash> read_hash(Reader& in);

/// Adds the hash of the bytes to them.
void seal(Vector<std::uint8_t>& bytes);
/// What lies between; fails with `bad_magic` or `checksum_mismatch`.
Result<std::span<const std::uint8_t>> open_sealed(std::span<const std::uint8_t> bytes,
                                                  std::span<const std::uint8_t> magic);

}  // namespace quern::offload
