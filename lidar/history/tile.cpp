#include "lidar/history/tile.h"

#include "codecs/lidar/octree/morton.h"
#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern::lidar {
namespace {

std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

Status corrupt(const char* what) { return Status(StatusCode::corrupt, what); }

}  // namespace

WorldPoints::WorldPoints(const Pose& pose)
    : translation_(pose.translation), turn_(pose, Pose{Pose().quaternion, pose.translation}) {}

std::optional<std::pair<TileKey, Cell>> WorldPoints::place(const UnitPoint& point, std::uint32_t cell_units) const {
  const auto turned = turn_(point);
  if (!turned) return std::nullopt;
  std::array<std::int64_t, 3> tile{};
  std::array<std::uint64_t, 3> cell{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::int64_t at = (*turned)[axis] + translation_[axis];
    tile[axis] = floor_divide(at, kTileUnits);
    if (tile[axis] < -TileKey::kMost || tile[axis] > TileKey::kMost) return std::nullopt;
    cell[axis] = static_cast<std::uint64_t>(at - tile[axis] * kTileUnits) / cell_units;
  }
  return std::pair(TileKey{tile[0], tile[1], tile[2]}, codec::lidar::morton(cell[0], cell[1], cell[2]));
}

TileKey tile_of(const Pose& pose) {
  const auto along = [&](std::size_t axis) { return floor_divide(pose.translation[axis], kTileUnits); };
  return {along(0), along(1), along(2)};
}

Vector<UnitPoint> cell_centres(std::span<const Cell> cells, std::uint32_t cell_units) {
  Vector<UnitPoint> points;
  points.reserve(cells.size());
  const auto centre = [&](std::uint32_t cell) { return std::int64_t{cell} * cell_units + cell_units / 2; };
  for (const Cell cell : cells)
    points.push_back({centre(codec::lidar::morton_x(cell)), centre(codec::lidar::morton_y(cell)),
                      centre(codec::lidar::morton_z(cell))});
  return points;
}

Pose pose_of(const TileKey& key) {
  return {Pose().quaternion, {key.x * kTileUnits, key.y * kTileUnits, key.z * kTileUnits}};
}

Vector<std::uint8_t> write_cells(std::span<const Cell> cells) {
  Vector<std::uint8_t> out;
  Writer writer(out);
  writer.varint(cells.size());
  Cell next = 0;
  for (const Cell cell : cells) {
    writer.varint(cell - next);
    next = cell + 1;
  }
  return out;
}

Result<Vector<Cell>> read_cells(std::span<const std::uint8_t> bytes, std::uint32_t cell_units) {
  Reader reader(bytes);
  QUERN_ASSIGN_OR_RETURN(const auto count, reader.varint(bytes.size()));
  const auto side = static_cast<std::uint64_t>(kTileUnits) / cell_units;
  Vector<Cell> cells;
  cells.reserve(static_cast<std::size_t>(count));
  Cell next = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    QUERN_ASSIGN_OR_RETURN(const auto step, reader.varint(UINT64_C(1) << 62));
    const Cell cell = next + step;
    if (cell >> 62 != 0 || codec::lidar::morton_x(cell) >= side || codec::lidar::morton_y(cell) >= side ||
        codec::lidar::morton_z(cell) >= side)
      return corrupt("a cell lies outside its tile");
    cells.push_back(cell);
    next = cell + 1;
  }
  QUERN_RETURN_IF_ERROR(reader.expect_end());
  return cells;
}

}  // namespace quern::lidar
