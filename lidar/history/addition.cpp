#include "lidar/history/addition.h"

#include <algorithm>
#include <iterator>

#include "codecs/lidar/rays/direction.h"

namespace quern::lidar {
namespace {

constexpr std::int64_t kNearest = 28'000;   ///< units from the axis; what lies nearer is the vehicle
constexpr std::size_t kUnsorted = 1 << 16;  ///< cells of a tile that are kept unsorted

/// Parts of the next epoch that no segment has yet.
using NewParts = std::map<ContentHash, Vector<std::uint8_t>>;

TilePart make_part(std::span<const Cell> cells, NewParts& parts) {
  auto bytes = write_cells(cells);
  const TilePart part{storage::content_hash(bytes), cells.size(), bytes.size()};
  parts.emplace(part.hash, std::move(bytes));
  return part;
}

/// The tile with cells that it does not have. A tile of many parts becomes one of a single part; one that cannot be
/// read begins anew.
Status extend(History& history, const Epoch& epoch, EpochTile& tile, std::span<const Cell> cells, NewParts& parts,
              std::uint64_t& new_cells, Report& report) {
  Report own;
  const auto read = history.read_tile(epoch, tile, own);
  if (!read.ok() && !is_lost(read.status())) {
    report.problem = std::move(own.problem);
    return read.status();
  }
  if (!read.ok()) {
    report.notes.push_back(storage::join({own.problem, "; the tile begins anew with the cells of this addition"}));
    tile.parts.clear();
  }
  const Vector<Cell> had = read.ok() ? *read : Vector<Cell>();
  Vector<Cell> fresh;
  std::set_difference(cells.begin(), cells.end(), had.begin(), had.end(), std::back_inserter(fresh));
  new_cells += fresh.size();
  if (fresh.empty()) return {};
  if (tile.parts.size() < EpochTile::kMostParts) {
    tile.parts.push_back(make_part(fresh, parts));
    return {};
  }
  Vector<Cell> all;
  std::merge(had.begin(), had.end(), fresh.begin(), fresh.end(), std::back_inserter(all));
  tile.parts.clear();
  tile.parts.push_back(make_part(all, parts));
  return {};
}

/// Leaves out tiles that were not seen for the longest time, of equals the first. Returns how many.
std::uint64_t evict(Epoch& epoch, std::uint64_t most_bytes) {
  std::uint64_t bytes = epoch.bytes();
  if (most_bytes == 0 || bytes <= most_bytes) return 0;
  Vector<std::size_t> order;
  for (std::size_t i = 0; i < epoch.tiles.size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return epoch.tiles[a].last_seen < epoch.tiles[b].last_seen; });
  std::uint64_t evicted = 0;
  for (const std::size_t i : order) {
    if (bytes <= most_bytes) break;
    bytes -= epoch.tiles[i].bytes();
    epoch.tiles[i].parts.clear();
    ++evicted;
  }
  std::erase_if(epoch.tiles, [](const EpochTile& tile) { return tile.parts.empty(); });
  return evicted;
}

Status write_segment(History& history, const Epoch& epoch, const NewParts& parts, Added& out, Report& report) {
  SegmentWriter segment(history.files(), history.new_segment_path());
  std::set<ContentHash> written;  // tiles may have the same cells
  for (const EpochTile& tile : epoch.tiles)
    for (const TilePart& part : tile.parts) {
      const auto found = parts.find(part.hash);
      if (found == parts.end() || !written.insert(part.hash).second) continue;
      QUERN_RETURN_IF_ERROR(segment.add(part.hash, found->second, report));
      out.new_bytes += part.bytes;
    }
  if (segment.empty()) return {};
  QUERN_ASSIGN_OR_RETURN(const auto name, segment.finish(report));
  return history.publish_segment(name, report);
}

}  // namespace

void Addition::sort(Cells& cells) {
  std::sort(cells.cells.begin(), cells.cells.end());
  cells.cells.erase(std::unique(cells.cells.begin(), cells.cells.end()), cells.cells.end());
  cells.sorted = cells.cells.size();
}

std::uint64_t Addition::cells() const {
  std::uint64_t sum = 0;
  for (const auto& [key, cells] : tiles_) sum += cells.cells.size();
  return sum;
}

Status Addition::add(const Pose& pose, std::span<const UnitPoint> points) {
  const WorldPoints world(pose);
  for (const UnitPoint& point : points) {
    if (point[0] * point[0] + point[1] * point[1] < kNearest * kNearest) continue;
    const auto placed = world.place(point, cell_units_);
    if (placed) tiles_[placed->first].cells.push_back(placed->second);
  }
  if (!is_place_known(places_, pose)) places_.push_back({pose, context_of(points)});
  for (auto& [key, cells] : tiles_)
    if (cells.cells.size() > 2 * cells.sorted + kUnsorted) sort(cells);
  ++frames_;
  if (cells() <= most_cells_) return {};
  for (auto& [key, cells] : tiles_) sort(cells);
  const std::uint64_t all = cells();
  if (all <= most_cells_) return {};
  return Status(StatusCode::memory_limit, "the scans of one addition have {0} cells, more than memory allows",
                static_cast<std::int64_t>(all));
}

Result<Added> Addition::publish(History& history, Report& report) {
  QUERN_ASSIGN_OR_RETURN(auto base, history.newest(report));
  if (base && base->number >= Epoch::kMostNumber)
    return storage::fail(
        report, StatusCode::invalid_argument,
        storage::join({history.root(), ": its last epoch has the largest number; make another history"}));
  if (frames_ > UINT32_MAX)
    return storage::fail(
        report, StatusCode::invalid_argument,
        storage::join({history.root(), ": an addition has fewer than 2^32 scans; add fewer at a time"}));
  Epoch next;
  if (base) next = *base;
  next.parent = {};
  if (base) next.parent = storage::content_hash(write_epoch(*base));
  next.number = (base ? base->number : 0) + 1;
  next.cell_units = cell_units_;
  next.frames = frames_;
  Added out;
  NewParts parts;
  for (auto& [key, cells] : tiles_) {
    sort(cells);
    const auto at = std::lower_bound(next.tiles.begin(), next.tiles.end(), key,
                                     [](const EpochTile& tile, const TileKey& wanted) { return tile.key < wanted; });
    EpochTile& tile = at != next.tiles.end() && at->key == key ? *at : *next.tiles.insert(at, EpochTile{key, 0, {}});
    QUERN_RETURN_IF_ERROR(extend(history, next, tile, cells.cells, parts, out.new_cells, report));
    tile.last_seen = next.number;
  }
  out.evicted_tiles = evict(next, history.options().most_bytes);
  out.tiles = next.tiles.size();
  QUERN_ASSIGN_OR_RETURN(const auto known, read_places(history, report));
  Vector<Place> places;
  for (const Place& place : places_)
    if (!is_place_known(known, place.pose)) places.push_back(place);
  QUERN_RETURN_IF_ERROR(publish_places(history, places, report));
  QUERN_RETURN_IF_ERROR(write_segment(history, next, parts, out, report));
  out.epoch.number = next.number;
  QUERN_ASSIGN_OR_RETURN(out.epoch.root, history.publish_epoch(next, report));
  return out;
}

}  // namespace quern::lidar
