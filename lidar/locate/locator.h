// Finds where scans without poses were made, in a history. Only encoders do so: the pose that is found is stored.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "lidar/history/history_tiles.h"
#include "lidar/history/places.h"
#include "lidar/locate/surface_map.h"

namespace quern::lidar {

/// Takes the scans of a drive in order. Of each it tries first where the ones before lead to, then the places that look
/// most alike. A pose is accepted only where at least half of a tenth of the points, which took no part in finding it,
/// lie within 10 cm of what the history has, and where it does not jump. After three scans in a row without a place
/// only each 16th is looked at until one is found: a drive elsewhere costs little.
class Locator {
 public:
  /// `tiles` outlives this. One thread at a time.
  Locator(HistoryTiles& tiles, const ContentHash& epoch, Vector<Place> places);

  /// Points in the sensor's coordinates. Nothing where no pose holds; none holds where tiles are lost or too large for
  /// the memory limit. Fails where the epoch is lost or the system refuses. May throw std::bad_alloc.
  Result<std::optional<Pose>> locate(std::span<const UnitPoint> scan);

 private:
  struct Scan {
    Vector<Spot> used;  ///< to find a pose
    Vector<Spot> held;  ///< to accept it
  };
  struct Found {
    Pose pose;
    double share = 0;
  };
  /// Sums of heights in each ring of a context, the same however the sensor is turned.
  using RingSums = std::array<std::int32_t, ScanContext::kRings>;

  static constexpr std::size_t kCompared = 128;  ///< places whose sums are nearest, compared in every direction
  static constexpr std::size_t kCandidates = 5;
  static constexpr std::uint64_t kMostMisses = 3;
  static constexpr std::uint64_t kLookEvery = 16;
  static constexpr std::uint64_t kReach = 2;  ///< tiles around a pose

  static RingSums sums_of(const ScanContext& context);
  static Scan split(std::span<const UnitPoint> scan);
  Result<const SurfaceMap*> map_around(const Pose& pose);
  Result<std::optional<Found>> refine(const Scan& scan, const Pose& from);
  Vector<std::size_t> alike_in_rings(const ScanContext& context) const;
  Vector<Pose> alike(std::span<const UnitPoint> scan) const;
  std::optional<Pose> expected() const;
  bool jumps(const Pose& pose) const;

  HistoryTiles& tiles_;
  ContentHash epoch_;
  Vector<Place> places_;
  Vector<RingSums> sums_;     ///< of each place
  std::uint64_t misses_ = 0;  ///< scans in a row without a place, those too that were not looked at
  TileKey map_tile_;
  std::unique_ptr<SurfaceMap> map_;
  Vector<Pose> last_;  ///< of the scans just before, the newest last, at most two
};

}  // namespace quern::lidar
