// Frequencies of the symbols of residuals (kernels/tensor/residuals.h): fitted to counts, stored, made into tables
// for coders.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <quern/memory.h>

#include "codecs/tensor/packed_bits.h"
#include "kernels/tensor/residuals.h"

namespace quern::codec::tensor {

inline constexpr unsigned kTableBits = kernels::kTensorSumBits;
inline constexpr std::uint32_t kTableSum = kernels::kTensorSum;
inline constexpr unsigned kSignedSymbols = kernels::kSignedSymbols;  ///< zigzag codes of -15 .. 15
inline constexpr unsigned kEscape = kernels::kTensorEscape;
inline constexpr unsigned kSymbols = kernels::kTensorSymbols;

/// Behind those of the symbols there are zeros.
using SymbolCounts = std::array<std::uint32_t, kernels::kTensorPlaces>;
using Frequencies = std::array<std::uint16_t, kSymbols>;  ///< sum kTableSum; that of kEscape is never 0

/// Scales counts to frequencies that can be stored; depends on the counts alone.
void fit_frequencies(const SymbolCounts& counts, Frequencies& frequencies);
/// Bits, in units of 2^-12, that symbols with these counts take, open bits included.
std::uint64_t coded_cost(const SymbolCounts& counts, const Frequencies& frequencies);

void put_frequencies(const Frequencies& frequencies, BitWriter& writer);
/// False when what was read is no table.
bool get_frequencies(BitReader& reader, Frequencies& frequencies);

void make_encode_table(const Frequencies& frequencies, kernels::TensorEncodeTable& table);
void make_decode_table(const Frequencies& frequencies, kernels::TensorDecodeTable& table);

}  // namespace quern::codec::tensor
