#include "offload/schedule/make_schedule.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace quern::offload {
namespace {

constexpr std::size_t kSample = 512;    ///< subgroups that are simulated with each share
constexpr std::size_t kFew = 16;        ///< subgroups whose single changes are tried
constexpr std::size_t kVeryFew = 8;     ///< subgroups of which two are changed at once, too
constexpr int kShares = 24;             ///< shares of the GPU that are tried, evenly spaced
constexpr int kMostRounds = 40;         ///< of single changes
constexpr std::size_t kFewChoices = 4;  ///< of path and processor, while two subgroups are changed at once
/// Subgroups times resources that are simulated while one schedule is improved: some 0.1 s, however many paths.
constexpr std::size_t kMostSimulated = std::size_t{1} << 22;

/// Seconds to read in the next step what the schedule writes: a path that only writes fast is no place for a state.
double next_read(const Machine& machine, std::span<const Job> jobs, std::span<const Placed> schedule) {
  Vector<double> bytes(machine.paths.size());
  for (const Placed& placed : schedule)
    if (placed.path != kInMemory) bytes[placed.path] += static_cast<double>(jobs[placed.job].bytes);
  double longest = 0;
  for (std::size_t p = 0; p < bytes.size(); ++p)
    if (machine.paths[p].read > 0) longest = std::max(longest, bytes[p] / machine.paths[p].read);
  return longest;
}

/// The longer of this step and the next one's reads, then this step alone: where the reads decide, schedules that differ
/// in their steps would all look the same.
struct Cost {
  double longest = std::numeric_limits<double>::infinity();
  double step = std::numeric_limits<double>::infinity();
  bool operator<(const Cost& other) const {
    return longest < other.longest || (longest == other.longest && step < other.step);
  }
};

Cost cost(const Machine& machine, std::span<const Job> jobs, std::span<const Placed> schedule) {
  const double step = simulate(machine, jobs, schedule);
  return {std::max(step, next_read(machine, jobs, schedule)), step};
}

/// What is in memory, then of all paths the one next whose reads would be done with it soonest.
Schedule order_of(const Machine& machine, std::span<const Job> jobs) {
  Schedule out;
  out.reserve(jobs.size());
  Vector<Vector<std::size_t>> lying(machine.paths.size());
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    if (jobs[j].path == kInMemory)
      out.push_back({j, false, kInMemory});
    else
      lying[jobs[j].path].push_back(j);
  }
  const bool known =
      std::all_of(machine.paths.begin(), machine.paths.end(), [](const PathRates& path) { return path.read > 0; });
  Vector<double> seconds(lying.size());
  Vector<std::size_t> next(lying.size());
  while (out.size() < jobs.size()) {
    std::size_t best = lying.size();
    double soonest = 0;
    for (std::size_t p = 0; p < lying.size(); ++p) {
      if (next[p] == lying[p].size()) continue;
      const double end =
          seconds[p] + static_cast<double>(jobs[lying[p][next[p]]].bytes) / (known ? machine.paths[p].read : 1.0);
      if (best == lying.size() || end < soonest) best = p, soonest = end;
    }
    seconds[best] = soonest;
    out.push_back({lying[best][next[best]++], false, kInMemory});
  }
  if (machine.paths.empty()) return out;
  PathShares shares(machine.paths);
  for (Placed& placed : out) placed.path = shares.place(jobs[placed.job].bytes);
  return out;
}

/// Spreads that share of the schedule over it, for the GPU. `phase`: 0 the first of each cycle is the CPU's, near 1 the
/// GPU's.
void spread_share(Schedule& schedule, double share, double phase) {
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const auto at = static_cast<double>(i);
    schedule[i].on_gpu = std::floor((at + 1) * share + phase) > std::floor(at * share + phase);
  }
}

/// Takes changes as long as one of them helps: exchanges two subgroups, or moves one to another path and, with `moves`,
/// to the other processor. Of very few subgroups two are moved at once, too.
void improve(const Machine& machine, std::span<const Job> jobs, bool moves, Schedule& schedule) {
  const std::size_t simulated = std::max<std::size_t>(schedule.size() * (4 + 2 * machine.paths.size()), 1);
  std::size_t left = kMostSimulated / simulated;
  Cost best = cost(machine, jobs, schedule);
  Schedule tried = schedule;
  bool better = false;
  const auto consider = [&] {
    if (left == 0) {
      tried = schedule;
      return;
    }
    --left;
    const Cost seconds = cost(machine, jobs, tried);
    if (seconds < best) {
      best = seconds;
      schedule = tried;
      better = true;
    } else {
      tried = schedule;
    }
  };
  const std::size_t paths = std::max<std::size_t>(machine.paths.size(), 1);
  const std::size_t choices = paths * (moves ? 2 : 1);  // of path and processor
  const auto choose = [&](std::size_t i, std::size_t choice) {
    if (!machine.paths.empty()) tried[i].path = choice % paths;
    if (moves) tried[i].on_gpu = choice / paths == 1;
  };
  const bool in_pairs = schedule.size() <= kVeryFew && choices <= kFewChoices;
  for (int round = 0; round < kMostRounds; ++round) {
    better = false;
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      for (std::size_t choice = 0; choice < choices && left > 0; ++choice) {
        choose(i, choice);
        consider();
      }
      for (std::size_t k = i + 1; k < schedule.size(); ++k) {
        std::swap(tried[i], tried[k]);
        consider();
        if (left == 0) return;
        for (std::size_t both = 0; in_pairs && both < 2 * choices * choices; ++both) {
          choose(i, both / 2 % choices);
          choose(k, both / 2 / choices);
          if (both % 2 == 1) std::swap(tried[i].job, tried[k].job);
          consider();
        }
      }
    }
    if (!better || left == 0) return;
  }
}

/// All on one processor.
Schedule on_one(const Machine& machine, std::span<const Job> jobs, const Schedule& order, bool on_gpu) {
  Schedule out = order;
  for (Placed& placed : out) placed.on_gpu = on_gpu;
  if (out.size() <= kFew && (machine.paths.size() > 1 || on_gpu)) improve(machine, jobs, false, out);
  return out;
}

/// The share that is fastest on the first subgroups.
Schedule on_both(const Machine& machine, std::span<const Job> jobs, const Schedule& order) {
  Schedule sample(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(std::min(order.size(), kSample)));
  double mean = 0;
  for (const Placed& placed : sample) mean += gpu_share(machine, jobs[placed.job]) / static_cast<double>(sample.size());
  Vector<double> shares{mean};
  for (int i = 1; i < kShares; ++i) shares.push_back(static_cast<double>(i) / kShares);
  // Near the closed form, one subgroup more or less on the GPU.
  const double one = 1.0 / static_cast<double>(sample.size());
  for (const double by : {-2 * one, -one, one, 2 * one}) shares.push_back(std::clamp(mean + by, 0.0, 1.0));
  Cost best;
  double best_share = 0, best_phase = 0;
  for (const double share : shares)
    for (const double phase : {0.0, 0.5, 1 - 1e-9}) {
      spread_share(sample, share, phase);
      const Cost seconds = cost(machine, jobs, sample);
      if (seconds < best) best = seconds, best_share = share, best_phase = phase;
    }
  Schedule out = order;
  spread_share(out, best_share, best_phase);
  return out;
}

}  // namespace

double gpu_share(const Machine& machine, const Job& job) {
  if (!machine.has_gpu()) return 0;
  if (!(machine.cpu > 0)) return 1;
  const auto values = static_cast<double>(job.values);
  const auto bytes = static_cast<double>(job.bytes);
  const double on_cpu = values / machine.cpu;
  const double on_gpu = bytes / machine.to_gpu + values / machine.gpu + bytes / machine.from_gpu;
  return on_cpu + on_gpu > 0 ? on_cpu / (on_cpu + on_gpu) : 0;
}

PathShares::PathShares(std::span<const PathRates> paths) : bytes_(paths.size()) {
  for (const PathRates& path : paths) rates_.push_back(std::min(path.read, path.write));
  if (std::any_of(rates_.begin(), rates_.end(), [](double rate) { return !(rate > 0) || !std::isfinite(rate); }))
    std::fill(rates_.begin(), rates_.end(), 1);
}

std::size_t PathShares::place(std::uint64_t bytes) {
  std::size_t best = 0;
  double soonest = 0;
  for (std::size_t p = 0; p < rates_.size(); ++p) {
    const double end = (bytes_[p] + static_cast<double>(bytes)) / rates_[p];
    if (p == 0 || end < soonest) best = p, soonest = end;
  }
  bytes_[best] += static_cast<double>(bytes);
  return best;
}

Schedule make_schedule(const Machine& machine, std::span<const Job> jobs) {
  const Schedule order = order_of(machine, jobs);
  if (order.empty()) return order;
  if (!machine.has_gpu()) return on_one(machine, jobs, order, false);
  Schedule best = on_one(machine, jobs, order, true);
  if (!(machine.cpu > 0)) return best;
  Cost seconds = cost(machine, jobs, best);
  const auto consider = [&](Schedule other) {
    const Cost others = cost(machine, jobs, other);
    if (!(others < seconds)) return;
    seconds = others;
    best = std::move(other);
  };
  Vector<Schedule> starts{best, on_one(machine, jobs, order, false), on_both(machine, jobs, order)};
  for (Schedule& start : starts) {
    if (start.size() <= kFew) improve(machine, jobs, true, start);
    consider(std::move(start));
  }
  return best;
}

void use_every_path(std::size_t paths, Schedule& schedule) {
  Vector<std::size_t> written(paths);
  for (const Placed& placed : schedule)
    if (placed.path < paths) ++written[placed.path];
  std::size_t at = 0;
  const std::size_t end = schedule.size() / 4;
  for (std::size_t p = 0; p < paths; ++p) {
    if (written[p] != 0) continue;
    while (at < end && (schedule[at].path >= paths || written[schedule[at].path] < 2)) ++at;
    if (at == end) return;
    --written[schedule[at].path];
    schedule[at++].path = p;
  }
}

}  // namespace quern::offload
