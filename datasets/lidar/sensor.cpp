#include "datasets/lidar/sensor.h"

#include <algorithm>
#include <cmath>

namespace quern::drives {
namespace {

constexpr double kTurnSeconds = 0.1;
constexpr double kHeight = 1.73;
constexpr double kMostRange = 120;
constexpr double kNoise = 0.017;
constexpr double kResolution = 0.002;

struct Laser {
  double sine, cosine;  ///< of the elevation
  double height;        ///< above the sensor's centre
  double azimuth;       ///< offset, in steps
};

struct Model {
  std::vector<Laser> lasers;  ///< the highest first
  unsigned columns = 0;
};

/// HDL-64E: 32 lasers 1/3 degree apart from +2 degrees, 32 that are 1/2 apart below them. VLP-16: 2 degrees apart. As a
/// calibration finds them, each is a little off, and sits a little higher or lower.
Model model_of(SensorKind kind) {
  Model model;
  const unsigned rings = kind == SensorKind::hdl64 ? 64 : 16;
  model.columns = kind == SensorKind::hdl64 ? 2005 : 1800;
  for (unsigned ring = 0; ring < rings; ++ring) {
    Random random(mixed(2011, static_cast<std::uint64_t>(kind), ring));
    double elevation = 15 - 2.0 * ring;
    if (kind == SensorKind::hdl64) elevation = ring < 32 ? 2 - ring / 3.0 : -8.83 - (ring - 32) / 2.0;
    const auto [sine, cosine] = sine_cosine(degrees(elevation + random.uniform(-0.05, 0.05)));
    const double height = (ring < rings / 2 ? 0.03 : -0.03) + random.uniform(-0.01, 0.01);
    model.lasers.push_back({sine, cosine, height, random.chance(0.5) ? 0.5 : 0.0});
  }
  return model;
}

Vector3 turned(const PoseRows& pose, const Vector3& v) {
  return {pose[0] * v.x + pose[1] * v.y + pose[2] * v.z, pose[4] * v.x + pose[5] * v.y + pose[6] * v.z,
          pose[8] * v.x + pose[9] * v.y + pose[10] * v.z};
}

/// Between two poses that differ little: entries are mixed.
PoseRows between(const PoseRows& a, const PoseRows& b, double part) {
  PoseRows pose;
  for (std::size_t i = 0; i < pose.size(); ++i) pose[i] = a[i] + part * (b[i] - a[i]);
  return pose;
}

double brightness(Material material) {
  switch (material) {
    case Material::road: return 0.25;
    case Material::pavement: return 0.35;
    case Material::earth: return 0.4;
    case Material::wall: return 0.5;
    case Material::glass: return 0.1;
    case Material::metal: return 0.3;
    case Material::paint: return 0.45;
    case Material::leaves: return 0.4;
    case Material::wood: return 0.35;
    default: return 0.5;
  }
}

/// The probability that no return comes: glass, and dark or flat surfaces far away.
double lost_share(const Meeting& met, bool is_wet) {
  const double signal = brightness(met.material) * (0.25 + met.incidence) / (met.range * met.range + 30);
  double lost = 0.012 + std::max(0.0, 1 - signal / 4e-5);
  if (met.material == Material::glass) lost += 0.4;
  if (met.material == Material::paint) lost += 0.03;
  if (is_wet) lost += 0.12;
  return lost;
}

}  // namespace

Drive::Drive(const Street& street, double start) : street_(street), start_(start), speed_(0), lane_(0), sway_(0) {
  Random random(mixed(street.pass().seed(), 21));
  start_ += random.uniform(-2, 2);
  speed_ = random.uniform(4, 13);
  lane_ = -1.8 + 0.45 * random.normal();
  sway_ = random.uniform(0, 6);
}

PoseRows Drive::pose(double seconds) const {
  // The speed swings by a quarter, the lane by 20 cm.
  const double swing = sine_cosine(0.35 * seconds + sway_).sine;
  const double metres = start_ + speed_ * (seconds + 0.7 * swing);
  const RoadPoint point = street_.road().at(metres);
  const double side = lane_ + 0.2 * sine_cosine(0.8 * seconds + 2 * sway_).sine;
  const Place place = point.beside(side);
  const double slip = 0.16 * sine_cosine(0.8 * seconds + 2 * sway_).cosine / std::max(speed_, 4.0);
  const Vector3 flat = {point.along.x - point.along.y * slip, point.along.y + point.along.x * slip, 0};
  const auto height = [&](double ahead, double left) {
    return street_.road().height({place.x + flat.x * ahead - flat.y * left, place.y + flat.y * ahead + flat.x * left});
  };
  const double bounce = 0.003 * sine_cosine(9 * seconds + sway_).sine;
  const double pitch = (height(1.4, 0) - height(-1.4, 0)) / 2.8 + bounce;
  const double roll = (height(0, 0.8) - height(0, -0.8)) / 1.6 - 0.7 * bounce;
  const auto unit = [](Vector3 v) {
    const double length = std::sqrt(v.x * v.x + v.y * v.y + v.z * v.z);
    return Vector3{v.x / length, v.y / length, v.z / length};
  };
  const Vector3 forward = unit({flat.x, flat.y, pitch});
  const Vector3 rough_left = {-flat.y, flat.x, roll};
  const double lean = rough_left.x * forward.x + rough_left.y * forward.y + rough_left.z * forward.z;
  const Vector3 left =
      unit({rough_left.x - lean * forward.x, rough_left.y - lean * forward.y, rough_left.z - lean * forward.z});
  const Vector3 up = {forward.y * left.z - forward.z * left.y, forward.z * left.x - forward.x * left.z,
                      forward.x * left.y - forward.y * left.x};
  const double ground = (height(1.4, 0) + height(-1.4, 0)) / 2;
  return {forward.x, left.x,  up.x,      place.x, forward.y, left.y,
          up.y,      place.y, forward.z, left.z,  up.z,      ground + kHeight};
}

double time_of(unsigned frame) { return kTurnSeconds * frame; }

std::vector<ScanPoint> scan(SensorKind kind, Street& street, const Drive& drive, unsigned frame) {
  const Model model = model_of(kind);
  const double middle = time_of(frame);
  street.set_time(middle);
  const PoseRows first = drive.pose(middle - kTurnSeconds / 2);
  const PoseRows now = drive.pose(middle);
  const PoseRows last = drive.pose(middle + kTurnSeconds / 2);
  // A firing looks a step further; a fifth of them are half a step late.
  std::vector<double> late(model.columns);
  Random firing(mixed(street.pass().seed(), frame, 31));
  for (double& steps : late) steps = firing.chance(0.18) ? 0.5 : 0;
  std::vector<ScanPoint> points;
  for (std::size_t ring = 0; ring < model.lasers.size(); ++ring) {
    const Laser& laser = model.lasers[ring];
    Random random(mixed(street.pass().seed(), frame, ring, 32));
    for (unsigned column = 0; column < model.columns; ++column) {
      const double azimuth = 2 * kPi * (column + laser.azimuth + late[column]) / model.columns;
      const double turn = azimuth > kPi ? azimuth - 2 * kPi : azimuth;
      const double part = turn / kPi;  // of the half turn, since the middle
      const PoseRows pose = part < 0 ? between(now, first, -part) : between(now, last, part);
      const auto [sine, cosine] = sine_cosine(azimuth);
      const Vector3 along = {laser.cosine * cosine, laser.cosine * sine, laser.sine};
      const Vector3 from = turned(pose, {0, 0, laser.height});
      Ray ray = {{pose[3] + from.x, pose[7] + from.y, pose[11] + from.z}, turned(pose, along)};
      Meeting met = street.meet(ray, kMostRange, random);
      if (random.chance(0.05)) {  // the beam is wide: at an edge it answers from between two surfaces
        ray.along.z += 0.0012;
        const Meeting other = street.meet(ray, kMostRange, random);
        const double apart = std::abs(other.range - met.range);
        if (apart > 0.2 && apart < 4) met.range += random.uniform() * (other.range - met.range);
      }
      if (met.range >= kMostRange || met.range < 1 || random.chance(lost_share(met, street.pass().is_wet()))) continue;
      const double noisy = met.range + kNoise * random.normal() * (met.material == Material::leaves ? 2.5 : 1);
      const double range = kResolution * std::floor(noisy / kResolution + 0.5);
      const double bright = brightness(met.material) * (0.3 + 0.7 * met.incidence) + 0.05 * random.normal();
      const double level = std::floor(std::clamp(bright, 0.0, 0.99) * 100 + 0.5) / 100;
      points.push_back({static_cast<float>(along.x * range), static_cast<float>(along.y * range),
                        static_cast<float>(along.z * range + laser.height), static_cast<float>(level)});
    }
  }
  return points;
}

}  // namespace quern::drives
