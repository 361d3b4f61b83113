// Weights by multiplicative updates: they stay non-negative, and every round needs one pass over the samples.
#include "codecs/stencil/wavelet_fit.h"

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
  Sample sample;
  for (std::size_t f = 0; f < kWaveletFeatures; ++f) sample.features[f] = static_cast<float>(features[f]);
  sample.magnitude = static_cast<float>(magnitude);
  sample.weight = weight;
  sample.group = static_cast<std::uint32_t>(group);
  samples_.push_back(sample);
}

void WaveletSamples::fit(std::size_t rounds, bool again, bool contexts, WaveletWeights& weights,
                         std::uint16_t* constants) const {
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
    std::array<Sums, kWaveletFeatures> sums{};
    std::fill(group_sums.begin(), group_sums.end(), Sums{});
    for (const Sample& s : samples_) {
      double expected = c[s.group];
      for (std::size_t f = 0; f < kWaveletFeatures; ++f) expected += w[f] * double{s.features[f]};
      expected = expected > kFloor ? expected : kFloor;
      const double weight = double{s.weight} / (expected * (expected + 0.5));
      const double wanted = weight * double{s.magnitude};
      const double given = weight * expected;
      for (std::size_t f = 0; f < kWaveletFeatures; ++f) {
        sums[f].wanted += wanted * double{s.features[f]};
        sums[f].given += given * double{s.features[f]};
      }
      group_sums[s.group].wanted += wanted;
      group_sums[s.group].given += given;
    }
    for (std::size_t g = 0; g < groups; ++g) {
      const double expected = c[g] > kFloor ? c[g] : kFloor;
      const double weight = 1 / (expected * (expected + 0.5));
      const double wanted = group_sums[g].wanted + weight * quiet_[g].sum;
      const double given = group_sums[g].given + weight * quiet_[g].count * expected;
      if (given > 0) c[g] = c[g] * (wanted / given);
    }
    for (std::size_t f = 0; f < kWaveletFeatures; ++f)
      w[f] = sums[f].given > 0 ? w[f] * (sums[f].wanted / sums[f].given) : 0;
  }
  for (std::size_t f = 0; f < kWaveletFeatures; ++f) weights[f] = fixed(w[f]);
  for (std::size_t g = 0; g < groups; ++g) constants[g] = fixed(c[g]);
}

}  // namespace quern::codec::stencil
