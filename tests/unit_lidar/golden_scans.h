// The committed scans: what they were made from, and how what they decode to is written down.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codecs/lidar/point_codec.h"
#include "tests/unit_lidar/clouds.h"

namespace quern::lidar_test {

struct GoldenScan {
  std::string name;  ///< of its files: NAME.scan, NAME.points
  TestCloud cloud;
  codec::lidar::ScanOptions options;
  std::vector<codec::lidar::PredictedPoint> prediction = {};  ///< in NAME.prediction
  bool former = false;                                        ///< version 1: predicted without weights; only decoded
};

/// One for each tool, mode, type and form of parts. Clouds come from integers and a hash alone.
std::vector<GoldenScan> golden_scans();

/// The stream. Empty where encoding fails.
std::vector<std::uint8_t> encode_golden(const GoldenScan& scan);

/// x, y, z of each point as 64-bit little-endian numbers, and but for former scans its weight as a byte.
std::vector<std::uint8_t> prediction_bytes(const GoldenScan& scan);

/// What a stream decodes to: type u8, points u32, their words, then each column's bytes. Empty where decoding fails.
std::vector<std::uint8_t> decoded_golden(const std::vector<std::uint8_t>& stream, codec::lidar::Prediction prediction);

}  // namespace quern::lidar_test
