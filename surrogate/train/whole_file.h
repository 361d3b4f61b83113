// Files that appear complete or not at all.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace quern::surrogate {

/// Writes `bytes` beside `path`, syncs and renames; a file that is there is replaced and keeps its permissions, a link
/// stays one, and devices and pipes are written directly. False, with errno, when it failed: then `path` is what it
/// was.
bool write_whole_file(const std::string& path, std::span<const std::uint8_t> bytes);

}  // namespace quern::surrogate
