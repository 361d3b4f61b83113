// A made-up training run as safetensors files on a disk in memory: Adam on gradients of noise, so that consecutive
// states belong together as real ones do.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "checkpoint/convert/checkpoint_files.h"
#include "tests/faults/simulated_disk.h"

namespace quern::testing {

using Bytes = std::vector<std::uint8_t>;

struct RunTensor {
  std::string name;
  checkpoint::ElementType type = checkpoint::ElementType::f32;
  std::vector<std::uint64_t> shape;
  Bytes values;
};
using RunTensors = std::vector<RunTensor>;

Bytes bytes_of(const std::vector<float>& values);
std::vector<float> floats_of(const Bytes& bytes);

/// A weight, of 80 x 64 values unless told otherwise, and a bias of 64 values under AdamW: lr 1e-3, betas 0.9 and 0.95,
/// eps 1e-8, decay 0.1 on the weight.
class TrainingRun {
 public:
  explicit TrainingRun(kernels::AdamOrder order = kernels::AdamOrder::fused, std::uint64_t rows = 80,
                       std::uint64_t columns = 64);
  void step();
  std::uint64_t steps() const { return steps_; }
  /// param, exp_avg and exp_avg_sq of both, in that order, and a bf16 copy of the weight.
  RunTensors state() const;
  /// The last step's gradients in bf16.
  RunTensors gradients() const;
  /// The run's rule in fused order, its learning rate left to the metadata.
  static std::string rule();

 private:
  struct Parameter {
    std::string name;
    std::vector<std::uint64_t> shape;
    std::vector<float> w, m, v;
    std::vector<std::uint16_t> gradient;
  };
  std::vector<Parameter> parameters_;
  kernels::AdamOrder order_;
  std::uint64_t steps_ = 0;
  std::uint32_t seed_ = 12345;
};

/// Writes a file, replacing one that is there; metadata lr, step.
String put_file(SimulatedDisk& disk, const std::string& name, const RunTensors& tensors,
                const checkpoint::Metadata& metadata = {});

/// Everything that comes back of a step, by name.
Result<std::map<std::string, Bytes>> restore_all(const checkpoint::Store& store, std::uint64_t step,
                                                 checkpoint::Report& report);

}  // namespace quern::testing
