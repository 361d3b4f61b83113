// What callers do with the engine: open, hand over, wait, close.
#include "checkpoint/engine/engine.h"

#include <unistd.h>

#include <algorithm>
#include <limits>

#include "checkpoint/engine/core.h"
#include "checkpoint/engine/exit_list.h"
#include "checkpoint/store/value_hashes.h"

namespace quern::checkpoint {
namespace {

constexpr std::size_t kMostActive = 64;  // saves that wait; a run that has more never fences
constexpr std::size_t kUnheardKept = 16;
constexpr double kSecondsToStop = 30;  // that dropped saves have to notice it

String seconds_text(double seconds) {
  return join({decimal(static_cast<std::uint64_t>(seconds)), ".",
               decimal(static_cast<std::uint64_t>(seconds * 10) % 10), " s"});
}

}  // namespace

Engine::Core::Core(FileSystem& files, const Store& store, const EngineOptions& options)
    : options_(options),
      memory_(options.coding_bytes),
      files_(store.files(), options.write_rate),
      store_(store.over(files_)),
      process_(getpid()) {
  unheard_.reserve(kUnheardKept);
  for (const TierOptions& tier : options_.tiers) tiers_.push_back(std::make_unique<TierWorker>(tier, files));
}

void Engine::Core::watch(EngineEvent::Kind kind, std::uint64_t step, double begin, std::uint64_t bytes) noexcept {
  if (!options_.watch) return;
  try {
    options_.watch({kind, step, begin, now(), bytes});
  } catch (...) {
  }
}

void Engine::Core::note(const String& sentence) noexcept {
  if (!options_.note) return;
  try {
    options_.note(sentence);
  } catch (...) {
  }
}

bool Engine::Core::start_threads(const std::shared_ptr<Core>& self) {
  // They hold the core themselves: an engine that gives up a thread which hangs in a write leaves it something to end.
  try {
    {
      const std::lock_guard lock(mutex_);
      threads_ = 1;
    }
    capture_ = std::thread([self] { self->run_capture(); });
    {
      const std::lock_guard lock(mutex_);
      threads_ = 2;
    }
    for (const auto& tier : tiers_) {
      {
        const std::lock_guard lock(mutex_);
        ++threads_;
        ++tier_threads_;
      }
      TierWorker* const worker = tier.get();
      try {
        tier->thread = std::thread([self, worker] { self->run_tier(*worker); });
      } catch (...) {
        const std::lock_guard lock(mutex_);
        --threads_;
        --tier_threads_;
        throw;
      }
    }
    coding_ = std::thread([self] { self->run_coding(); });
    return true;
  } catch (const std::exception&) {
    {
      const std::lock_guard lock(mutex_);
      over_ = drop_ = true;
      changed_.notify_all();
    }
    if (capture_.joinable()) capture_.join();
    for (const auto& tier : tiers_)
      if (tier->thread.joinable()) tier->thread.join();
    return false;
  }
}

ActiveSave* Engine::Core::find_active(std::uint64_t step) {
  const auto found =
      std::find_if(active_.begin(), active_.end(), [&](const auto& save) { return save->step() == step; });
  return found == active_.end() ? nullptr : found->get();
}

Result<std::unique_ptr<Engine>> Engine::open(FileSystem& files, std::string_view store, const EngineOptions& options,
                                             Report& report) {
  QUERN_ASSIGN_OR_RETURN(const Store opened, Store::open(files, String(store), report));
  const auto core = std::make_shared<Core>(files, opened, options);
  QUERN_ASSIGN_OR_RETURN(core->ring_, SegmentRing::open(options.ring_bytes, report));
  QUERN_RETURN_IF_ERROR(core->store_.make_folders(report));
  std::unique_ptr<Engine> engine(new Engine(core));
  if (!core->start_threads(core))
    return fail(report, StatusCode::out_of_memory,
                join({store, ": the engine's two threads cannot be started; raise the limit of threads (ulimit -u)"}));
  QUERN_RETURN_IF_ERROR(core->check_folders(report));
  close_at_exit(*engine);
  return engine;
}

Engine::~Engine() {
  Report report;
  (void)close(core_->options_.at_exit, core_->options_.exit_seconds, report);
}

void Engine::close_for_exit() {
  Report report;
  const Status status = close(core_->options_.at_exit, core_->options_.exit_seconds, report);
  if (!status.ok()) core_->note(report.problem);
}

std::pmr::memory_resource* Engine::memory() const { return &core_->memory_; }

Status Engine::check_process(Report& report) const {
  if (getpid() == core_->process_) return {};
  return fail(report, StatusCode::invalid_argument,
              join({core_->store_.root(), ": this engine belongs to process ",
                    decimal(static_cast<std::uint64_t>(core_->process_)),
                    " and its threads are there; a forked process opens an engine of its own"}));
}

Result<std::unique_ptr<PendingSave>> Engine::begin(const FileSaveOptions& options, Report& report) {
  QUERN_RETURN_IF_ERROR(check_process(report));
  const std::lock_guard lock(core_->mutex_);
  if (core_->ending_) return fail(report, StatusCode::invalid_argument, "the engine was closed");
  if (core_->find_active(options.save.step) != nullptr)
    return fail(report, StatusCode::invalid_argument,
                join({step_place(options.save.step), ": a save of this step is under way; wait for it, or cancel it"}));
  std::unique_ptr<PendingSave> save(new PendingSave);
  save->options = options;
  return save;
}

Status Engine::add(PendingSave& save, AddedTensor tensor, Report& report) {
  if (tensor.on_device)
    return fail(report, StatusCode::unsupported,
                join({"tensor '", tensor.name, "': the engine takes host memory; copy the tensor there first"}));
  if (save.tensors.size() >= std::numeric_limits<std::uint32_t>::max() / 2)
    return fail(report, StatusCode::invalid_argument, join({"tensor '", tensor.name, "': there are too many"}));
  QUERN_RETURN_IF_ERROR(take_name(tensor, save.names, report));
  save.tensors.push_back(std::move(tensor));
  return {};
}

Status Engine::add_blob(PendingSave& save, std::string_view name, std::span<const std::uint8_t> bytes, Report& report) {
  for (const auto& blob : save.blobs)
    if (blob.first == name)
      return fail(report, StatusCode::invalid_argument, join({"blob '", name, "': the name is given twice"}));
  save.blobs.emplace_back(String(name), Vector<std::uint8_t>(bytes.begin(), bytes.end()));
  return {};
}

Status Engine::submit(std::unique_ptr<PendingSave> pending, Report& report) {
  QUERN_RETURN_IF_ERROR(check_process(report));
  Core& core = *core_;
  const double begin = core.now();
  const std::uint64_t step = pending->options.save.step;
  QUERN_RETURN_IF_ERROR(check_pieces(pending->tensors, pending->options.save.writers == 1, report));
  std::unique_ptr<ActiveSave> save(new ActiveSave);
  save->slots.resize(pending->tensors.size());
  save->held = pending->tensors.size();
  for (std::size_t i = 0; i < pending->tensors.size(); ++i) {
    const AddedTensor& tensor = pending->tensors[i];
    save->total += tensor.what.bytes();
    if (core.options_.check_changes)
      save->slots[i].submitted = content_hash({tensor.data, static_cast<std::size_t>(tensor.what.bytes())});
  }
  pending->names = TensorNames();
  save->pending = std::move(pending);
  {
    const std::lock_guard lock(core.mutex_);
    if (core.ending_) return fail(report, StatusCode::invalid_argument, "the engine was closed");
    if (core.find_active(step) != nullptr)
      return fail(report, StatusCode::invalid_argument, join({step_place(step), ": it was submitted before"}));
    if (core.active_.size() >= kMostActive)
      return fail(report, StatusCode::memory_limit,
                  join({step_place(step), ": ", decimal(kMostActive),
                        " saves are under way already; fence before the optimizer's step, or save less often"}));
    std::erase_if(core.finished_, [&](const auto& one) { return one.first == step; });
    save->progress.raw_bytes = save->total;
    save->progress.submit_seconds = begin;
    if (save->held == 0) save->progress.level = SaveLevel::host;
    core.active_.push_back(std::move(save));
    ++core.stats_.submitted;
    core.stats_.submit_seconds += core.now() - begin;
    core.changed_.notify_all();
  }
  core.watch(EngineEvent::Kind::submit, step, begin, 0);
  return {};
}

Result<bool> Engine::fence(std::string_view tensor, double timeout, Report& report) {
  QUERN_RETURN_IF_ERROR(check_process(report));
  Core& core = *core_;
  const double begin = core.now();
  Core::Lock lock(core.mutex_);
  bool free = false;
  {
    const Counted waits(core.fences_);
    // The caller has nothing better to do than to copy, too.
    while (!(free = !core.is_held(tensor)) && core.now() - begin < timeout) {
      if (core.capture_some(lock)) continue;
      const double left = timeout - (core.now() - begin);
      core.wait_until(lock, std::min(left, 0.1), [&] { return !core.is_held(tensor) || core.can_capture(); });
    }
  }
  const double seconds = core.now() - begin;
  core.stats_.fence_seconds += seconds;
  core.stats_.longest_fence = std::max(core.stats_.longest_fence, seconds);
  ++core.stats_.fences;
  core.changed_.notify_all();
  lock.unlock();
  core.watch(EngineEvent::Kind::fence, 0, begin, 0);
  return free;
}

Result<bool> Engine::wait(std::uint64_t step, SaveLevel level, double timeout, Report& report) {
  QUERN_RETURN_IF_ERROR(check_process(report));
  Core& core = *core_;
  Core::Lock lock(core.mutex_);
  const auto finished = [&]() -> const SaveProgress* {
    for (auto at = core.finished_.rbegin(); at != core.finished_.rend(); ++at)
      if (at->first == step) return &at->second;
    return nullptr;
  };
  if (core.find_active(step) == nullptr && finished() == nullptr)
    return fail(report, StatusCode::invalid_argument,
                join({step_place(step), ": no save of it was submitted, or it is more than 1024 saves ago"}));
  const bool there = core.wait_until(lock, timeout, [&] {
    const ActiveSave* const active = core.find_active(step);
    if (active != nullptr) return active->progress.level >= level;
    const SaveProgress* const made = finished();
    return made == nullptr || made->finished || made->level >= level;
  });
  if (!there) return false;
  if (core.find_active(step) != nullptr) return true;
  const SaveProgress* const made = finished();
  if (made == nullptr)
    return fail(report, StatusCode::invalid_argument, make_sentence([&] {
                  return join({step_place(step), ": what became of it is no longer known"});
                }));
  // What a tier could not take is in the store all the same.
  if (made->code == StatusCode::ok || made->level >= std::max(level, SaveLevel::local)) return made->level >= level;
  // Somebody heard of it.
  std::erase(core.unheard_, made->sentence);
  return fail(report, made->code, make_sentence([&] { return String(made->sentence); }));
}

Result<bool> Engine::wait_all(double timeout, Report& report) {
  QUERN_RETURN_IF_ERROR(check_process(report));
  Core::Lock lock(core_->mutex_);
  return core_->wait_until(lock, timeout, [&] {
    return core_->active_.empty() && std::all_of(core_->tiers_.begin(), core_->tiers_.end(),
                                                 [](const auto& tier) { return tier->waiting.empty(); });
  });
}

Result<SaveProgress> Engine::poll(std::uint64_t step, Report& report) const {
  QUERN_RETURN_IF_ERROR(check_process(report));
  const MemoryScope heap(std::pmr::new_delete_resource());
  const std::lock_guard lock(core_->mutex_);
  if (const ActiveSave* const active = core_->find_active(step)) return active->progress;
  for (auto at = core_->finished_.rbegin(); at != core_->finished_.rend(); ++at)
    if (at->first == step) return at->second;
  return fail(report, StatusCode::invalid_argument, join({step_place(step), ": no save of it was submitted"}));
}

Status Engine::cancel(std::uint64_t step, Report& report) {
  QUERN_RETURN_IF_ERROR(check_process(report));
  const std::lock_guard lock(core_->mutex_);
  ActiveSave* const active = core_->find_active(step);
  if (active == nullptr)
    return fail(report, StatusCode::invalid_argument, join({step_place(step), ": no save of it is under way"}));
  active->expected = active->expected || !active->stop;
  core_->stop_save(*active, StatusCode::cancelled, make_sentence([&] {
    return join({step_place(step), ": cancelled"});
  }));
  return {};
}

EngineStats Engine::stats() const {
  if (getpid() != core_->process_) return {};  // the lock may be held by a thread that is not here
  const std::lock_guard lock(core_->mutex_);
  EngineStats out = core_->stats_;
  out.waiting = core_->active_.size();
  out.copy_rate = core_->copy_rate_.per_second();
  out.code_rate = core_->code_rate_.per_second();
  out.ring_bytes = core_->ring_->total_bytes();
  out.ring_peak = core_->ring_->peak_bytes();
  out.coding_peak = core_->memory_.peak();
  out.written_bytes = core_->files_.written_bytes();
  return out;
}

Vector<TierStats> Engine::tier_stats() const {
  Vector<TierStats> out;
  if (getpid() != core_->process_) return out;
  const MemoryScope heap(std::pmr::new_delete_resource());
  const std::lock_guard lock(core_->mutex_);
  for (const auto& tier : core_->tiers_) {
    out.push_back(tier->stats);
    out.back().path = tier->store.root();
    out.back().waiting = tier->waiting.size();
  }
  return out;
}

Status Engine::close(AtEnd how, double timeout, Report& report) {
  forget_at_exit(*this);
  const MemoryScope heap(std::pmr::new_delete_resource());
  Core& core = *core_;
  if (!core.capture_.joinable()) return {};
  if (getpid() != core.process_) {
    // The threads are the parent's. Their handles must not be destroyed here as if they ran.
    new std::shared_ptr<Core>(core_);
    new std::thread(std::move(core.capture_));
    new std::thread(std::move(core.coding_));
    for (const auto& tier : core.tiers_) new std::thread(std::move(tier->thread));
    return check_process(report);
  }
  Core::Lock lock(core.mutex_);
  core.ending_ = true;
  core.over_ = true;
  core.changed_.notify_all();
  const auto ended = [&] { return core.threads_ == 0; };
  std::size_t dropped = 0;
  if (how == AtEnd::drop || !core.wait_until(lock, timeout, ended)) {
    for (const auto& save : core.active_) {
      dropped += save->stop ? 0 : 1;
      core.stop_save(*save, StatusCode::cancelled, make_sentence([&] {
        return join({step_place(save->step()), ": dropped, for the engine was closed"});
      }));
    }
    for (const auto& tier : core.tiers_) dropped += tier->waiting.size();
    core.drop_ = true;
    core.changed_.notify_all();
    core.wait_until(lock, kSecondsToStop, ended);
  }
  const bool hangs = !ended();
  Vector<String> unheard = std::move(core.unheard_);
  core.unheard_.clear();
  lock.unlock();
  if (hangs) {
    core.capture_.detach();
    core.coding_.detach();
    for (const auto& tier : core.tiers_) tier->thread.detach();
    return fail(report, StatusCode::io_error,
                join({core.store_.root(), ": coding or writing a save has not ended ", seconds_text(kSecondsToStop),
                      " after it was dropped; its tensors must stay as they are"}));
  }
  core.capture_.join();
  core.coding_.join();
  for (const auto& tier : core.tiers_) tier->thread.join();
  if (unheard.empty()) return {};
  return fail(report, dropped != 0 ? StatusCode::cancelled : StatusCode::io_error,
              join({decimal(unheard.size()), unheard.size() == 1 ? " save" : " saves", " did not reach the disk; ",
                    unheard.front()}));
}

}  // namespace quern::checkpoint
