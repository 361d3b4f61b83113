// Adam in binary32 whose three arrays lie in folders, as swappers of optimizer state keep them: what the bench compares
// offloaded steps with. A file a subgroup, dealt out by turns, read ahead and written behind.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/tensor/cpu/adam.h"
#include "offload/optimizer.h"
#include "offload/worker.h"

#include <quern/execution.h>

namespace quern::cli {

/// A step of Adam in binary32 over arrays of so many values, with gradients in bfloat16. Any number of threads has one
/// result.
void adam_in_memory(TaskRunner& runner, const kernels::AdamRule& rule, const std::uint16_t* gradient,
                    std::uint64_t values, float* weights, float* first, float* second);

class RawSwap {
 public:
  /// Writes the state, of made-up values. `memory`: for buffers of a subgroup each; at least kFewestRawBuffers are used, if
  /// there are so many subgroups. `runner` updates. Ends in a CliError when it is interrupted or a file fails.
  RawSwap(storage::FileSystem& files, TaskRunner& runner, std::vector<std::string> folders, std::uint64_t values,
          std::uint64_t subgroup, std::uint64_t memory);

  /// Gradients in bfloat16, of all values. Ends in a CliError when it is interrupted or a file fails.
  void step(const kernels::AdamRule& rule, const std::uint16_t* gradient);
  std::uint64_t memory_bytes() const { return buffers_.size() * 12 * subgroup_; }
  /// Of the last step.
  const std::vector<offload::StepSpan>& spans() const { return spans_; }

 private:
  struct Buffer {
    std::vector<float> arrays;
    bool ready = false;
    bool busy = false;
  };
  std::size_t groups() const { return static_cast<std::size_t>((values_ + subgroup_ - 1) / subgroup_); }
  std::size_t count_of(std::size_t group) const;
  std::string path_of(std::size_t group) const;
  std::span<std::uint8_t> bytes_of(Buffer& buffer, std::size_t group) const;
  void begin_read(std::size_t group);
  void begin_write(std::size_t group);
  void write(std::size_t group, Buffer& buffer);
  void wait_for(std::size_t group, bool (*done)(const Buffer&), offload::StepActivity why);
  void record(offload::StepActivity activity, std::size_t group, double begin);
  void fail_if_failed();

  storage::FileSystem& files_;
  TaskRunner& runner_;
  const std::vector<std::string> folders_;
  const std::uint64_t values_;
  const std::uint64_t subgroup_;
  std::vector<Buffer> buffers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string problem_;
  std::vector<offload::StepSpan> spans_;
  double begin_ = 0;
  std::vector<std::unique_ptr<offload::Worker>> readers_, writers_;  // last: their threads use all the rest
};

}  // namespace quern::cli
