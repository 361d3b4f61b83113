// Gives a damaged stream of records valid checksums again, as reseal.h does for arrays.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>

namespace quern::fuzz {

/// The stream with the checks of header, parts, segments and trailer recomputed as far as its structure can still be
/// followed. What cannot be followed is left as it is.
Vector<std::uint8_t> reseal_records(std::span<const std::uint8_t> stream);

}  // namespace quern::fuzz
