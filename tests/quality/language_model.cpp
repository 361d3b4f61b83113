// Forward, backward and update, with plain loops over contiguous rows.
#include "tests/quality/language_model.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/common/bits.h"
#include "kernels/tensor/cpu/adam.h"

namespace quern::testing {
namespace {

/// Places and shuffles come from this counter-based hash (splitmix64's finalizer).
std::uint64_t mixed(std::uint64_t x) {
  x += UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
  return x ^ (x >> 31);
}

/// out[row] += sum over k of a[row][k] * b[k]; rows of `out` and `b` have n columns.
void add_product(const float* a, const float* b, std::size_t rows, std::size_t inner, std::size_t n, float* out) {
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t k = 0; k < inner; ++k) {
      const float factor = a[r * inner + k];
      for (std::size_t j = 0; j < n; ++j) out[r * n + j] += factor * b[k * n + j];
    }
}

/// out[k] += sum over rows of a[row][k] * b[row].
void add_transposed_product(const float* a, const float* b, std::size_t rows, std::size_t inner, std::size_t n,
                            float* out) {
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t k = 0; k < inner; ++k) {
      const float factor = a[r * inner + k];
      for (std::size_t j = 0; j < n; ++j) out[k * n + j] += factor * b[r * n + j];
    }
}

/// Eight sums side by side, then pairwise; n is a multiple of 8.
float dot(const float* a, const float* b, std::size_t n) {
  std::array<float, 8> sums{};
  for (std::size_t j = 0; j < n; j += 8)
    for (std::size_t i = 0; i < 8; ++i) sums[i] += a[j + i] * b[j + i];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

}  // namespace

std::string made_up_text(std::size_t bytes, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  const std::string consonants = "bdfgklmnprstvz";
  const std::string vowels = "aeiou";
  std::vector<std::string> words;
  for (std::size_t w = 0; w < 400; ++w) {
    std::string word;
    for (std::uint32_t s = 0; s <= below(3); ++s) {
      word += consonants[below(14)];
      word += vowels[below(5)];
      if (below(3) == 0) word += consonants[below(14)];
    }
    words.push_back(word);
  }
  std::string text;
  std::size_t last = 0;
  while (text.size() < bytes) {
    // A word's successors are drawn from a few that belong to it, the first of them most often.
    const std::size_t rank = std::min({below(40), below(40), below(40)});
    last = below(4) == 0 ? std::min({below(400), below(400), below(400)}) : (last * 7 + rank * rank * 3 + 1) % 400;
    std::string word = words[last];
    if (below(9) == 0) word[0] = static_cast<char>(word[0] - 'a' + 'A');
    // Signs that are seldom seen, some of them hardly ever: what small second moments come from.
    if (below(25) == 0) word += static_cast<char>(0x80 + std::min({below(96), below(96), below(96)}));
    text += word;
    switch (below(12)) {
      case 0: text += ", "; break;
      case 1: text += ".\n"; break;
      case 2: text.append(" ").append(std::to_string(below(1000))).append(" "); break;
      default: text += " ";
    }
  }
  text.resize(bytes);
  return text;
}

double Schedule::rate(std::uint64_t step) const {
  if (constant != 0) return constant;
  if (step < warm_up) return peak * static_cast<double>(step + 1) / static_cast<double>(warm_up);
  const double done = std::min(1.0, static_cast<double>(step - warm_up) / static_cast<double>(steps - warm_up));
  return peak * (0.55 + 0.45 * std::cos(3.14159265358979 * done));
}

TrainState Trainer::fresh(std::uint32_t seed) {
  std::mt19937 random(seed);
  TrainState state;
  const auto make = [&](TensorName name, std::vector<std::uint64_t> shape, float scale) {
    TrainTensor& t = state.tensors[name];
    std::size_t elems = 1;
    for (const std::uint64_t e : shape) elems *= static_cast<std::size_t>(e);
    t.shape = std::move(shape);
    for (std::size_t i = 0; i < elems; ++i) {
      // Sum of uniform numbers: a bell curve without the library's own normal distribution.
      float sum = 0;
      for (int k = 0; k < 6; ++k) sum += static_cast<float>(random() >> 8) * 0x1p-24f - 0.5f;
      t.weight.push_back(scale * 1.414f * sum);
    }
    t.exp_avg.assign(elems, 0);
    t.exp_avg_sq.assign(elems, 0);
    t.gradient.assign(elems, 0);
  };
  make(kEmbedding, {kBytes, kEmbed}, 0.5f);
  make(kHidden, {kContext * kEmbed, kWidth}, 0.1f);
  make(kHiddenBias, {kWidth}, 0);
  make(kOutput, {kWidth, kBytes}, 0.05f);
  make(kOutputBias, {kBytes}, 0);
  return state;
}

double Trainer::forward(const TrainState& state, const std::vector<std::size_t>& places) {
  const std::size_t batch = places.size();
  constexpr std::size_t kInputs = kContext * kEmbed;
  inputs_.resize(batch * kInputs);
  hidden_.resize(batch * kWidth);
  logits_.resize(batch * kBytes);
  const auto& t = state.tensors;
  for (std::size_t b = 0; b < batch; ++b) {
    for (std::size_t c = 0; c < kContext; ++c) {
      const auto byte = static_cast<unsigned char>(text_[places[b] + c]);
      std::copy_n(&t[kEmbedding].weight[byte * kEmbed], kEmbed, &inputs_[b * kInputs + c * kEmbed]);
    }
    std::copy_n(t[kHiddenBias].weight.data(), kWidth, &hidden_[b * kWidth]);
    std::copy_n(t[kOutputBias].weight.data(), kBytes, &logits_[b * kBytes]);
  }
  add_product(inputs_.data(), t[kHidden].weight.data(), batch, kInputs, kWidth, hidden_.data());
  for (float& h : hidden_) h = h / (1 + std::abs(h));
  add_product(hidden_.data(), t[kOutput].weight.data(), batch, kWidth, kBytes, logits_.data());
  double loss = 0;
  for (std::size_t b = 0; b < batch; ++b) {
    float* const row = &logits_[b * kBytes];
    const float most = *std::max_element(row, row + kBytes);
    double sum = 0;
    const auto wanted = static_cast<unsigned char>(text_[places[b] + kContext]);
    const double own = static_cast<double>(row[wanted] - most);
    for (std::size_t j = 0; j < kBytes; ++j) {
      row[j] = std::exp(row[j] - most);
      sum += static_cast<double>(row[j]);
    }
    loss += std::log(sum) - own;
    // Derivatives by the logits, of the mean over the batch.
    const auto scale = static_cast<float>(1 / (sum * static_cast<double>(batch)));
    for (std::size_t j = 0; j < kBytes; ++j) row[j] *= scale;
    row[wanted] -= 1.0f / static_cast<float>(batch);
  }
  return loss / static_cast<double>(batch);
}

void Trainer::backward(const TrainState& state, const std::vector<std::size_t>& places) {
  const std::size_t batch = places.size();
  constexpr std::size_t kInputs = kContext * kEmbed;
  for (std::size_t i = 0; i < kTensors; ++i) gradients_[i].assign(state.tensors[i].weight.size(), 0);
  d_hidden_.resize(batch * kWidth);
  add_transposed_product(hidden_.data(), logits_.data(), batch, kWidth, kBytes, gradients_[kOutput].data());
  for (std::size_t b = 0; b < batch; ++b) {
    for (std::size_t j = 0; j < kBytes; ++j) gradients_[kOutputBias][j] += logits_[b * kBytes + j];
    for (std::size_t k = 0; k < kWidth; ++k) {
      // h = x / (1 + |x|) has derivative (1 - |h|)^2.
      const float flat = 1 - std::abs(hidden_[b * kWidth + k]);
      d_hidden_[b * kWidth + k] =
          flat * flat * dot(&state.tensors[kOutput].weight[k * kBytes], &logits_[b * kBytes], kBytes);
      gradients_[kHiddenBias][k] += d_hidden_[b * kWidth + k];
    }
  }
  add_transposed_product(inputs_.data(), d_hidden_.data(), batch, kInputs, kWidth, gradients_[kHidden].data());
  for (std::size_t b = 0; b < batch; ++b)
    for (std::size_t k = 0; k < kInputs; ++k) {
      const auto byte = static_cast<unsigned char>(text_[places[b] + k / kEmbed]);
      gradients_[kEmbedding][byte * kEmbed + k % kEmbed] +=
          dot(&state.tensors[kHidden].weight[k * kWidth], &d_hidden_[b * kWidth], kWidth);
    }
}

codec::tensor::AdamSettings Trainer::settings(std::size_t tensor, std::uint64_t step, float clip) const {
  codec::tensor::AdamSettings s;
  s.rate = options_.schedule.rate(step);
  s.beta1 = options_.beta1;
  s.beta2 = options_.beta2;
  s.decay = tensor == kHidden || tensor == kOutput ? 0.1 : 0;
  s.clip = clip;
  s.step = step + 1;
  return s;
}

double Trainer::step(TrainState& state) {
  std::vector<std::size_t> places(kBatch);
  for (std::size_t b = 0; b < kBatch; ++b)
    places[b] = mixed(options_.data_seed << 40 ^ state.step << 10 ^ b) % (text_.size() - kContext);
  const double loss = forward(state, places);
  backward(state, places);
  double squares = 0;
  for (std::size_t i = 0; i < kTensors; ++i)
    for (std::size_t j = 0; j < gradients_[i].size(); ++j) {
      const std::uint32_t half = kernels::float_to_bfloat(gradients_[i][j]);
      state.tensors[i].gradient[j] = static_cast<std::uint16_t>(half);
      const auto g = static_cast<double>(kernels::bfloat_to_float(half));
      squares += g * g;
    }
  const double norm = std::sqrt(squares);
  clip_ = norm > 1 ? static_cast<float>(1 / norm) : 1.0f;
  const auto& kernels = kernels::adam_kernels(kernels::best_isa());
  for (std::size_t i = 0; i < kTensors; ++i) {
    TrainTensor& t = state.tensors[i];
    const auto rule = make_adam_rule(settings(i, state.step, clip_));
    kernels.step_bf16(rule, t.gradient.data(), t.gradient.size(), t.weight.data(), t.exp_avg.data(),
                      t.exp_avg_sq.data());
  }
  ++state.step;
  return loss;
}

double Trainer::evaluate(const TrainState& state) {
  double sum = 0;
  constexpr std::size_t kBatches = 40;
  for (std::size_t i = 0; i < kBatches; ++i) {
    std::vector<std::size_t> places(kBatch);
    for (std::size_t b = 0; b < kBatch; ++b)
      places[b] = mixed(UINT64_C(1) << 60 ^ i << 10 ^ b) % (text_.size() - kContext);
    sum += forward(state, places);
  }
  return sum / kBatches;
}

}  // namespace quern::testing
