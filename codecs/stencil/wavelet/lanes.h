// The lanes that codes of bands and corrections lie in: rows take turns.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>

#include "codecs/stencil/model/residual_symbols.h"
#include "libcompress/format/writer.h"

namespace quern::codec::stencil {

/// What an encoder puts into lanes: codes with their symbols, in rows.
struct CodedRows {
  Vector<std::uint32_t> ends;  ///< of each row, counted in codes
  const std::int32_t* codes = nullptr;
  const std::uint16_t* symbols = nullptr;
};

/// There are 2^this lanes for codes of about that many bytes.
unsigned wavelet_lane_bits(std::uint64_t bytes);

/// Appends lanes for codes of about that many bytes, by the entries of all levels; false when they do not fit into
/// `words`.
bool write_lanes(const CodedRows& rows, const ResidualEntries& entries, const kernels::StencilKernels& kernels,
                 std::uint64_t bytes, std::span<std::uint16_t> words, Writer& writer);

}  // namespace quern::codec::stencil
