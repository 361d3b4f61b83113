// Files that appear whole and durable or not at all, and the folders they lie in.
#pragma once

#include "storage/file_system.h"
#include "storage/report.h"

namespace quern::storage {

/// Writes a new file, syncs it, and renames it to its place; `temporary` and `path` lie in folders that exist. The
/// folder of `path` is synced.
Status publish_file(FileSystem& files, const String& temporary, const String& path, const String& folder,
                    std::span<const std::uint8_t> bytes, Report& report);

/// "." for a name alone, "/" for one at the top.
String parent_of(std::string_view path);

/// Makes a folder in one that exists; fine where it is there.
Status make_one_folder(FileSystem& files, std::string_view path, Report& report);
/// Makes a folder and those above it that are missing. The names of those above are synced, the folder's own is not.
Status make_with_parents(FileSystem& files, const String& path, Report& report);

/// Removes a folder of files, the folder too; fine where it is missing.
Status remove_tree(FileSystem& files, const String& folder);

}  // namespace quern::storage
