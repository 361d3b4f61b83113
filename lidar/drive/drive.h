// Drives: frames in order in one stream of records, a segment a frame, so that any frame is read without the others.
// Stored form: docs/format-lidar.md, "Drives".
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include <quern/execution.h>
#include <quern/records.h>
#include <quern/status.h>
#include <quern/stream_io.h>

#include "lidar/drive/frame_coding.h"
#include "lidar/predict/tile_source.h"

namespace quern::lidar {

/// A coded frame in the caller's memory, such as a mapped file.
struct StoredFrame {
  std::span<const std::uint8_t> description;
  std::span<const std::uint8_t> scan;
};

/// Writes a drive of at least one frame. The bytes depend on the frames alone.
Result<std::uint64_t> write_drive(std::span<const StoredFrame> frames, const Execution& execution, ByteSink& sink);

/// Whether the header of a stream of records is that of a drive.
bool is_drive(const RecordInfo& info);

/// A frame's description, what its scan says of itself, and what both take.
struct DriveFrame {
  FrameDescription description;
  codec::lidar::ScanInfo scan;
  std::uint64_t stored_bytes = 0;  ///< description and scan
};

/// Points that decoding may bring within so many bytes of memory.
constexpr std::uint64_t points_within(std::uint64_t memory_bytes) { return memory_bytes / 256; }

/// Reads drives. One thread at a time.
class Drive : public Allocated {
 public:
  /// Reads header and index of the stream that begins at `offset`. The source outlives the drive. Fails with `corrupt`
  /// where the records are no drive, with `truncated` where the file ends early.
  static Result<std::unique_ptr<Drive>> open(ByteSource& source, const Execution& execution, std::uint64_t offset = 0);

  std::uint64_t frames() const { return reader_->info().layout.items; }
  std::uint64_t stream_bytes() const { return reader_->stream_bytes(); }
  const RecordInfo& records() const { return reader_->info(); }

  /// What frame `index` is. Reads this frame's bytes alone.
  Result<DriveFrame> describe(std::uint64_t index);
  /// The bytes of one frame, which decode_frame() takes, and its prediction. Reads this frame's bytes alone and, where
  /// it is predicted, decodes the frames back to its key frame that it needs, the oldest first; up to
  /// kMostReferenceDistance of the last ones are remembered, within a quarter of the memory. Fails with `unsupported`
  /// where it needs a history and there is none, with `memory_limit` where the frames that it is predicted from, or
  /// known points of its prediction, take too much memory.
  Result<CodedFrame> read_coded(std::uint64_t index);
  /// One frame decoded, and remembered where others may be predicted from it: reading in turn decodes each frame once.
  /// Fails with `memory_limit` above `most_points`.
  Result<PointCloud> read(std::uint64_t index, std::uint64_t most_points, TaskRunner& runner);
  /// For a caller who reads frames in turn and decodes them by himself: one that was decoded is not decoded again to
  /// predict the next. read() does so.
  void remember(std::uint64_t index, const FrameDescription& description, const PointCloud& cloud);
  /// Where frames find the tiles that they were predicted with; outlives the drive, or null.
  void set_history(TileSource* tiles) { tiles_ = tiles; }
  /// Whether the last call failed because the frame needs tiles that are not there.
  bool misses_history() const { return misses_history_; }
  /// Checks all checksums of the stream; does not decode scans.
  Status check_bytes();

 private:
  Drive(std::unique_ptr<RecordReader> reader, std::uint64_t memory)
      : reader_(std::move(reader)),
        most_points_(points_within(memory)),
        most_seen_points_(memory / 4 / sizeof(UnitPoint)) {}

  Result<FrameDescription> read_frame_description(std::uint64_t index);
  Result<CodedFrame> read_stored(std::uint64_t index);
  Result<Vector<codec::lidar::PredictedPoint>> predict(std::uint64_t index, const FrameDescription& description);
  /// The frames that a predicted frame needs, directly or through others, and that are not remembered, the oldest last.
  Result<Vector<std::uint64_t>> unseen_before(std::uint64_t index, const FrameDescription& description);
  Result<Vector<codec::lidar::PredictedPoint>> predict_by_seen(std::uint64_t index,
                                                               const FrameDescription& description);
  /// Decodes and remembers a frame that predicts others. Those that predict it are remembered.
  Status see(std::uint64_t index);
  /// Remembers a frame, and before it only what the next frames can need and memory allows.
  void keep(std::uint64_t index, SeenFrame frame);
  Status read_key(std::uint64_t key);
  void enter_key(std::uint64_t key, const SensorRays& rays, const std::optional<storage::ContentHash>& epoch);

  std::unique_ptr<RecordReader> reader_;
  std::uint64_t most_points_;                ///< of a frame that predicts others
  std::uint64_t most_seen_points_;           ///< of seen_
  std::map<std::uint64_t, SeenFrame> seen_;  ///< by index
  std::uint64_t key_ = UINT64_MAX;           ///< whose rays and epoch these are
  SensorRays rays_;
  std::optional<storage::ContentHash> epoch_;
  TileSource* tiles_ = nullptr;
  bool misses_history_ = false;
};

}  // namespace quern::lidar
