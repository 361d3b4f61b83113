// Weights by multiplicative updates: they stay non-negative, and every round needs one pass over the samples.
#include "codecs/stencil/wavelet/fit.h"

#include <algorithm>
#include <cmath>

namespace quern::codec::stencil {
namespace {

constexpr double kFloor = 0x1p-13;  // of an expected magnitude

std::uint16_t fixed(double w) {
  const double scaled = w * (1u << kWaveletContextBits);
  return static_cast<std::uint16_t>(scaled < kMaxWaveletWeight ? std::lrint(scaled) : long{kMaxWaveletWeight});
}

}  // namespace

void WaveletSamples::add(std::size_t group, const std::array<std::uint32_t, kWaveletFeatures>& features,
                         std::uint32_t magnitude, float weight) {
  const bool quiet = std::all_of(features.begin(), features.end(), [](std::uint32_t f) { return f == 0; });
  if (quiet) {
    quiet_[group].count += double{weight};
    quiet_[group].sum += double{weight} * magnitude;
    return;
  }
  if (blocks_.empty() || blocks_.back().group != group || blocks_.back().filled == kernels::kSampleBlock) {
    blocks_.emplace_back();
    blocks_.back().group = group;
  }
  Block& block = blocks_.back();
  float* const at = block.rows.data() + block.filled++;
  for (std::size_t f = 0; f < kWaveletFeatures; ++f) at[f * kernels::kSampleBlock] = static_cast<float>(features[f]);
  at[kWaveletFeatures * kernels::kSampleBlock] = static_cast<float>(magnitude);
  at[(kWaveletFeatures + 1) * kernels::kSampleBlock] = weight;
}

void WaveletSamples::fit(const kernels::StencilKernels& kernels, std::size_t rounds, bool again, bool contexts,
                         WaveletWeights& weights, std::uint16_t* constants) const {
  const std::size_t groups = quiet_.size();
  struct Sums {
    double wanted = 0;
    double given = 0;
  };
  std::array<double, kWaveletFeatures> w{};
  w.fill(0.06);
  Vector<double> c(groups, 0.02);
  Vector<Sums> group_sums(groups);
  if (again) {
    constexpr double kUnit = 1.0 / (1u << kWaveletContextBits);
    for (std::size_t f = 0; f < kWaveletFeatures; ++f) w[f] = (weights[f] + 0.5) * kUnit;
    for (std::size_t g = 0; g < groups; ++g) c[g] = (constants[g] + 0.5) * kUnit;
  }
  if (!contexts) w.fill(0);
  for (std::size_t round = 0; round < rounds; ++round) {
    // Of each feature what is wanted and what is given, then the same of a group.
    std::array<double, 2 * kWaveletFeatures + 2> sums{};
    std::fill(group_sums.begin(), group_sums.end(), Sums{});
    for (const Block& block : blocks_) {
      kernels.fit.ratio_sums(block.rows.data(), kWaveletFeatures, w.data(), c[block.group], kFloor, sums.data());
      group_sums[block.group].wanted += sums[2 * kWaveletFeatures];
      group_sums[block.group].given += sums[2 * kWaveletFeatures + 1];
      sums[2 * kWaveletFeatures] = 0;
      sums[2 * kWaveletFeatures + 1] = 0;
    }
    for (std::size_t g = 0; g < groups; ++g) {
      const double expected = c[g] > kFloor ? c[g] : kFloor;
      const double weight = 1 / (expected * (expected + 0.5));
      const double wanted = group_sums[g].wanted + weight * quiet_[g].sum;
      const double given = group_sums[g].given + weight * quiet_[g].count * expected;
      if (given > 0) c[g] = c[g] * (wanted / given);
    }
    for (std::size_t f = 0; f < kWaveletFeatures; ++f)
      w[f] = sums[2 * f + 1] > 0 ? w[f] * (sums[2 * f] / sums[2 * f + 1]) : 0;
  }
  for (std::size_t f = 0; f < kWaveletFeatures; ++f) weights[f] = fixed(w[f]);
  for (std::size_t g = 0; g < groups; ++g) constants[g] = fixed(c[g]);
}

}  // namespace quern::codec::stencil
