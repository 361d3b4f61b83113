// What the opaque handles of <quern/lidar.h> are.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include <quern/lidar.h>

#include "libcompress/capi/caller_memory.h"
#include "libcompress/capi/caller_runner.h"
#include "libcompress/core/task_runner.h"
#include "lidar/capi/system_file.h"
#include "lidar/drive/drive.h"
#include "lidar/drive/posed_frames.h"
#include "lidar/history/history_tiles.h"
#include "lidar/locate/locator.h"

namespace quern::lidar::capi {

/// Memory, threads and limit of a handle. `memory` comes first: the handle lives in it.
struct HandleBase {
  explicit HandleBase(const quern_allocator& allocator) noexcept : memory(allocator) {}

  void take(const quern_lidar_execution& given) {
    given_ = given;
    if (given.runner.run != nullptr) runner.emplace(given.runner);
  }
  Execution execution() {
    Execution out;
    out.threads = given_.threads;
    if (runner) out.runner = &*runner;
    if (given_.memory_limit != 0) out.memory_limit = given_.memory_limit;
    return out;
  }
  const quern_lidar_execution& given() const { return given_; }

  mutable quern::capi::CallerMemory memory;
  std::optional<quern::capi::CallerRunner> runner;

 private:
  quern_lidar_execution given_ = QUERN_LIDAR_EXECUTION_INIT;
};

}  // namespace quern::lidar::capi

struct quern_lidar_cloud : public quern::lidar::capi::HandleBase {
  using HandleBase::HandleBase;

  // Made last and destroyed first: they live in the handle's memory.
  std::optional<quern::lidar::PointCloud> cloud;
  std::optional<quern::Vector<quern_lidar_column>> columns;
  std::optional<quern::Vector<const quern_lidar_column*>> pointers;
};

struct quern_lidar_history : public quern::lidar::capi::HandleBase {
  using HandleBase::HandleBase;

  /// Tiles for drives and writers, which are on other threads and in other memory.
  class Source final : public quern::lidar::TileSource {
   public:
    explicit Source(quern_lidar_history& history) : history_(history) {}
    quern::Status add_tiles(const quern::storage::ContentHash& epoch, std::uint64_t reach,
                            const quern::lidar::Pose& pose, quern::lidar::ScanPredictor& predictor) override;

   private:
    quern_lidar_history& history_;
  };

  /// Bytes; a default where the caller has given none.
  std::uint64_t memory_limit() const { return given().memory_limit != 0 ? given().memory_limit : UINT64_C(1) << 30; }
  /// What the last failure of tiles was about; empty: nothing that a sentence was kept of.
  quern::String problem();

  std::optional<quern::String> path;
  std::mutex mutex;  ///< of tiles
  std::optional<quern::lidar::HistoryTiles> tiles;
  Source source{*this};
};

struct quern_lidar_writer : public quern::lidar::capi::HandleBase {
  using HandleBase::HandleBase;

  struct Frame {
    quern::Vector<std::uint8_t> description;
    quern::Vector<std::uint8_t> scan;
    std::optional<quern::lidar::Pose> pose;
  };

  std::optional<quern::String> path;
  bool replace = false;
  bool finished = false;
  quern::lidar::FrameOptions options;
  std::optional<quern::Vector<Frame>> frames;
  quern_lidar_history* history = nullptr;
  std::uint64_t key_every = 16;
  std::optional<quern::storage::ContentHash> epoch;  ///< of the history; nothing: it is empty
  bool uses_history = false;                         ///< of the frames added
  bool gives_poses = false;                          ///< the caller, of the frames added
  std::optional<quern::lidar::Locator> locator;      ///< in the history's memory, used under its mutex
  std::optional<quern::lidar::PosedFrames> posed;    ///< of the frames since the last one without a pose
  std::optional<quern::Vector<quern::lidar::FrameDescription>> group;  ///< since the last key frame, not yet written
  quern_lidar_result result = QUERN_LIDAR_RESULT_INIT;
};

struct quern_lidar_drive : public quern::lidar::capi::HandleBase {
  using HandleBase::HandleBase;

  std::optional<quern::String> path;
  std::mutex mutex;  ///< of source and drive
  quern::lidar::capi::FileSource source;
  quern_lidar_history* history = nullptr;
  std::unique_ptr<quern::lidar::Drive> drive;
};
