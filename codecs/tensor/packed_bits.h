// Lists of numbers beside a tensor's symbols (means, levels), packed as bits.
#pragma once

#include <cstdint>
#include <span>

#include "libcompress/format/bit_stream.h"

namespace quern::codec::tensor {

inline constexpr unsigned kMostGolombWidth = 30;  ///< for readers: numbers are below 2^31
inline constexpr unsigned kOrderBits = 4;

/// Signed numbers of magnitude below 2^28: in 4 bits the Golomb order that makes them shortest, then the zigzag code of
/// the difference of each to `center`.
void put_numbers(std::span<const std::int32_t> numbers, std::int32_t center, BitWriter& writer);
/// Reads as many as fit `numbers`; the reader remembers what was wrong.
void get_numbers(std::span<std::int32_t> numbers, std::int32_t center, BitReader& reader);

}  // namespace quern::codec::tensor
