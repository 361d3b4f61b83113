// A trainer that only computes: the same arithmetic in each step, over tensors that its updates change.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace quern::cli {

class BenchTrainer {
 public:
  struct Tensor {
    std::string name;
    std::vector<float> values;
  };

  /// Three tensors a parameter (weight, first and second moment) of values like those of a run.
  BenchTrainer(std::uint64_t bytes, std::uint64_t tensors);
  explicit BenchTrainer(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {}

  const std::vector<Tensor>& tensors() const { return tensors_; }
  std::uint64_t bytes() const;
  /// Bytes a second of a copy of the state into memory that is warm, median of five.
  double measure_copy() const;
  /// From now on forward and backward passes take these seconds when nothing else runs.
  void calibrate(double forward, double backward);
  void forward() { compute(forward_units_); }
  void backward() { compute(backward_units_); }
  /// Writes to every tensor.
  void update();

 private:
  void compute(std::uint64_t units);

  std::vector<Tensor> tensors_;
  std::uint64_t forward_units_ = 0, backward_units_ = 0;
  std::vector<float> matrix_, vector_;
  std::uint64_t step_ = 0;
};

}  // namespace quern::cli
