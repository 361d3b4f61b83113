// Ouster's metadata, and arrays of pixels.
#include "cli/lidar/range_files.h"

#include <cmath>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/files/byte_streams.h"
#include "cli/files/input_array.h"
#include "cli/lidar/verb.h"
#include "lidar/drive/frame_description.h"
#include "lidar/images/range_cloud.h"

namespace quern::cli {
namespace {

using lidar::RangeSensor;

/// A member of the file, or of an object in it: releases of the firmware put them in different places.
const Json* find_member(const Json& json, const char* name) {
  if (const auto found = json.find(name); found != json.end()) return &*found;
  for (const auto& part : json)
    if (part.is_object())
      if (const auto found = part.find(name); found != part.end()) return &*found;
  return nullptr;
}

/// Parsed, JSON takes many times its bytes; metadata of sensors have some ten kilobytes.
constexpr std::size_t kMostJsonBytes = std::size_t{16} << 20;

class SensorJson {
 public:
  explicit SensorJson(const std::string& path) : path_(path) {
    const Mapping mapping = Mapping::of_file(path);
    if (mapping.bytes().size() > kMostJsonBytes)
      fail(Exit::io, path + ": has more than 16 MiB; name the metadata file of the sensor that made the images");
    json_ = Json::parse(mapping.bytes().begin(), mapping.bytes().end(), nullptr, false);
    if (!json_.is_object())
      fail(Exit::io, path + ": is no JSON object; name the metadata file of the sensor that made the images");
  }

  /// Nothing where it is missing. `count` 0: a number alone.
  std::optional<std::vector<double>> numbers(const char* name, std::size_t count) const {
    const Json* const member = find_member(json_, name);
    if (member == nullptr) return std::nullopt;
    std::vector<double> out;
    if (count == 0 && member->is_number()) return std::vector<double>{member->get<double>()};
    if (count != 0 && member->is_array())
      for (const auto& entry : *member) {
        if (!entry.is_number()) break;
        out.push_back(entry.get<double>());
      }
    if (count == 0 || out.size() != count || out.size() != member->size())
      fail(Exit::io, fmt::format("{}: {} is not {}", path_, name,
                                 count == 0 ? std::string("a number") : fmt::format("{} numbers", count)));
    return out;
  }
  std::vector<double> needed(const char* name, std::size_t count) const {
    auto out = numbers(name, count);
    if (!out) fail(Exit::io, fmt::format("{}: has no {}; name the metadata file of the sensor", path_, name));
    return *out;
  }
  std::uint64_t size_of(const char* name, std::uint64_t most) const {
    const double value = needed(name, 0)[0];
    if (!(value >= 1 && value <= static_cast<double>(most)) || value != std::floor(value))
      fail(Exit::io, fmt::format("{}: {} is not a whole number of 1 to {}", path_, name, most));
    return static_cast<std::uint64_t>(value);
  }
  [[noreturn]] void fail_limits() const {
    fail(Exit::io, path_ + ": an angle, offset, pixel shift or transform is beyond what a sensor can have");
  }
  /// `value` in units of `unit`; what is far beyond all limits stays there.
  std::int64_t whole(double value, double unit) const {
    const double scaled = value * unit;
    if (!(std::fabs(scaled) < 1e15)) fail_limits();
    return std::llround(scaled);
  }

 private:
  const std::string& path_;
  Json json_;
};

std::optional<DType> type_of_name(const std::string& path) {
  for (const auto& [ending, type] :
       {std::pair(".u8", DType::u8), std::pair(".u16", DType::u16), std::pair(".u32", DType::u32)})
    if (path.ends_with(ending)) return type;
  return std::nullopt;
}

}  // namespace

RangeSensor read_sensor_file(const std::string& path, bool is_destaggered) {
  const SensorJson json(path);
  RangeSensor out;
  out.is_destaggered = is_destaggered;
  out.columns = json.size_of("columns_per_frame", RangeSensor::kMostColumns);
  const auto rows = static_cast<std::size_t>(json.size_of("pixels_per_column", RangeSensor::kMostRows));
  const auto altitudes = json.needed("beam_altitude_angles", rows);
  const auto azimuths = json.needed("beam_azimuth_angles", rows);
  const auto shifts = json.needed("pixel_shift_by_row", rows);
  for (std::size_t i = 0; i < rows; ++i)
    out.beams.push_back({json.whole(altitudes[i], 1e6), json.whole(azimuths[i], 1e6), json.whole(shifts[i], 1)});
  if (const auto beam = json.numbers("beam_to_lidar_transform", 16)) {
    out.origin = json.whole(std::sqrt((*beam)[3] * (*beam)[3] + (*beam)[11] * (*beam)[11]), 1e3);
    out.origin_x = json.whole((*beam)[3], 1e3);
    out.origin_z = json.whole((*beam)[11], 1e3);
  } else {
    out.origin = out.origin_x = json.whole(json.needed("lidar_origin_to_beam_origin_mm", 0)[0], 1e3);
  }
  const auto transform = json.needed("lidar_to_sensor_transform", 16);
  for (std::size_t i = 0; i < out.transform.size(); ++i)
    out.transform[i] =
        i % 4 == 3 ? json.whole(transform[i], 1e3) : json.whole(transform[i], static_cast<double>(RangeSensor::kOne));
  if (!lidar::is_range_sensor(out)) json.fail_limits();
  return out;
}

struct ImageFile::Bytes {
  Mapping mapping;
  std::optional<InputArray> input;  ///< may have the file mapped
  std::optional<WholeArray> array;
};

ImageFile::~ImageFile() = default;
ImageFile::ImageFile(ImageFile&&) noexcept = default;

ImageFile::ImageFile(const std::string& path, std::uint64_t rows, std::uint64_t columns, const RunArgs& run)
    : path_(path), bytes_(std::make_unique<Bytes>()) {
  const auto named = type_of_name(path);
  if (!named && !path.ends_with(".npy"))
    fail(Exit::usage, path + ": range images and those beside them are .u8, .u16, .u32 or .npy files");
  if (named) {
    type_ = *named;
    bytes_->mapping = Mapping::of_file(path);
    values_ = bytes_->mapping.bytes();
  } else {
    InputArray& input = bytes_->input.emplace(open_input(path, "", DataArgs()));
    type_ = input.meta.dtype;
    if (!WholeArray::fits(input, memory_limit(run))) fail(Exit::resource, path + ": does not fit; raise --memory");
    bytes_->array = WholeArray::load(input);
    const ArrayView view = bytes_->array->view();
    const auto& shape = input.meta.shape;
    if (shape.rank() < 2 || shape[shape.rank() - 1] != columns || shape[shape.rank() - 2] != rows)
      fail(Exit::io,
           fmt::format("{}: has the shape {}; the sensor's images are {} x {}", path, shape.text(), rows, columns));
    values_ = {static_cast<const std::uint8_t*>(view.data), static_cast<std::size_t>(input.bytes())};
  }
  image_bytes_ = rows * columns * dtype_bytes(type_);
  images_ = values_.size() / image_bytes_;
  if (values_.empty() || values_.size() % image_bytes_ != 0)
    fail(Exit::io, fmt::format("{}: has {} bytes, which are no whole images of {} x {} {} numbers", path,
                               values_.size(), rows, columns, dtype_name(type_)));
}

std::span<const std::uint8_t> ImageFile::image(std::uint64_t number) const {
  return values_.subspan(static_cast<std::size_t>(number * image_bytes_), static_cast<std::size_t>(image_bytes_));
}

RangeFiles::RangeFiles(const std::string& path, const LidarArgs& args)
    : sensor_(read_sensor_file(args.sensor, args.is_destaggered)),
      ranges_(path, sensor_.beams.size(), sensor_.columns, args.run) {
  if (ranges_.type() != DType::u32)
    fail(Exit::io, fmt::format("{}: ranges are 32-bit whole numbers of millimetres (u32), not {}", path,
                               dtype_name(ranges_.type())));
  for (const auto& [name, file] : args.channels) {
    if (!lidar::is_column_name(name) || name == lidar::kRangeColumn)
      fail(Exit::usage, fmt::format("--channel {}={}: this cannot be the name of an image beside ranges", name, file));
    channels_.emplace_back(name, ImageFile(file, sensor_.beams.size(), sensor_.columns, args.run));
    if (channels_.back().second.images() != ranges_.images())
      fail(Exit::usage, fmt::format("--channel {}={}: has {} images, but {} has {}", name, file,
                                    channels_.back().second.images(), path, ranges_.images()));
  }
}

lidar::PointCloud RangeFiles::read(std::uint64_t number) const {
  Vector<lidar::CloudColumn> others;
  for (const auto& [name, file] : channels_) {
    const auto image = file.image(number);
    others.push_back({String(name), file.type(), Vector<std::uint8_t>(image.begin(), image.end())});
  }
  auto cloud = lidar::cloud_of_image(sensor_, ranges_.image(number), std::move(others));
  if (!cloud.ok()) fail(Exit::io, fmt::format("{}: image {}: {}", ranges_.path(), number, cloud.status().text()));
  return std::move(cloud).value();
}

}  // namespace quern::cli
