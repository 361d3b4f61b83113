// The thread that codes and writes: one save after the other, through the session that every save goes through.
#include <algorithm>

#include "checkpoint/engine/core.h"
#include "checkpoint/store/value_hashes.h"
#include "libcompress/core/task_runner.h"

namespace quern::checkpoint {
namespace {

constexpr std::size_t kFinishedKept = 1024;  // saves whose outcome can still be asked for
constexpr std::size_t kRatesKept = 1 << 20;

}  // namespace

/// The tensors of a save for those who code them: out of the ring, or where they lie.
class Engine::Core::ActiveSet final : public TensorSet {
 public:
  ActiveSet(Core& core, ActiveSave& save) : core_(core), save_(save), begin_(core.now()) {}

  std::size_t count() const override { return save_.pending->tensors.size(); }
  SetTensor tensor(std::size_t index) const override { return set_tensor(save_.pending->tensors[index]); }
  Result<std::span<const std::uint8_t>> values(std::size_t index, AlignedBuffer&, Report& report) override;
  void done(std::size_t index) override;

  /// Seconds spent on waiting for copies.
  double waited() const { return waited_; }

 private:
  void measure_group();

  Core& core_;
  ActiveSave& save_;
  double waited_ = 0;
  // What was asked for and done since the last measurement.
  double begin_ = 0, waited_before_ = 0, end_ = 0;
  std::uint64_t bytes_ = 0;
  Vector<std::uint64_t> names_;
};

/// Tensors that are coded side by side share their time.
void Engine::Core::ActiveSet::measure_group() {
  const double seconds = end_ - begin_ - (waited_ - waited_before_);
  if (bytes_ != 0 && seconds > 0) {
    core_.code_rate_.add(bytes_, seconds);
    const auto rate = static_cast<float>(static_cast<double>(bytes_) / seconds);
    if (core_.own_rates_.size() > kRatesKept) core_.own_rates_.clear();
    for (const std::uint64_t name : names_) {
      const auto [at, is_new] = core_.own_rates_.emplace(name, rate);
      if (!is_new) at->second += 0.5F * (rate - at->second);
    }
  }
  names_.clear();
  bytes_ = 0;
  begin_ = core_.now();
  waited_before_ = waited_;
}

Result<std::span<const std::uint8_t>> Engine::Core::ActiveSet::values(std::size_t index, AlignedBuffer&,
                                                                      Report& report) {
  const AddedTensor& tensor = save_.pending->tensors[index];
  Lock lock(core_.mutex_);
  if (bytes_ != 0) measure_group();
  const double begin = core_.now();
  for (;;) {
    Slot& slot = save_.slots[index];
    if (save_.stop) return fail(report, save_.stop_code, save_.stop_sentence);
    // Whoever waits at a fence needs the processor and the memory more.
    if (core_.fences_ == 0 || !core_.can_capture()) {
      if (slot.phase == Phase::captured) break;
      // The ring is full of what this tensor is needed for, or of what comes behind it.
      if (slot.phase == Phase::waiting && core_.stuck_)
        core_.borrow(save_, static_cast<std::uint32_t>(index), &EngineStats::first_for_room);
      if (slot.phase == Phase::borrowed) break;
    }
    core_.changed_.wait(lock);
  }
  waited_ += core_.now() - begin;
  if (save_.slots[index].phase == Phase::captured) return save_.slots[index].place.span();
  return std::span<const std::uint8_t>(tensor.data, static_cast<std::size_t>(tensor.what.bytes()));
}

void Engine::Core::ActiveSet::done(std::size_t index) {
  const AddedTensor& tensor = save_.pending->tensors[index];
  Lock lock(core_.mutex_);
  Slot& slot = save_.slots[index];
  const bool was_borrowed = slot.phase == Phase::borrowed;
  if (was_borrowed && core_.options_.check_changes) {
    lock.unlock();
    const bool same = content_hash({tensor.data, static_cast<std::size_t>(tensor.what.bytes())}) == slot.submitted;
    lock.lock();
    if (!same) core_.stop_changed(save_, tensor);
  }
  const std::uint64_t room = core_.ring_->free_bytes();
  if (!slot.place.segments.empty()) core_.ring_->give_back(slot.place);
  slot.phase = Phase::released;
  core_.ahead_ -= tensor.what.bytes();
  // Small tensors make no room before the last one of their segment goes; nobody is woken for the others.
  const bool has_room = core_.ring_->free_bytes() > room;
  if (has_room) core_.stuck_ = false;
  if (was_borrowed) core_.hold_no_longer(save_, static_cast<std::uint32_t>(index));
  bytes_ += tensor.what.bytes();
  end_ = core_.now();
  names_.push_back(std::hash<std::string_view>()(tensor.name));
  if (has_room || was_borrowed) core_.changed_.notify_all();
}

Status Engine::Core::save(ActiveSave& active, SaveProgress& out, Report& report) {
  FileSaveOptions options = active.pending->options;
  if (options.save.base_newest && !options.save.base) {
    // Known before anything is planned: what is predicted from what depends on it.
    QUERN_ASSIGN_OR_RETURN(options.save.base, find_newest_key(store_, options.save.key_distance, report));
    if (options.save.base == options.save.step) options.save.base.reset();
  }
  if (!tiers_.empty()) options.save.above = newest_of_tiers();
  Execution execution;
  execution.threads = options_.threads;
  RunnerHandle runner(execution);
  QUERN_ASSIGN_OR_RETURN(const auto session, SaveSession::begin(store_, options.save, runner.get(), report));
  for (const auto& [name, bytes] : active.pending->blobs) QUERN_RETURN_IF_ERROR(session->add_blob(name, bytes, report));
  ActiveSet set(*this, active);
  const double begin = now();
  QUERN_ASSIGN_OR_RETURN(out.counts, save_set(*session, set, options, runner.get(), report));
  watch(EngineEvent::Kind::code, active.step(), begin, out.counts.raw_bytes);
  const double coded = now();
  {
    const Lock lock(mutex_);
    if (active.stop) return fail(report, active.stop_code, active.stop_sentence);
  }
  auto committed = session->commit(report);
  if (!committed.ok()) return committed.status();
  watch(EngineEvent::Kind::publish, active.step(), coded, out.counts.stored_bytes);
  out.differences = count_differences(committed->manifest, active.pending->tensors);
  out.manifest_bytes = committed->manifest_bytes;
  out.published = committed->published;
  out.id = committed->name.id;
  return {};
}

/// Whatever became of the save: its room in the ring is free, and its tensors are the caller's again.
void Engine::Core::finish(Lock& lock, ActiveSave& save, const Status& status, SaveProgress& made,
                          const Report& report) noexcept {
  const MemoryScope heap(std::pmr::new_delete_resource());
  const bool told = save.stop;
  save.stop = save.stop || !status.ok();
  changed_.wait(lock, [&] { return save.copying == 0; });
  for (std::uint32_t i = 0; i < save.slots.size(); ++i) release(save, i);
  save.held = 0;
  stuck_ = false;
  SaveProgress& progress = save.progress;
  progress.finished = true;
  progress.local_seconds = progress.durable_seconds = now();
  if (status.ok()) {
    // What the store does not show yet, another writer of the group will.
    progress.level = made.published ? SaveLevel::durable : SaveLevel::host;
    progress.counts = made.counts;
    progress.differences = made.differences;
    progress.manifest_bytes = made.manifest_bytes;
    progress.published = made.published;
    progress.id = std::move(made.id);
    if (made.published && !tiers_.empty()) hand_to_tiers(progress, save.step());
    if (progress.level == SaveLevel::durable) ++stats_.durable;
  } else {
    progress.code = told ? save.stop_code : status.code();
    progress.sentence = told ? std::move(save.stop_sentence) : make_sentence([&] {
      if (!report.problem.empty()) return join({step_place(save.step()), ": ", report.problem});
      if (status.code() != StatusCode::out_of_memory || options_.coding_bytes == 0)
        return join({step_place(save.step()), ": ", status.text()});
      return join({step_place(save.step()), ": coding needs more than the ", decimal(options_.coding_bytes),
                   " bytes that it may take; give the engine more coding memory"});
    });
    ++(save.skipped ? stats_.skipped : progress.code == StatusCode::cancelled ? stats_.cancelled : stats_.failed);
    if (!save.expected && unheard_.size() < unheard_.capacity())
      unheard_.push_back(make_sentence([&] { return String(progress.sentence); }));
  }
  try {
    finished_.emplace_back(save.step(), std::move(progress));
    if (finished_.size() > kFinishedKept) finished_.pop_front();
  } catch (...) {
    // wait() says that nothing is known of it.
  }
  active_.pop_front();
  changed_.notify_all();
}

void Engine::Core::run_coding() {
  yield_to_trainer();
  const MemoryScope scope(&memory_);
  Lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return over_ || !active_.empty() || !evictable_.empty(); });
    if (!evictable_.empty()) {
      lock.unlock();
      evict();
      lock.lock();
    }
    if (active_.empty() && over_) break;
    if (active_.empty()) continue;
    ActiveSave& active = *active_.front();
    files_.stop(active.stop);
    SaveProgress made;
    Report report;
    Status status;
    if (active.stop) {
      status = Status(active.stop_code, "it was stopped before its turn came");
    } else {
      lock.unlock();
      try {
        status = save(active, made, report);
      } catch (const std::bad_alloc&) {
        status = Status(StatusCode::out_of_memory, "out of memory");
        report.problem.clear();
      } catch (...) {
        status = Status(StatusCode::internal, "an exception of the library; please report it");
      }
      for (const String& sentence : report.notes) note(sentence);
      lock.lock();
    }
    finish(lock, active, status, made, report);
  }
  // What the tiers have at the end goes, too.
  coded_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return tier_threads_ == 0; });
  lock.unlock();
  evict();
  lock.lock();
  --threads_;
  changed_.notify_all();
}

}  // namespace quern::checkpoint
