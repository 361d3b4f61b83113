#include "tests/simt/runtime/grid_run.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>
#include <numeric>

#include "tests/simt/runtime/symbol_name.h"

namespace simt {

const ThreadPlace* running = nullptr;

namespace {

/// What threadIdx and its like show.
uint3 running_index{};
CtaPlace running_place;

/// Threads of an SM; more are not resident at once, whatever is asked for.
constexpr unsigned kResidentThreads = 2048;
constexpr std::align_val_t kSharedAlignment{16};

GridRun* current_run = nullptr;

/// Stacks are kept for the next launch.
std::vector<std::unique_ptr<Fiber>>& fiber_pool() {
  static std::vector<std::unique_ptr<Fiber>> pool;
  return pool;
}

uint3 place_in(const dim3& all, unsigned n) { return {n % all.x, n / all.x % all.y, n / all.x / all.y}; }

std::uint32_t bit_of(unsigned lane) { return 1u << lane; }

std::shared_ptr<unsigned char> shared_buffer(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  return {static_cast<unsigned char*>(::operator new(bytes, kSharedAlignment)),
          [](unsigned char* at) { ::operator delete(at, kSharedAlignment); }};
}

}  // namespace

std::string text(const uint3& at) {
  std::string out = std::to_string(at.x);
  out += ',';
  out += std::to_string(at.y);
  out += ',';
  return out += std::to_string(at.z);
}

GridRun* GridRun::current() { return current_run; }

GridRun::GridRun(const KernelLaunch& launch, const RunLimits& limits, std::uint64_t seed)
    : launch_(launch), limits_(limits), random_(seed) {
  threads_ = launch.threads.x * launch.threads.y * launch.threads.z;
  constexpr unsigned kLeaveMasks[] = {1, 7, 63, 1023};
  leave_mask_ = kLeaveMasks[random_.below(4)];
  order_.resize(static_cast<std::size_t>(launch.blocks.x) * launch.blocks.y * launch.blocks.z);
  std::iota(order_.begin(), order_.end(), 0u);
  const std::uint64_t kind = random_.below(4);
  if (kind == 1) std::reverse(order_.begin(), order_.end());
  if (kind > 1) random_.shuffle(order_);
}

GridRun::~GridRun() { current_run = nullptr; }

unsigned GridRun::residency(unsigned wanted) {
  if (wanted == 0) wanted = 1u << random_.below(6);
  const unsigned fitting = std::max(1u, kResidentThreads / threads_);
  return std::min({wanted, fitting, static_cast<unsigned>(order_.size())});
}

std::string GridRun::run() {
  current_run = this;
  const unsigned warps = (threads_ + kWarpLanes - 1) / kWarpLanes;
  const unsigned slots = residency(limits_.resident_blocks);
  if (limits_.watch_races) {
    if (order_.size() * threads_ > RaceWatch::kMaxThreads)
      return "kernel " + symbol_name(launch_.kernel) + " has too many threads to be watched for races";
    watch_ = std::make_unique<RaceWatch>(static_cast<unsigned>(order_.size()), threads_, slots);
  }
  auto& pool = fiber_pool();
  std::size_t fibers = 0;
  for (unsigned slot = 0; slot < slots; ++slot) {
    auto& cta = *ctas_.emplace_back(std::make_unique<Cta>());
    cta.slot = slot;
    shared_.push_back(shared_buffer(launch_.shared_bytes));
    cta.place.threads = launch_.threads;
    cta.place.blocks = launch_.blocks;
    cta.place.shared = shared_.back().get();
    cta.warps.resize(warps);
    for (unsigned t = 0; t < threads_; ++t) {
      if (fibers == pool.size()) pool.push_back(std::make_unique<Fiber>(&GridRun::run_threads));
      Warp& warp = cta.warps[t / kWarpLanes];
      ThreadPlace& place = warp.places[t % kWarpLanes];
      place.index = thread_index(t);
      place.lane = t % kWarpLanes;
      place.cta = &cta.place;
      warp.cta = &cta;
      warp.lanes |= bit_of(t % kWarpLanes);
      warp.fibers[t % kWarpLanes] = pool[fibers++].get();
    }
    start_block(cta);
  }
  pass_launch();
  if (flips_left()) flip_what_is_due({});
  choose();
  host_.switch_to(*warp_->fibers[lane_]);
  running = nullptr;
  current_run = nullptr;
  if (!failure_.empty())
    for (std::size_t i = 0; i < fibers; ++i) pool[i]->restart();
  return failure_;
}

/// What a fiber does: one thread of some CTA after another.
void GridRun::run_threads() {
  while (true) {
    current_run->launch_.body();
    current_run->exit_thread();
  }
}

uint3 GridRun::thread_index(unsigned thread) const { return place_in(launch_.threads, thread); }
uint3 GridRun::block_index(unsigned block) const { return place_in(launch_.blocks, block); }

void GridRun::start_block(Cta& cta) {
  if (watch_ != nullptr)
    watch_->begin_block(cta.slot, static_cast<unsigned>(started_), cta.place.shared, launch_.shared_bytes);
  cta.place.index = block_index(order_[started_++]);
  cta.threads_left = threads_;
  random_.fill(cta.place.shared, launch_.shared_bytes);
  if (flips_left()) cta.shared_before.assign(cta.place.shared, cta.place.shared + launch_.shared_bytes);
  for (Warp& warp : cta.warps) {
    warp.exited = 0;
    make_ready(warp, warp.lanes);
  }
}

void GridRun::exit_thread() {
  Warp& warp = *warp_;
  Cta& cta = *warp.cta;
  for (unsigned g = 0; g < warp.group_count; ++g)
    if ((warp.groups[g].mask & bit_of(lane_)) != 0)
      fail("ends while lanes of its warp wait for it at a collective operation");
  warp.exited |= bit_of(lane_);
  idle_steps_ = 0;
  if (--cta.threads_left == 0) {
    ++finished_;
    if (started_ < order_.size()) start_block(cta);
  } else if (cta.barrier_arrived == cta.threads_left) {
    open_barrier(cta);
  }
  if (finished_ == order_.size()) {
    warp.fibers[lane_]->switch_to(host_);
  } else {
    go_on();
  }
}

void GridRun::make_ready(Warp& warp, std::uint32_t lanes) {
  if (warp.ready == 0 && lanes != 0) {
    warp.position = active_.size();
    active_.push_back(&warp);
  }
  warp.ready |= lanes;
}

void GridRun::take_away(Warp& warp) {
  active_.back()->position = warp.position;
  active_[warp.position] = active_.back();
  active_.pop_back();
}

/// Draws the thread to run next among those that are ready: mostly of the same warp, sometimes of any.
void GridRun::choose() {
  const std::uint64_t bits = random_.next();
  Warp* warp = warp_;
  if (warp == nullptr || warp->ready == 0 || (bits & leave_mask_) == 0) warp = active_[(bits >> 32) % active_.size()];
  const int turn = static_cast<int>(bits >> 16 & 31);
  const unsigned lane = static_cast<unsigned>(std::countr_zero(std::rotr(warp->ready, turn)) + turn) % kWarpLanes;
  warp->ready &= ~bit_of(lane);
  if (warp->ready == 0) take_away(*warp);
  warp_ = warp;
  lane_ = lane;
  running = &warp->places[lane];
  running_index = running->index;
  running_place = *running->cta;
}

void GridRun::go_on() {
  if (active_.empty() || ++idle_steps_ > limits_.idle_steps) abandon(stuck());
  Fiber& self = *warp_->fibers[lane_];
  choose();
  Fiber& next = *warp_->fibers[lane_];
  if (&next != &self) self.switch_to(next);
}

int GridRun::barrier(BarrierKind kind, bool flag) {
  Warp& warp = *warp_;
  Cta& cta = *warp.cta;
  if (cta.barrier_arrived != 0 && cta.barrier_kind != kind)
    fail("comes to a barrier of another kind than the other threads of its block");
  for (unsigned g = 0; g < warp.group_count; ++g)
    if ((warp.groups[g].mask & bit_of(lane_)) != 0)
      fail("diverges: it comes to the block's barrier while lanes of its warp wait for it at a collective operation");
  const unsigned number = cta.barrier_number;
  cta.barrier_kind = kind;
  cta.barrier_flags += flag ? 1 : 0;
  ++cta.barrier_arrived;
  warp.at_barrier |= bit_of(lane_);
  if (cta.barrier_arrived == cta.threads_left) open_barrier(cta);
  go_on();
  return cta.barrier_results[number % 2];
}

void GridRun::open_barrier(Cta& cta) {
  const unsigned flags = cta.barrier_flags;
  int& result = cta.barrier_results[cta.barrier_number % 2];
  switch (cta.barrier_kind) {
    case BarrierKind::plain: result = 0; break;
    case BarrierKind::all: result = flags == cta.barrier_arrived ? 1 : 0; break;
    case BarrierKind::any: result = flags != 0 ? 1 : 0; break;
    case BarrierKind::count: result = static_cast<int>(flags); break;
  }
  join_block(cta);
  pass_moment();
  if (flips_left()) flip_what_is_due(reach_of(cta));
  ++cta.barrier_number;
  cta.barrier_arrived = 0;
  cta.barrier_flags = 0;
  idle_steps_ = 0;
  for (Warp& warp : cta.warps) {
    make_ready(warp, warp.at_barrier);
    warp.at_barrier = 0;
  }
}

FlipReach GridRun::reach_of(const Cta& cta) const {
  FlipReach reach;
  reach.shared = cta.place.shared;
  reach.shared_bytes = launch_.shared_bytes;
  reach.shared_before = cta.shared_before.data();
  return reach;
}

void GridRun::fail(std::string what) {
  what.insert(0, describe_running() + " ");
  abandon(std::move(what));
}

/// All threads are left where they are. So nothing on their stacks may own memory, and the caller's text is moved.
void GridRun::abandon(std::string&& why) {
  failure_ = std::move(why);
  warp_->fibers[lane_]->switch_to(host_);
  std::abort();  // nothing switches back
}

std::string GridRun::describe(const Warp& warp, unsigned lane) const {
  return "block " + text(warp.cta->place.index) + " thread " + text(warp.places[lane].index);
}

std::string GridRun::describe_running() const {
  return "kernel " + symbol_name(launch_.kernel) + " " + describe(*warp_, lane_);
}

/// Why nothing goes on any more, and who waits for what.
std::string GridRun::stuck() const {
  constexpr unsigned kShown = 8;  // lines
  std::string out = active_.empty()
                        ? "kernel " + symbol_name(launch_.kernel) + " is in a deadlock"
                        : describe_running() + " and others go on and on: no thread ended and no barrier opened in " +
                              std::to_string(limits_.idle_steps) + " switches";
  unsigned count = 0, lines = 0;
  const auto note = [&](const Warp& warp, std::uint32_t lanes, const std::string& where) {
    if (lanes == 0) return;
    count += static_cast<unsigned>(std::popcount(lanes));
    if (++lines > kShown) return;
    out += "\n  " + describe(warp, static_cast<unsigned>(std::countr_zero(lanes))) + " waits at " + where;
    if (!std::has_single_bit(lanes)) out += ", with " + std::to_string(std::popcount(lanes) - 1) + " more of its warp";
  };
  for (const auto& cta : ctas_)
    for (const Warp& warp : cta->warps) {
      note(warp, warp.at_barrier, "the block's barrier");
      for (unsigned g = 0; g < warp.group_count; ++g)
        note(warp, warp.groups[g].arrived, operation_name(warp.groups[g].operation));
    }
  return out + "\n  " + std::to_string(count) + " threads wait, " + std::to_string(order_.size() - started_) +
         " blocks have not begun";
}

}  // namespace simt

const uint3& threadIdx = simt::running_index;
const uint3& blockIdx = simt::running_place.index;
const dim3& blockDim = simt::running_place.threads;
const dim3& gridDim = simt::running_place.blocks;

namespace simt {

void switch_point() {
  GridRun& run = *GridRun::current();
  run.make_ready(run.warp(), bit_of(run.lane()));
  run.go_on();
}

int barrier(BarrierKind kind, bool flag) { return GridRun::current()->barrier(kind, flag); }

void trap(const char* why) { GridRun::current()->fail(why); }

}  // namespace simt
