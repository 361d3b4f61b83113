// Pixels to points, and points without pixels.
#include "lidar/images/range_cloud.h"

#include <utility>

namespace quern::lidar {

Result<PointCloud> cloud_of_image(const RangeSensor& sensor, std::span<const std::uint8_t> ranges,
                                  Vector<CloudColumn> others) {
  PointCloud out;
  QUERN_ASSIGN_OR_RETURN(out.words, project(sensor, ranges));
  out.rows = sensor.beams.size();
  out.format = FileFormat::range_image;
  out.columns.push_back({kRangeColumn, DType::u32, Vector<std::uint8_t>(ranges.begin(), ranges.end())});
  out.source_bytes = ranges.size();
  for (CloudColumn& column : others) {
    out.source_bytes += column.values.size();
    out.columns.push_back(std::move(column));
  }
  out.file_header = write_range_sensor(sensor);
  return out;
}

bool is_image(const PointCloud& cloud) {
  if (cloud.format != FileFormat::range_image || cloud.kind != CoordinateKind::f32 || cloud.columns.empty())
    return false;
  const CloudColumn& ranges = cloud.columns.front();
  const auto sensor = read_range_sensor(cloud.file_header);
  if (!sensor.ok() || ranges.name != kRangeColumn || ranges.type != DType::u32 || sensor->pixels() != cloud.points() ||
      cloud.rows != sensor->beams.size())
    return false;
  const auto words = project(*sensor, ranges.values);
  return words.ok() && *words == cloud.words;
}

PointCloud points_of_image(const PointCloud& cloud) {
  PointCloud out;
  out.format = cloud.format;
  out.source_bytes = cloud.source_bytes;
  for (std::size_t c = 1; c < cloud.columns.size(); ++c)
    out.columns.push_back({cloud.columns[c].name, cloud.columns[c].type, {}});
  for (std::uint64_t i = 0; i < cloud.points(); ++i) {
    if (!cloud.is_finite(i)) continue;
    const std::uint32_t* const word = cloud.words.data() + 3 * i;
    out.words.insert(out.words.end(), word, word + 3);
    for (std::size_t c = 1; c < cloud.columns.size(); ++c) {
      const std::size_t width = dtype_bytes(cloud.columns[c].type);
      const std::uint8_t* const element = cloud.columns[c].values.data() + i * width;
      Vector<std::uint8_t>& values = out.columns[c - 1].values;
      values.insert(values.end(), element, element + width);
    }
  }
  return out;
}

}  // namespace quern::lidar
