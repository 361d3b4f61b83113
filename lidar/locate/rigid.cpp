#include "lidar/locate/rigid.h"

#include <cmath>

namespace quern::lidar {
namespace {

constexpr double kUnitsPerMetre = 1e4;

std::array<double, 4> normal(std::array<double, 4> q) {
  const double length = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  for (double& part : q) part /= length;
  return q;
}

std::array<double, 4> product(const std::array<double, 4>& a, const std::array<double, 4>& b) {
  return {a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3], a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
          a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1], a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]};
}

std::array<double, 9> rotation(const std::array<double, 4>& q) {
  const auto [w, x, y, z] = q;
  return {w * w + x * x - y * y - z * z, 2 * (x * y - w * z),           2 * (x * z + w * y),
          2 * (x * y + w * z),           w * w - x * x + y * y - z * z, 2 * (y * z - w * x),
          2 * (x * z - w * y),           2 * (y * z + w * x),           w * w - x * x - y * y + z * z};
}

}  // namespace

Spot Rigid::rotated(const Spot& point) const {
  const auto m = rotation(turn);
  return {m[0] * point[0] + m[1] * point[1] + m[2] * point[2], m[3] * point[0] + m[4] * point[1] + m[5] * point[2],
          m[6] * point[0] + m[7] * point[1] + m[8] * point[2]};
}

Spot Rigid::operator()(const Spot& point) const {
  const Spot turned = rotated(point);
  return {turned[0] + at[0], turned[1] + at[1], turned[2] + at[2]};
}

Rigid Rigid::after(const Rigid& other) const { return {normal(product(turn, other.turn)), (*this)(other.at)}; }

Rigid Rigid::inverse() const {
  Rigid out{{turn[0], -turn[1], -turn[2], -turn[3]}, {}};
  const Spot back = out.rotated(at);
  out.at = {-back[0], -back[1], -back[2]};
  return out;
}

Rigid Rigid::nudged(const std::array<double, 6>& step, const Spot& centre) const {
  const Rigid small{normal({1, step[0] / 2, step[1] / 2, step[2] / 2}), {}};
  const Spot arm = small.rotated({at[0] - centre[0], at[1] - centre[1], at[2] - centre[2]});
  return {normal(product(small.turn, turn)),
          {centre[0] + arm[0] + step[3], centre[1] + arm[1] + step[4], centre[2] + arm[2] + step[5]}};
}

Rigid rigid_of(const Pose& pose, const std::array<std::int64_t, 3>& origin) {
  Rigid out;
  for (std::size_t i = 0; i < 4; ++i) out.turn[i] = static_cast<double>(pose.quaternion[i]);
  out.turn = normal(out.turn);
  for (std::size_t i = 0; i < 3; ++i) out.at[i] = static_cast<double>(pose.translation[i] - origin[i]) / kUnitsPerMetre;
  return out;
}

std::array<double, 12> matrix_of(const Pose& pose) {
  std::array<double, 4> q{};
  for (std::size_t i = 0; i < 4; ++i) q[i] = static_cast<double>(pose.quaternion[i]);
  const auto m = rotation(normal(q));
  std::array<double, 12> out{};
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t k = 0; k < 3; ++k) out[4 * row + k] = m[3 * row + k];
    out[4 * row + 3] = static_cast<double>(pose.translation[row]) / kUnitsPerMetre;
  }
  return out;
}

std::optional<Pose> pose_of(const Rigid& rigid, const std::array<std::int64_t, 3>& origin) {
  Pose pose;
  for (std::size_t i = 0; i < 4; ++i)
    pose.quaternion[i] =
        static_cast<std::int64_t>(std::floor(rigid.turn[i] * static_cast<double>(Pose::kMostQuaternion) + 0.5));
  for (std::size_t i = 0; i < 3; ++i)
    pose.translation[i] = origin[i] + static_cast<std::int64_t>(std::floor(rigid.at[i] * kUnitsPerMetre + 0.5));
  // A rounded quaternion has not quite the length of 2^20, so its matrix may round to another; a few times suffice.
  for (int round = 0; round < 8 && is_pose(pose); ++round) {
    const auto again = pose_of_matrix(matrix_of(pose));
    if (!again) return std::nullopt;
    if (*again == pose) return pose;
    pose = *again;
  }
  return std::nullopt;
}

}  // namespace quern::lidar
