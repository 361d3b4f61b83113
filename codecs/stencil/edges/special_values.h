// What special elements, which have no code, are taken for by those around them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "codecs/stencil/levels/value_format.h"
#include "kernels/entropy/cpu/decode_streams.h"

namespace quern::codec::stencil {

/// Keeps the predictions of a row's special elements, those of kNoContextBin, within the range of the others, so that no
/// value is wider than that.
template <class Predicted>
void limit_special(const std::uint8_t* contexts, std::size_t columns, const LevelsValueFormat& format,
                   Predicted* predicted) {
  for (std::size_t x = 0; x < columns; ++x)
    if (contexts[x] == kernels::kNoContextBin)
      predicted[x] = static_cast<Predicted>(std::clamp<std::int64_t>(predicted[x], format.low, format.high));
}

}  // namespace quern::codec::stencil
