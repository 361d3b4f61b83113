// A run of values of one type as bytes: what the codec for records and the codec for arrays have in common.
//
//   mode u8
//   0 exact       words: the values' bits (packed_words.h)
//   1 quantized   count varint | gaps varint each | values that the quantizer refuses | words: codes of the quantizer
//
// A gap is the number of values between a refused one and the one before it. The code of a refused value is that of the
// value before it, 0 for the first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/bound.h>
#include <quern/dtype.h>
#include <quern/status.h>

#include "examples/codec/packed_words.h"

namespace quern::codec::packing {

/// What is known of a run of values by who writes and who reads it.
struct ValueRun {
  DType dtype = DType::f32;
  EnforcedBound bound;
  Packing packing;
};

/// Writes the run to the start of `out` and returns its bytes; 0 when they do not fit. Keeps the bound, and every bit
/// of NaN, infinities, -0, integers, and types that are not quantized. May throw std::bad_alloc.
std::size_t encode_values(const ValueRun& run, std::span<const std::uint8_t> in, std::span<std::uint8_t> out);

/// Most bytes that encode_values wants for a run of so many bytes.
std::uint64_t most_encoded_bytes(const ValueRun& run, std::uint64_t bytes);

/// Fills `out`, whose size says how many values there are, from hostile bytes. May throw std::bad_alloc.
Status decode_values(const ValueRun& run, std::span<const std::uint8_t> in, std::span<std::uint8_t> out);

/// Memory that either takes beside its arguments.
std::uint64_t working_bytes_of_values(std::uint64_t bytes);

}  // namespace quern::codec::packing
