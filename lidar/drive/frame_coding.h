// Point clouds to coded frames and back: which coordinates the scan codec sees, and what its units mean in metres.
#pragma once

#include <cstdint>
#include <span>

#include <quern/execution.h>
#include <quern/status.h>

#include "codecs/lidar/point_codec.h"
#include "lidar/drive/frame_description.h"

namespace quern::lidar {

using codec::lidar::Mode;

struct FrameOptions {
  Mode mode = Mode::set;
  /// The bound in nanometres (lidar/cloud/length.h). Not used by mode `exact`.
  std::uint64_t max_error_nm = 50'000'000;
};

/// A frame as a drive stores it.
struct CodedFrame {
  FrameDescription description;
  Vector<std::uint8_t> scan;
  Vector<codec::lidar::PredictedPoint>
      prediction;                    ///< that decoding needs; a drive's reader makes it from earlier frames
  Vector<std::uint32_t> words;       ///< an encoder's: what coordinates that are no binary64 decode to
  std::uint64_t points = 0;          ///< of the cloud
  std::uint64_t dropped_points = 0;  ///< mode `set`: NaN or infinity
  double achieved_error = 0;         ///< metres, rounded up
};

/// Encodes a cloud. The name and time stamp of the description are the caller's to set. The bytes do not depend on
/// `runner`. Fails with `invalid_argument` where the bound is below the resolution (0.1 mm; binary64: 0.2 mm; scaled:
/// the scale) or the cloud has what the mode does not take; `bound_not_met` never. Takes about 300 bytes a point.
Result<CodedFrame> encode_frame(const PointCloud& cloud, const FrameOptions& options, TaskRunner& runner);

/// As encode_frame(), once for each prediction: where points of a binary32 cloud are expected, in its coordinates. What
/// they share is done once. A frame has its prediction only if decoding needs it. One that is clearly larger than
/// another, as in encode_scans(), has no scan.
Result<Vector<CodedFrame>> encode_frames(const PointCloud& cloud, const FrameOptions& options, TaskRunner& runner,
                                         std::span<const codec::lidar::Prediction> predictions);

/// Decodes a frame. Any bytes are safe. Fails with `memory_limit` above `most_points`, with `invalid_argument` where
/// the prediction is not the encoder's.
Result<PointCloud> decode_frame(const FrameDescription& description, std::span<const std::uint8_t> scan,
                                std::uint64_t most_points, TaskRunner& runner,
                                codec::lidar::Prediction prediction = {});

/// What a coded frame promises and what it keeps, in metres.
struct FrameErrors {
  double bound = 0;     ///< 0 in mode `exact`
  double achieved = 0;  ///< largest distance in either direction, rounded up
};
FrameErrors frame_errors(const FrameDescription& description, const codec::lidar::ScanInfo& info);

/// Whether description and scan belong together: type of coordinates, number and widths of columns, rows.
Status check_frame(const FrameDescription& description, const codec::lidar::ScanInfo& info);

}  // namespace quern::lidar
