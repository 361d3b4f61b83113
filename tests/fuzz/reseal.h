// Gives a damaged stream valid checksums again, so that its damage reaches the code behind them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <quern/memory.h>

namespace quern::fuzz {

/// The stream with header, segment and trailer checks recomputed as far as its structure can still be followed. What
/// cannot be followed is left as it is.
Vector<std::uint8_t> reseal(std::span<const std::uint8_t> stream);

}  // namespace quern::fuzz
