// A tensor's quantized residuals as a plane of rows and columns: how large residuals are differs from row to row and
// from column to column far more than between neighbours, so a residual's table is chosen by a level of its row (stored
// in the chunk) and one of its column (stored in the tensor's side). Within a chunk eight rANS states take turns.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/tensor/bounded/chunk_scratch.h"
#include "codecs/tensor/description.h"
#include "codecs/tensor/packed_bits.h"
#include "codecs/tensor/residuals/residual_table.h"

namespace quern::codec::tensor {

/// Elements in a row of the plane: the product of as few trailing extents as give 64 or more, the first axis left out;
/// 256 where that gives none.
std::uint64_t plane_width(const TensorDescription& description);

/// Where a chunk lies in the plane.
struct PlanePiece {
  std::uint64_t first = 0;  ///< index of its first element
  std::size_t elems = 0;
  std::uint64_t width = 1;

  std::uint64_t column() const { return first % width; }  ///< of the first element
  std::size_t rows() const { return static_cast<std::size_t>((column() + elems + width - 1) / width); }
};

/// Calls body(row, column, begin, end) for each row of a piece: elements begin .. end - 1 lie in columns column, ...
template <class Body>
void for_rows(const PlanePiece& piece, const Body& body) {
  std::size_t row = 0;
  std::uint64_t column = piece.column();
  for (std::size_t begin = 0; begin < piece.elems; ++row) {
    const auto end = static_cast<std::size_t>(std::min<std::uint64_t>(piece.elems, begin + (piece.width - column)));
    body(row, static_cast<std::size_t>(column), begin, end);
    begin = end;
    column = 0;
  }
}

inline constexpr unsigned kLevels = 128;                                   ///< of rows, in quarters of an octave
inline constexpr unsigned kContexts = kernels::kTensorContexts;            ///< half octaves
inline constexpr std::uint64_t kMaxPlaneColumns = std::uint64_t{1} << 20;  ///< wider planes have no levels of columns

/// What all chunks of a tensor share.
struct ResidualModel {
  bool row_levels = false;
  Vector<std::int32_t> column_levels;  ///< added to a row's, in quarters of an octave; empty: none
  std::uint8_t base_level = 0;         ///< of rows that have none of their own
  std::array<std::uint8_t, kContexts> table_of{};
  Vector<Frequencies> tables;
};

/// One chunk of those that a model is fitted to. Special elements have residual 0.
struct ResidualSample {
  PlanePiece piece;
  std::span<const std::int32_t> residuals;
};

/// Fits a model to some chunks of a tensor; integers only, depends on the residuals alone, all below 2^30 in magnitude.
/// Returns the bits that these chunks take, about.
Result<std::uint64_t> fit_residuals(std::span<const ResidualSample> samples, std::uint64_t width, ResidualModel& model);

void put_model(const ResidualModel& model, BitWriter& writer);
Status get_model(BitReader& reader, std::uint64_t width, ResidualModel& model);

/// What the two functions below take of their scratch, which the caller has reserved, in three pieces.
std::size_t encoder_scratch_bytes(std::size_t elems);
std::size_t decoder_scratch_bytes(std::size_t elems);

/// Encodes a chunk: appends levels of its rows to `head` and returns states and words, which follow, in the scratch.
/// `special` names elements that are not coded, ascending. What `residuals` holds is lost.
std::span<const std::uint8_t> encode_residuals(const ResidualModel& model, const PlanePiece& piece,
                                               std::span<std::int32_t> residuals,
                                               std::span<const std::uint32_t> special, ChunkScratch& scratch,
                                               Vector<std::uint8_t>& head);
/// Reads what encode_residuals gave, all of `bytes`; special elements get 0.
Status decode_residuals(const ResidualModel& model, const PlanePiece& piece, std::span<const std::uint8_t> bytes,
                        std::span<const std::uint32_t> special, ChunkScratch& scratch,
                        std::span<std::int32_t> residuals);

}  // namespace quern::codec::tensor
