#include "codecs/lidar/rays/rays.h"

#include <algorithm>

#include "codecs/lidar/geometry/fixed_point.h"
#include "codecs/lidar/rays/ray_coder.h"
#include "codecs/lidar/rays/ray_sensor.h"
#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern::codec::lidar {
namespace {

/// Points of a trial: enough to tell sensors apart.
constexpr std::size_t kTrialPoints = 4096;
constexpr std::array<std::uint32_t, 5> kTriedChains = {1, 16, 32, 64, 128};
/// Units of the heights that are tried, after 0.
constexpr std::array<std::int32_t, 3> kTriedHeights = {1000, 1700, 2400};

/// Finds the symbol of a point: the cheapest of the sites within reach.
class SiteChoice {
 public:
  SiteChoice(const FinePoint& point, std::int64_t spacing, std::int64_t reach)
      : point_(point), spacing_(spacing), reach_(reach) {}

  RaySite operator()(const RayFrame& frame, std::int64_t expected) const {
    std::array<std::int64_t, 3> ideal;
    for (unsigned row = 0; row < 3; ++row) {
      std::int64_t sum = 0;
      for (unsigned axis = 0; axis < 3; ++axis) sum += point_[axis] * frame.axes[row][axis];
      ideal[row] = sum >> kDirectionBits;
    }
    RaySite best;
    std::int64_t least_cost = INT64_MAX;
    std::int64_t least_square = INT64_MAX;
    for (unsigned i = 0; i < 16; ++i) {
      const RaySite site = candidate(ideal, i);
      const std::int64_t cost = cost_of(site, expected);
      if (least_square <= reach_ * reach_ && cost >= least_cost) continue;
      const std::int64_t square = square_of(frame, site);
      if (square > reach_ * reach_ && square >= least_square) continue;
      best = site;
      least_cost = cost;
      least_square = square;
    }
    return best;
  }

 private:
  /// Bits of i: the parity, then below or above in each axis.
  RaySite candidate(const std::array<std::int64_t, 3>& ideal, unsigned i) const {
    const std::int64_t fine = spacing_ * kFine;
    const std::int64_t parity = i & 1;
    std::array<std::int64_t, 3> at;
    for (unsigned axis = 0; axis < 3; ++axis) {
      const std::int64_t from = ideal[axis] - parity * fine;
      const std::int64_t below = from >= 0 ? from / (2 * fine) : -((2 * fine - 1 - from) / (2 * fine));
      at[axis] = 2 * (below + (i >> (axis + 1) & 1)) + parity;
    }
    return {at[0], at[1], at[2]};
  }
  /// About a quarter of a bit each.
  static std::int64_t cost_of(const RaySite& site, std::int64_t expected) {
    const auto length = [](std::int64_t n) {
      return static_cast<std::int64_t>(kernels::bit_length(static_cast<std::uint64_t>(n < 0 ? -n : n)));
    };
    const std::int64_t off = site.range - expected;
    const std::int64_t range = (off < 0 ? -off : off) < 8 ? (off < 0 ? -off : off) : 8 + 4 * (length(off) - 3);
    return 2 * range + 12 * length(site.side) + 12 * length(site.up);
  }
  std::int64_t square_of(const RayFrame& frame, const RaySite& site) const {
    const RayPoint at = RayCoder<BitWriter>::place(frame, site, spacing_);
    return squared_distance(point_, {at[0] * kFine, at[1] * kFine, at[2] * kFine});
  }

  const FinePoint& point_;
  std::int64_t spacing_;
  std::int64_t reach_;
};

Vector<std::uint8_t> encode_with(const RaySensor& sensor, std::span<const FinePoint> points, std::int64_t spacing,
                                 std::int64_t reach) {
  Vector<std::uint8_t> bytes;
  Writer out(bytes);
  out.u32(static_cast<std::uint32_t>(sensor.step.x));
  out.u32(static_cast<std::uint32_t>(sensor.step.y));
  out.varint((sensor.chains - 1) << 1 | (sensor.clockwise ? 1 : 0));
  out.varint(kernels::zigzag(static_cast<std::uint32_t>(sensor.height)));
  BitWriter writer(bytes);
  RayCoder<BitWriter> coder(writer, sensor, spacing, points.size());
  for (FinePoint point : points) {
    point[2] -= sensor.height * kFine;
    const auto aim = [&](const Direction& azimuth, const StepTable& table) {
      const std::int64_t x = point[0] >> kFineBits, y = point[1] >> kFineBits;
      return table.nearest((x * azimuth.x + y * azimuth.y) >> kDirectionBits,
                           (y * azimuth.x - x * azimuth.y) >> kDirectionBits);
    };
    coder.next(aim, SiteChoice(point, spacing, reach));
  }
  writer.finish();
  return bytes;
}

RaySensor choose_sensor(std::span<const FinePoint> points, std::int64_t spacing, std::int64_t reach) {
  const auto trial = points.subspan((points.size() - std::min(points.size(), kTrialPoints)) / 2,
                                    std::min(points.size(), kTrialPoints));
  RaySensor best = guess_sensor(trial, 1, 0);
  std::size_t least = encode_with(best, trial, spacing, reach).size();
  const auto attempt = [&](std::uint32_t chains, std::int32_t height) {
    const RaySensor sensor = guess_sensor(trial, chains, height);
    const std::size_t size = encode_with(sensor, trial, spacing, reach).size();
    if (size >= least) return;
    best = sensor;
    least = size;
  };
  for (const std::uint32_t chains : kTriedChains)
    if (chains > 1 && chains < trial.size() / 4) attempt(chains, 0);
  for (const std::int32_t height : kTriedHeights) attempt(best.chains, height);
  return best;
}

}  // namespace

std::optional<Vector<std::uint8_t>> encode_rays(std::span<const FinePoint> points, std::int64_t spacing,
                                                std::int64_t reach) {
  constexpr std::int64_t kMost = (kMostRayUnits - (1 << 16)) * kFine;
  for (const FinePoint& point : points)
    for (const std::int64_t at : point)
      if (at < -kMost || at > kMost) return std::nullopt;
  return encode_with(choose_sensor(points, spacing, reach), points, spacing, reach);
}

Status decode_rays(std::span<const std::uint8_t> bytes, std::int64_t spacing,
                   std::span<std::array<std::int64_t, 3>> points) {
  const Status corrupt(StatusCode::corrupt, "a scan's rays are not what an encoder writes");
  Reader in(bytes);
  RaySensor sensor;
  QUERN_ASSIGN_OR_RETURN(const std::uint32_t x, in.u32());
  QUERN_ASSIGN_OR_RETURN(const std::uint32_t y, in.u32());
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t chains, in.varint(2 * kMostChains - 1));
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t height, in.varint(1 << 17));
  if (x > kOne || y == 0 || y > kOne) return corrupt;
  sensor.step = {x, y};
  sensor.clockwise = (chains & 1) != 0;
  sensor.chains = static_cast<std::uint32_t>(chains >> 1) + 1;
  sensor.height = static_cast<std::int32_t>(kernels::unzigzag(static_cast<std::uint32_t>(height)));
  QUERN_ASSIGN_OR_RETURN(const auto rest, in.bytes(in.remaining()));
  BitReader reader(rest);
  RayCoder<BitReader> coder(reader, sensor, spacing, points.size());
  const auto unused = [](const auto&...) -> std::int64_t { return 0; };
  for (auto& point : points) {
    point = coder.next(unused, unused);
    point[2] += sensor.height;
    if (!reader.good()) return corrupt;
  }
  return reader.has_more() ? corrupt : Status();
}

}  // namespace quern::codec::lidar
