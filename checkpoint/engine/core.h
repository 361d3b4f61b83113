// What the engine's threads and its callers share: saves under way, their tensors' states, the ring.
//
//   tensor:  waiting -> copying -> captured -> released       copied into the ring, then coded from there
//                   \-> borrowed -------------> released      coded where it lies
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

#include "checkpoint/engine/counted_memory.h"
#include "checkpoint/engine/engine.h"
#include "checkpoint/engine/rates.h"
#include "checkpoint/engine/segment_ring.h"
#include "checkpoint/engine/stoppable_files.h"
#include "checkpoint/engine/tier_worker.h"

namespace quern::checkpoint {

enum class Phase : std::uint8_t { waiting, copying, captured, borrowed, released };

/// A tensor of a save that is under way.
struct Slot {
  Phase phase = Phase::waiting;
  std::uint32_t copies = 0;   ///< pieces that threads copy now
  std::uint64_t claimed = 0;  ///< bytes that are copied or being copied
  RingPlace place;
  ContentHash submitted;  ///< with check_changes
};

/// A save that is under way. All but `pending` is guarded by the core's mutex.
struct ActiveSave : public Allocated {
  std::unique_ptr<PendingSave> pending;
  Vector<Slot> slots;
  Vector<std::uint32_t> order;  ///< in which tensors are captured; empty: as they were added
  enum class Plan : std::uint8_t { none, being_made, made } plan = Plan::none;
  std::size_t next = 0;       ///< place in the order of the first that is not claimed whole
  std::uint64_t held = 0;     ///< tensors that the caller must not write to yet
  std::uint32_t copying = 0;  ///< threads that copy some of it
  std::uint64_t total = 0;    ///< bytes
  bool stop = false;          ///< cancelled, skipped, or found broken
  bool skipped = false;
  bool expected = false;  ///< skipped as the engine was told, or cancelled by its caller: no failure for close()
  StatusCode stop_code = StatusCode::cancelled;
  String stop_sentence;
  SaveProgress progress;

  std::uint64_t step() const { return pending->options.save.step; }
};

/// What `make` returns, on the heap, for the limit of the engine's memory must not lose sentences; empty where even the
/// heap has nothing left.
template <class Make>
String make_sentence(const Make& make) noexcept {
  const MemoryScope scope(std::pmr::new_delete_resource());
  try {
    return make();
  } catch (...) {
    return String();
  }
}

/// Counts while it lives; whoever ends it holds the mutex that guards the number.
class Counted {
 public:
  explicit Counted(std::uint32_t& count) : count_(count) { ++count_; }
  ~Counted() { --count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::uint32_t& count_;
};

class Engine::Core {
 public:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;

  Core(FileSystem& files, const Store& store, const EngineOptions& options);

  double now() const { return std::chrono::duration<double>(Clock::now() - opened_).count(); }
  /// What the callback throws is dropped, here and in note(): a thread of the engine has nobody to hand it to.
  void watch(EngineEvent::Kind kind, std::uint64_t step, double begin, std::uint64_t bytes) noexcept;
  void note(const String& sentence) noexcept;
  /// Starts both threads; false: the system has no thread left, and none runs.
  bool start_threads(const std::shared_ptr<Core>& self);

  // Capturing: capture.cpp.
  void run_capture();
  /// Claims some bytes and copies them without the lock. False: there is nothing that can be done now.
  bool capture_some(Lock& lock);
  /// True when capture_some() can do something.
  bool can_capture() const;
  ActiveSave* first_uncaptured() const;
  ActiveSave* find_active(std::uint64_t step);
  void hold_no_longer(ActiveSave& save, std::uint32_t index);
  /// For a tensor that nobody reads or copies: its room in the ring is free, and its memory the caller's.
  void release(ActiveSave& save, std::uint32_t index) noexcept;
  /// The same for all of a stopped save of which that is known.
  void release_unread(ActiveSave& save) noexcept;
  void stop_save(ActiveSave& save, StatusCode code, String sentence) noexcept;
  void stop_changed(ActiveSave& save, const AddedTensor& tensor) noexcept;
  bool is_held(std::string_view tensor) const;
  template <class Done>
  bool wait_until(Lock& lock, double timeout, const Done& done);

  // Coding: coding.cpp.
  void run_coding();
  Status save(ActiveSave& save, SaveProgress& out, Report& report);
  void finish(Lock& lock, ActiveSave& save, const Status& status, SaveProgress& made, const Report& report) noexcept;

  /// Removes what tiers have from the store, where that is to be done; between saves.
  void evict() noexcept;

  // Tiers: tiers.cpp.
  void run_tier(TierWorker& tier);
  /// Copies what the tier lacks.
  void serve(TierWorker& tier);
  void pass_over(TierWorker& tier);
  bool prepare(TierWorker& tier, Report& report);
  void compare_folders(TierWorker& tier);
  /// Fails when a tier is the store itself.
  Status check_folders(Report& report);
  void choose_evicted(TierWorker& tier, Report& report);
  /// A save of the store waits for its tiers now.
  void hand_to_tiers(SaveProgress& progress, std::uint64_t step) noexcept;
  void settle(TierWorker& tier, std::string_view id, StatusCode code, const String& sentence) noexcept;
  void settle_all(TierWorker& tier, StatusCode code, const String& sentence) noexcept;
  /// The newest generation that a tier has. The first save waits for their answers, for some seconds at most.
  std::uint64_t newest_of_tiers();

  class ActiveSet;

  const EngineOptions options_;
  CountedMemory memory_;
  StoppableFiles files_;
  Store store_;
  std::unique_ptr<SegmentRing> ring_;
  const Clock::time_point opened_ = Clock::now();
  const int process_;

  mutable std::mutex mutex_;
  std::mutex choosing_;  ///< held while choosing what leaves the first store; before mutex_
  std::condition_variable changed_;
  std::deque<std::unique_ptr<ActiveSave>> active_;  ///< in the order they were submitted; the first is coded
  std::deque<std::pair<std::uint64_t, SaveProgress>> finished_;
  std::deque<std::unique_ptr<TierWorker>> tiers_;
  std::uint64_t above_ = 0;           ///< the newest generation that a tier has
  String same_folder_;                ///< sentence about a tier that is the store
  bool coded_ = false;                ///< no save is coded any more: what waits for tiers is all there will be
  std::atomic<bool> drop_{false};     ///< copies to tiers end
  Vector<CheckpointName> evictable_;  ///< that tiers have
  Vector<String> unheard_;            ///< failures that nobody asked about
  bool ending_ = false;               ///< no more saves
  bool over_ = false;                 ///< the threads end when nothing is under way
  bool stuck_ = false;                ///< the next tensor finds no room
  std::uint32_t fences_ = 0;          ///< that wait now
  std::uint32_t threads_ = 0;         ///< of the engine that run
  std::uint32_t tier_threads_ = 0;    ///< of them those of tiers
  std::uint64_t ahead_ = 0;           ///< bytes that are to be coded
  EngineStats stats_;
  MovingRate copy_rate_, code_rate_;
  /// Of coding, for each tensor by the hash of its name: unchanged ones are only hashed.
  std::unordered_map<std::uint64_t, float> own_rates_;
  std::thread capture_, coding_;

 private:
  bool admit(ActiveSave& save, std::uint32_t index);
  bool codes_first(const AddedTensor& tensor);
  void borrow(ActiveSave& save, std::uint32_t index, std::uint64_t EngineStats::*why);
  void plan(Lock& lock, ActiveSave& save);
  void complete(Lock& lock, ActiveSave& save, std::uint32_t index);
};

/// Waits until `done` or the timeout; what `done` says in the end.
template <class Done>
bool Engine::Core::wait_until(Lock& lock, double timeout, const Done& done) {
  if (!(timeout < 1e9)) {
    changed_.wait(lock, done);
    return true;
  }
  return changed_.wait_for(lock, std::chrono::duration<double>(timeout > 0 ? timeout : 0), done);
}

/// For the engine's threads, and those that they start.
void yield_to_trainer();

/// What a save's messages begin with: "step 500".
inline String step_place(std::uint64_t step) { return join({"step ", decimal(step)}); }

}  // namespace quern::checkpoint
