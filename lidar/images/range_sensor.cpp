// Beams of a sensor as bytes, and pixels to points.
#include "lidar/images/range_sensor.h"

#include <algorithm>
#include <bit>

#include "lidar/cloud/little_endian.h"
#include "lidar/history/stored_numbers.h"

namespace quern::lidar {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kDestaggered = 1;
constexpr unsigned kBits = 30;
constexpr std::int64_t kHalf = INT64_C(1) << (kBits - 1);
constexpr std::int64_t kDegree = 1'000'000;
constexpr std::uint32_t kNan = 0x7FC00000;

bool within(std::int64_t value, std::int64_t most) { return value >= -most && value <= most; }

/// Of an angle of at most an eighth turn, as its series says.
SineCosine small_sine_cosine(std::int64_t angle) {
  // pi / 180 degrees in units of 2^-42
  constexpr std::int64_t kRadians = 76'760'392'275;
  const std::int64_t x = angle * kRadians / kDegree >> (42 - kBits);
  const std::int64_t square = x * x >> kBits;
  const auto less = [&](std::int64_t term, std::int64_t divisor) {
    return RangeSensor::kOne - (square * term >> kBits) / divisor;
  };
  const std::int64_t sine = less(less(less(less(RangeSensor::kOne, 72), 42), 20), 6);
  const std::int64_t cosine = less(less(less(less(less(RangeSensor::kOne, 90), 56), 30), 12), 2);
  return {x * sine >> kBits, cosine};
}

}  // namespace

bool is_range_sensor(const RangeSensor& sensor) {
  const auto columns = static_cast<std::int64_t>(sensor.columns);
  if (sensor.beams.empty() || sensor.beams.size() > RangeSensor::kMostRows || sensor.columns == 0 ||
      sensor.columns > RangeSensor::kMostColumns)
    return false;
  for (const std::int64_t offset : {sensor.origin, sensor.origin_x, sensor.origin_z})
    if (!within(offset, RangeSensor::kMostOffset)) return false;
  for (std::size_t i = 0; i < sensor.transform.size(); ++i)
    if (!within(sensor.transform[i], i % 4 == 3 ? RangeSensor::kMostShift : RangeSensor::kOne)) return false;
  return std::all_of(sensor.beams.begin(), sensor.beams.end(), [&](const RangeSensor::Beam& beam) {
    return within(beam.altitude, RangeSensor::kMostAngle) && within(beam.azimuth, RangeSensor::kMostAngle) &&
           within(beam.pixel_shift, columns);
  });
}

Vector<std::uint8_t> write_range_sensor(const RangeSensor& sensor) {
  Vector<std::uint8_t> out;
  Writer writer(out);
  writer.u8(kVersion);
  writer.u8(sensor.is_destaggered ? kDestaggered : 0);
  writer.varint(sensor.beams.size());
  writer.varint(sensor.columns);
  for (const std::int64_t offset : {sensor.origin, sensor.origin_x, sensor.origin_z}) write_signed(writer, offset);
  for (const std::int64_t entry : sensor.transform) write_signed(writer, entry);
  std::int64_t last = 0;
  for (const RangeSensor::Beam& beam : sensor.beams) {
    write_signed(writer, beam.altitude - last);
    write_signed(writer, beam.azimuth);
    write_signed(writer, beam.pixel_shift);
    last = beam.altitude;
  }
  return out;
}

Result<RangeSensor> read_range_sensor(std::span<const std::uint8_t> bytes) {
  Reader reader(bytes);
  RangeSensor out;
  QUERN_ASSIGN_OR_RETURN(const auto version, reader.u8());
  QUERN_ASSIGN_OR_RETURN(const auto flags, reader.u8());
  if (version != kVersion || flags > kDestaggered)
    return Status(StatusCode::corrupt, "the sensor of a range image has an unknown version or flags");
  out.is_destaggered = (flags & kDestaggered) != 0;
  QUERN_ASSIGN_OR_RETURN(const auto rows, reader.varint(RangeSensor::kMostRows));
  QUERN_ASSIGN_OR_RETURN(out.columns, reader.varint(RangeSensor::kMostColumns));
  for (std::int64_t* const offset : {&out.origin, &out.origin_x, &out.origin_z}) {
    QUERN_ASSIGN_OR_RETURN(*offset, read_signed(reader, RangeSensor::kMostOffset));
  }
  for (std::int64_t& entry : out.transform) {
    QUERN_ASSIGN_OR_RETURN(entry, read_signed(reader, RangeSensor::kOne));
  }
  std::int64_t last = 0;
  for (std::uint64_t i = 0; i < rows; ++i) {
    RangeSensor::Beam beam;
    QUERN_ASSIGN_OR_RETURN(const auto step, read_signed(reader, 2 * RangeSensor::kMostAngle));
    QUERN_ASSIGN_OR_RETURN(beam.azimuth, read_signed(reader, RangeSensor::kMostAngle));
    QUERN_ASSIGN_OR_RETURN(beam.pixel_shift, read_signed(reader, static_cast<std::int64_t>(out.columns)));
    beam.altitude = last += step;
    out.beams.push_back(beam);
  }
  QUERN_RETURN_IF_ERROR(reader.expect_end());
  if (!is_range_sensor(out)) return Status(StatusCode::corrupt, "the sensor of a range image is none");
  return out;
}

SineCosine sine_cosine(std::int64_t angle) {
  constexpr std::int64_t kQuarter = 90 * kDegree;
  const std::int64_t whole = ((angle % (4 * kQuarter)) + 4 * kQuarter) % (4 * kQuarter);
  const std::int64_t rest = whole % kQuarter;
  SineCosine at;
  if (2 * rest <= kQuarter) {
    at = small_sine_cosine(rest);
  } else {
    const SineCosine other = small_sine_cosine(kQuarter - rest);
    at = {other.cosine, other.sine};
  }
  switch (whole / kQuarter) {
    case 0: return at;
    case 1: return {at.cosine, -at.sine};
    case 2: return {-at.sine, -at.cosine};
    default: return {-at.cosine, at.sine};
  }
}

Result<Vector<std::uint32_t>> project(const RangeSensor& sensor, std::span<const std::uint8_t> ranges) {
  const std::uint64_t columns = sensor.columns;
  Vector<SineCosine> encoder;  // by the number of the measurement
  for (std::uint64_t m = 0; m < columns; ++m) {
    const std::uint64_t turned = (2 * RangeSensor::kMostAngle * m + columns) / (2 * columns);
    encoder.push_back(sine_cosine(RangeSensor::kMostAngle - static_cast<std::int64_t>(turned)));
  }
  Vector<std::uint32_t> out;
  out.reserve(static_cast<std::size_t>(3 * sensor.pixels()));
  for (std::size_t row = 0; row < sensor.beams.size(); ++row) {
    const RangeSensor::Beam& beam = sensor.beams[row];
    const SineCosine up = sine_cosine(beam.altitude);
    const SineCosine aside = sine_cosine(-beam.azimuth);
    for (std::uint64_t column = 0; column < columns; ++column) {
      const auto range = load_le<std::uint32_t>(ranges.data() + 4 * (row * columns + column));
      if (range > RangeSensor::kMostRange)
        return Status(StatusCode::corrupt, "a range of {0} mm is above {1} mm", static_cast<std::int64_t>(range),
                      static_cast<std::int64_t>(RangeSensor::kMostRange));
      if (range == 0) {
        out.insert(out.end(), 3, kNan);
        continue;
      }
      const std::int64_t shift = sensor.is_destaggered ? beam.pixel_shift : 0;
      const auto moved = static_cast<std::uint64_t>(static_cast<std::int64_t>(column + columns) - shift);
      const SineCosine& e = encoder[static_cast<std::size_t>(moved % columns)];
      const std::int64_t along = std::int64_t{1000} * range - sensor.origin;
      const std::int64_t cosine = (e.cosine * aside.cosine - e.sine * aside.sine) >> kBits;
      const std::int64_t sine = (e.sine * aside.cosine + e.cosine * aside.sine) >> kBits;
      const std::array<std::int64_t, 3> at = {
          (along * (cosine * up.cosine >> kBits) + sensor.origin_x * e.cosine + kHalf) >> kBits,
          (along * (sine * up.cosine >> kBits) + sensor.origin_x * e.sine + kHalf) >> kBits,
          ((along * up.sine + kHalf) >> kBits) + sensor.origin_z};
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const std::int64_t* const m = sensor.transform.data() + 4 * axis;
        const std::int64_t micrometres = ((m[0] * at[0] + m[1] * at[1] + m[2] * at[2] + kHalf) >> kBits) + m[3];
        out.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<double>(micrometres) / 1e6)));
      }
    }
  }
  return out;
}

}  // namespace quern::lidar
