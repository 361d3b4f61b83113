// What a coded chunk begins with: the format of its values, the contexts of its classes, and the distributions.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/interp/rules.h"
#include "coding/distributions.h"
#include "coding/value_format.h"
#include "kernels/interp/predict.h"

namespace quern::codec::interp {

using Contexts = std::array<std::array<kernels::InterpContext, kernels::kInterpClasses>, kernels::kInterpMaxTileLog>;

struct ChunkHead {
  coding::ValueFormat values;
  Contexts contexts{};  ///< by level and class less one
  coding::Distributions distributions{};
};

inline constexpr unsigned kContextWeightBits = 12;
inline constexpr unsigned kContextFloorBits = 16;

inline void write_head(const ChunkHead& head, const kernels::InterpTile& tile, Vector<std::uint8_t>& out) {
  BitWriter writer(out);
  coding::write_value_format(head.values, writer);
  for_classes(tile, [&](unsigned level, unsigned c) {
    writer.put(head.contexts[level][c - 1].weight, kContextWeightBits);
    writer.put(head.contexts[level][c - 1].floor, kContextFloorBits);
  });
  coding::write_distributions(head.distributions, writer);
}

/// Takes it off the front of `in`.
inline Status read_head(std::span<const std::uint8_t>& in, const kernels::InterpTile& tile, ChunkHead& head) {
  BitReader reader(in);
  if (!coding::read_value_format(reader, head.values))
    return Status(StatusCode::corrupt, "interp: base or step of a chunk is no number");
  for_classes(tile, [&](unsigned level, unsigned c) {
    head.contexts[level][c - 1].weight = static_cast<std::uint16_t>(reader.get(kContextWeightBits));
    head.contexts[level][c - 1].floor = static_cast<std::uint16_t>(reader.get(kContextFloorBits));
  });
  QUERN_RETURN_IF_ERROR(coding::read_distributions(reader, head.distributions));
  if (reader.failed()) return Status(StatusCode::corrupt, "interp: a chunk ends in its head");
  in = in.subspan(reader.bytes_used());
  return {};
}

}  // namespace quern::codec::interp
