// The files of a store whose parts and parity files lie on nodes: the store works with data/<id>/part-0003 and the like
// as if all lay in its folder, and this finds the node. Everything but parts, parity files and their folders lies in the
// store's own folder; copies of manifests lie there and on every node.
//
// What is read is looked for on all nodes, so a part is found wherever it was written. What is written goes by the
// placement: part i to node i, parity file j to node data + j. A mended file goes where the damaged one is, else to a
// node that has none of that checkpoint, else into the store's folder. A node that is gone looks like one that is empty.
#pragma once

#include <functional>
#include <mutex>
#include <set>

#include "checkpoint/placement/placement_file.h"

namespace quern::checkpoint {

class PlacedFiles final : public FileSystem {
 public:
  /// Null where the store at `root` is not placed. `base` lives as long.
  static Result<std::shared_ptr<PlacedFiles>> open(FileSystem& base, const String& root, Report& report);

  /// The placement of now; that of the file, whenever the store's lock is taken.
  std::shared_ptr<const Placement> placement() const;
  /// Fails, and names the node, when a chosen node is not there. Before a save, which would fail without saying which.
  Status check_nodes(Report& report) const;
  /// A sentence for each node that is not there, also those of earlier placements.
  Vector<String> absent_nodes() const;
  /// The copies of a manifest, data/<id>/manifest, that can be read: the store's own first, then those of nodes.
  Vector<Vector<std::uint8_t>> read_copies(std::string_view path, std::uint64_t limit) const;
  /// check_owner() of the placement of now.
  Status check_owner(Report& report) const;

  Result<std::unique_ptr<File>> open(std::string_view path) override;
  Result<std::unique_ptr<File>> create(std::string_view path) override;
  /// Of a folder from tmp/ to data/: on every chosen node, the store's own folder last.
  Status rename(std::string_view from, std::string_view to) override;
  Status remove(std::string_view path) override;
  Status make_folder(std::string_view path) override;
  Status remove_folder(std::string_view path) override;
  Result<Vector<String>> list(std::string_view path) override;
  Result<bool> is_link(std::string_view path) override;
  Status sync_folder(std::string_view path) override;
  Result<std::unique_ptr<FileLock>> lock(std::string_view path, LockKind kind, bool wait) override;
  Result<String> new_name() override { return base_.new_name(); }
  Result<std::unique_ptr<WriteQueue>> create_queue(std::string_view path, unsigned depth) override;
  Result<String> identity(std::string_view path) override { return base_.identity(path); }

 private:
  /// What a path of the store is.
  enum class Kind {
    other,
    area,    ///< data, tmp
    folder,  ///< of a checkpoint in one of them
    piece,   ///< a part or a parity file in such a folder
    mended,  ///< tmp/<id>.part-0003: what takes the place of a piece
    copy,    ///< data/<id>/manifest
    file     ///< any other file of a checkpoint in data or tmp
  };
  struct Place {
    Kind kind = Kind::other;
    std::string_view rest;  ///< behind the store's folder
    std::string_view id;
    std::string_view file;     ///< "part-0003"; empty unless it is a file of a checkpoint
    std::uint32_t number = 0;  ///< of a piece
    bool is_parity = false;
  };
  PlacedFiles(FileSystem& base, String root) : base_(base), root_(std::move(root)) {}
  Place classify(std::string_view path) const;
  /// Reads the file again; true when the placement changed.
  Result<bool> reload(Report& report);
  String target(const Placement& placement, const Place& place);
  Vector<String> mend_targets(const Placement& placement, const Place& place);
  /// Tries one place after the other while they are full, broken or cannot be written.
  Status try_targets(const Vector<String>& targets, const std::function<Status(const String&)>& work);
  void touch(const Placement& placement, std::string_view path);
  bool is_touched(const Placement& placement, std::size_t node) const;
  std::optional<String> find(const Placement& placement, const Place& place, Status& problem);
  /// What `work` says of a node with files that cannot matter is passed over.
  enum class Everywhere { sync, removal };
  Status everywhere(const Placement& placement, const Place& place, Everywhere what,
                    const std::function<Status(const String&)>& work);
  Status publish_folder(const Placement& placement, const Place& from, const Place& to);
  Status put_piece(const Placement& placement, const String& from, const Place& to);
  Status put_copy(const Placement& placement, const String& from, const Place& to);
  Status put_copy_at(const String& from, const String& base, std::string_view id);
  Status copy_file(const String& from, const String& to);

  FileSystem& base_;
  const String root_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Placement> placement_;  ///< under mutex_
  std::set<String> touched_;                    ///< folders of nodes that were written; under mutex_
};

}  // namespace quern::checkpoint
