// How much time encoders spend on the fits of an array's chunks.
#pragma once

#include <cstdint>

#include <quern/codec.h>

namespace quern::codec::stencil {

enum class Effort : std::uint8_t {
  high,    ///< every fit that saves bytes
  medium,  ///< half of the time of `high`, up to one per cent more bytes
  low,     ///< required fits only
  lowest,  ///< as low, minus fits with poor gain per time
};

/// Large arrays get less effort a chunk: fits at `high` would take as long as coding.
inline Effort effort_of(const PlanRequest& request) {
  constexpr std::uint64_t kMany = UINT64_C(1) << 22;  // elements: two full chunks
  const bool many = request.shape.elems() > kMany;
  if (request.goal == "speed") return many ? Effort::lowest : Effort::low;
  return many ? Effort::medium : Effort::high;
}

}  // namespace quern::codec::stencil
