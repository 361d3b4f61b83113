// A sample of a class's codes, from which its context follows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/entropy/context_bin.h"
#include "kernels/interp/context_fit.h"
#include "kernels/interp/predict.h"

namespace quern::codec::interp {

class ContextFit {
 public:
  void add(const std::uint32_t* spread, const std::int32_t* codes, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      kernels::InterpFitBin& bin = bins_[kernels::context_bin(spread[i])];
      ++bin.count;
      bin.spread += spread[i];
      bin.magnitude += kernels::interp_magnitude(codes[i]);
    }
  }
  kernels::InterpContext fit() const {
    return kernels::interp_fit_context([&](std::size_t b) { return bins_[b]; });
  }

 private:
  std::array<kernels::InterpFitBin, kernels::kContextBins> bins_{};
};

}  // namespace quern::codec::interp
