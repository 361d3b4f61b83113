#include "lidar/history/care.h"

#include <algorithm>

#include "lidar/history/parity_sets.h"
#include "lidar/history/places.h"

namespace quern::lidar {
namespace {

using storage::join;

/// What the epochs that stay need.
Result<std::set<ContentHash>> needed_parts(const History& history, const Vector<EpochName>& names, Report& report) {
  std::set<ContentHash> needed;
  for (const EpochName& name : names) {
    QUERN_ASSIGN_OR_RETURN(const auto epoch, history.read(name, report));
    for (const EpochTile& tile : epoch.tiles)
      for (const TilePart& part : tile.parts) needed.insert(part.hash);
  }
  return needed;
}

/// Takes epochs whose files are damaged from the names, and returns them.
Result<Vector<EpochName>> take_damaged(const History& history, Vector<EpochName>& names, Report& report) {
  Vector<EpochName> damaged, whole;
  for (const EpochName& name : names) {
    Report own;
    const Status status = history.read(name, own).status();
    if (!status.ok() && !is_lost(status)) {
      report = own;
      return status;
    }
    (status.ok() ? whole : damaged).push_back(name);
  }
  names = std::move(whole);
  return damaged;
}

Status remove_file(const History& history, const String& path, Report& report) {
  const Status status = history.files().remove(path);
  return status.ok() ? status : storage::fail_file(report, path, "remove it", status);
}

Status sync(const History& history, const String& folder, Report& report) {
  const Status status = history.files().sync_folder(folder);
  return status.ok() ? status : storage::fail_file(report, folder, "sync it", status);
}

/// Removes segments, or moves what stays of them to one new segment.
class Segments {
 public:
  Segments(History& history, std::set<ContentHash> needed, bool dry_run)
      : history_(history), needed_(std::move(needed)), dry_run_(dry_run) {}

  /// Files that stay and lost their parity.
  std::uint64_t without_parity() const { return without_parity_; }

  Status collect(std::uint64_t& freed, Report& report) {
    QUERN_ASSIGN_OR_RETURN(const auto all, history_.segments(report));
    for (const auto& segment : all)
      for (const PartPlace& part : segment.parts) ++copies_[part.hash];
    for (const auto& segment : all) QUERN_RETURN_IF_ERROR(choose(segment, report));
    freed += old_bytes_ - std::min(moved_bytes_, old_bytes_);
    if (dry_run_ || old_.empty()) return {};
    if (!moved_.empty()) QUERN_RETURN_IF_ERROR(move(report));
    std::set<String> going;
    for (const String& name : old_) going.insert(join({"segments/", name}));
    QUERN_ASSIGN_OR_RETURN(const auto left, remove_parity_of(history_, going, report));
    without_parity_ += left;
    for (const String& name : old_) QUERN_RETURN_IF_ERROR(remove_file(history_, history_.segment_path(name), report));
    history_.forget_segments();
    return sync(history_, history_.segments_folder(), report);
  }

 private:
  struct Moved {
    String segment;
    PartPlace part;
  };

  Result<std::unique_ptr<storage::File>> open(const String& segment, Report& report) {
    const String path = history_.segment_path(segment);
    auto file = history_.files().open(path);
    if (!file.ok()) return storage::fail_file(report, path, "open it", file.status());
    return file;
  }

  /// Whether the part is there with the bytes of its hash. Fails where the system refuses to read.
  Result<bool> holds(storage::File& file, const Moved& one, Report& report) {
    const auto bytes = read_part_bytes(file, one.part);
    if (bytes.ok()) return true;
    if (is_lost(bytes.status())) return false;
    return storage::fail_file(report, history_.segment_path(one.segment), "read it", bytes.status());
  }

  Status choose(const History::Segment& segment, Report& report) {
    QUERN_ASSIGN_OR_RETURN(const auto file, open(segment.name, report));
    std::uint64_t stays = 0;
    Vector<Moved> live;
    for (const PartPlace& part : segment.parts) {
      if (needed_.count(part.hash) == 0 || seen_.count(part.hash) != 0) continue;
      const Moved one{segment.name, part};
      if (copies_.at(part.hash) > 1) {
        QUERN_ASSIGN_OR_RETURN(const bool good, holds(*file, one, report));
        if (!good) continue;
        seen_.insert(part.hash);  // what stands twice stays once
      }
      stays += part.bytes;
      live.push_back(one);
    }
    QUERN_ASSIGN_OR_RETURN(const auto bytes, history_.file_bytes(history_.segment_path(segment.name), report));
    // A damaged index may hide parts that somebody wants to save.
    if (!segment.whole || 2 * stays >= bytes) return {};
    // A damaged part does not move, so what is left of it stays.
    for (const Moved& one : live) {
      QUERN_ASSIGN_OR_RETURN(const bool good, holds(*file, one, report));
      if (!good) return {};
    }
    old_.push_back(segment.name);
    old_bytes_ += bytes;
    moved_bytes_ += stays;
    moved_.insert(moved_.end(), live.begin(), live.end());
    return {};
  }

  Status move(Report& report) {
    SegmentWriter writer(history_.files(), history_.new_segment_path());
    for (const Moved& one : moved_) {
      QUERN_ASSIGN_OR_RETURN(const auto file, open(one.segment, report));
      const auto bytes = read_part_bytes(*file, one.part);
      if (!bytes.ok()) return storage::fail_file(report, history_.segment_path(one.segment), "read it", bytes.status());
      QUERN_RETURN_IF_ERROR(writer.add(one.part.hash, *bytes, report));
    }
    QUERN_ASSIGN_OR_RETURN(const auto name, writer.finish(report));
    const String made = storage::hex(name);
    std::erase(old_, made);
    return history_.publish_segment(name, report);
  }

  History& history_;
  std::set<ContentHash> needed_;
  bool dry_run_;
  std::map<ContentHash, std::size_t> copies_;
  std::set<ContentHash> seen_;  ///< parts with several copies of which a good one was found
  Vector<String> old_;
  Vector<Moved> moved_;
  std::uint64_t old_bytes_ = 0;
  std::uint64_t moved_bytes_ = 0;
  std::uint64_t without_parity_ = 0;
};

}  // namespace

Result<HistoryCheck> check_history(History& history, Report& report) {
  HistoryCheck out;
  const auto damaged = [&](Report& own) { out.damage.push_back(std::move(own.problem)); };
  QUERN_ASSIGN_OR_RETURN(const auto segments, history.segments(report));
  for (const auto& segment : segments) {
    const auto file = history.files().open(history.segment_path(segment.name));
    if (!segment.whole || !file.ok() || !heads_hold(**file, segment.parts))
      out.damage.push_back(join({history.segment_path(segment.name), ": a head or its index is damaged"}));
  }
  Report places;
  if (const Status status = read_places(history, places).status(); !status.ok()) {
    report = places;
    return status;
  }
  out.damage.insert(out.damage.end(), places.notes.begin(), places.notes.end());
  std::set<ContentHash> stored, looked_at;
  for (const auto& segment : segments)
    for (const PartPlace& part : segment.parts) stored.insert(part.hash);
  QUERN_ASSIGN_OR_RETURN(const auto names, history.epochs(report));
  for (const EpochName& name : names) {
    ++out.epochs;
    Report own;
    const auto epoch = history.read(name, own);
    if (!epoch.ok()) {
      damaged(own);
      continue;
    }
    out.tiles += epoch->tiles.size();
    for (const EpochTile& tile : epoch->tiles)
      for (const TilePart& part : tile.parts) {
        if (!looked_at.insert(part.hash).second) continue;
        if (history.is_bundle() && stored.count(part.hash) == 0) {
          ++out.left_out;
          continue;
        }
        ++out.parts;
        own = Report();
        const auto bytes = history.read_part(tile, part, own);
        if (!bytes.ok()) {
          damaged(own);
        } else if (const auto cells = read_cells(*bytes, epoch->cell_units);
                   !cells.ok() || cells->size() != part.cells) {
          out.damage.push_back(join({tile_text(tile.key), ": its part ", storage::hex(part.hash), " holds no cells"}));
        }
      }
  }
  return out;
}

Result<CollectedHistory> collect_history(History& history, const CollectHistory& options, Report& report) {
  QUERN_ASSIGN_OR_RETURN(auto names, history.epochs(report));
  for (const ContentHash& root : options.roots)
    if (std::none_of(names.begin(), names.end(), [&](const EpochName& name) { return name.root == root; }))
      return storage::fail(
          report, StatusCode::io_error,
          join({history.root(), ": the epoch ", storage::hex(root), " of a drive is not in this history"}));
  CollectedHistory out;
  Vector<EpochName> stay;
  if (options.damaged_too) {
    QUERN_ASSIGN_OR_RETURN(out.removed, take_damaged(history, names, report));
    if (names.empty() && !out.removed.empty())
      return storage::fail(report, StatusCode::corrupt, join({history.root(), ": every epoch is damaged"}));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool stays = names.size() - i <= options.keep ||
                       std::find(options.roots.begin(), options.roots.end(), names[i].root) != options.roots.end();
    (stays ? stay : out.removed).push_back(names[i]);
  }
  QUERN_ASSIGN_OR_RETURN(auto needed, needed_parts(history, stay, report));
  if (!options.dry_run) {
    std::set<String> going;
    for (const EpochName& name : out.removed) going.insert(history.epoch_path(name).substr(history.root().size() + 1));
    QUERN_ASSIGN_OR_RETURN(out.without_parity, remove_parity_of(history, going, report));
  }
  for (const EpochName& name : out.removed) {
    QUERN_ASSIGN_OR_RETURN(const auto bytes, history.file_bytes(history.epoch_path(name), report));
    out.freed_bytes += bytes;
    if (!options.dry_run) QUERN_RETURN_IF_ERROR(remove_file(history, history.epoch_path(name), report));
  }
  // No epoch is ever there without its parts.
  if (!options.dry_run && !out.removed.empty()) QUERN_RETURN_IF_ERROR(sync(history, history.epochs_folder(), report));
  Segments segments(history, std::move(needed), options.dry_run);
  QUERN_RETURN_IF_ERROR(segments.collect(out.freed_bytes, report));
  out.without_parity += segments.without_parity();
  return out;
}

}  // namespace quern::lidar
