#include "lidar/locate/locator.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace quern::lidar {
namespace {

constexpr std::int64_t kNearest = 28'000;  ///< units from the axis; what lies nearer is the vehicle
constexpr std::int64_t kFarthest = 600'000;
constexpr std::size_t kMostUsed = 6'000;
constexpr std::size_t kHeldEvery = 10;
constexpr double kLeastShare = 0.5;
constexpr double kMostJump = 0.3;  ///< metres beside what is expected, and a fifth of the step

std::array<std::int64_t, 3> origin_of(const TileKey& key) {
  return {key.x * kTileUnits, key.y * kTileUnits, key.z * kTileUnits};
}

double distance(const Pose& a, const Pose& b) {
  double square = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const double off = static_cast<double>(a.translation[i] - b.translation[i]) / 1e4;
    square += off * off;
  }
  return std::sqrt(square);
}

Spot spot_of(const UnitPoint& point) {
  return {static_cast<double>(point[0]) / 1e4, static_cast<double>(point[1]) / 1e4,
          static_cast<double>(point[2]) / 1e4};
}

}  // namespace

Locator::Locator(HistoryTiles& tiles, const ContentHash& epoch, Vector<Place> places)
    : tiles_(tiles), epoch_(epoch), places_(std::move(places)) {
  sums_.reserve(places_.size());
  for (const Place& place : places_) sums_.push_back(sums_of(place.context));
}

Locator::RingSums Locator::sums_of(const ScanContext& context) {
  RingSums out{};
  for (std::size_t i = 0; i < context.heights.size(); ++i) out[i % ScanContext::kRings] += context.heights[i];
  return out;
}

Locator::Scan Locator::split(std::span<const UnitPoint> scan) {
  Vector<Spot> all;
  for (const UnitPoint& point : scan) {
    const std::int64_t square = point[0] * point[0] + point[1] * point[1];
    if (square >= kNearest * kNearest && square < kFarthest * kFarthest) all.push_back(spot_of(point));
  }
  Scan out;
  const std::size_t stride = std::max<std::size_t>(1, all.size() / kMostUsed);
  std::size_t rest = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i % kHeldEvery == kHeldEvery - 1) {
      out.held.push_back(all[i]);
    } else if (rest++ % stride == 0) {
      out.used.push_back(all[i]);
    }
  }
  return out;
}

Result<const SurfaceMap*> Locator::map_around(const Pose& pose) {
  const TileKey tile = tile_of(pose);
  if (map_ != nullptr && map_tile_ == tile) return map_.get();
  QUERN_ASSIGN_OR_RETURN(const auto points, tiles_.points_around(epoch_, kReach, pose));
  Vector<Spot> spots;
  spots.reserve(points.size());
  for (const UnitPoint& point : points) spots.push_back(spot_of(point));
  map_ = std::make_unique<SurfaceMap>(spots);
  map_tile_ = tile;
  return map_.get();
}

Result<std::optional<Locator::Found>> Locator::refine(const Scan& scan, const Pose& from) {
  if (scan.held.empty()) return std::optional<Found>();
  const auto found = map_around(from);
  if (!found.ok()) {
    if (!is_lost(found.status()) && found.status().code() != StatusCode::memory_limit) return found.status();
    // Tiles that are lost are of no use here; without the epoch no frame finds anything.
    QUERN_RETURN_IF_ERROR(tiles_.check_epoch(epoch_));
    return std::optional<Found>();
  }
  const SurfaceMap* const map = *found;
  const auto origin = origin_of(map_tile_);
  Rigid at = rigid_of(from, origin);
  at = align(*map, scan.used, at, 0, 20);
  at = align(*map, scan.used, at, 1, 15);
  at = align(*map, scan.used, at, 2, 15);
  const auto pose = pose_of(at, origin);
  if (!pose) return std::optional<Found>();
  const Rigid stored = rigid_of(*pose, origin);
  std::size_t near = 0;
  for (const Spot& point : scan.held) near += map->is_near(stored(point)) ? 1 : 0;
  return std::optional(Found{*pose, static_cast<double>(near) / static_cast<double>(scan.held.size())});
}

Vector<std::size_t> Locator::alike_in_rings(const ScanContext& context) const {
  const RingSums sums = sums_of(context);
  Vector<std::pair<std::int32_t, std::size_t>> all;
  all.reserve(sums_.size());
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    std::int32_t off = 0;
    for (std::size_t ring = 0; ring < sums.size(); ++ring) off += std::abs(sums[ring] - sums_[i][ring]);
    all.emplace_back(off, i);
  }
  const std::size_t count = std::min(kCompared, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end());
  Vector<std::size_t> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(all[i].second);
  return out;
}

Vector<Pose> Locator::alike(std::span<const UnitPoint> scan) const {
  const ScanContext context = context_of(scan);
  Vector<std::pair<double, Pose>> all;
  for (const std::size_t index : alike_in_rings(context)) {
    const Place& place = places_[index];
    const ContextMatch found = match(context, place.context);
    // A scan whose sectors are the place's some further on is turned by so many.
    const SectorDirection twice = sector_direction(found.turn);
    const double half = std::sqrt(std::fmax(0, (1 + twice.cosine) / 2));
    const double other = std::sqrt(std::fmax(0, (1 - twice.cosine) / 2));
    const Rigid turn{{half, 0, 0, twice.sine < 0 ? -other : other}, {}};
    if (const auto pose = pose_of(rigid_of(place.pose, place.pose.translation).after(turn), place.pose.translation))
      all.emplace_back(found.distance, *pose);
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  Vector<Pose> out;
  for (const auto& [off, pose] : all)
    if (out.size() < kCandidates) out.push_back(pose);
  return out;
}

std::optional<Pose> Locator::expected() const {
  if (last_.empty()) return std::nullopt;
  if (last_.size() == 1) return last_.back();
  const auto& origin = last_.back().translation;
  const Rigid before = rigid_of(last_.front(), origin), now = rigid_of(last_.back(), origin);
  return pose_of(now.after(before.inverse().after(now)), origin);
}

bool Locator::jumps(const Pose& pose) const {
  if (last_.size() < 2) return false;
  const auto there = expected();
  return there && distance(pose, *there) > kMostJump + 0.2 * distance(last_.front(), last_.back());
}

Result<std::optional<Pose>> Locator::locate(std::span<const UnitPoint> scan) {
  if (misses_ >= kMostMisses && (misses_ - kMostMisses) % kLookEvery != kLookEvery - 1) {
    ++misses_;
    return std::optional<Pose>();
  }
  const Scan parts = split(scan);
  std::optional<Found> best;
  const auto attempt = [&](const Pose& from) -> Status {
    QUERN_ASSIGN_OR_RETURN(const auto found, refine(parts, from));
    if (found && found->share >= kLeastShare && (!best || found->share > best->share)) best = *found;
    return {};
  };
  if (const auto there = expected()) {
    QUERN_RETURN_IF_ERROR(attempt(*there));
    if (best && jumps(best->pose)) best.reset();
  }
  if (!best) {
    last_.clear();
    for (const Pose& pose : alike(scan)) QUERN_RETURN_IF_ERROR(attempt(pose));
  }
  if (!best) {
    ++misses_;
    return std::optional<Pose>();
  }
  misses_ = 0;
  last_.push_back(best->pose);
  if (last_.size() > 2) last_.erase(last_.begin());
  return std::optional(best->pose);
}

}  // namespace quern::lidar
