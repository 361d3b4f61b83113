// Files of other programs: any bytes become a cloud or a status; memory stays in proportion to the bytes; what a writer
// makes of the cloud is read again to the same points.
#include <array>
#include <cstring>
#include <string_view>

#include "lidar/files/cloud_files.h"
#include "tests/fuzz/fuzz_common.h"

namespace {

using namespace quern;
using namespace quern::lidar;

constexpr std::array<std::string_view, 7> kNames = {"a.bin", "a.pcd.bin", "a.pcd", "a.ply", "a.npy", "a.las", "a"};
constexpr std::array<FileFormat, 5> kFormats = {FileFormat::bin, FileFormat::pcd, FileFormat::ply, FileFormat::npy,
                                                FileFormat::las};

/// LAS files hold decimal numbers: a binary32 coordinate is the one that the number is rounded to.
bool same_position(const PointCloud& a, const PointCloud& b, std::uint64_t point) {
  const auto p = a.position(point);
  const auto q = b.position(point);
  const bool rounded = a.kind == CoordinateKind::f32 && b.kind == CoordinateKind::scaled;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const double read = rounded ? static_cast<double>(static_cast<float>(q[axis])) : q[axis];
    if (p[axis] != read && !(p[axis] != p[axis] && read != read)) return false;
  }
  return true;
}

void write_and_read(const PointCloud& cloud) {
  for (const FileFormat format : kFormats) {
    const auto file = write_cloud(cloud, format);
    if (!file.ok()) {
      QUERN_FUZZ_CHECK(file.status().code() == StatusCode::unsupported);
      continue;
    }
    ReadOptions options;
    options.bin_columns = cloud.columns.size() == 2 && format == FileFormat::bin &&
                                  file->bytes.size() == cloud.points() * 20 && cloud.points() != 0
                              ? 5
                              : 4;
    const std::string_view name = kNames[format == FileFormat::bin ? 0 : static_cast<std::size_t>(format)];
    const auto back = read_cloud(name, file->bytes, options);
    QUERN_FUZZ_CHECK(back.ok());
    QUERN_FUZZ_CHECK(back->points() == cloud.points());
    for (std::uint64_t i = 0; i < cloud.points(); ++i) QUERN_FUZZ_CHECK(same_position(cloud, *back, i));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Feed feed({data, size});
  const std::string_view name = kNames[feed.byte() % kNames.size()];
  ReadOptions options;
  options.bin_columns = std::array<unsigned, 4>{0, 4, 5, 0}[feed.byte() % 4];
  const auto bytes = feed.rest();
  const fuzz::AllocationWatch watch;
  {
    const auto cloud = read_cloud(name, bytes, options);
    QUERN_FUZZ_CHECK(watch.peak() <= 1024 * size + 65536);
    if (cloud.ok() && cloud->points() <= 10000) write_and_read(*cloud);
  }
  return 0;
}
