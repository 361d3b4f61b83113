// The format of values of a chunk in levels.
#pragma once

#include <cstdint>

#include "codecs/stencil/prediction_format.h"

namespace quern::codec::stencil {

struct LevelsValueFormat : PredictionFormat {
  LevelsValueFormat() = default;
  explicit LevelsValueFormat(const PredictionFormat& format) : PredictionFormat(format) {}

  std::int64_t low = 0;  ///< in units: what masked elements are kept within
  std::int64_t high = 0;
};

}  // namespace quern::codec::stencil
