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

/// What was asked for, from 1 to 9; the goal speed stands for 1.
///
/// | number | fits, arrays of up to 2^22 elements | larger ones | transform | layouts are compared              |
/// |--------|-------------------------------------|-------------|-----------|-----------------------------------|
/// | 1      | low                                 | lowest      | no        | on one box                        |
/// | 2      | low                                 | low         | no        | on one box                        |
/// | 3      | medium                              | medium      | no        | on one box                        |
/// | 4      | high                                | medium      | yes       | on one box                        |
/// | 5      | high                                | medium      | yes       | whole up to 2^20, else blocks     |
/// | 6      | high                                | medium      | yes       | whole up to 2^22, else blocks     |
/// | 7      | high                                | medium      | yes       | whole up to 2^24 (*), else blocks |
/// | 8, 9   | high                                | high        | yes       | whole up to 2^24 (*), else blocks |
///
/// (*) and 64 MiB, which is what a plan sees of an array.
///
/// At 9 the pipeline encodes the array once under each of the codec's alternatives, whatever its size.
inline unsigned effort_number(const PlanRequest& request) { return request.goal == "speed" ? 1 : request.effort; }

/// Large arrays get less effort a chunk: fits at `high` would take as long as coding.
inline Effort effort_of(const PlanRequest& request) {
  constexpr std::uint64_t kMany = UINT64_C(1) << 22;  // elements: two full chunks
  const bool many = request.shape.elems() > kMany;
  switch (effort_number(request)) {
    case 1: return many ? Effort::lowest : Effort::low;
    case 2: return Effort::low;
    case 3: return Effort::medium;
    case 8:
    case 9: return Effort::high;
    default: return many ? Effort::medium : Effort::high;
  }
}

/// Fits are brief, in trials too.
inline bool wants_speed(const PlanRequest& request) { return effort_number(request) <= 2; }
/// The transform may be taken where something else may, too.
inline bool tries_transform(const PlanRequest& request) { return effort_number(request) >= 4; }
/// Arrays of at most so many elements are encoded under every layout; 0: one box decides.
inline std::uint64_t most_encoded_whole(const PlanRequest& request) {
  const unsigned number = effort_number(request);
  return number < 5 ? 0 : UINT64_C(1) << (number == 5 ? 20 : number == 6 ? 22 : 24);
}

}  // namespace quern::codec::stencil
