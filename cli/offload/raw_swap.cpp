#include "cli/offload/raw_swap.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/files/bench_folder.h"
#include "cli/offload/args.h"

namespace quern::cli {

using offload::StepActivity;

void adam_in_memory(TaskRunner& runner, const kernels::AdamRule& rule, const std::uint16_t* gradient,
                    std::uint64_t values, float* weights, float* first, float* second) {
  constexpr std::uint64_t kTaskValues = 16384;
  const auto& adam = kernels::adam_kernels(kernels::best_isa());
  const auto update = [&](std::size_t task) {
    const std::size_t at = task * kTaskValues;
    const auto count = static_cast<std::size_t>(std::min(kTaskValues, values - at));
    adam.step_bf16(rule, gradient + at, count, weights + at, first + at, second + at);
  };
  runner.run(static_cast<std::size_t>((values + kTaskValues - 1) / kTaskValues), update);
}

RawSwap::RawSwap(storage::FileSystem& files, TaskRunner& runner, std::vector<std::string> folders, std::uint64_t values,
                 std::uint64_t subgroup, std::uint64_t memory)
    : files_(files),
      runner_(runner),
      folders_(std::move(folders)),
      values_(values),
      subgroup_(std::min(subgroup, values)) {
  const std::size_t wanted = static_cast<std::size_t>(std::max(memory / (12 * subgroup_), kFewestRawBuffers));
  buffers_.resize(std::min(wanted, groups()));
  for (Buffer& buffer : buffers_) buffer.arrays.resize(3 * static_cast<std::size_t>(subgroup_));
  for (std::size_t f = 0; f < folders_.size(); ++f) {
    readers_.push_back(std::make_unique<offload::Worker>(true));
    writers_.push_back(std::make_unique<offload::Worker>(true));
  }
  // Second moments of 0 would make every step the first one.
  std::fill(buffers_[0].arrays.begin(), buffers_[0].arrays.end(), 1e-6f);
  for (std::size_t g = 0; g < groups(); ++g) {
    write(g, buffers_[0]);
    fail_if_failed();
  }
}

std::size_t RawSwap::count_of(std::size_t group) const {
  return static_cast<std::size_t>(std::min(subgroup_, values_ - group * subgroup_));
}

std::string RawSwap::path_of(std::size_t group) const {
  return fmt::format("{}/raw{}", folders_[group % folders_.size()], group);
}

std::span<std::uint8_t> RawSwap::bytes_of(Buffer& buffer, std::size_t group) const {
  return {reinterpret_cast<std::uint8_t*>(buffer.arrays.data()), 12 * count_of(group)};
}

void RawSwap::record(StepActivity activity, std::size_t group, double begin) {
  spans_.push_back({activity, group % folders_.size(), group, begin - begin_, offload::seconds_now() - begin_});
}

void RawSwap::fail_if_failed() {
  check_interrupt();
  const std::lock_guard lock(mutex_);
  if (!problem_.empty()) fail(Exit::io, problem_);
}

void RawSwap::write(std::size_t group, Buffer& buffer) {
  const std::string path = path_of(group);
  (void)files_.remove(path);
  const auto file = files_.create(path);
  const Status status = file.ok() ? storage::write_fully(**file, 0, bytes_of(buffer, group)) : file.status();
  if (status.ok()) return;
  const std::lock_guard lock(mutex_);
  const std::string why = status.text();
  problem_ = fmt::format("{}: cannot write it: {}", path, why);
}

void RawSwap::begin_read(std::size_t group) {
  Buffer& buffer = buffers_[group % buffers_.size()];
  buffer.busy = true;
  readers_[group % folders_.size()]->post([this, group, &buffer] {
    const double begin = offload::seconds_now();
    const std::string path = path_of(group);
    const auto file = files_.open(path);
    const Status status = file.ok() ? storage::read_fully(**file, 0, bytes_of(buffer, group)) : file.status();
    const std::lock_guard lock(mutex_);
    record(StepActivity::read, group, begin);
    const std::string why = status.ok() ? "" : status.text();
    if (!status.ok()) problem_ = fmt::format("{}: cannot read it: {}", path, why);
    buffer.ready = true;
    changed_.notify_all();
  });
}

void RawSwap::begin_write(std::size_t group) {
  Buffer& buffer = buffers_[group % buffers_.size()];
  writers_[group % folders_.size()]->post([this, group, &buffer] {
    const double begin = offload::seconds_now();
    write(group, buffer);
    const std::lock_guard lock(mutex_);
    record(StepActivity::write, group, begin);
    buffer.ready = buffer.busy = false;
    changed_.notify_all();
  });
}

void RawSwap::wait_for(std::size_t group, bool (*done)(const Buffer&), StepActivity why) {
  Buffer& buffer = buffers_[group % buffers_.size()];
  const double begin = offload::seconds_now();
  std::unique_lock lock(mutex_);
  if (done(buffer)) return;
  changed_.wait(lock, [&] { return done(buffer); });
  record(why, group, begin);
}

void RawSwap::step(const kernels::AdamRule& rule, const std::uint16_t* gradient) {
  const auto free = [](const Buffer& b) { return !b.busy; };
  {
    const std::lock_guard lock(mutex_);
    spans_.clear();
    begin_ = offload::seconds_now();
  }
  std::size_t asked = 0;
  for (std::size_t g = 0; g < groups(); ++g) {
    for (; asked < groups() && asked < g + buffers_.size(); ++asked) {
      if (asked == g) wait_for(asked, free, StepActivity::wait_for_memory);
      const std::lock_guard lock(mutex_);
      if (!free(buffers_[asked % buffers_.size()])) break;
      begin_read(asked);
    }
    wait_for(
        g, [](const Buffer& b) { return b.ready; }, StepActivity::wait_for_read);
    fail_if_failed();
    const double begin = offload::seconds_now();
    float* const at = buffers_[g % buffers_.size()].arrays.data();
    const std::size_t count = count_of(g);
    adam_in_memory(runner_, rule, gradient + g * subgroup_, count, at, at + count, at + 2 * count);
    {
      const std::lock_guard lock(mutex_);
      record(StepActivity::update, g, begin);
    }
    begin_write(g);
  }
  for (std::size_t g = groups() - buffers_.size(); g < groups(); ++g) wait_for(g, free, StepActivity::wait_for_writes);
  fail_if_failed();
}

}  // namespace quern::cli
