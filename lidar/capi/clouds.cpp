// Clouds through the C interface: what they hold, files, distances.
#include <memory>

#include "libcompress/capi/versioned.h"
#include "lidar/capi/call.h"
#include "lidar/files/cloud_files.h"
#include "lidar/verify/distances.h"

namespace capi = quern::lidar::capi;
using quern::Status;
using quern::StatusCode;

namespace {

struct DestroyCloud {
  void operator()(quern_lidar_cloud* cloud) const { quern::capi::destroy_handle(cloud); }
};

}  // namespace

quern_status quern_lidar_cloud_get(const quern_lidar_cloud* cloud, quern_lidar_cloud_desc* desc) {
  if (cloud == nullptr) return capi::refuse("quern_lidar_cloud_get: the cloud is NULL");
  if (const Status checked = quern::capi::check_struct(desc); !checked.ok()) return capi::refuse(checked);
  const quern::lidar::PointCloud& from = *cloud->cloud;
  quern_lidar_cloud_desc out = QUERN_LIDAR_CLOUD_DESC_INIT;
  out.coordinates = static_cast<quern_lidar_coordinates>(from.kind);
  out.points = from.points();
  const bool is_f64 = from.kind == quern::lidar::CoordinateKind::f64;
  out.xyz = is_f64 ? static_cast<const void*>(from.doubles.data()) : static_cast<const void*>(from.words.data());
  out.columns = cloud->pointers->data();
  out.column_count = cloud->pointers->size();
  for (std::size_t axis = 0; axis < 3; ++axis) {
    out.scale[axis] = from.grid.scale[axis];
    out.offset[axis] = from.grid.offset[axis];
  }
  quern::capi::write_struct(out, desc);
  return QUERN_OK;
}

void quern_lidar_cloud_destroy(quern_lidar_cloud* cloud) { quern::capi::destroy_handle(cloud); }

quern_status quern_lidar_cloud_read_file(const char* path, uint32_t bin_columns, const quern_lidar_execution* execution,
                                         quern_lidar_cloud** cloud) {
  if (cloud == nullptr) return capi::refuse("quern_lidar_cloud_read_file: the place for the cloud is NULL");
  *cloud = nullptr;
  if (path == nullptr || *path == '\0') return capi::refuse("quern_lidar_cloud_read_file: the path is NULL or empty");
  const auto given = capi::read_execution(execution);
  if (!given.ok()) return capi::refuse(given.status());
  std::unique_ptr<quern_lidar_cloud, DestroyCloud> made(capi::make<quern_lidar_cloud>(*given));
  if (made == nullptr) return QUERN_ERROR_OUT_OF_MEMORY;
  const quern_status status = capi::call(made->memory, path, [&]() -> Status {
    QUERN_ASSIGN_OR_RETURN(const auto bytes, capi::read_file(path));
    QUERN_ASSIGN_OR_RETURN(auto read,
                           quern::lidar::read_cloud(path, bytes, {bin_columns, made->execution().memory_limit}));
    capi::give_cloud(std::move(read), *made);
    return {};
  });
  if (status == QUERN_OK) *cloud = made.release();
  return status;
}

quern_status quern_lidar_cloud_write_file(const quern_lidar_cloud* cloud, const char* path, uint32_t replace,
                                          uint32_t* columns_left_out) {
  if (cloud == nullptr || path == nullptr || *path == '\0')
    return capi::refuse("quern_lidar_cloud_write_file: the cloud or the path is NULL");
  return capi::call(cloud->memory, path, [&]() -> Status {
    const auto format = quern::lidar::format_of_name(path);
    QUERN_ASSIGN_OR_RETURN(const auto file, quern::lidar::write_cloud(*cloud->cloud, format));
    capi::NewFile out;
    QUERN_RETURN_IF_ERROR(out.create(quern::String(path), replace != 0));
    QUERN_RETURN_IF_ERROR(out.write(file.bytes));
    QUERN_RETURN_IF_ERROR(out.finish());
    if (columns_left_out != nullptr) *columns_left_out = static_cast<uint32_t>(file.left_out.size());
    return {};
  });
}

quern_status quern_lidar_measure(const quern_lidar_cloud_desc* a, const quern_lidar_cloud_desc* b,
                                 const quern_lidar_execution* execution, quern_lidar_distances* distances) {
  if (const Status checked = quern::capi::check_struct(distances); !checked.ok()) return capi::refuse(checked);
  const auto given = capi::read_execution(execution);
  if (!given.ok()) return capi::refuse(given.status());
  capi::HandleBase base(given->allocator);
  return capi::call(base.memory, "", [&]() -> Status {
    base.take(*given);
    QUERN_ASSIGN_OR_RETURN(const auto first, capi::read_cloud_desc(a));
    QUERN_ASSIGN_OR_RETURN(const auto second, capi::read_cloud_desc(b));
    quern::RunnerHandle runner(base.execution());
    QUERN_ASSIGN_OR_RETURN(const auto found, quern::lidar::measure_distances(first, second, runner.get()));
    quern_lidar_distances out = QUERN_LIDAR_DISTANCES_INIT;
    out.max_forward = found.forward.max;
    out.max_backward = found.backward.max;
    out.mean_forward = found.forward.mean;
    out.mean_backward = found.backward.mean;
    out.rms_forward = found.forward.rms;
    out.rms_backward = found.backward.rms;
    out.chamfer = found.chamfer();
    out.d1_psnr_db = found.d1_psnr_db;
    quern::capi::write_struct(out, distances);
    return {};
  });
}
