// A small byte-level language model and its training in mixed precision, as large ones are trained: binary32 weights
// and moments, gradients in bfloat16, clipped, AdamW by the library's own rule. Everything in a fixed order: the same
// run gives the same losses, bit for bit.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "codecs/tensor/replay.h"

namespace quern::testing {

/// Text of words of a made-up language whose frequencies fall as in real ones, with sentences and numbers.
std::string made_up_text(std::size_t bytes, std::uint32_t seed);

struct TrainTensor {
  std::vector<std::uint64_t> shape;
  std::vector<float> weight;
  std::vector<float> exp_avg;
  std::vector<float> exp_avg_sq;
  std::vector<std::uint16_t> gradient;  ///< of the last step, bfloat16, before clipping
};

enum TensorName : std::size_t { kEmbedding, kHidden, kHiddenBias, kOutput, kOutputBias, kTensors };

struct TrainState {
  std::array<TrainTensor, kTensors> tensors;
  std::uint64_t step = 0;  ///< steps done
};

struct Schedule {
  double peak = 3e-3;
  std::uint64_t warm_up = 40;
  std::uint64_t steps = 1200;  ///< cosine to a tenth of the peak
  double constant = 0;         ///< if not 0: this rate, whatever the step

  double rate(std::uint64_t step) const;
};

struct TrainOptions {
  Schedule schedule;
  double beta1 = 0.9;
  double beta2 = 0.999;
  std::uint64_t data_seed = 1;
};

/// Predicts a byte from the eight before it: embedding, one hidden layer of 128, 256 logits.
class Trainer {
 public:
  static constexpr std::size_t kContext = 8;
  static constexpr std::size_t kEmbed = 16;
  static constexpr std::size_t kWidth = 128;
  static constexpr std::size_t kBytes = 256;
  static constexpr std::size_t kBatch = 48;

  Trainer(std::string text, TrainOptions options) : text_(std::move(text)), options_(options) {}

  static TrainState fresh(std::uint32_t seed);
  /// One step; returns the mean loss of its batch, in nats, before the update.
  double step(TrainState& state);
  /// Mean loss over a fixed set of places.
  double evaluate(const TrainState& state);
  /// The rule that step number `step` follows for a tensor, with that clip.
  codec::tensor::AdamSettings settings(std::size_t tensor, std::uint64_t step, float clip) const;
  float last_clip() const { return clip_; }
  TrainOptions& options() { return options_; }

 private:
  double forward(const TrainState& state, const std::vector<std::size_t>& places);
  void backward(const TrainState& state, const std::vector<std::size_t>& places);

  std::string text_;
  TrainOptions options_;
  float clip_ = 1;
  std::vector<float> inputs_, hidden_, logits_, d_hidden_, d_inputs_;
  std::array<std::vector<float>, kTensors> gradients_;
};

}  // namespace quern::testing
