// Schedules: what the simulator replays, and how near the chosen one comes to the best there is.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "offload/schedule/make_schedule.h"

namespace quern::testing {
namespace {

using offload::Activity;
using offload::BusySpan;
using offload::gpu_share;
using offload::Job;
using offload::kInMemory;
using offload::Machine;
using offload::make_schedule;
using offload::Placed;
using offload::Schedule;
using offload::simulate;

constexpr std::uint64_t kValues = 1 << 20;

Vector<Job> equal_jobs(std::size_t count, std::size_t paths, std::uint64_t copy_bytes = 2 * kValues) {
  Vector<Job> jobs(count);
  for (std::size_t j = 0; j < count; ++j)
    jobs[j] = {kValues, 6 * kValues, copy_bytes, paths == 0 ? kInMemory : j % paths};
  return jobs;
}

/// From 1/8 to 8, the same with every library.
double random_factor(std::mt19937_64& random) {
  return std::exp2(6 * (static_cast<double>(random() >> 11) * 0x1p-53) - 3);
}

/// Rates that differ by up to two orders of magnitude; paths read as fast as they write.
Machine random_machine(std::mt19937_64& random, std::size_t paths) {
  const auto rate = [&](double middle) { return middle * random_factor(random); };
  Machine machine;
  machine.cpu = rate(2e8);
  machine.gpu = rate(4e9);
  machine.to_gpu = rate(6e9);
  machine.from_gpu = rate(6e9);
  for (std::size_t p = 0; p < paths; ++p) {
    const double both = rate(1e9);
    machine.paths.push_back({both, both});
  }
  machine.buffers = 3 + random() % 6;
  machine.gpu_buffers = 1 + random() % 3;
  return machine;
}

/// The shortest time of all schedules: every order of subgroups that differ, every processor, every path.
double brute_force(const Machine& machine, std::span<const Job> jobs) {
  double best = std::numeric_limits<double>::infinity();
  std::vector<std::size_t> lies;  // an order is where the subgroups lie, one after the other: all have one size
  for (const Job& job : jobs) lies.push_back(job.path);
  std::sort(lies.begin(), lies.end());
  const std::size_t choices = 2 * std::max<std::size_t>(machine.paths.size(), 1);
  std::size_t combinations = 1;
  for (std::size_t j = 0; j < jobs.size(); ++j) combinations *= choices;
  do {
    Schedule schedule;
    std::vector<bool> used(jobs.size());
    for (const std::size_t path : lies)
      for (std::size_t j = 0; j < jobs.size(); ++j)
        if (!used[j] && jobs[j].path == path) {
          used[j] = true;
          schedule.push_back({j, false, kInMemory});
          break;
        }
    for (std::size_t c = 0; c < combinations; ++c) {
      std::size_t rest = c;
      for (Placed& placed : schedule) {
        placed.on_gpu = rest % choices % 2 == 1;
        placed.path = machine.paths.empty() ? kInMemory : rest % choices / 2;
        rest /= choices;
      }
      best = std::min(best, simulate(machine, jobs, schedule));
    }
  } while (std::next_permutation(lies.begin(), lies.end()));
  return best;
}

TEST(Simulation, OneSubgroup_TakesTheSumOfItsParts) {
  Machine machine{2e6, 8e6, 1e7, 5e6, {{1e6, 5e5}}, 2, 1};
  const Job job{1'000'000, 6'000'000, 2'000'000, 0};
  EXPECT_DOUBLE_EQ(simulate(machine, std::span(&job, 1), Schedule{{0, false, 0}}), 6 + 0.5 + 0.2 + 12);
  EXPECT_DOUBLE_EQ(simulate(machine, std::span(&job, 1), Schedule{{0, true, 0}}), 6 + 0.6 + 0.125 + 1.2 + 12);
  machine.gpu = 0;
  EXPECT_EQ(simulate(machine, std::span(&job, 1), Schedule{{0, true, 0}}), std::numeric_limits<double>::infinity());
}

TEST(Simulation, ReadsUpdatesAndWrites_Overlap) {
  // Ten subgroups of a second each in reading, updating and writing: twelve seconds with buffers for it, else more.
  Machine machine{1e6, 0, 0, 0, {{6e6, 6e6}}, 3, 1};
  Vector<Job> jobs(10, Job{1'000'000, 6'000'000, 0, 0});
  Schedule schedule;
  for (std::size_t j = 0; j < jobs.size(); ++j) schedule.push_back({j, false, 0});
  EXPECT_DOUBLE_EQ(simulate(machine, jobs, schedule), 12);
  machine.buffers = 2;
  EXPECT_DOUBLE_EQ(simulate(machine, jobs, schedule), 16);
  machine.buffers = 1;
  EXPECT_DOUBLE_EQ(simulate(machine, jobs, schedule), 30);
}

TEST(Simulation, AnySchedule_KeepsResourcesAndBuffersApart) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 50; ++round) {
    const std::size_t paths = random() % 3;
    const Machine machine = random_machine(random, paths);
    Vector<Job> jobs = equal_jobs(1 + random() % 30, paths);
    Schedule schedule;
    for (std::size_t j = 0; j < jobs.size(); ++j)
      schedule.push_back({j, random() % 2 == 0, paths == 0 ? kInMemory : random() % paths});
    std::shuffle(schedule.begin(), schedule.end(), random);
    Vector<BusySpan> spans;
    const double seconds = simulate(machine, jobs, schedule, &spans);
    std::vector<std::pair<double, double>> held(jobs.size(), {1e300, 0});
    for (const BusySpan& a : spans) {
      held[a.job] = {std::min(held[a.job].first, a.begin), std::max(held[a.job].second, a.end)};
      EXPECT_LE(a.end, seconds);
      for (const BusySpan& b : spans) {
        if (&a == &b) continue;
        const bool same_resource = a.activity == b.activity && a.path == b.path;
        EXPECT_FALSE((same_resource || a.job == b.job) && a.begin < b.end && b.begin < a.end);
      }
    }
    for (const auto& [begin, end] : held) {
      std::size_t at_once = 0;
      for (const auto& [first, last] : held) at_once += first <= begin && begin < last ? 1 : 0;
      EXPECT_LE(at_once, paths == 0 ? jobs.size() : machine.buffers) << end;
    }
  }
}

TEST(Schedule, ClosedForm_FillsTheCpuWhileTheGpuIsBusy) {
  const Machine machine{1e6, 1e7, 6e7, 6e7, {}, 4, 2};
  // 0.1 s in each of three stages on the GPU, 1 s on the CPU: k - 1 = 0.3.
  EXPECT_NEAR(gpu_share(machine, {1'000'000, 6'000'000, 0, kInMemory}), 1 / 1.3, 1e-12);
  EXPECT_EQ(gpu_share({1e6, 0, 1e7, 1e7, {}, 4, 2}, {1, 6, 0, kInMemory}), 0);
  EXPECT_EQ(gpu_share({0, 1e6, 1e7, 1e7, {}, 4, 2}, {1, 6, 0, kInMemory}), 1);
}

TEST(Schedule, UpToTwelveSubgroups_WithinFivePercentOfTheBest) {
  std::mt19937_64 random(11);
  double worst = 1;
  const auto compare = [&](std::size_t count, std::size_t paths) {
    const Machine machine = random_machine(random, paths);
    const Vector<Job> jobs = equal_jobs(count, paths);
    const double best = brute_force(machine, jobs);
    const double ours = simulate(machine, jobs, make_schedule(machine, jobs));
    EXPECT_GE(ours, best * (1 - 1e-9));
    EXPECT_LE(ours, best * 1.05) << count << " subgroups, " << paths << " paths";
    worst = std::max(worst, ours / best);
  };
  for (std::size_t count = 1; count <= 12; ++count)
    for (int round = 0; round < (count < 10 ? 12 : 3); ++round)
      for (const std::size_t paths : {0u, 1u}) compare(count, paths);
  for (std::size_t count = 1; count <= 6; ++count)
    for (int round = 0; round < (count < 6 ? 20 : 2); ++round) compare(count, 2);
  RecordProperty("worst", std::to_string(worst));
  std::printf("worst of all: %.4f of the best\n", worst);
}

/// The longer of the step and the reads of the next, and the step.
std::pair<double, double> cost_of(const Machine& machine, std::span<const Job> jobs, std::span<const Placed> schedule) {
  const double step = simulate(machine, jobs, schedule);
  double longest = step;
  for (std::size_t p = 0; p < machine.paths.size(); ++p) {
    double bytes = 0;
    for (const Placed& placed : schedule)
      if (placed.path == p) bytes += static_cast<double>(jobs[placed.job].bytes);
    longest = std::max(longest, bytes / machine.paths[p].read);
  }
  return {longest, step};
}

TEST(Schedule, RandomRates_NeverWorseThanOneProcessor) {
  std::mt19937_64 random(17);
  int both = 0;
  for (int round = 0; round < 1000; ++round) {
    const std::size_t paths = random() % 3;
    Machine machine = random_machine(random, paths);
    if (round % 2 == 1)
      for (offload::PathRates& path : machine.paths) path.write *= random_factor(random);
    Vector<Job> jobs = equal_jobs(1 + random() % (round % 100 == 0 ? 1500 : 40), paths, random() % 2 * 2 * kValues);
    for (Job& job : jobs) {
      if (random() % 4 == 0) job.path = kInMemory;
      if (random() % 4 == 0) job.values = 1 + random() % kValues, job.bytes = 6 * job.values;
    }
    Machine cpu = machine, gpu = machine;
    cpu.gpu = 0;
    gpu.cpu = 0;
    const Schedule schedule = make_schedule(machine, jobs);
    const auto cost = cost_of(machine, jobs, schedule);
    const auto alone =
        std::min(cost_of(cpu, jobs, make_schedule(cpu, jobs)), cost_of(gpu, jobs, make_schedule(gpu, jobs)));
    EXPECT_LE(cost, alone) << "round " << round;
    both += cost.first < 0.95 * alone.first ? 1 : 0;
    std::vector<int> seen(jobs.size());
    for (const Placed& placed : schedule) {
      ++seen[placed.job];
      EXPECT_EQ(placed.path == kInMemory, paths == 0);
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<std::ptrdiff_t>(jobs.size()));
  }
  // Where rates are of one order, both together are faster by far.
  EXPECT_GT(both, 200);
}

TEST(Schedule, Paths_GetBytesInProportionToTheirSlowerRate) {
  Machine machine{1e9, 0, 0, 0, {{3e6, 9e6}, {2e6, 1e6}}, 4, 1};
  const Vector<Job> jobs = equal_jobs(400, 2);
  std::vector<int> written(2);
  for (const Placed& placed : make_schedule(machine, jobs)) ++written[placed.path];
  EXPECT_NEAR(written[0], 300, 1);
  machine.paths[1].write = 0;  // not known yet
  written = {0, 0};
  for (const Placed& placed : make_schedule(machine, jobs)) ++written[placed.path];
  EXPECT_EQ(written[0], 200);
}

TEST(Schedule, VeryManyPaths_AreNoReasonToWait) {
  std::mt19937_64 random(23);
  Machine machine = random_machine(random, 1024);
  for (const std::size_t count : {8u, 16u}) {
    const Vector<Job> jobs = equal_jobs(count, 1024);
    EXPECT_EQ(make_schedule(machine, jobs).size(), count);
    machine.gpu = 0;
  }
}

TEST(Schedule, EveryPath_GetsSomething) {
  Machine machine{1e9, 0, 0, 0, {{1e9, 1e9}, {1e3, 1e3}, {1e9, 1e9}, {1e3, 1e3}}, 4, 1};
  const Vector<Job> jobs = equal_jobs(40, 4);
  Schedule schedule = make_schedule(machine, jobs);
  const auto written = [&] {
    std::vector<int> counts(4);
    for (const Placed& placed : schedule) ++counts[placed.path];
    return counts;
  };
  EXPECT_EQ(written(), (std::vector<int>{20, 0, 20, 0}));
  offload::use_every_path(4, schedule);
  EXPECT_EQ(written()[1] + written()[3], 2);
  EXPECT_EQ(written()[1], 1);
  Schedule few(schedule.begin(), schedule.begin() + 3);
  const Schedule before = few;
  offload::use_every_path(4, few);
  for (std::size_t i = 0; i < few.size(); ++i) EXPECT_EQ(few[i].path, before[i].path);
  Schedule none;
  offload::use_every_path(0, none);
}

TEST(Schedule, WhatIsInMemory_GoesFirst) {
  const Machine machine{1e9, 0, 0, 0, {{2e6, 2e6}, {1e6, 1e6}}, 4, 1};
  Vector<Job> jobs = equal_jobs(30, 2);
  jobs[7].path = jobs[20].path = kInMemory;
  const Schedule schedule = make_schedule(machine, jobs);
  EXPECT_EQ(schedule[0].job, 7u);
  EXPECT_EQ(schedule[1].job, 20u);
  // Of the two paths the faster is read twice as often.
  std::size_t fast = 0;
  for (std::size_t i = 2; i < 14; ++i) fast += jobs[schedule[i].job].path == 0 ? 1 : 0;
  EXPECT_EQ(fast, 8u);
}

}  // namespace
}  // namespace quern::testing
