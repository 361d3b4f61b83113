#include "tests/unit_lidar_drive/made_clouds.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lidar/cloud/little_endian.h"
#include "tests/unit_lidar/clouds.h"

namespace quern::lidar_test {

using lidar::CoordinateKind;
using lidar::PointCloud;

PointCloud small_scan(unsigned points, std::uint64_t seed) {
  const unsigned rings = points < 64 ? 1 : 16;
  const TestCloud made = spinning_scan(rings, std::max(1U, points / rings), seed, true);
  PointCloud out;
  out.words.assign(made.words.begin(), made.words.end());
  out.columns.push_back({"intensity", DType::f32, {}});
  out.columns.push_back({"ring", DType::f32, {}});
  for (std::uint64_t i = 0; i < out.points(); ++i) {
    lidar::append_le(static_cast<float>(i * 37 % 100) / 100, out.columns[0].values);
    lidar::append_le(static_cast<float>(i % rings), out.columns[1].values);
  }
  return out;
}

PointCloud as_f64(const PointCloud& cloud) {
  PointCloud out = cloud;
  out.kind = CoordinateKind::f64;
  out.words.clear();
  Random random(7);
  for (std::uint64_t i = 0; i < cloud.points(); ++i) {
    const auto at = cloud.position(i);
    out.doubles.push_back(at[0] + 512345.25 + 1e-6 * random.signed_unit());
    out.doubles.push_back(at[1] + 5403210.5 + 1e-6 * random.signed_unit());
    out.doubles.push_back(at[2] + 1e-6 * random.signed_unit());
  }
  return out;
}

PointCloud as_scaled(const PointCloud& cloud, double scale) {
  PointCloud out = cloud;
  out.kind = CoordinateKind::scaled;
  out.grid.scale = {scale, scale, scale};
  out.grid.offset = {1000, -2000, 30};
  out.words.clear();
  for (std::uint64_t i = 0; i < cloud.points(); ++i)
    for (const double x : cloud.position(i))
      out.words.push_back(static_cast<std::uint32_t>(static_cast<std::int32_t>(std::round(x / scale))));
  return out;
}

PointCloud with_columns(PointCloud cloud) {
  static constexpr DType kTypes[] = {DType::i8,  DType::u8,  DType::i16, DType::u16, DType::i32,
                                     DType::u32, DType::i64, DType::u64, DType::f64};
  Random random(11);
  for (const DType type : kTypes) {
    lidar::CloudColumn column{String("c_") + dtype_name(type), type, {}};
    for (std::uint64_t i = 0; i < cloud.points() * dtype_bytes(type); ++i)
      column.values.push_back(static_cast<std::uint8_t>(random.below(i % 5 == 0 ? 256 : 3)));
    cloud.columns.push_back(std::move(column));
  }
  return cloud;
}

bool same_cloud(const PointCloud& a, const PointCloud& b) {
  const bool same_doubles =
      a.doubles.size() == b.doubles.size() &&
      (a.doubles.empty() || std::memcmp(a.doubles.data(), b.doubles.data(), 8 * a.doubles.size()) == 0);
  return a.kind == b.kind && a.words == b.words && same_doubles && a.grid == b.grid &&
         std::equal(
             a.columns.begin(), a.columns.end(), b.columns.begin(), b.columns.end(),
             [](const auto& x, const auto& y) { return x.name == y.name && x.type == y.type && x.values == y.values; });
}

}  // namespace quern::lidar_test
