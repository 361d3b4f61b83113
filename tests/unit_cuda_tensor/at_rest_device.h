// A state at rest, stepped on the host and on a device.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "codecs/tensor/at_rest.h"
#include "codecs/tensor/replay.h"
#include "kernels/tensor/cuda/at_rest_cuda.h"
#include "libcompress/core/task_runner.h"
#include "tests/support/device_buffer.h"
#include "tests/unit_moments/float_cases.h"

namespace quern::testing {

/// What a state holds, in words.
struct AtRestBytes {
  std::vector<std::uint32_t> fixed, beside;
  std::vector<float> weights;
  std::vector<std::uint16_t> copy;
};

inline std::vector<std::uint32_t> words_of(std::span<const std::uint8_t> bytes) {
  std::vector<std::uint32_t> words(bytes.size() / 4);
  if (!words.empty()) std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

inline AtRestBytes bytes_of(const codec::tensor::AtRestMoments& moments, std::vector<float> weights,
                            std::vector<std::uint16_t> copy) {
  return {words_of(moments.fixed_part()), words_of(moments.beside_part()), std::move(weights), std::move(copy)};
}

inline void expect_same(const AtRestBytes& a, const AtRestBytes& b) {
  EXPECT_EQ(a.fixed, b.fixed);
  EXPECT_EQ(a.beside, b.beside);
  EXPECT_EQ(a.copy, b.copy);
  ASSERT_EQ(a.weights.size(), b.weights.size());
  EXPECT_EQ(std::memcmp(a.weights.data(), b.weights.data(), 4 * a.weights.size()), 0);
}

/// The step of that key, as the device takes it.
template <class Gradient>
AtRestBytes step_on_device(const kernels::AtRestStep& step, std::uint64_t first_block, const AtRestBytes& before,
                           const std::vector<Gradient>& gradient, unsigned max_blocks) {
  const std::size_t values = gradient.size();
  DeviceBuffer<std::uint32_t> fixed(before.fixed);
  DeviceBuffer<std::uint32_t> beside(before.beside.empty() ? std::vector<std::uint32_t>(1) : before.beside);
  const std::size_t most = (values + 255) / 256 * (kernels::kAtRestRawBytes / 4);
  DeviceBuffer<std::uint32_t> made(most);
  DeviceBuffer<Gradient> gradients(gradient);
  DeviceBuffer<float> weights(before.weights);
  DeviceBuffer<std::uint16_t> copy(values);
  DeviceBuffer<std::uint64_t> scratch(kernels::at_rest_scratch_bytes(values) / 8 + 1);
  kernels::AtRestRangeOnDevice range;
  range.values = values;
  range.first_block = first_block;
  range.fixed = fixed.data();
  range.beside = beside.data();
  range.new_beside = made.data();
  range.beside_words = most;
  const kernels::AtRestArrays<Gradient> arrays{gradients.data(), weights.data(), copy.data()};
  EXPECT_EQ(kernels::at_rest_step_async(step, range, arrays, scratch.data(), nullptr, max_blocks), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  AtRestBytes after{fixed.get(), {}, weights.get(), copy.get()};
  std::size_t words = 0;
  for (std::size_t t = 0; t < (values + kernels::kAtRestTile - 1) / kernels::kAtRestTile; ++t)
    words += after.fixed[t] / 4;
  EXPECT_LE(words, most);
  after.beside = made.get(std::min(words, most));
  return after;
}

/// Steps of one state on both; what they hold must be the same after each.
inline void expect_steps_of_the_host(const FloatCase& values, const kernels::AtRestForm& form, std::uint64_t steps,
                                     unsigned max_blocks) {
  constexpr std::uint64_t kSeed = 5, kFirst = 512;
  SerialRunner runner;
  const std::size_t elems = values.first.size();
  auto moments = codec::tensor::AtRestMoments::make(elems, kFirst, form).value();
  ASSERT_TRUE(moments.encode(kSeed, 0, values.first.data(), values.second.data(), runner).ok());
  std::mt19937 random(29);
  std::normal_distribution<float> normal;
  std::vector<float> weights(elems), wide(elems);
  std::vector<std::uint16_t> narrow(elems), copy(elems);
  for (float& weight : weights) weight = normal(random);
  AtRestBytes device = bytes_of(moments, weights, copy);
  for (std::uint64_t step = 1; step <= steps; ++step) {
    for (std::size_t i = 0; i < elems; ++i) {
      wide[i] = 1e-3f * normal(random);
      narrow[i] = static_cast<std::uint16_t>(kernels::float_to_bfloat(wide[i]));
    }
    codec::tensor::AdamSettings settings;
    settings.decay = 0.1;
    settings.step = step;
    const kernels::AdamRule rule = make_adam_rule(settings);
    // As AtRestMoments::step() makes the key.
    const kernels::AtRestStep how{form, kernels::at_rest_mix64(kSeed ^ kernels::at_rest_mix64(step)), rule};
    const bool half = step % 2 == 0;
    const codec::tensor::AtRestGradient gradient{
        half ? static_cast<const void*>(narrow.data()) : wide.data(),
        half ? codec::tensor::ElementType::bf16 : codec::tensor::ElementType::f32};
    ASSERT_TRUE(moments.step(kSeed, step, rule, gradient, weights.data(), copy.data(), runner).ok());
    device = half ? step_on_device(how, kFirst / kernels::kAtRestBlock, device, narrow, max_blocks)
                  : step_on_device(how, kFirst / kernels::kAtRestBlock, device, wide, max_blocks);
    SCOPED_TRACE(values.name);
    expect_same(device, bytes_of(moments, weights, copy));
  }
}

}  // namespace quern::testing
