// A store is a folder: data/<id>/ with parts, manifests/<step>.<generation>-<id>, tmp/ for what is being written,
// LATEST as a hint. Here: where things are, which checkpoints there are and whether they hold together.
#pragma once

#include <memory>
#include <string_view>

#include "checkpoint/placement/placed_files.h"
#include "checkpoint/storage.h"
#include "checkpoint/store/manifest.h"

namespace quern::checkpoint {

/// Names of files and folders; makes nothing.
class Store {
 public:
  /// Of a folder that holds everything; open() for one whose parts may lie on nodes.
  Store(FileSystem& files, String root) : files_(&files), root_(std::move(root)) {}
  /// Reads where the store's parts lie. Fails where that file is there and cannot be used.
  static Result<Store> open(FileSystem& files, const String& root, Report& report);
  /// The same store on files that pass everything on to those of this one, which lives as long.
  Store over(FileSystem& files) const {
    Store out(*this);
    out.files_ = &files;
    return out;
  }

  /// The copies of a checkpoint's manifest beside its parts, those that can be read.
  Vector<Vector<std::uint8_t>> manifest_copies(std::string_view id) const;

  /// Null: all lies in the store's folder.
  const PlacedFiles* placed() const { return placed_.get(); }

  FileSystem& files() const { return *files_; }
  const String& root() const { return root_; }
  String data_root() const { return join({root_, "/data"}); }
  String manifests_root() const { return join({root_, "/manifests"}); }
  String tmp_root() const { return join({root_, "/tmp"}); }
  String lock_path() const { return join({root_, "/lock"}); }
  /// Held while a checkpoint gets its generation and its name.
  String order_lock_path() const { return join({root_, "/order"}); }
  String latest_path() const { return join({root_, "/LATEST"}); }
  String data_folder(std::string_view id) const { return join({root_, "/data/", id}); }
  String tmp_folder(std::string_view id) const { return join({root_, "/tmp/", id}); }
  String tmp_lock(std::string_view id) const { return join({root_, "/tmp/", id, ".lock"}); }
  String manifest_path(const CheckpointName& name) const;
  /// Where the manifest of a removed checkpoint lies while others need tensors of it.
  String retired_path(const CheckpointName& name) const;

  /// Makes the folders that are missing, durably.
  Status make_folders(Report& report) const;
  /// Fails when the other store is this one, under another path or by a link: what were removed here would be gone there.
  Status check_apart(const Store& other, Report& report) const;
  /// Fails where this object does not know where the store's parts lie by now, or another folder owns its nodes. For
  /// whatever saves, removes or mends, with the lock held.
  Status check_writable(Report& report) const;
  /// Fails unless the folder looks like a store.
  Status check_is_store(Report& report) const;

  /// Checkpoints by the names of their manifests, in the order they were published; those without a generation come
  /// first, by step. A step that was saved again stands twice until its former checkpoint is removed.
  Result<Vector<CheckpointName>> list(Report& report) const;
  /// The same without those whose step was saved again later.
  Result<Vector<CheckpointName>> list_current(Report& report) const;
  /// Removed checkpoints of which others need tensors.
  Result<Vector<CheckpointName>> list_retired(Report& report) const;
  /// list() and then list_retired(): one that is retired meanwhile stands in both, and none is missed.
  Result<Vector<CheckpointName>> list_all(Report& report) const;
  /// Reads a manifest, also a retired one, and checks that it is the one its name says.
  Result<Manifest> read(const CheckpointName& name, Report& report) const;
  /// Also checks that every part is there, with its size, header and index.
  Result<Manifest> read_checked(const CheckpointName& name, Report& report) const;
  /// Fails unless the manifests and parts that the checkpoint's tensors need of others are there.
  Status check_needs(const Manifest& manifest, Report& report) const;
  /// The newest that read_checked and check_needs accept, of those older than `before` if one is given; the reason for
  /// passing over others becomes a note.
  Result<Manifest> newest(Report& report, const CheckpointName* before = nullptr) const;
  /// The one of that step that was published last, by read_checked. When it is damaged there is none: an earlier one of
  /// the step has other values.
  Result<Manifest> at_step(std::uint64_t step, Report& report) const;

 private:
  Result<Vector<CheckpointName>> names_in_order(bool retired, Report& report) const;
  Status check_part(const Manifest& manifest, std::uint32_t number, Report& report) const;
  FileSystem* files_;
  String root_;
  std::shared_ptr<PlacedFiles> placed_;
};

/// "part-0003", "parity-0000", "sub-0001".
String numbered_name(std::string_view kind, std::uint32_t number);
/// "000000000400.17-0f3a...", without a generation "000000000400-0f3a...", and back.
String manifest_file_name(const CheckpointName& name);
std::optional<CheckpointName> parse_manifest_file_name(std::string_view name);

PartIdentity part_identity(const CheckpointName& name, std::uint32_t number);

}  // namespace quern::checkpoint
