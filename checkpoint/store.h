// A store is a folder: data/<id>/ with parts, manifests/<step>-<id>, tmp/ for what is being written, LATEST as a hint.
// Here: where things are, which checkpoints there are and whether they hold together.
#pragma once

#include <string_view>

#include "checkpoint/file_system.h"
#include "checkpoint/manifest.h"
#include "checkpoint/report.h"

namespace quern::checkpoint {

/// Names of files and folders; makes nothing.
class Store {
 public:
  Store(FileSystem& files, String root) : files_(&files), root_(std::move(root)) {}

  FileSystem& files() const { return *files_; }
  const String& root() const { return root_; }
  String data_root() const { return join({root_, "/data"}); }
  String manifests_root() const { return join({root_, "/manifests"}); }
  String tmp_root() const { return join({root_, "/tmp"}); }
  String lock_path() const { return join({root_, "/lock"}); }
  String latest_path() const { return join({root_, "/LATEST"}); }
  String data_folder(std::string_view id) const { return join({root_, "/data/", id}); }
  String tmp_folder(std::string_view id) const { return join({root_, "/tmp/", id}); }
  String tmp_lock(std::string_view id) const { return join({root_, "/tmp/", id, ".lock"}); }
  String manifest_path(const CheckpointName& name) const;

  /// Makes the folders that are missing, durably.
  Status make_folders(Report& report) const;
  /// Fails unless the folder looks like a store.
  Status check_is_store(Report& report) const;

  /// Checkpoints by the names of their manifests, oldest step first.
  Result<Vector<CheckpointName>> list(Report& report) const;
  /// Reads a manifest and checks that it is the one its name says.
  Result<Manifest> read(const CheckpointName& name, Report& report) const;
  /// Also checks that every part is there, with its size, header and index.
  Result<Manifest> read_checked(const CheckpointName& name, Report& report) const;
  /// The newest that read_checked and its references accept; the reason for passing over others becomes a note.
  Result<Manifest> newest(Report& report) const;
  /// The one of that step; of several the first that holds.
  Result<Manifest> at_step(std::uint64_t step, Report& report) const;

 private:
  Status check_references(const Manifest& manifest, Report& report) const;
  FileSystem* files_;
  String root_;
};

/// "part-0003", "parity-0000", "sub-0001".
String numbered_name(std::string_view kind, std::uint32_t number);
/// "000000000400-0f3a..." and back.
String manifest_file_name(const CheckpointName& name);
std::optional<CheckpointName> parse_manifest_file_name(std::string_view name);

PartIdentity part_identity(const CheckpointName& name, std::uint32_t number);

/// Writes a new file, syncs it, and renames it to its place; `temporary` and `path` lie in folders that exist. The
/// folder of `path` is synced.
Status publish_file(FileSystem& files, const String& temporary, const String& path, const String& folder,
                    std::span<const std::uint8_t> bytes, Report& report);

}  // namespace quern::checkpoint
