#include "lidar/history/places.h"

#include <algorithm>
#include <cmath>

#include "libcompress/format/frame/checksum.h"
#include "lidar/history/stored_numbers.h"

namespace quern::lidar {
namespace {

using storage::join;

constexpr std::array<std::uint8_t, 8> kMagic = {0x9B, 'Q', 'H', 'L', '\r', '\n', 0x1A, '\n'};
constexpr std::uint16_t kVersion = 1;
constexpr std::uint64_t kMostPlacesBytes = UINT64_C(1) << 28;
constexpr std::int64_t kNearest = 28'000;  ///< units from the axis; what lies nearer is the vehicle
constexpr std::int64_t kRingUnits = 30'000;
constexpr std::int64_t kHeightUnits = 1'000;
constexpr std::int64_t kBelow = 30'000;
constexpr std::size_t kRings = ScanContext::kRings;
constexpr std::size_t kSectors = ScanContext::kSectors;
constexpr std::size_t kQuarter = kSectors / 4;

/// Cosine and sine of the beginnings of sectors, by turning one by one: no library's sine, so the same everywhere.
constexpr std::array<SectorDirection, kSectors> make_directions() {
  constexpr double kCosine = 0.99452189536827333692, kSine = 0.10452846326765347140;  // of 6 degrees
  std::array<SectorDirection, kSectors> out{};
  for (std::size_t i = 1; i < kQuarter; ++i)
    out[i] = {out[i - 1].cosine * kCosine - out[i - 1].sine * kSine,
              out[i - 1].sine * kCosine + out[i - 1].cosine * kSine};
  for (std::size_t i = kQuarter; i < kSectors; ++i) out[i] = {-out[i - kQuarter].sine, out[i - kQuarter].cosine};
  return out;
}
constexpr auto kDirections = make_directions();

std::size_t sector_of(double x, double y) {
  // Turned by quarters into the first one.
  std::size_t first = 0;
  if (x <= 0 && y > 0) {
    first = kQuarter;
  } else if (x < 0) {
    first = 2 * kQuarter;
  } else if (y < 0) {
    first = 3 * kQuarter;
  }
  std::size_t sector = first;
  for (std::size_t i = first + 1; i < first + kQuarter; ++i)
    if (kDirections[i].cosine * y - kDirections[i].sine * x >= 0) sector = i;
  return sector;
}

/// Cosine of the angle between two sectors, 0 where one is empty.
double likeness(const std::uint8_t* a, const std::uint8_t* b) {
  std::uint64_t both = 0, of_a = 0, of_b = 0;
  for (std::size_t i = 0; i < kRings; ++i) {
    both += static_cast<std::uint64_t>(a[i]) * b[i];
    of_a += static_cast<std::uint64_t>(a[i]) * a[i];
    of_b += static_cast<std::uint64_t>(b[i]) * b[i];
  }
  return both == 0 ? 0 : static_cast<double>(both) / std::sqrt(static_cast<double>(of_a) * static_cast<double>(of_b));
}

bool is_empty(const std::uint8_t* sector) {
  return std::all_of(sector, sector + kRings, [](std::uint8_t height) { return height == 0; });
}

double distance_when_turned(const ScanContext& a, const ScanContext& b, std::size_t turn) {
  double sum = 0;
  std::size_t counted = 0;
  for (std::size_t sector = 0; sector < kSectors; ++sector) {
    const std::uint8_t* const of_a = a.heights.data() + kRings * sector;
    const std::uint8_t* const of_b = b.heights.data() + kRings * ((sector + turn) % kSectors);
    if (is_empty(of_a) && is_empty(of_b)) continue;
    sum += likeness(of_a, of_b);
    ++counted;
  }
  return counted == 0 ? 1 : 1 - sum / static_cast<double>(counted);
}

}  // namespace

SectorDirection sector_direction(std::size_t sector) { return kDirections[sector % kSectors]; }

ScanContext context_of(std::span<const UnitPoint> scan) {
  ScanContext out;
  constexpr std::int64_t kMost = kRingUnits * static_cast<std::int64_t>(kRings);
  for (const auto& [x, y, z] : scan) {
    const std::int64_t square = x * x + y * y;
    if (square < kNearest * kNearest || square >= kMost * kMost) continue;
    const std::size_t sector = sector_of(static_cast<double>(x), static_cast<double>(y));
    std::size_t ring = 0;
    while (square >= static_cast<std::int64_t>((ring + 1) * (ring + 1)) * kRingUnits * kRingUnits) ++ring;
    const auto height = static_cast<std::uint8_t>(std::clamp<std::int64_t>((z + kBelow) / kHeightUnits, 0, 254) + 1);
    std::uint8_t& most = out.heights[kRings * sector + ring];
    most = std::max(most, height);
  }
  return out;
}

ContextMatch match(const ScanContext& a, const ScanContext& b) {
  ContextMatch best;
  for (std::size_t turn = 0; turn < kSectors; ++turn) {
    const double distance = distance_when_turned(a, b, turn);
    if (distance < best.distance) best = {distance, turn};
  }
  return best;
}

bool is_place_known(std::span<const Place> places, const Pose& pose) {
  return std::any_of(places.begin(), places.end(), [&](const Place& place) {
    double square = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const auto off = static_cast<double>(place.pose.translation[axis] - pose.translation[axis]);
      square += off * off;
    }
    return square < static_cast<double>(kPlaceUnits) * static_cast<double>(kPlaceUnits);
  });
}

Vector<std::uint8_t> write_places(std::span<const Place> places) {
  Vector<std::uint8_t> out;
  Writer writer(out);
  writer.bytes(kMagic);
  writer.u16(kVersion);
  writer.varint(places.size());
  for (const Place& place : places) {
    for (const std::int64_t part : place.pose.quaternion) write_signed(writer, part);
    for (const std::int64_t at : place.pose.translation) write_signed(writer, at);
    writer.bytes(place.context.heights);
  }
  const std::uint64_t checksum = checksum64(out);
  writer.u64(checksum);
  return out;
}

Result<Vector<Place>> read_places(std::span<const std::uint8_t> bytes) {
  Reader reader(bytes);
  QUERN_ASSIGN_OR_RETURN(const auto magic, reader.bytes(kMagic.size()));
  if (!std::equal(magic.begin(), magic.end(), kMagic.begin()))
    return Status(StatusCode::corrupt, "these are no places of a history");
  QUERN_ASSIGN_OR_RETURN(const auto version, reader.u16());
  if (version != kVersion) return Status(StatusCode::unsupported_version, "the places have version {0}", version);
  QUERN_ASSIGN_OR_RETURN(const auto count, reader.varint(bytes.size() / (kRings * kSectors)));
  Vector<Place> out;
  for (std::uint64_t i = 0; i < count; ++i) {
    Place& place = out.emplace_back();
    for (std::int64_t& part : place.pose.quaternion) {
      QUERN_ASSIGN_OR_RETURN(part, read_signed(reader, Pose::kMostQuaternion));
    }
    for (std::int64_t& at : place.pose.translation) {
      QUERN_ASSIGN_OR_RETURN(at, read_signed(reader, Pose::kMostTranslation));
    }
    QUERN_ASSIGN_OR_RETURN(const auto heights, reader.bytes(kRings * kSectors));
    std::copy(heights.begin(), heights.end(), place.context.heights.begin());
    if (!is_pose(place.pose)) return Status(StatusCode::corrupt, "a place has an impossible pose");
  }
  const std::uint64_t expected = checksum64(bytes.first(reader.position()));
  QUERN_ASSIGN_OR_RETURN(const auto checksum, reader.u64());
  QUERN_RETURN_IF_ERROR(reader.expect_end());
  if (checksum != expected) return Status(StatusCode::checksum_mismatch, "places are damaged");
  return out;
}

Result<Vector<Place>> read_places(const History& history, Report& report, std::uint64_t most_bytes) {
  const String folder = history.places_folder();
  const auto names = history.files().list(folder);
  Vector<Place> out;
  if (!names.ok() && storage::is_missing(names.status())) return out;
  if (!names.ok()) return storage::fail_file(report, folder, "list it", names.status());
  for (const String& name : *names) {
    if (!storage::parse_content_hash(name)) continue;
    const String path = join({folder, "/", name});
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t size, history.file_bytes(path, report));
    if (size > most_bytes) {
      report.notes.push_back(join({path, ": is too large for the memory limit, and its places are not used"}));
      continue;
    }
    const auto bytes = storage::read_file(history.files(), path, std::min(most_bytes, kMostPlacesBytes));
    if (!bytes.ok()) return storage::fail_file(report, path, "read it", bytes.status());
    const auto places = read_places(std::span<const std::uint8_t>(*bytes));
    if (places.ok()) {
      most_bytes -= bytes->size();
      out.insert(out.end(), places->begin(), places->end());
    } else {
      report.notes.push_back(join({path, ": is damaged, and its places are not used; remove it"}));
    }
  }
  return out;
}

Status publish_places(History& history, std::span<const Place> places, Report& report) {
  if (places.empty()) return {};
  const auto bytes = write_places(places);
  const String folder = history.places_folder();
  QUERN_RETURN_IF_ERROR(storage::make_one_folder(history.files(), folder, report));
  return storage::publish_file(history.files(), join({history.root(), "/tmp/places"}),
                               join({folder, "/", storage::hex(storage::content_hash(bytes))}), folder, bytes, report);
}

}  // namespace quern::lidar
