// Checkpoints that are captured, coded and written while training goes on. A layer above the store: what it writes is
// what a save writes, by the same code and in the same order.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "checkpoint/convert/added_tensor.h"
#include "checkpoint/convert/checkpoint_files.h"
#include "checkpoint/convert/save_set.h"

namespace quern::checkpoint {

/// How far a save has come; each level holds what those before it hold.
enum class SaveLevel : std::uint8_t {
  submitted,  ///< it waits for its turn; its tensors are borrowed
  captured,   ///< nothing of the caller's memory is read any more
  host,       ///< all of it is in host memory or beyond: with tensors in host memory, at once with captured
  local,      ///< the store shows it, and it survives a power cut there
  durable,    ///< likewise on the last tier that wants the step
};

enum class WhenFull : std::uint8_t {
  block,           ///< a fence waits until coding has made room
  skip,            ///< a save that meets a ring which earlier saves fill is dropped whole
  compress_first,  ///< what finds no room is coded where it lies, without a copy
};

enum class AtEnd : std::uint8_t { drain, drop };

/// Something the engine did, for pictures; seconds since it was opened.
struct EngineEvent {
  enum class Kind : std::uint8_t { submit, capture, fence, code, publish, tier };
  Kind kind = Kind::submit;
  std::uint64_t step = 0;  ///< of fences: 0
  double begin = 0;
  double end = 0;
  std::uint64_t bytes = 0;
};

/// For FileSaveOptions::group_bytes and SaveOptions::large_tensor_bytes of saves through an engine: what is held coded.
inline constexpr std::uint64_t kEngineGroupBytes = std::uint64_t{1} << 22;

/// A further directory behind the store, which gets copies of its checkpoints.
struct TierOptions {
  String path;
  std::uint64_t every = 1;  ///< steps that are multiples of it
  double write_rate = 0;    ///< most bytes a second; 0: no limit of its own
  /// Most of the measured bandwidth that is used, so that others have the rest; 1: all.
  double share = 1;
  /// Saves that may wait for it; when there are more, the oldest is passed over and stays in the store alone.
  std::size_t most_waiting = 16;
  bool probe = true;            ///< measure it before its first use
  FileSystem* files = nullptr;  ///< null: those of the engine; outlives the engine
};

struct EngineOptions {
  std::uint64_t ring_bytes = std::uint64_t{1} << 28;
  /// Most that the engine takes beside the ring; a save that needs more fails. 0: no limit.
  std::uint64_t coding_bytes = 0;
  double write_rate = 0;    ///< most bytes a second that are written; 0: as fast as it goes
  std::size_t threads = 1;  ///< that code; 0: one a hardware thread
  WhenFull when_full = WhenFull::block;
  AtEnd at_exit = AtEnd::drain;                   ///< of the process, when the engine is still open
  double exit_seconds = 600;                      ///< that draining at exit may take
  bool check_changes = false;                     ///< hash every tensor at submit and again when it is captured
  Vector<TierOptions> tiers;                      ///< in the order of their distance
  std::size_t keep_local = 0;                     ///< newest that stay in the store when tiers have them; 0: all
  std::function<void(const String&)> note;        ///< called by the engine's threads
  std::function<void(const EngineEvent&)> watch;  ///< likewise, and by callers' threads
};

/// A save that is put together; one thread. Names and blobs are copied, values borrowed until the save is captured.
struct PendingSave : public Allocated {
  FileSaveOptions options;
  Vector<AddedTensor> tensors;
  TensorNames names;
  Vector<std::pair<String, Vector<std::uint8_t>>> blobs;
};

/// What can be known of a save at any time.
struct SaveProgress {
  SaveLevel level = SaveLevel::submitted;
  bool stopping = false;         ///< it was cancelled, skipped or dropped
  bool finished = false;         ///< durable, written as a part of a group, or failed
  std::uint32_t tiers_left = 0;  ///< that want it and do not have it yet
  StatusCode code = StatusCode::ok;
  String sentence;  ///< of a failure
  std::uint64_t raw_bytes = 0;
  std::uint64_t captured_bytes = 0;  ///< copied or coded: may be written to again
  std::uint64_t copied_tensors = 0;  ///< into the ring
  std::uint64_t coded_first = 0;     ///< tensors coded where they lie: by the rates, or for lack of room
  double submit_seconds = 0;         ///< since the engine was opened
  double captured_seconds = 0;
  double local_seconds = 0;
  double durable_seconds = 0;
  // Once it is published.
  SetCounts counts;
  std::uint64_t differences = 0;  ///< tensors that need an earlier checkpoint
  std::uint64_t manifest_bytes = 0;
  bool published = false;  ///< false: the other writers of the group have not arrived yet, and its level stays at host
  String id;
};

struct EngineStats {
  std::uint64_t submitted = 0, durable = 0, failed = 0, skipped = 0, cancelled = 0, waiting = 0;
  std::uint64_t copied_tensors = 0, copied_bytes = 0;
  std::uint64_t first_by_rate = 0;      ///< tensors coded where they lie, because that frees them sooner
  std::uint64_t first_for_room = 0;     ///< because the ring was full
  std::uint64_t first_for_size = 0;     ///< because they are larger than the ring
  std::uint64_t first_bytes = 0;        ///< of the three
  double copy_rate = 0, code_rate = 0;  ///< bytes a second, moving averages; 0: not measured
  double fence_seconds = 0, longest_fence = 0, submit_seconds = 0;
  std::uint64_t fences = 0;
  std::uint64_t ring_bytes = 0, ring_peak = 0, coding_peak = 0, written_bytes = 0;
};

struct TierStats {
  String path;
  std::uint64_t checkpoints = 0, bytes = 0;  ///< copied
  std::uint64_t waiting = 0, failed = 0, passed_over = 0;
  double rate = 0;     ///< bytes a second, a moving average that begins with the probe; 0: not measured
  unsigned depth = 0;  ///< blocks under way at once
  String problem;      ///< of the last attempt; empty: it went well
};

/// Any thread may call anything but close(), after which nothing may be called. Times are in seconds; infinity is one.
class Engine {
 public:
  /// Makes the store's folders and takes the ring's memory, all of it. `files` outlives the engine.
  static Result<std::unique_ptr<Engine>> open(FileSystem& files, std::string_view store, const EngineOptions& options,
                                              Report& report);
  /// close(options.at_exit) where that was not called.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Reads and writes nothing; the store is opened when the save's turn comes.
  Result<std::unique_ptr<PendingSave>> begin(const FileSaveOptions& options, Report& report);
  Status add(PendingSave& save, AddedTensor tensor, Report& report);
  Status add_blob(PendingSave& save, std::string_view name, std::span<const std::uint8_t> bytes, Report& report);
  /// O(1) in bytes, but with check_changes. From now on the tensors are read, until they are captured.
  Status submit(std::unique_ptr<PendingSave> save, Report& report);

  /// Returns true once nothing of the caller's memory is read any more, or of the tensor of that name. Copies itself
  /// while it waits. False: it took longer.
  Result<bool> fence(std::string_view tensor, double timeout, Report& report);
  /// True: the save has reached the level. False: it took longer, or the save is finished and other writers of its group
  /// publish it. A save that failed is its failure.
  Result<bool> wait(std::uint64_t step, SaveLevel level, double timeout, Report& report);
  /// True: no save is under way or on its way to a tier any more, whatever became of them.
  Result<bool> wait_all(double timeout, Report& report);
  Result<SaveProgress> poll(std::uint64_t step, Report& report) const;
  /// Drops a save that is not in the store yet; does not wait. Fence before writing to its tensors all the same.
  Status cancel(std::uint64_t step, Report& report);
  /// All 0 in a forked process.
  EngineStats stats() const;
  Vector<TierStats> tier_stats() const;
  /// Ends the engine: waits for its saves, and drops those that are left at the timeout, or all. Fails when a save
  /// failed that nobody asked about, or was dropped.
  Status close(AtEnd how, double timeout, Report& report);

  /// Fails in a forked process; every call but stats() begins with it.
  Status check_process(Report& report) const;

  /// As the options say; failures become notes.
  void close_for_exit();

  /// Where the engine takes its memory: a scope of it belongs around building a PendingSave.
  std::pmr::memory_resource* memory() const;

 private:
  class Core;
  explicit Engine(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  std::shared_ptr<Core> core_;
};

}  // namespace quern::checkpoint
