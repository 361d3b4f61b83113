// Bits that a test wants to flip while kernels run (simt::plan_flips).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/simt/simt.h"

namespace simt {

/// What a flip may hit at a moment besides device memory.
struct FlipReach {
  unsigned char* shared = nullptr;  ///< of a CTA
  std::size_t shared_bytes = 0;
  const unsigned char* shared_before = nullptr;  ///< what shared memory held when the CTA began
  /// Values that lanes have brought to a collective operation.
  std::vector<std::uint64_t*> exchanged;
  unsigned exchanged_bits = 0;
};

/// Whether flips are left; else moments need not be described.
bool flips_left();
/// One more moment has passed, or a launch has begun.
void pass_moment();
void pass_launch();
/// The host has copied so many bytes to device memory.
void note_upload(unsigned char* to, std::size_t bytes);
/// Flips what is due at the moment, as far as it is within reach; the rest waits for the next moment.
void flip_what_is_due(const FlipReach& reach);

}  // namespace simt
