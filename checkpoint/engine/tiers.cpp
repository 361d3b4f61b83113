// The threads that copy checkpoints of the store to further tiers. What there is to do is read from the store and the
// tier, not remembered, so that what one process could not copy the next one does.
#include <algorithm>

#include "checkpoint/engine/core.h"
#include "checkpoint/store/publish.h"

namespace quern::checkpoint {
namespace {

constexpr double kSecondsToCompare = 1;    // that open() waits for tiers that hang
constexpr double kSecondsWhileBusy = 0.1;  // between checks of what another engine copies
constexpr double kSecondsToAnswer = 5;     // that the first save waits for tiers to say what they have

String outcome(std::uint64_t step, std::string_view store, std::string_view tier, std::string_view why) {
  return make_sentence([&] {
    return join({step_place(step), ": it is in ", store, ", but not on the tier ", tier, "; ", why});
  });
}

}  // namespace

void Engine::Core::hand_to_tiers(SaveProgress& progress, std::uint64_t step) noexcept {
  for (const auto& tier : tiers_) {
    if (step % tier->options.every != 0) continue;
    tier->wake = true;
    try {
      tier->waiting.push_back({step, progress.id});
      ++progress.tiers_left;
    } catch (const std::bad_alloc&) {
      // The tier gets it all the same; only its level says nothing of that.
    }
  }
  if (progress.tiers_left == 0) return;
  progress.level = SaveLevel::local;
  progress.finished = false;
}

void Engine::Core::settle(TierWorker& tier, std::string_view id, StatusCode code, const String& sentence) noexcept {
  const auto waits = std::find_if(tier.waiting.begin(), tier.waiting.end(),
                                  [&](const TierWorker::Waiting& one) { return one.id == id; });
  if (waits == tier.waiting.end()) return;
  const std::uint64_t step = waits->step;
  for (auto& [number, progress] : finished_) {
    if (number != step || progress.id != id) continue;
    --progress.tiers_left;
    if (code != StatusCode::ok && progress.code == StatusCode::ok) {
      progress.code = code;
      progress.sentence = outcome(step, store_.root(), tier.store.root(), sentence);
      ++(code == StatusCode::cancelled ? stats_.cancelled : stats_.failed);
      if (unheard_.size() < unheard_.capacity())
        unheard_.push_back(make_sentence([&] { return String(progress.sentence); }));
    }
    if (progress.tiers_left != 0) continue;
    progress.finished = true;
    if (progress.code != StatusCode::ok) continue;
    progress.level = SaveLevel::durable;
    progress.durable_seconds = now();
    ++stats_.durable;
  }
  tier.waiting.erase(waits);
  if (code != StatusCode::ok) ++tier.stats.failed;
  changed_.notify_all();
}

void Engine::Core::settle_all(TierWorker& tier, StatusCode code, const String& sentence) noexcept {
  while (!tier.waiting.empty()) settle(tier, String(tier.waiting.front().id), code, sentence);
}

std::uint64_t Engine::Core::newest_of_tiers() {
  Vector<String> silent;
  std::uint64_t newest = 0;
  {
    Lock lock(mutex_);
    wait_until(lock, kSecondsToAnswer, [&] {
      return drop_ || std::all_of(tiers_.begin(), tiers_.end(), [](const auto& tier) { return tier->asked; });
    });
    for (const auto& tier : tiers_)
      if (!std::exchange(tier->asked, true)) silent.push_back(tier->store.root());
    newest = above_;
  }
  for (const String& root : silent) note(join({root, ": this tier does not answer; saves go on without it"}));
  return newest;
}

void Engine::Core::compare_folders(TierWorker& tier) {
  Report report;
  Status apart;
  try {
    apart = store_.check_apart(tier.store, report);
  } catch (const std::exception&) {
    // Without memory, as where it cannot be read: each copy and each removal compares again.
  }
  const Lock lock(mutex_);
  tier.compared = true;
  if (apart.code() == StatusCode::invalid_argument) same_folder_ = std::move(report.problem);
  changed_.notify_all();
}

Status Engine::Core::check_folders(Report& report) {
  Lock lock(mutex_);
  wait_until(lock, kSecondsToCompare, [&] {
    return std::all_of(tiers_.begin(), tiers_.end(), [](const auto& tier) { return tier->compared; });
  });
  return same_folder_.empty() ? Status() : fail(report, StatusCode::invalid_argument, same_folder_);
}

/// The first time, and after that until it has worked once.
bool Engine::Core::prepare(TierWorker& tier, Report& report) {
  if (tier.prepared) return true;
  Status made = store_.check_apart(tier.store, report);
  if (made.ok()) made = tier.store.make_folders(report);
  const auto newest = made.ok() ? newest_generation(tier.store, report) : Result<std::uint64_t>(made);
  {
    const Lock lock(mutex_);
    if (newest.ok()) above_ = std::max(above_, *newest);
    tier.asked = true;
    changed_.notify_all();
  }
  if (!newest.ok()) return false;
  sweep(tier.store, false, {}, report);
  // Under a limit the limit decides, and a probe would only use it up.
  if (tier.options.probe && tier.options.write_rate == 0) {
    FileSystem& files = tier.store.files();
    const auto name = files.new_name();
    if (!name.ok()) return false;
    // So that nobody sweeps it away.
    const String locked = tier.store.tmp_lock(*name);
    const auto lock = files.lock(locked, LockKind::exclusive, false);
    if (!lock.ok()) {
      (void)fail_file(report, locked, "lock it", lock.status());
      return false;
    }
    const auto turn = [this](std::size_t) { return !drop_.load(); };
    const Status probed = storage::probe_writes(
        files, join({tier.store.tmp_root(), "/", *name, ".probe"}), [this] { return now(); }, turn, tier.rates, report);
    (void)files.remove(locked);
    if (!probed.ok()) return false;
  }
  tier.prepared = true;
  return true;
}

/// Looks at this tier alone, for others may hang, and may take long; the store is changed by evict().
void Engine::Core::choose_evicted(TierWorker& tier, Report& report) {
  if (options_.keep_local == 0) return;
  Report own;
  auto whole = whole_on(store_, tier.store, options_.keep_local, own);
  if (!whole.ok()) {
    report.notes.push_back(join({"nothing is removed from the store: ", own.problem}));
    return;
  }
  // One tier after the other, so that what is chosen last has seen what every tier had before.
  const std::lock_guard<std::mutex> choosing(choosing_);
  std::deque<Vector<CheckpointName>> known;
  {
    const Lock lock(mutex_);
    tier.whole = std::move(*whole);
    for (const auto& one : tiers_) known.push_back(one->whole);
  }
  Vector<Tier> tiers;
  for (std::size_t i = 0; i < tiers_.size(); ++i)
    tiers.push_back({&tiers_[i]->store, tiers_[i]->options.every, &known[i]});
  auto names = evictable(store_, tiers, options_.keep_local, own);
  if (!names.ok()) {
    report.notes.push_back(join({"nothing is removed from the store: ", own.problem}));
    return;
  }
  const Lock lock(mutex_);
  evictable_ = std::move(*names);
  changed_.notify_all();
}

/// When saves come faster than the tier takes them.
void Engine::Core::pass_over(TierWorker& tier) {
  Vector<std::uint64_t> steps;
  {
    const Lock lock(mutex_);
    while (tier.waiting.size() > tier.options.most_waiting) {
      const TierWorker::Waiting oldest = tier.waiting.front();
      tier.passed_over.push_back(oldest.id);
      ++tier.stats.passed_over;
      steps.push_back(oldest.step);
      settle(tier, oldest.id, StatusCode::io_error, make_sentence([&] {
               return join(
                   {tier.store.root(), ": more than ", decimal(tier.options.most_waiting),
                    " saves wait for it, and this one was passed over; save less often, or let it have fewer steps"});
             }));
    }
  }
  for (const std::uint64_t step : steps)
    note(join({tier.store.root(), ": step ", decimal(step), " was passed over, for saves come faster"}));
}

void Engine::Core::serve(TierWorker& tier) {
  Report report;
  // Those that come later are for the next round, which finds a store that has them.
  Vector<String> waiting;
  {
    const Lock lock(mutex_);
    for (const TierWorker::Waiting& one : tier.waiting) waiting.push_back(one.id);
  }
  const auto tell_notes = [&] {
    for (const String& sentence : report.notes) note(sentence);
    report.notes.clear();
  };
  /// Nothing can be copied now: whoever waits is told, and the next save tries again.
  const auto give_up = [&](StatusCode code) {
    tell_notes();
    const String problem = make_sentence([&] {
      return report.problem.empty() ? join({tier.store.root(), ": it cannot be written"}) : report.problem;
    });
    bool news = false;
    {
      const Lock lock(mutex_);
      news = tier.stats.problem != problem;
      tier.stats.problem = problem;
      for (const String& id : waiting) settle(tier, id, code, problem);
    }
    if (news && code != StatusCode::cancelled) note(problem);
  };
  if (!prepare(tier, report)) return give_up(drop_ ? StatusCode::cancelled : StatusCode::io_error);
  if (const Status ordered = check_order(store_, tier.store, report); !ordered.ok()) return give_up(ordered.code());
  auto missing = missing_on(store_, {&tier.store, tier.options.every}, report);
  if (!missing.ok()) return give_up(missing.status().code());
  // Those count as left out once newer ones are there.
  const auto in_store = store_.list_current(report);
  if (!in_store.ok()) return give_up(in_store.status().code());
  for (const CheckpointName& name : std::exchange(tier.busy, {}))
    if (std::find(in_store->begin(), in_store->end(), name) != in_store->end() &&
        std::find(missing->begin(), missing->end(), name) == missing->end())
      missing->push_back(name);
  CopyControl control;
  control.rates = &tier.rates;
  control.turn = [&](std::size_t bytes) {
    return storage::wait_turn(tier.bucket, bytes, [this] { return drop_.load(); });
  };
  for (const CheckpointName& name : *missing) {
    {
      const Lock lock(mutex_);
      if (std::find(tier.passed_over.begin(), tier.passed_over.end(), name.id) != tier.passed_over.end()) continue;
    }
    if (drop_) return give_up(StatusCode::cancelled);
    const double begin = now();
    report.problem.clear();
    const auto copied = copy_checkpoint(store_, tier.store, name, control, report);
    tell_notes();
    // Another engine brings it.
    if (!copied.ok() && is_busy(copied.status()) && !drop_) {
      tier.busy.push_back(name);
      continue;
    }
    if (!copied.ok()) {
      const StatusCode code = drop_ ? StatusCode::cancelled : copied.status().code();
      // A damaged checkpoint is its own affair; a tier that is full, or gone, is everybody's.
      if (code == StatusCode::io_error || code == StatusCode::cancelled) return give_up(code);
      const String problem =
          make_sentence([&] { return report.problem.empty() ? String(copied.status().text()) : report.problem; });
      {
        const Lock lock(mutex_);
        tier.stats.problem = problem;
        settle(tier, name.id, code, problem);
      }
      note(problem);
      continue;
    }
    watch(EngineEvent::Kind::tier, name.step, begin, copied->bytes);
    if (tier.options.share < 1 && tier.rates.known()) {
      const double shared = tier.options.share * tier.rates.per_second();
      const double most = tier.options.write_rate;
      tier.bucket.set_rate(most > 0 ? std::min(most, shared) : shared);
    }
    {
      const Lock lock(mutex_);
      tier.stats.checkpoints += copied->checkpoints;
      tier.stats.bytes += copied->bytes;
      tier.stats.rate = tier.rates.per_second();
      tier.stats.depth = tier.rates.best_depth();
      tier.stats.problem.clear();
      settle(tier, name.id, StatusCode::ok, {});
    }
    pass_over(tier);
  }
  // Waited for and not missing: it was there already, or went from the store meanwhile.
  const auto there = tier.store.list_all(report);
  if (!there.ok()) return give_up(there.status().code());
  {
    const Lock lock(mutex_);
    for (const CheckpointName& name : *there) settle(tier, name.id, StatusCode::ok, {});
  }
  choose_evicted(tier, report);
  tell_notes();
  if (tier.busy.empty()) return;
  // Whoever waits for it waits for another round, which sees what became of it.
  Lock lock(mutex_);
  wait_until(lock, kSecondsWhileBusy, [&] { return drop_.load(); });
  tier.wake = true;
}

void Engine::Core::run_tier(TierWorker& tier) {
  yield_to_trainer();
  const MemoryScope heap(std::pmr::new_delete_resource());
  compare_folders(tier);
  Lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return tier.wake || drop_ || coded_; });
    if (drop_ || !tier.wake) break;
    tier.wake = false;
    lock.unlock();
    try {
      serve(tier);
    } catch (const std::exception&) {
      const Lock inner(mutex_);
      settle_all(tier, StatusCode::out_of_memory, make_sentence([&] {
                   return join({tier.store.root(), ": no memory for copying to it"});
                 }));
    }
    lock.lock();
    // Woken for a save that came too late for this round, or one that was copied under another id.
    if (!tier.wake && !tier.waiting.empty())
      settle_all(tier, StatusCode::io_error, make_sentence([&] {
                   return join({tier.store.root(), ": it went from the store before it was copied"});
                 }));
  }
  tier.asked = true;
  settle_all(tier, StatusCode::cancelled, make_sentence([&] {
               return join({tier.store.root(), ": the engine was closed before it was copied"});
             }));
  --tier_threads_;
  --threads_;
  changed_.notify_all();
}

void Engine::Core::evict() noexcept {
  try {
    const MemoryScope heap(std::pmr::new_delete_resource());
    CollectOptions options;
    {
      const Lock lock(mutex_);
      std::swap(options.remove_exactly, evictable_);
    }
    if (options.remove_exactly.empty()) return;
    Report report;
    const auto collected = collect(store_, options, report);
    // In use by others: the next round asks again.
    if (!collected.ok() && !is_busy(collected.status()))
      note(join({"what the tiers have was not removed from the store: ", report.problem}));
  } catch (const std::exception&) {
    // What was to go stays a little longer.
  }
}

}  // namespace quern::checkpoint
