#include "lidar/predict/pose.h"

#include <cmath>

namespace quern::lidar {
namespace {

constexpr double kRigid = 1e-3;

bool is_rigid(const std::array<double, 12>& m) {
  for (unsigned i = 0; i < 3; ++i)
    for (unsigned k = i; k < 3; ++k) {
      const double product = m[i] * m[k] + m[4 + i] * m[4 + k] + m[8 + i] * m[8 + k];
      if (!(std::fabs(product - (i == k ? 1 : 0)) <= kRigid)) return false;
    }
  const double volume =
      m[0] * (m[5] * m[10] - m[6] * m[9]) - m[1] * (m[4] * m[10] - m[6] * m[8]) + m[2] * (m[4] * m[9] - m[5] * m[8]);
  return volume > 0;
}

/// w, x, y, z of unit length; the largest of the four is found first, so that nothing is divided by a small number.
std::array<double, 4> quaternion_of(const std::array<double, 12>& m) {
  const std::array<double, 4> squares = {1 + m[0] + m[5] + m[10], 1 + m[0] - m[5] - m[10], 1 - m[0] + m[5] - m[10],
                                         1 - m[0] - m[5] + m[10]};
  unsigned largest = 0;
  for (unsigned i = 1; i < 4; ++i)
    if (squares[i] > squares[largest]) largest = i;
  const double wx = m[9] - m[6], wy = m[2] - m[8], wz = m[4] - m[1];
  const double xy = m[1] + m[4], xz = m[2] + m[8], yz = m[6] + m[9];
  const double four = 2 * std::sqrt(squares[largest]);
  std::array<double, 4> q{};
  switch (largest) {
    case 0: q = {0, wx, wy, wz}; break;
    case 1: q = {wx, 0, xy, xz}; break;
    case 2: q = {wy, xy, 0, yz}; break;
    default: q = {wz, xz, yz, 0}; break;
  }
  for (double& part : q) part /= four;
  q[largest] = four / 4;
  const double length = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  for (double& part : q) part /= length;
  return q;
}

void set_matrix(const Pose& pose, std::int64_t (&matrix)[3][3]) {
  const auto [w, x, y, z] = pose.quaternion;
  const std::int64_t norm = w * w + x * x + y * y + z * z;
  const std::int64_t scaled[3][3] = {{w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)},
                                     {2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)},
                                     {2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z}};
  // An entry is at most the norm, below 2^43; a norm is cut to 42 bits with its entries, so that products fit.
  for (unsigned row = 0; row < 3; ++row)
    for (unsigned column = 0; column < 3; ++column)
      matrix[row][column] =
          (scaled[row][column] >> 1) * (INT64_C(1) << kernels::RigidMove::kMatrixBits) / ((norm + 1) >> 1);
}

}  // namespace

bool is_pose(const Pose& pose) {
  bool zero = true;
  for (const std::int64_t part : pose.quaternion) {
    if (part < -Pose::kMostQuaternion || part > Pose::kMostQuaternion) return false;
    zero = zero && part == 0;
  }
  for (const std::int64_t at : pose.translation)
    if (at < -Pose::kMostTranslation || at > Pose::kMostTranslation) return false;
  return !zero;
}

std::optional<Pose> pose_of_matrix(const std::array<double, 12>& rows) {
  if (!is_rigid(rows)) return std::nullopt;
  Pose pose;
  const auto q = quaternion_of(rows);
  for (unsigned i = 0; i < 4; ++i)
    pose.quaternion[i] = static_cast<std::int64_t>(std::floor(q[i] * double{Pose::kMostQuaternion - 1} + 0.5));
  for (unsigned axis = 0; axis < 3; ++axis) {
    const double units = rows[4 * axis + 3] * codec::lidar::kUnitsPerMetre;
    if (!(std::fabs(units) < double{Pose::kMostTranslation})) return std::nullopt;
    pose.translation[axis] = static_cast<std::int64_t>(std::floor(units + 0.5));
  }
  return is_pose(pose) ? std::optional(pose) : std::nullopt;
}

Move::Move(const Pose& from, const Pose& to) {
  set_matrix(from, move_.from);
  set_matrix(to, move_.to);
  for (unsigned axis = 0; axis < 3; ++axis) move_.shift[axis] = from.translation[axis] - to.translation[axis];
}

std::optional<UnitPoint> Move::operator()(const UnitPoint& point) const {
  UnitPoint moved{};
  return move_(point, moved) ? std::optional(moved) : std::nullopt;
}

}  // namespace quern::lidar
