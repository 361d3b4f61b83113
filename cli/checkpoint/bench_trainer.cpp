#include "cli/checkpoint/bench_trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "cli/messages/clock.h"

namespace quern::cli {
namespace {

constexpr std::size_t kSide = 96;  // of a matrix that stays in the nearest cache

/// Uniform in [-0.5, 0.5), the same for the same state.
float next(std::uint64_t& state) {
  state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return static_cast<float>(state >> 40) / static_cast<float>(1 << 24) - 0.5F;
}

}  // namespace

BenchTrainer::BenchTrainer(std::uint64_t bytes, std::uint64_t tensors) {
  static constexpr const char* kParts[] = {"model.layer{}.weight", "optimizer.state.layer{}.weight.exp_avg",
                                           "optimizer.state.layer{}.weight.exp_avg_sq"};
  const std::uint64_t elements = bytes / 4 / tensors;
  std::uint64_t state = 1;
  for (std::uint64_t t = 0; t < tensors; ++t) {
    Tensor tensor{fmt::format(fmt::runtime(kParts[t % 3]), t / 3), std::vector<float>(elements)};
    for (float& value : tensor.values) {
      // The sum of three is nearly normal.
      value = (next(state) + next(state) + next(state)) * (t % 3 == 0 ? 0.04F : 1e-3F);
      if (t % 3 == 2) value = value * value + 1e-12F;
    }
    tensors_.push_back(std::move(tensor));
  }
}

std::uint64_t BenchTrainer::bytes() const {
  std::uint64_t sum = 0;
  for (const Tensor& tensor : tensors_) sum += tensor.values.size() * sizeof(float);
  return sum;
}

double BenchTrainer::measure_copy() const {
  std::vector<std::uint8_t> room(bytes(), 1);
  std::vector<double> times;
  for (int i = 0; i < 5; ++i) {
    const Stopwatch watch;
    std::size_t at = 0;
    for (const Tensor& tensor : tensors_) {
      std::memcpy(room.data() + at, tensor.values.data(), tensor.values.size() * sizeof(float));
      at += tensor.values.size() * sizeof(float);
    }
    times.push_back(watch.seconds());
  }
  std::sort(times.begin(), times.end());
  return static_cast<double>(room.size()) / std::max(times[2], 1e-9);
}

void BenchTrainer::calibrate(double forward, double backward) {
  matrix_.assign(kSide * kSide, 0.01F);
  vector_.assign(kSide, 1.0F);
  compute(1000);
  std::vector<double> seconds;
  for (int i = 0; i < 5; ++i) {
    const Stopwatch watch;
    compute(2000);
    seconds.push_back(watch.seconds());
  }
  std::sort(seconds.begin(), seconds.end());
  const double unit = std::max(seconds[2] / 2000, 1e-9);
  forward_units_ = static_cast<std::uint64_t>(forward / unit);
  backward_units_ = static_cast<std::uint64_t>(backward / unit);
}

/// Matrix times vector, again and again.
void BenchTrainer::compute(std::uint64_t units) {
  std::vector<float> out(kSide);
  for (std::uint64_t unit = 0; unit < units; ++unit) {
    for (std::size_t i = 0; i < kSide; ++i) {
      float sum[4] = {};
      for (std::size_t j = 0; j < kSide; j += 4)
        for (std::size_t k = 0; k < 4; ++k) sum[k] += matrix_[i * kSide + j + k] * vector_[j + k];
      out[i] = sum[0] + sum[1] + sum[2] + sum[3];
    }
    vector_.swap(out);
  }
}

void BenchTrainer::update() {
  ++step_;
  const float rate = 1e-5F * static_cast<float>(1 + step_ % 7);
  for (Tensor& tensor : tensors_)
    for (float& value : tensor.values) value += rate * value;
}

}  // namespace quern::cli
