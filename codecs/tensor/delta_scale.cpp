// Candidates from the ratios of a sample and from least squares, then smaller and smaller steps from the best. The
// decay rates that optimizers are run with are tried last: one step later, what was added to an exactly decayed base
// often has few bits.
#include "codecs/tensor/delta_scale.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "kernels/common/bit_packing.h"
#include "kernels/common/bits.h"
#include "kernels/entropy/frequency_table.h"
#include "kernels/tensor/cpu/planes.h"
#include "libcompress/core/scattered_sample.h"

namespace quern::codec::tensor {
namespace {

constexpr std::size_t kMostSamples = 4096;
constexpr std::size_t kFewestElems = 1024;
constexpr int kFirstStep = 4;  ///< steps are 2^-4 of the factor, then half as much each, to
constexpr int kLastStep = 16;

struct Sample {
  std::size_t count = 0;
  std::array<std::uint32_t, kMostSamples> values;
  std::array<std::uint32_t, kMostSamples> base;
};

constexpr std::array<float, 6> kDecays = {0.9f, 0.95f, 0.98f, 0.99f, 0.999f, 0.9999f};

using Differences = std::array<std::uint8_t, 4 * kMostSamples>;

void subtract(const Sample& sample, float scale, Differences& differences) {
  kernels::plane_kernels(kernels::best_isa())
      .subtract(reinterpret_cast<const std::uint8_t*>(sample.values.data()),
                reinterpret_cast<const std::uint8_t*>(sample.base.data()), sample.count, 4, {scale},
                differences.data());
}

/// Sum of the logarithms of the differences, in units of 2^-12: a quick and smooth measure.
std::uint64_t magnitude(const Sample& sample, float scale) {
  Differences differences;
  subtract(sample, scale, differences);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < sample.count; ++i)
    sum += kernels::log2_fixed(kernels::load_le<std::uint32_t>(differences.data() + 4 * i) | 1);
  return sum;
}

/// Bits, in units of 2^-12, that their planes take.
std::uint64_t plane_cost(const Sample& sample, float scale) {
  Differences differences;
  subtract(sample, scale, differences);
  std::array<kernels::Counts, 4> counts{};
  for (std::size_t i = 0; i < 4 * sample.count; ++i) ++counts[i % 4][differences[i]];
  std::uint64_t sum = 0;
  for (const kernels::Counts& plane : counts) sum += kernels::entropy_cost(plane);
  return sum;
}

bool is_ordinary(std::uint32_t bits) {
  const std::uint32_t exponent = bits >> 23 & 0xff;
  return exponent >= 16 && exponent < 255;
}

}  // namespace

float fit_scale(std::span<const std::uint8_t> values, std::span<const std::uint8_t> base) {
  const std::size_t elems = values.size() / 4;
  if (elems < kFewestElems) return 1.0f;
  Sample sample;
  sample.count = std::min(elems / 4, kMostSamples);
  std::array<float, kMostSamples> ratios;
  std::size_t ordinary = 0;
  double products = 0;
  double squares = 0;
  for (std::size_t s = 0; s < sample.count; ++s) {
    const auto at = 4 * static_cast<std::size_t>(scattered_sample(elems, sample.count, s));
    const auto value = kernels::load_le<std::uint32_t>(values.data() + at);
    const auto known = kernels::load_le<std::uint32_t>(base.data() + at);
    kernels::store_le(reinterpret_cast<std::uint8_t*>(&sample.values[s]), value);
    kernels::store_le(reinterpret_cast<std::uint8_t*>(&sample.base[s]), known);
    if (!is_ordinary(value) || !is_ordinary(known)) continue;
    const double x = static_cast<double>(std::bit_cast<float>(known));
    const double y = static_cast<double>(std::bit_cast<float>(value));
    ratios[ordinary++] = static_cast<float>(y / x);
    products += x * y;
    squares += x * x;
  }
  if (ordinary < sample.count / 8) return 1.0f;
  std::sort(ratios.begin(), ratios.begin() + static_cast<std::ptrdiff_t>(ordinary));

  float nearest = 1.0f;
  std::uint64_t least = magnitude(sample, 1.0f);
  const auto try_scale = [&](float scale) {
    if (!is_scale(scale)) return;
    const std::uint64_t sum = magnitude(sample, scale);
    if (sum < least) {
      least = sum;
      nearest = scale;
    }
  };
  for (const std::size_t part : {1, 4, 8, 12, 15}) try_scale(ratios[ordinary * part / 16]);
  try_scale(static_cast<float>(products / squares));
  for (int step = kFirstStep; step <= kLastStep; ++step) {
    const float fraction = 1.0f / static_cast<float>(1u << step);
    const float from = nearest;
    try_scale(from * (1.0f + fraction));
    try_scale(from * (1.0f - fraction));
  }

  // A sixteenth of a bit an element, or the base as it is.
  std::uint64_t cheapest = plane_cost(sample, 1.0f);
  const std::uint64_t worth = sample.count * (std::uint64_t{1} << 12) / 16;
  cheapest -= std::min(cheapest, worth);
  float best = 1.0f;
  const auto offer = [&](float scale) {
    const std::uint64_t cost = plane_cost(sample, scale);
    if (cost < cheapest) {
      cheapest = cost;
      best = scale;
    }
  };
  offer(nearest);
  for (const float decay : kDecays) offer(decay);
  return best;
}

}  // namespace quern::codec::tensor
