// The text of the thread's last error; the caller's wishes and clouds.
#include "lidar/capi/call.h"

#include <bit>
#include <cstring>

#include "libcompress/capi/versioned.h"
#include "lidar/cloud/little_endian.h"
#include "lidar/drive/frame_description.h"

namespace quern::lidar::capi {

static_assert(std::endian::native == std::endian::little, "elements of columns are taken as they lie in memory");

ErrorLine& thread_error() {
  thread_local ErrorLine error;
  return error;
}

Result<quern_lidar_execution> read_execution(const quern_lidar_execution* given) {
  quern_lidar_execution out = QUERN_LIDAR_EXECUTION_INIT;
  if (given == nullptr) return out;
  QUERN_RETURN_IF_ERROR(quern::capi::read_struct(given, out));
  if (out.runner.run != nullptr && out.runner.width == 0)
    return Status(StatusCode::invalid_argument, "runner.width is 0: it is how many tasks may run at once, at least 1");
  QUERN_RETURN_IF_ERROR(quern::capi::check_allocator(out.allocator));
  return out;
}

namespace {

Status invalid(const char* what) { return Status(StatusCode::invalid_argument, what); }

Status read_column(const quern_lidar_column* given, std::uint64_t points, PointCloud& out) {
  quern_lidar_column column = QUERN_LIDAR_COLUMN_INIT;
  QUERN_RETURN_IF_ERROR(quern::capi::read_struct(given, column));
  if (column.dtype < 0 || column.dtype > 255 || !is_known_dtype(static_cast<std::uint8_t>(column.dtype)))
    return Status(StatusCode::invalid_argument, "{0} is no element type", column.dtype);
  if (column.name == nullptr || !is_column_name(column.name))
    return invalid("a column has no name, or one that is no plain text of at most 255 bytes");
  if (column.values == nullptr && points != 0) return invalid("the values of a column are NULL");
  const auto type = static_cast<DType>(column.dtype);
  const auto* const bytes = static_cast<const std::uint8_t*>(column.values);
  CloudColumn& made = out.columns.emplace_back();
  made.name = column.name;
  made.type = type;
  if (points != 0) made.values.assign(bytes, bytes + points * dtype_bytes(type));
  return {};
}

}  // namespace

Result<PointCloud> read_cloud_desc(const quern_lidar_cloud_desc* given) {
  quern_lidar_cloud_desc desc = QUERN_LIDAR_CLOUD_DESC_INIT;
  QUERN_RETURN_IF_ERROR(quern::capi::read_struct(given, desc));
  if (desc.coordinates < QUERN_LIDAR_F32 || desc.coordinates > QUERN_LIDAR_F64)
    return invalid("the type of the coordinates is none of QUERN_LIDAR_F32, _SCALED, _F64");
  if (desc.points > codec::lidar::kMostPoints) return invalid("the points are more than 2^28");
  if (desc.xyz == nullptr && desc.points != 0) return invalid("xyz is NULL");
  if (desc.column_count > codec::lidar::kMostColumns) return invalid("the columns are more than 64");
  if (desc.columns == nullptr && desc.column_count != 0) return invalid("columns is NULL");
  PointCloud out;
  out.kind = static_cast<CoordinateKind>(desc.coordinates);
  const std::size_t numbers = static_cast<std::size_t>(3 * desc.points);
  if (out.kind == CoordinateKind::f64) {
    out.doubles.resize(numbers);
    if (numbers != 0) std::memcpy(out.doubles.data(), desc.xyz, numbers * sizeof(double));
  } else {
    out.words.resize(numbers);
    if (numbers != 0) std::memcpy(out.words.data(), desc.xyz, numbers * sizeof(std::uint32_t));
  }
  for (std::size_t axis = 0; axis < 3 && out.kind == CoordinateKind::scaled; ++axis) {
    out.grid.scale[axis] = desc.scale[axis];
    out.grid.offset[axis] = desc.offset[axis];
    const double zero = desc.scale[axis] * 0 + desc.offset[axis] * 0;
    if (!(zero == 0) || desc.scale[axis] == 0) return invalid("a scale or an offset is no number, or a scale is 0");
  }
  for (std::uint64_t i = 0; i < desc.column_count; ++i)
    QUERN_RETURN_IF_ERROR(read_column(desc.columns[i], desc.points, out));
  out.source_bytes = desc.points * (out.kind == CoordinateKind::f64 ? 24 : 12);
  for (const CloudColumn& column : out.columns) out.source_bytes += column.values.size();
  return out;
}

quern_status give_cloud(PointCloud cloud, quern_lidar_cloud& handle) {
  handle.cloud.emplace(std::move(cloud));
  handle.columns.emplace();
  handle.pointers.emplace();
  for (const CloudColumn& column : handle.cloud->columns)
    handle.columns->push_back(
        {sizeof(quern_lidar_column), static_cast<quern_dtype>(column.type), column.name.c_str(), column.values.data()});
  for (const quern_lidar_column& column : *handle.columns) handle.pointers->push_back(&column);
  return QUERN_OK;
}

}  // namespace quern::lidar::capi

const char* quern_lidar_last_error(void) { return quern::lidar::capi::thread_error().c_str(); }
