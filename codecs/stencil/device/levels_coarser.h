// All levels of a chunk but the finest, coded by the host where a device codes that one.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include <quern/codec.h>
#include <quern/memory.h>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/levels/model.h"
#include "coding/distribution_fit.h"

namespace quern::codec::stencil {

/// Chooses the format of a chunk that is coded in levels and has no lattice, and tells whether its values are narrow.
/// False when it takes another form, or only encode_chunk can say. Needs encode_scratch_bytes.
bool choose_levels_format(const EncodeSpec& spec, const ConstBox3& in, std::span<std::uint8_t> scratch,
                          LevelsValueFormat& format, bool& narrow);

struct CoarserLevels {
  LevelsModel model;  ///< without memory for predictors
  Vector<Predictor> predictors;
  coding::BinCounts counts{};                    ///< of symbols
  std::array<std::uint64_t, kMaxLevels> bits{};  ///< about what each level takes
  Vector<std::int32_t> codes;                    ///< in the order of coding, and symbols
  Vector<std::uint16_t> symbols;
  Vector<std::pair<std::uint64_t, std::uint64_t>> exceptions;  ///< number in C order, and bits
  Vector<double> values;                                       ///< of class 0 of the finest level, row after row
  Vector<std::uint32_t> magnitudes;
};

/// Codes them by the rules of encode_levels; the chunk has more than one level. May throw std::bad_alloc.
bool code_coarser_levels(const EncodeSpec& spec, const ConstBox3& in, const LevelsValueFormat& format, bool narrow,
                         std::span<std::uint8_t> scratch, CoarserLevels& out);

}  // namespace quern::codec::stencil
