// Reed-Solomon over GF(2^8), polynomial 0x11D: columns of equal length, `parity` of them made from `data`. Row i of the
// coding matrix is 1 / ((data + i) xor j) (a Cauchy matrix), so that every square part of it can be inverted.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

namespace quern::storage {

/// False in a build without ISA-L; the functions below then fail with `unsupported`.
bool has_erasure_coding();

/// columns[0 .. data) are read, columns[data .. data + parity) written; each has `bytes`.
Status make_parity(std::uint32_t data, std::uint32_t parity, std::size_t bytes, std::span<std::uint8_t* const> columns);

/// Rebuilds the columns that `lost` marks from the others. At most `parity` may be lost.
Status rebuild_columns(std::uint32_t data, std::uint32_t parity, std::size_t bytes,
                       std::span<std::uint8_t* const> columns, std::span<const bool> lost);

}  // namespace quern::storage
