// What layouts that predict store first: the format of values, and the precision of the weights of predictions.
#pragma once

#include "coding/value_format.h"

namespace quern::codec::stencil {

inline constexpr unsigned kMinWeightBits = 8;  ///< fraction bits of weights
inline constexpr unsigned kMaxWeightBits = 16;

struct PredictionFormat : coding::ValueFormat {
  unsigned weight_bits = 0;  ///< fraction bits of weights
  bool masked = false;       ///< the segment has a mask
};

/// Stores all but `masked`, whose place differs.
inline void write_prediction_format(const PredictionFormat& format, BitWriter& writer) {
  coding::write_value_format(format, writer);
  writer.put(format.weight_bits - kMinWeightBits, 4);
}
/// False when a number is out of its range.
[[nodiscard]] inline bool read_prediction_format(BitReader& reader, PredictionFormat& format) {
  const bool good = coding::read_value_format(reader, format);
  format.weight_bits = static_cast<unsigned>(reader.get(4)) + kMinWeightBits;
  return good && format.weight_bits <= kMaxWeightBits;
}

}  // namespace quern::codec::stencil
