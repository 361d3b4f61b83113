// Places: where scans of a history were made, each with what the surroundings look like from there, so that scans
// without poses find where they belong. Encoders alone read them: a place that is lost costs bytes and nothing else.
// Stored form: docs/format-history.md, 9.
#pragma once

#include <array>

#include "lidar/history/history.h"

namespace quern::lidar {

/// The surroundings of a sensor from above, turned with it: the greatest height in each field of 3 m by 6 degrees, in
/// 0.1 m from 3 m below the sensor on, and 1; 0: nothing there (Kim and Kim, Scan Context, IROS 2018).
struct ScanContext {
  static constexpr std::size_t kRings = 20;
  static constexpr std::size_t kSectors = 60;

  std::array<std::uint8_t, kRings * kSectors> heights{};  ///< sector after sector

  bool operator==(const ScanContext&) const = default;
};

/// Points in the sensor's coordinates. O(points).
ScanContext context_of(std::span<const UnitPoint> scan);

/// How much two contexts differ, 0 to 1, and by how many sectors the first must be turned to resemble the second most.
struct ContextMatch {
  double distance = 1;
  std::size_t turn = 0;
};
ContextMatch match(const ScanContext& a, const ScanContext& b);

/// The direction in which a sector begins.
struct SectorDirection {
  double cosine = 1;
  double sine = 0;
};
SectorDirection sector_direction(std::size_t sector);

struct Place {
  Pose pose;
  ScanContext context;
};

/// Places of a history nearer to each other than this are one.
inline constexpr std::int64_t kPlaceUnits = 50'000;
/// Whether a place lies so near to one of these.
bool is_place_known(std::span<const Place> places, const Pose& pose);

/// May throw std::bad_alloc.
Vector<std::uint8_t> write_places(std::span<const Place> places);
/// Any bytes are safe. Fails with `corrupt` or `unsupported_version`; allocates in proportion to `bytes`.
Result<Vector<Place>> read_places(std::span<const std::uint8_t> bytes);

/// The places of all files of a history that can be read; a damaged file is a note, and so is one that would make more
/// than `most_bytes` of the files that are used. At most about twice as many bytes of memory are held meanwhile.
Result<Vector<Place>> read_places(const History& history, Report& report, std::uint64_t most_bytes = UINT64_MAX);
/// Publishes places under the hash of their bytes; the caller holds the history's lock.
Status publish_places(History& history, std::span<const Place> places, Report& report);

}  // namespace quern::lidar
