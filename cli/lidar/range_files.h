// Range images in files: arrays of whole numbers, and the JSON that describes their sensor.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/lidar/args.h"
#include "lidar/cloud/point_cloud.h"
#include "lidar/images/range_sensor.h"

namespace quern::cli {

/// Metadata as Ouster's sensors and SDK write it: beam angles, pixel shifts, offsets, transform. Throws CliError,
/// naming the file and what is missing or wrong.
lidar::RangeSensor read_sensor_file(const std::string& path, bool is_destaggered);

/// Images of one type, one behind the other, in a .u8, .u16, .u32 or .npy file.
class ImageFile {
 public:
  /// Throws CliError where the file has another type or is no whole number of images.
  ImageFile(const std::string& path, std::uint64_t rows, std::uint64_t columns, const RunArgs& run);
  ~ImageFile();
  ImageFile(ImageFile&&) noexcept;

  const std::string& path() const { return path_; }
  DType type() const { return type_; }
  std::uint64_t images() const { return images_; }
  std::span<const std::uint8_t> image(std::uint64_t number) const;

 private:
  struct Bytes;
  std::string path_;
  DType type_ = DType::u32;
  std::uint64_t images_ = 0;
  std::uint64_t image_bytes_ = 0;
  std::unique_ptr<Bytes> bytes_;
  std::span<const std::uint8_t> values_;
};

/// Ranges and the images beside them.
class RangeFiles {
 public:
  /// Throws CliError.
  RangeFiles(const std::string& path, const LidarArgs& args);

  std::uint64_t size() const { return ranges_.images(); }
  const lidar::RangeSensor& sensor() const { return sensor_; }
  /// Of an image: a little-endian 32-bit number of millimetres a pixel.
  std::span<const std::uint8_t> ranges(std::uint64_t number) const { return ranges_.image(number); }
  /// Images beside the ranges, by name.
  std::span<const std::pair<std::string, ImageFile>> channels() const { return channels_; }
  /// Throws CliError, naming file and image.
  lidar::PointCloud read(std::uint64_t number) const;

 private:
  lidar::RangeSensor sensor_;
  ImageFile ranges_;
  std::vector<std::pair<std::string, ImageFile>> channels_;
};

}  // namespace quern::cli
