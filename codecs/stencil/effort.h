// How much the fits of an array's chunks try.
#pragma once

#include <cstdint>

#include <quern/codec.h>

namespace quern::codec::stencil {

enum class Pace : std::uint8_t {
  thorough,  ///< all that gains bytes
  brisk,     ///< about half of its time, for up to one per cent more bytes
  quick,     ///< what nothing goes well without
  hasty,     ///< of that, what costs much for what it gains is left out, too
};

/// Where chunks are many a thorough fit of each would take as long as coding it.
inline Pace pace_of(const PlanRequest& request) {
  constexpr std::uint64_t kMany = UINT64_C(1) << 22;  // elements: two full chunks
  const bool many = request.shape.elems() > kMany;
  if (request.goal == "speed") return many ? Pace::hasty : Pace::quick;
  return many ? Pace::brisk : Pace::thorough;
}

}  // namespace quern::codec::stencil
