// What the encoder of a chunk in levels works in, cut from scratch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/least_squares/sample_memory.h"
#include "codecs/stencil/levels/axes.h"
#include "codecs/stencil/levels/grid.h"
#include "codecs/stencil/levels/model.h"
#include "codecs/stencil/levels/sections.h"
#include "codecs/stencil/levels/sort.h"
#include "codecs/stencil/levels/walk.h"
#include "coding/symbol_counts.h"
#include "libcompress/core/arena.h"

namespace quern::codec::stencil {

/// What does not depend on how values are held.
struct LevelsCodesMemory {
  LevelsCodesMemory(Arena& arena, const LevelAxes& axes)
      : elems(axes.elems()),
        first(first_of_levels(axes)[0]),
        predictors(arena.take<Predictor>(LevelsModel::predictor_count(axes))),
        codes(arena.take<std::int32_t>(elems + kernels::kStencilBlock)),
        symbols(arena.take<std::uint16_t>(elems)),
        sorted_row(arena.take<std::uint32_t>(row_room(axes.extents[axes.rank - 1]))) {}

  std::size_t elems;
  std::size_t first;  ///< element of the finest level in the order of coding
  Predictor* predictors;
  std::int32_t* codes;     ///< of all levels in the order of coding, coarsest first, and room for a block
  std::uint16_t* symbols;  ///< in the same order, context bin * kernels::kTokenStride + token
  std::uint32_t* sorted_row;

  /// Where the finest level will have its symbols.
  struct BeforeSymbols {
    std::span<std::uint32_t> coarser;  ///< elements of the other levels; none if there is no room
    std::span<std::uint8_t> fits;
    std::span<std::uint8_t> samples;
  };
  BeforeSymbols before_symbols() const {
    BeforeSymbols result;
    std::span<std::uint8_t> room = lend(symbols + first, elems - first);
    const std::size_t skipped = first % 2 * sizeof(std::uint16_t);  // symbols are aligned
    if (skipped + first * sizeof(std::uint32_t) <= room.size()) {
      result.coarser = {reinterpret_cast<std::uint32_t*>(room.data() + skipped), first};
      room = room.subspan(skipped + first * sizeof(std::uint32_t));
    }
    const std::size_t fits = room.size() / 10 * 3;
    result.fits = room.first(fits);
    result.samples = room.subspan(fits);
    return result;
  }
  /// For the elements of a chunk, each of 4 bytes; those of the finest level lie where their codes will, but a block
  /// behind, as codes are written in blocks. None where they cannot be sorted.
  SortedElements sorted(const LevelsView& view) const {
    const std::span<std::uint32_t> coarser = before_symbols().coarser;
    if (!can_sort(view) || coarser.size() < first) return {};
    return {coarser.data(), reinterpret_cast<std::uint32_t*>(codes + first + kernels::kStencilBlock), sorted_row};
  }
};

/// Values are integers in binary64, or narrow.
template <class Value>
struct LevelsEncodeMemory : LevelsCodesMemory {
  LevelsEncodeMemory(Arena& arena, const LevelAxes& axes, const EncodeSpec& spec)
      : LevelsEncodeMemory(arena, axes, spec, row_room(axes.extents[axes.rank - 1])) {}

  double* originals;        ///< of a row
  std::int64_t* targets;    ///< the same in units
  double* predicted;        ///< of a row
  std::int64_t* numbers;    ///< the same as integers
  std::uint8_t* levels;     ///< of contexts of a row
  std::uint32_t* contexts;  ///< their sums
  std::uint32_t* spread;
  coding::SymbolCounts counts;  ///< of a level
  RowPredictorOf<Value> predictor;
  std::size_t grid_begin;
  LevelGridOf<Value> grid;
  SectionWriter sections;  ///< its words lie where the grid is, which is no longer wanted when they are written
  std::uint8_t* special;   ///< in the order of coding; last, as it is seldom touched

 private:
  LevelsEncodeMemory(Arena& arena, const LevelAxes& axes, const EncodeSpec& spec, std::size_t row)
      : LevelsCodesMemory(arena, axes),
        originals(arena.take<double>(row)),
        targets(arena.take<std::int64_t>(row + kernels::kStencilBlock)),
        predicted(arena.take<double>(row)),
        numbers(arena.take<std::int64_t>(row)),
        levels(arena.take<std::uint8_t>(row)),
        contexts(arena.take<std::uint32_t>(row)),
        spread(arena.take<std::uint32_t>(row)),
        counts(arena),
        predictor(arena, axes.extents[axes.rank - 1]),
        grid_begin(arena.used()),
        grid(arena, axes, spec.networks != nullptr),
        sections(arena, arena.share<std::uint16_t>(grid_begin, SectionWriter::room(spec.raw_bytes())), spec.raw_bytes(),
                 spec.kernels),
        special(arena.take<std::uint8_t>(elems)) {}
};

}  // namespace quern::codec::stencil
