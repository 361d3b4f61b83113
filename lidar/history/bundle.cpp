// Bundles: histories of the tiles that some drives need, which appear whole or not at all.
#include <new>

#include "lidar/history/history.h"

namespace quern::lidar {
namespace {

/// A folder of a history on its way, which is removed unless it is finished; also where memory runs out.
class UnfinishedFolder {
 public:
  UnfinishedFolder(storage::FileSystem& files, String path) : files_(files), path_(std::move(path)) {
    for (const char* const name : {"/epochs", "/segments", "/tmp", ""})
      folders_.push_back(storage::join({path_, name}));
  }
  UnfinishedFolder(const UnfinishedFolder&) = delete;
  UnfinishedFolder& operator=(const UnfinishedFolder&) = delete;
  ~UnfinishedFolder() {
    if (finished_) return;
    try {
      for (const String& folder : folders_) (void)storage::remove_tree(files_, folder);
    } catch (const std::bad_alloc&) {
      // What is left has a name that nobody reads.
    }
  }
  const String& path() const { return path_; }
  void keep() { finished_ = true; }

 private:
  storage::FileSystem& files_;
  String path_;
  Vector<String> folders_;
  bool finished_ = false;
};

}  // namespace

Status History::fill_bundle(History& made, const NeededTiles& needed, Report& report) {
  SegmentWriter segment(*files_, made.new_segment_path());
  std::set<ContentHash> written;
  for (const auto& [root, keys] : needed) {
    QUERN_ASSIGN_OR_RETURN(const auto epoch, read(root, report));
    for (const TileKey& key : keys) {
      const EpochTile* const tile = epoch.find(key);
      if (tile == nullptr) continue;
      for (const TilePart& part : tile->parts) {
        if (!written.insert(part.hash).second) continue;
        QUERN_ASSIGN_OR_RETURN(const auto bytes, read_part(*tile, part, report));
        QUERN_RETURN_IF_ERROR(segment.add(part.hash, bytes, report));
      }
    }
    QUERN_ASSIGN_OR_RETURN(const auto same, made.publish_epoch(epoch, report));
    if (same != root)
      return storage::fail(report, StatusCode::internal,
                           storage::join({root_, ": an epoch got another root as it was copied"}));
  }
  if (segment.empty()) return {};
  QUERN_ASSIGN_OR_RETURN(const auto segment_name, segment.finish(report));
  return made.publish_segment(segment_name, report);
}

Status History::bundle(const String& out, const NeededTiles& needed, Report& report) {
  String name = out;
  while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  if (files_->list(name).ok() || files_->open(name).ok())
    return storage::fail(report, StatusCode::io_error, storage::join({name, ": there is something already"}));
  QUERN_ASSIGN_OR_RETURN(const String id, files_->new_name());
  UnfinishedFolder made(*files_, storage::join({name, ".", id}));
  QUERN_RETURN_IF_ERROR(storage::make_with_parents(*files_, made.path(), report));
  QUERN_RETURN_IF_ERROR(make(*files_, made.path(), options_, true, report));
  History bundle(*files_, made.path());
  QUERN_RETURN_IF_ERROR(fill_bundle(bundle, needed, report));
  const Status renamed = files_->rename(made.path(), name);
  if (!renamed.ok()) return storage::fail_file(report, name, "put it in place", renamed);
  made.keep();
  const String above = storage::parent_of(name);
  const Status status = files_->sync_folder(above);
  return status.ok() ? status : storage::fail_file(report, above, "sync it", status);
}

}  // namespace quern::lidar
