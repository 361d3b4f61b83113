// Copies of borrowed tensors into the ring: by a thread of the engine, and by callers that wait at a fence.
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "checkpoint/convert/set_coding.h"
#include "checkpoint/engine/core.h"
#include "checkpoint/store/value_hashes.h"

namespace quern::checkpoint {
namespace {

constexpr std::uint64_t kBatchBytes = std::uint64_t{1} << 22;  // that one thread copies before others hear of it
constexpr std::size_t kBatchPieces = 256;

struct Piece {
  std::uint32_t index = 0;
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
};

/// Tensors without their values: what an order can be made of.
class NamesOnly final : public TensorSet {
 public:
  explicit NamesOnly(const Vector<AddedTensor>& tensors) : tensors_(tensors) {}
  std::size_t count() const override { return tensors_.size(); }
  SetTensor tensor(std::size_t index) const override { return set_tensor(tensors_[index]); }
  Result<std::span<const std::uint8_t>> values(std::size_t, AlignedBuffer&, Report&) override {
    return Status(StatusCode::internal, "a set without values was asked for them");
  }

 private:
  const Vector<AddedTensor>& tensors_;
};

}  // namespace

ActiveSave* Engine::Core::first_uncaptured() const {
  for (const auto& save : active_)
    if (!save->stop && save->next < save->slots.size()) return save.get();
  return nullptr;
}

bool Engine::Core::can_capture() const {
  if (stuck_) return false;
  const ActiveSave* const save = first_uncaptured();
  return save != nullptr && save->plan != ActiveSave::Plan::being_made;
}

void Engine::Core::hold_no_longer(ActiveSave& save, std::uint32_t index) {
  save.progress.captured_bytes += save.pending->tensors[index].what.bytes();
  if (--save.held != 0 || save.stop) return;
  save.progress.level = std::max(save.progress.level, SaveLevel::host);
  save.progress.captured_seconds = now();
}

void Engine::Core::release(ActiveSave& save, std::uint32_t index) noexcept {
  Slot& slot = save.slots[index];
  if (slot.phase == Phase::released) return;
  if (slot.phase != Phase::captured) --save.held;
  if (slot.phase != Phase::waiting) ahead_ -= save.pending->tensors[index].what.bytes();
  if (!slot.place.segments.empty()) ring_->give_back(slot.place);
  slot.phase = Phase::released;
}

void Engine::Core::release_unread(ActiveSave& save) noexcept {
  const bool is_coded = active_.front().get() == &save;
  for (std::uint32_t i = 0; i < save.slots.size(); ++i) {
    const Slot& slot = save.slots[i];
    // A tensor that is copied whole is still hashed, maybe; capture_some() sees to the others that are copied now.
    const bool is_copied = slot.copies != 0 || slot.claimed == save.pending->tensors[i].what.bytes();
    if (slot.phase == Phase::waiting || (slot.phase == Phase::copying ? !is_copied : !is_coded)) release(save, i);
  }
  stuck_ = false;
}

/// Ends a save early: what is not read yet will not be.
void Engine::Core::stop_save(ActiveSave& save, StatusCode code, String sentence) noexcept {
  if (save.stop) return;
  save.stop = true;
  save.progress.stopping = true;
  save.stop_code = code;
  save.stop_sentence = std::move(sentence);
  if (active_.front().get() == &save) files_.stop(true);
  release_unread(save);
  changed_.notify_all();
}

/// A large state is captured in the order in which it is coded, so that what is copied can be coded and make room.
void Engine::Core::plan(Lock& lock, ActiveSave& save) {
  if (save.total <= ring_->free_bytes()) {
    save.plan = ActiveSave::Plan::made;
    return;
  }
  save.plan = ActiveSave::Plan::being_made;
  ++save.copying;  // it stays
  lock.unlock();
  Vector<std::uint32_t> order;
  try {
    NamesOnly names(save.pending->tensors);
    SerialRunner serial;
    Report unheard;  // the same is said when it is coded
    SetCoding coding(names, save.pending->options, serial);
    if (coding.prepare(unheard).ok()) order = coding.order();
  } catch (...) {
    order.clear();
  }
  lock.lock();
  if (order.size() == save.slots.size()) save.order = std::move(order);
  save.plan = ActiveSave::Plan::made;
  --save.copying;
  changed_.notify_all();
}

bool Engine::Core::codes_first(const AddedTensor& tensor) {
  CaptureChoice choice;
  choice.bytes = static_cast<double>(tensor.what.bytes());
  choice.free_bytes = static_cast<double>(ring_->free_bytes());
  choice.ahead_bytes = static_cast<double>(ahead_);
  choice.copy_rate = copy_rate_.per_second();
  choice.code_rate = code_rate_.per_second();
  const auto own = own_rates_.find(std::hash<std::string_view>()(tensor.name));
  choice.own_rate = own != own_rates_.end() ? own->second : choice.code_rate;
  return choice.code_first();
}

void Engine::Core::borrow(ActiveSave& save, std::uint32_t index, std::uint64_t EngineStats::*why) {
  save.slots[index].phase = Phase::borrowed;
  stuck_ = false;
  const std::uint64_t bytes = save.pending->tensors[index].what.bytes();
  ahead_ += bytes;
  ++(stats_.*why);
  stats_.first_bytes += bytes;
  ++save.progress.coded_first;
  changed_.notify_all();
}

/// Decides how a tensor leaves the caller's memory. False: not now, there is no room.
bool Engine::Core::admit(ActiveSave& save, std::uint32_t index) {
  const AddedTensor& tensor = save.pending->tensors[index];
  Slot& slot = save.slots[index];
  const std::uint64_t bytes = tensor.what.bytes();
  if (bytes == 0) {
    slot.phase = Phase::captured;
    hold_no_longer(save, index);
    changed_.notify_all();
    return true;
  }
  if (bytes > ring_->total_bytes()) {
    borrow(save, index, &EngineStats::first_for_size);
    return true;
  }
  if (codes_first(tensor)) {
    borrow(save, index, &EngineStats::first_by_rate);
    return true;
  }
  if (auto place = ring_->take(bytes)) {
    slot.place = std::move(*place);
    slot.phase = Phase::copying;
    ahead_ += bytes;
    return true;
  }
  if (options_.when_full == WhenFull::compress_first) {
    borrow(save, index, &EngineStats::first_for_room);
    return true;
  }
  if (options_.when_full == WhenFull::skip && active_.front().get() != &save) {
    save.skipped = save.expected = true;
    stop_save(save, StatusCode::cancelled, make_sentence([&] {
                return join({step_place(save.step()), ": skipped at tensor '", tensor.name,
                             "', for earlier saves fill the ring of ", decimal(ring_->total_bytes()), " bytes"});
              }));
    return false;
  }
  stuck_ = true;
  changed_.notify_all();
  return false;
}

void Engine::Core::stop_changed(ActiveSave& save, const AddedTensor& tensor) noexcept {
  stop_save(save, StatusCode::invalid_argument, make_sentence([&] {
              Report report;
              (void)fail_changed(tensor.name, report);
              return join({step_place(save.step()), ": ", report.problem});
            }));
}

/// The last piece of a tensor is copied.
void Engine::Core::complete(Lock& lock, ActiveSave& save, std::uint32_t index) {
  Slot& slot = save.slots[index];
  const AddedTensor& tensor = save.pending->tensors[index];
  if (options_.check_changes && !save.stop) {
    bool same = false;
    {
      const Counted stays(save.copying);
      lock.unlock();
      same = content_hash(slot.place.span()) == slot.submitted;
      lock.lock();
    }
    if (!same) stop_changed(save, tensor);
  }
  slot.phase = Phase::captured;
  ++stats_.copied_tensors;
  ++save.progress.copied_tensors;
  stats_.copied_bytes += tensor.what.bytes();
  hold_no_longer(save, index);
}

bool Engine::Core::capture_some(Lock& lock) {
  ActiveSave* const save = first_uncaptured();
  if (save == nullptr || save->plan == ActiveSave::Plan::being_made) return false;
  if (save->plan == ActiveSave::Plan::none) {
    plan(lock, *save);
    return true;
  }
  std::array<Piece, kBatchPieces> pieces;
  std::size_t count = 0;
  std::uint64_t bytes = 0;
  const std::size_t before = save->next;
  while (count < pieces.size() && bytes < kBatchBytes && !save->stop && save->next < save->slots.size()) {
    const auto index = save->order.empty() ? static_cast<std::uint32_t>(save->next) : save->order[save->next];
    Slot& slot = save->slots[index];
    if (slot.phase == Phase::waiting && !admit(*save, index)) break;
    if (slot.phase != Phase::copying) {
      ++save->next;
      continue;
    }
    const std::uint64_t all = save->pending->tensors[index].what.bytes();
    const Piece piece{index, slot.claimed, std::min(kBatchBytes - bytes, all - slot.claimed)};
    slot.claimed += piece.bytes;
    ++slot.copies;
    bytes += piece.bytes;
    pieces[count++] = piece;
    if (slot.claimed == all) ++save->next;
  }
  if (count == 0) return save->stop || save->next != before;
  std::optional<Counted> stays(save->copying);
  const std::uint64_t step = save->step();
  lock.unlock();
  const double begin = now();
  for (std::size_t i = 0; i < count; ++i) {
    const Piece& piece = pieces[i];
    std::memcpy(save->slots[piece.index].place.data + piece.begin,
                save->pending->tensors[piece.index].data + piece.begin, static_cast<std::size_t>(piece.bytes));
  }
  const double end = now();
  watch(EngineEvent::Kind::capture, step, begin, bytes);
  lock.lock();
  copy_rate_.add(bytes, end - begin);
  for (std::size_t i = 0; i < count; ++i) {
    Slot& slot = save->slots[pieces[i].index];
    if (--slot.copies == 0 && slot.claimed == save->pending->tensors[pieces[i].index].what.bytes())
      complete(lock, *save, pieces[i].index);
  }
  if (save->stop) release_unread(*save);
  stays.reset();
  changed_.notify_all();
  return true;
}

void yield_to_trainer() {
  // A batch thread does not take the processor from the thread that wakes it. Where that is not to be had, nothing
  // changes but who waits.
  const sched_param ordinary{};
  (void)sched_setscheduler(0, SCHED_BATCH, &ordinary);
}

void Engine::Core::run_capture() {
  yield_to_trainer();
  const MemoryScope scope(&memory_);
  Lock lock(mutex_);
  while (!over_ || !active_.empty()) {
    bool did_some = false;
    try {
      did_some = capture_some(lock);
    } catch (...) {
      // No memory for the next tensor's place: coding takes it where it lies, or gives memory back.
      stuck_ = true;
      changed_.notify_all();
    }
    if (!did_some) changed_.wait(lock);
  }
  --threads_;
  changed_.notify_all();
}

bool Engine::Core::is_held(std::string_view tensor) const {
  for (const auto& save : active_) {
    if (save->held == 0) continue;
    if (tensor.empty()) return true;
    for (std::size_t i = 0; i < save->slots.size(); ++i) {
      const Phase phase = save->slots[i].phase;
      if (phase != Phase::captured && phase != Phase::released && save->pending->tensors[i].name == tensor) return true;
    }
  }
  return false;
}

}  // namespace quern::checkpoint
