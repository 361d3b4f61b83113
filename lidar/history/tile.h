// The surroundings as cells of a grid that is fixed to the world, in cubes of 32 m. All numbers are whole.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <utility>

#include <quern/memory.h>
#include <quern/status.h>

#include "lidar/predict/scan_predictor.h"

namespace quern::lidar {

/// A side of a tile in units of 0.1 mm.
inline constexpr std::int64_t kTileUnits = 320'000;

/// A tile spans key * kTileUnits to (key + 1) * kTileUnits on each axis of the world.
struct TileKey {
  static constexpr std::int64_t kMost = Pose::kMostTranslation / kTileUnits - 1;

  std::int64_t x = 0;
  std::int64_t y = 0;
  std::int64_t z = 0;

  auto operator<=>(const TileKey&) const = default;
};

/// Morton key of a cell of a tile, x most significant.
using Cell = std::uint64_t;

/// A side of a cell: 5 mm to 4 m, and a tile is a whole number of them.
constexpr bool is_cell_size(std::uint64_t units) {
  constexpr std::uint64_t kLeast = 50, kMost = 40'000;
  return units >= kLeast && units <= kMost && kTileUnits % static_cast<std::int64_t>(units) == 0;
}

/// A point in the sensor's coordinates, in the world's.
class WorldPoints {
 public:
  explicit WorldPoints(const Pose& pose);
  /// Tile and cell of the point; nothing beyond the limits of tiles.
  std::optional<std::pair<TileKey, Cell>> place(const UnitPoint& point, std::uint32_t cell_units) const;

 private:
  std::array<std::int64_t, 3> translation_;
  Move turn_;
};

/// The tile in which a pose stands.
TileKey tile_of(const Pose& pose);

/// Centres of cells, in a tile's own coordinates. May throw std::bad_alloc.
Vector<UnitPoint> cell_centres(std::span<const Cell> cells, std::uint32_t cell_units);
/// The pose of a tile's own coordinates.
Pose pose_of(const TileKey& key);

/// Cells in rising order, each once, as bytes. May throw std::bad_alloc.
Vector<std::uint8_t> write_cells(std::span<const Cell> cells);
/// Any bytes are safe. Fails with `corrupt`; allocates in proportion to `bytes`.
Result<Vector<Cell>> read_cells(std::span<const std::uint8_t> bytes, std::uint32_t cell_units);

}  // namespace quern::lidar
