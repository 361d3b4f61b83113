#include "tests/unit_lidar_drive/golden_drive.h"

#include "lidar/bags/message_layout.h"
#include "lidar/cloud/little_endian.h"
#include "lidar/drive/posed_frames.h"
#include "lidar/history/addition.h"
#include "lidar/images/range_cloud.h"
#include "tests/unit_lidar/clouds.h"
#include "tests/unit_lidar_drive/made_clouds.h"

namespace quern::lidar_test {

using lidar::Mode;

std::vector<GoldenFrame> golden_frames() {
  const auto scan = small_scan(200, 20261127);
  const auto wide = with_columns(small_scan(96, 5));
  std::vector<GoldenFrame> out;
  out.push_back({scan, {Mode::set, 150'000'000}, "000000", 1'317'042'145'951'199'337});
  out.push_back({scan, {Mode::points, 20'000'000}, "000001", -1});
  out.push_back({scan, {Mode::exact, 0}, "000002", std::nullopt});
  out.push_back({as_scaled(wide, 0.01), {Mode::points, 50'000'000}, "las points", std::nullopt});
  out.push_back({as_scaled(wide, 0.001), {Mode::exact, 0}, "las exact", 0});
  out.push_back({as_f64(wide), {Mode::set, 100'000'000}, "wide set", std::nullopt});
  out.push_back({as_f64(wide), {Mode::exact, 0}, "wide exact", std::nullopt});
  out[1].cloud.format = lidar::FileFormat::bin;
  out[2].cloud.rows = scan.points() / 2;
  out[4].cloud.file_header = {'L', 'A', 'S', 'F', 0, 255};
  out[4].cloud.source_bytes = 12345;
  return out;
}

lidar::CodedFrame code(const GoldenFrame& frame) {
  SerialRunner runner;
  auto coded = lidar::encode_frame(frame.cloud, frame.options, runner);
  if (!coded.ok()) return {};
  coded->description.name = frame.name;
  coded->description.time_stamp = frame.time_stamp;
  return std::move(coded).value();
}

namespace {

Vector<std::uint8_t> drive_of(const std::vector<lidar::CodedFrame>& frames) {
  std::vector<Vector<std::uint8_t>> descriptions;
  for (const lidar::CodedFrame& frame : frames) descriptions.push_back(lidar::write_description(frame.description));
  std::vector<lidar::StoredFrame> stored;
  for (std::size_t i = 0; i < frames.size(); ++i) stored.push_back({descriptions[i], frames[i].scan});
  Vector<std::uint8_t> out;
  VectorSink sink(out);
  if (!lidar::write_drive(stored, Execution(), sink).ok()) out.clear();
  return out;
}

}  // namespace

Vector<std::uint8_t> make_golden_drive() {
  std::vector<lidar::CodedFrame> frames;
  for (const GoldenFrame& frame : golden_frames()) frames.push_back(code(frame));
  return drive_of(frames);
}

std::vector<lidar::PointCloud> posed_clouds() {
  std::vector<lidar::PointCloud> clouds;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const TestCloud made = spinning_scan(16, 80, seed, true);
    lidar::PointCloud& cloud = clouds.emplace_back();
    cloud.words.assign(made.words.begin(), made.words.end());
  }
  return clouds;
}

std::vector<lidar::Pose> posed_poses() {
  std::vector<lidar::Pose> poses;
  for (std::int64_t i = 0; i < 5; ++i)
    poses.push_back({{900'000, 2'000, -1'000, 300'000 + i}, {5'000'000, 100 * i, -9}});
  return poses;
}

namespace {

Vector<std::uint8_t> posed_drive(lidar::PosedFrames frames, std::size_t first) {
  SerialRunner runner;
  std::vector<lidar::CodedFrame> coded;
  const auto clouds = posed_clouds();
  for (std::size_t i = first; i < clouds.size(); ++i) {
    auto frame = frames.encode(clouds[i], {Mode::set, 150'000'000}, posed_poses()[i], runner);
    if (!frame.ok()) return {};
    frame->description.name = "posed";
    coded.push_back(std::move(frame).value());
  }
  return drive_of(coded);
}

lidar::RangeSensor image_sensor(bool is_destaggered) {
  lidar::RangeSensor sensor;
  sensor.columns = 96;
  sensor.is_destaggered = is_destaggered;
  sensor.origin = 17'000;
  sensor.origin_x = 15'806;
  sensor.origin_z = 6'000;
  for (std::int64_t row = 0; row < 8; ++row)
    sensor.beams.push_back({21'000'000 - row * 5'600'000, is_destaggered ? 4'210'000 - row % 4 * 2'806'000 : 0,
                            is_destaggered ? 3 - row % 4 : 0});
  // Turned about z by the angle of the triangle 3, 4, 5.
  constexpr std::int64_t kOne = lidar::RangeSensor::kOne;
  if (is_destaggered)
    sensor.transform = {3 * kOne / 5, -4 * kOne / 5, 0, 3'000, 4 * kOne / 5, 3 * kOne / 5, 0, -4'500, 0, 0,
                        kOne,         36'180};
  return sensor;
}

/// Twigs at the same places whatever the seed, a pixel in 16 without a return, and a channel beside the ranges.
lidar::PointCloud image_cloud(bool is_destaggered, std::uint64_t seed) {
  const lidar::RangeSensor sensor = image_sensor(is_destaggered);
  Random random(seed), twigs(77);
  Vector<std::uint8_t> ranges;
  Vector<std::uint8_t> signal;
  for (std::uint64_t pixel = 0; pixel < sensor.pixels(); ++pixel) {
    const auto range = static_cast<std::uint32_t>(9'000 + twigs.below(16'000) + random.below(8));
    lidar::append_le(random.below(16) == 0 ? 0 : range, ranges);
    lidar::append_le(static_cast<std::uint16_t>(random.below(300)), signal);
  }
  return lidar::cloud_of_image(sensor, ranges, {{"signal", DType::u16, std::move(signal)}}).value();
}

lidar::PointCloud message_cloud(bool has_fields) {
  lidar::PointCloud cloud = with_columns(small_scan(80, 9));
  cloud.format = lidar::FileFormat::point_cloud2;
  lidar::MessageLayout layout;
  layout.topic = "/points";
  layout.frame_id = "lidar";
  layout.log_delay = -12'345;
  layout.is_dense = has_fields;
  if (!has_fields) cloud.columns.clear();
  if (has_fields) {
    layout.point_step = 16;
    for (std::uint64_t axis = 0; axis < 3; ++axis) layout.places.push_back({axis, 4 * axis, 1});
    std::uint64_t offset = 12;
    for (std::uint64_t i = 0; i < cloud.columns.size(); ++i) {
      layout.places.push_back({3 + i, offset, 1});
      offset += dtype_bytes(cloud.columns[i].type);
    }
    layout.point_step = offset + 3;
  }
  cloud.file_header = lidar::write_layout(layout);
  return cloud;
}

}  // namespace

Vector<std::uint8_t> make_kinds_drive() {
  SerialRunner runner;
  std::vector<lidar::CodedFrame> coded;
  const auto take = [&](Result<lidar::CodedFrame> frame, const char* name) {
    if (!frame.ok()) return;
    frame->description.name = name;
    coded.push_back(std::move(frame).value());
  };
  const lidar::FrameOptions exact{Mode::exact, 0}, near{Mode::set, 150'000'000}, fine{Mode::points, 20'000'000};
  lidar::PosedFrames posed(2);
  take(posed.encode(image_cloud(false, 1), exact, posed_poses()[0], runner), "image");
  take(posed.encode(lidar::points_of_image(image_cloud(false, 2)), near, posed_poses()[0], runner),
       "points of an image");
  take(lidar::encode_frame(image_cloud(true, 3), exact, runner), "destaggered");
  take(lidar::encode_frame(lidar::points_of_image(image_cloud(true, 4)), fine, runner), "points in order");
  take(lidar::encode_frame(message_cloud(true), exact, runner), "message");
  take(lidar::encode_frame(message_cloud(false), near, runner), "message without fields");
  return drive_of(coded);
}

Vector<std::uint8_t> make_posed_drive() { return posed_drive(lidar::PosedFrames(3), 0); }

Result<lidar::ContentHash> make_golden_history(storage::FileSystem& files, const String& root) {
  lidar::Report report;
  QUERN_RETURN_IF_ERROR(lidar::History::init(files, root, {200, 0}, report));
  lidar::ContentHash last;
  for (std::size_t i = 0; i < 2; ++i) {
    QUERN_ASSIGN_OR_RETURN(auto history, lidar::History::open(files, root, report));
    QUERN_ASSIGN_OR_RETURN(const auto lock, history.lock(report));
    lidar::Addition addition(history.options().cell_units);
    (void)addition.add(posed_poses()[i], lidar::unit_points(posed_clouds()[i].words));
    QUERN_ASSIGN_OR_RETURN(const auto added, addition.publish(history, report));
    last = added.epoch.root;
  }
  return last;
}

Vector<std::uint8_t> make_history_drive(lidar::TileSource& tiles, const lidar::ContentHash& epoch) {
  return posed_drive(lidar::PosedFrames(2, {&tiles, epoch}), 2);
}

namespace {

void add_text(const String& text, Vector<std::uint8_t>& out) {
  out.push_back(static_cast<std::uint8_t>(text.size()));
  out.insert(out.end(), text.begin(), text.end());
}

}  // namespace

Vector<std::uint8_t> decoded_drive(std::span<const std::uint8_t> bytes, lidar::TileSource* tiles) {
  Vector<std::uint8_t> out;
  MemorySource source(bytes);
  const auto drive = lidar::Drive::open(source, Execution());
  if (!drive.ok()) return out;
  (*drive)->set_history(tiles);
  SerialRunner runner;
  for (std::uint64_t i = 0; i < (*drive)->frames(); ++i) {
    const auto coded = (*drive)->read_coded(i);
    const auto cloud = (*drive)->read(i, 1 << 20, runner);
    if (!coded.ok() || !cloud.ok()) return {};
    add_text(coded->description.name, out);
    out.push_back(static_cast<std::uint8_t>(cloud->kind));
    lidar::append_le(static_cast<std::uint32_t>(cloud->points()), out);
    for (const std::uint32_t word : cloud->words) lidar::append_le(word, out);
    for (const double x : cloud->doubles) lidar::append_le(x, out);
    for (const auto& column : cloud->columns) {
      add_text(column.name, out);
      out.push_back(static_cast<std::uint8_t>(column.type));
      out.insert(out.end(), column.values.begin(), column.values.end());
    }
  }
  return out;
}

}  // namespace quern::lidar_test
