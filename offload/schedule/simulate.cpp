#include "offload/schedule/simulate.h"

#include <algorithm>
#include <array>
#include <functional>

namespace quern::offload {
namespace {

constexpr std::size_t kCpu = 0, kGpu = 1, kToGpu = 2, kFromGpu = 3, kFirstPath = 4;
constexpr double kNever = std::numeric_limits<double>::infinity();

/// The first in the order of the schedule comes first.
class Queue {
 public:
  bool empty() const { return items_.empty(); }
  void push(std::size_t position) {
    items_.push_back(position);
    std::push_heap(items_.begin(), items_.end(), std::greater<>());
  }
  std::size_t pop() {
    std::pop_heap(items_.begin(), items_.end(), std::greater<>());
    const std::size_t position = items_.back();
    items_.pop_back();
    return position;
  }

 private:
  Vector<std::size_t> items_;
};

struct Task {
  std::size_t resource = 0;
  Activity activity = Activity::update;
  double seconds = 0;
};

struct Route {
  std::array<Task, 5> tasks;
  std::size_t count = 0;
  std::size_t done = 0;
  void add(std::size_t resource, Activity activity, double amount, double rate) {
    tasks[count++] = {resource, activity, amount == 0 ? 0 : rate > 0 ? amount / rate : kNever};
  }
};

struct Resource {
  Queue waiting;
  bool busy = false;
  std::size_t position = 0;  ///< that it works on
  double begin = 0, end = 0;
};

class Simulation {
 public:
  Simulation(const Machine& machine, std::span<const Job> jobs, std::span<const Placed> schedule)
      : machine_(machine), jobs_(jobs), schedule_(schedule), resources_(kFirstPath + 2 * machine.paths.size()) {
    for (const Placed& placed : schedule) routes_.push_back(route_of(placed));
    std::size_t in_memory = 0;
    for (const Placed& placed : schedule) in_memory += jobs[placed.job].path == kInMemory ? 1 : 0;
    const std::size_t buffers = std::max({machine.buffers, std::size_t{1}, in_memory});
    free_buffers_ = buffers - in_memory;
    free_gpu_buffers_ = std::max<std::size_t>(machine.gpu_buffers, 1);
  }

  double run(Vector<BusySpan>* spans) {
    for (std::size_t p = 0; p < schedule_.size(); ++p)
      if (is_in_memory(p)) go_on(p);
    double now = 0;
    for (;;) {
      admit();
      start_idle(now);
      std::size_t next = resources_.size();
      for (std::size_t r = 0; r < resources_.size(); ++r)
        if (resources_[r].busy && (next == resources_.size() || resources_[r].end < resources_[next].end)) next = r;
      if (next == resources_.size()) return now;
      now = resources_[next].end;
      if (now == kNever) return kNever;
      finish(resources_[next], spans);
    }
  }

 private:
  bool is_in_memory(std::size_t position) const { return jobs_[schedule_[position].job].path == kInMemory; }

  Route route_of(const Placed& placed) const {
    const Job& job = jobs_[placed.job];
    const auto values = static_cast<double>(job.values);
    const auto bytes = static_cast<double>(job.bytes);
    Route route;
    if (job.path != kInMemory)
      route.add(kFirstPath + 2 * job.path, Activity::read, bytes, machine_.paths[job.path].read);
    if (placed.on_gpu) {
      route.add(kToGpu, Activity::to_gpu, bytes, machine_.to_gpu);
      route.add(kGpu, Activity::update_on_gpu, values, machine_.gpu);
      route.add(kFromGpu, Activity::from_gpu, bytes, machine_.from_gpu);
    } else {
      route.add(kCpu, Activity::update, values, machine_.cpu);
      if (job.copy_bytes != 0 && machine_.to_gpu > 0)
        route.add(kToGpu, Activity::to_gpu, static_cast<double>(job.copy_bytes), machine_.to_gpu);
    }
    if (placed.path != kInMemory)
      route.add(kFirstPath + 2 * placed.path + 1, Activity::write, bytes, machine_.paths[placed.path].write);
    return route;
  }

  /// Buffers are given away in the order of the schedule.
  void admit() {
    for (; next_ < schedule_.size(); ++next_) {
      if (is_in_memory(next_)) continue;
      if (free_buffers_ == 0) return;
      --free_buffers_;
      go_on(next_);
    }
  }

  /// Hands a subgroup to the resource that it needs next.
  void go_on(std::size_t position) {
    Route& route = routes_[position];
    if (route.done == route.count) {
      ++free_buffers_;
      return;
    }
    if (schedule_[position].on_gpu && route.tasks[route.done].activity == Activity::to_gpu)
      waits_for_gpu_buffer_.push(position);
    else
      resources_[route.tasks[route.done].resource].waiting.push(position);
  }

  void start_idle(double now) {
    for (; free_gpu_buffers_ > 0 && !waits_for_gpu_buffer_.empty(); --free_gpu_buffers_)
      resources_[kToGpu].waiting.push(waits_for_gpu_buffer_.pop());
    for (Resource& resource : resources_) {
      if (resource.busy || resource.waiting.empty()) continue;
      resource.busy = true;
      resource.position = resource.waiting.pop();
      const Route& route = routes_[resource.position];
      resource.begin = now;
      resource.end = now + route.tasks[route.done].seconds;
    }
  }

  void finish(Resource& resource, Vector<BusySpan>* spans) {
    resource.busy = false;
    const std::size_t position = resource.position;
    const Activity activity = routes_[position].tasks[routes_[position].done++].activity;
    const Placed& placed = schedule_[position];
    if (activity == Activity::from_gpu) ++free_gpu_buffers_;
    if (spans != nullptr) {
      const std::size_t path = activity == Activity::read    ? jobs_[placed.job].path
                               : activity == Activity::write ? placed.path
                                                             : kInMemory;
      spans->push_back({activity, path, placed.job, resource.begin, resource.end});
    }
    go_on(position);
  }

  const Machine& machine_;
  std::span<const Job> jobs_;
  std::span<const Placed> schedule_;
  Vector<Resource> resources_;
  Vector<Route> routes_;
  Queue waits_for_gpu_buffer_;
  std::size_t next_ = 0;
  std::size_t free_buffers_ = 0;
  std::size_t free_gpu_buffers_ = 0;
};

}  // namespace

double simulate(const Machine& machine, std::span<const Job> jobs, std::span<const Placed> schedule,
                Vector<BusySpan>* spans) {
  return Simulation(machine, jobs, schedule).run(spans);
}

}  // namespace quern::offload
