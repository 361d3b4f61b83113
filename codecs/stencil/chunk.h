// One chunk to bytes and back. The stored form is specified in docs/format-stencil.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <quern/codec.h>
#include <quern/dtype.h>
#include <quern/status.h>

#include "codecs/stencil/effort.h"
#include "codecs/stencil/fitted_parts.h"
#include "codecs/stencil/levels/form.h"
#include "codecs/stencil/networks/chunk_networks.h"
#include "coding/box_rows.h"
#include "kernels/stencil/cpu/stencil.h"
#include "kernels/stencil/taps.h"

namespace quern::codec::stencil {

/// First byte of a chunk.
enum class Mode : std::uint8_t {
  raw = 0,           ///< the elements, little-endian
  constant = 1,      ///< one element
  raster = 2,        ///< model, exceptions, residuals in streams
  levels = 3,        ///< the same, coarse to fine
  wavelet = 4,       ///< quantized coefficients of a transform, and corrections
  lattice = 5,       ///< a chunk of integers that number places of a lattice
  prequantized = 6,  ///< a chunk of codes of the elements, and elements that have none
  differences = 7,   ///< a chunk of what elements differ by from those of a reference
  beside = 8,        ///< residuals in streams, coarse to fine, beside a reference
  levels_edges = 9,  ///< as levels, with groups that are not linear
};

/// Whether chunks that begin with that byte can only be decoded beside a reference.
constexpr bool needs_reference(std::uint8_t mode) {
  return mode == static_cast<std::uint8_t>(Mode::differences) || mode == static_cast<std::uint8_t>(Mode::beside);
}

/// Whether chunks that begin with that byte may be the integers of a chunk on a lattice, or the codes of prequantized
/// elements.
constexpr bool may_be_inside(std::uint8_t mode) {
  return mode < static_cast<std::uint8_t>(Mode::lattice) || mode == static_cast<std::uint8_t>(Mode::levels_edges);
}

/// What all chunks of an array share, for decoders and encoders.
struct ChunkSpec {
  DType dtype = DType::f32;
  std::array<std::uint64_t, 3> most{1, 1, 1};  ///< extents of a full chunk
  const kernels::StencilKernels* kernels = nullptr;
  LevelsForm form;  ///< encoders code all chunks in levels, or under the transform, where they may be so
  const ChunkNetworks* networks = nullptr;  ///< of the model that the stream names; null: it names none

  std::size_t raw_bytes() const { return static_cast<std::size_t>(most[0] * most[1] * most[2]) * dtype_bytes(dtype); }
};

/// What an encoder is asked for and chooses; no decoder knows it.
struct EncoderChoices {
  double bound = 0;
  bool for_psnr = false;        ///< what counts is the PSNR for the bytes, not the bytes under the bound
  std::uint8_t tightening = 0;  ///< of levels: row of kLevelSteps
  FittedParts parts = {};
  Effort effort = Effort::high;  ///< of fits
  bool quick_estimate = false;   ///< estimate by order-0 entropy alone, to rule layouts out
  /// Estimates in raster order and under the transform are given up where codes or coefficients take more bits, in
  /// units of 2^-12, by their order-0 entropy: the chunk then costs what its elements do.
  std::uint64_t most_plain = UINT64_MAX;
  /// Estimates under the transform try this one alone, as ChunkCost told it.
  std::optional<std::uint8_t> transform = std::nullopt;
  bool prequantized = false;  ///< see PlanRequest::prequantized
};

/// What chunks are encoded by.
struct EncodeSpec : ChunkSpec, EncoderChoices {};

/// Bytes before the chunk of integers in one on a lattice: the mode, origin and spacing.
constexpr std::size_t kLatticeHead = 1 + 2 * sizeof(double);

/// A chunk takes no more bytes than a mode and its elements; encoders want room for a trial on a lattice, and for codes
/// of prequantized elements, which may be wider than these, behind elements that have none.
inline std::size_t max_chunk_bytes(const EncodeSpec& spec) {
  const std::size_t elements = kLatticeHead + 1 + spec.raw_bytes();
  if (!spec.prequantized) return elements;
  const std::size_t elems = spec.raw_bytes() / dtype_bytes(spec.dtype);
  return 2 * elements + 4 * elems + 64;
}

std::size_t encode_scratch_bytes(const EncodeSpec& spec);
/// Writes at most max_chunk_bytes to `out` and returns the count. `in` is no larger than spec.most along any axis.
/// May throw std::bad_alloc.
Result<std::size_t> encode_chunk(const EncodeSpec& spec, const ConstBox3& in, std::span<std::uint8_t> out,
                                 std::span<std::uint8_t> scratch);

std::size_t decode_scratch_bytes(const ChunkSpec& spec);
/// Fills `out` or fails with `corrupt`; uses every byte of `in`.
Status decode_chunk(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& out,
                    std::span<std::uint8_t> scratch);

/// Estimated bits of a chunk, in units of 2^-12.
struct ChunkCost {
  std::uint64_t residuals = 0;  ///< with exceptions: grows with the chunk
  std::uint64_t model = 0;      ///< weights and distributions: about the same in larger chunks
  std::uint64_t plain = 0;      ///< order-0 entropy of what the chunk is coded as, before contexts
  std::uint8_t transform = 0;   ///< which one it was, among those that the wavelet knows
};

/// What layouts are compared by, after fitting. Needs encode_scratch_bytes.
Result<ChunkCost> estimate_chunk(const EncodeSpec& spec, const ConstBox3& in, std::span<std::uint8_t> scratch);

using coding::row_offset;
using coding::special_row;

}  // namespace quern::codec::stencil
