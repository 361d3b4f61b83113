// Fitting the weights of contexts in wavelet bands.
#pragma once

#include <array>
#include <cstdint>

#include <quern/memory.h>

#include "codecs/stencil/wavelet/context.h"

namespace quern::codec::stencil {

/// Magnitudes with the features of their contexts. Where all features are 0, only counts are kept.
class WaveletSamples {
 public:
  explicit WaveletSamples(std::size_t groups) : quiet_(groups) {}

  /// A magnitude that stands for `weight` of them; features[f] is a feature's value.
  void add(std::size_t group, const std::array<std::uint32_t, kWaveletFeatures>& features, std::uint32_t magnitude,
           float weight);
  /// Finds weights such that expected magnitudes are proportionally near to those seen; constants has one for each
  /// group. With `again`, begins from the weights of similar samples; without `contexts`, all weights are 0. Binary64
  /// in a fixed order.
  void fit(const kernels::StencilKernels& kernels, std::size_t rounds, bool again, bool contexts,
           WaveletWeights& weights, std::uint16_t* constants) const;

 private:
  /// Samples of one group: a row for each feature, their magnitudes, their weights; 0 behind them.
  struct Block {
    std::array<float, (kWaveletFeatures + 2) * kernels::kSampleBlock> rows{};
    std::size_t group = 0;
    std::size_t filled = 0;
  };
  struct Quiet {
    double count = 0;
    double sum = 0;
  };
  Vector<Block> blocks_;
  Vector<Quiet> quiet_;
};

}  // namespace quern::codec::stencil
