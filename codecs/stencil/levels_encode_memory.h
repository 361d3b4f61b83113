// What the encoder of a chunk in levels works in, cut from scratch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "codecs/stencil/carver.h"
#include "codecs/stencil/chunk.h"
#include "codecs/stencil/levels_axes.h"
#include "codecs/stencil/levels_grid.h"
#include "codecs/stencil/levels_model.h"
#include "codecs/stencil/levels_sections.h"
#include "codecs/stencil/levels_walk.h"
#include "codecs/stencil/sample_memory.h"
#include "codecs/stencil/symbol_counts.h"

namespace quern::codec::stencil {

/// Values are integers in binary64, or narrow.
template <class Value>
struct LevelsEncodeMemory {
  LevelsEncodeMemory(Carver& carver, const LevelAxes& axes, const ChunkSpec& spec)
      : LevelsEncodeMemory(carver, axes, spec, row_room(axes.extents[axes.rank - 1])) {}

  std::size_t elems;
  Predictor* predictors;
  std::int32_t* codes;      ///< of all levels in the order of coding, coarsest first, and room for a block
  std::uint16_t* symbols;   ///< in the same order, context level * kTokenPlaces + token
  double* originals;        ///< of a row
  std::int64_t* targets;    ///< the same in units
  double* predicted;        ///< of a row
  std::int64_t* numbers;    ///< the same as integers
  std::uint8_t* levels;     ///< of contexts of a row
  std::uint32_t* contexts;  ///< their sums
  std::uint32_t* spread;
  SymbolCounts counts;  ///< of a level
  RowPredictorOf<Value> predictor;
  std::size_t grid_begin;
  LevelGridOf<Value> grid;
  SectionWriter sections;  ///< its words lie where the grid is, which is no longer wanted when they are written
  std::uint8_t* special;   ///< in the order of coding; last, as it is seldom touched

  /// What nobody uses before the finest level is coded; it has the codes from `first` on.
  std::span<std::uint8_t> before_finest_codes(std::size_t first) {
    const std::size_t behind = std::min(first + kernels::kStencilBlock, elems);
    return lend(codes + behind, elems - behind);
  }
  /// What nobody uses before it has symbols.
  std::span<std::uint8_t> before_finest_symbols(std::size_t first) { return lend(symbols + first, elems - first); }

 private:
  LevelsEncodeMemory(Carver& carver, const LevelAxes& axes, const ChunkSpec& spec, std::size_t row)
      : elems(axes.elems()),
        predictors(carver.take<Predictor>(LevelsModel::predictor_count(axes))),
        codes(carver.take<std::int32_t>(elems + kernels::kStencilBlock)),
        symbols(carver.take<std::uint16_t>(elems)),
        originals(carver.take<double>(row)),
        targets(carver.take<std::int64_t>(row + kernels::kStencilBlock)),
        predicted(carver.take<double>(row)),
        numbers(carver.take<std::int64_t>(row)),
        levels(carver.take<std::uint8_t>(row)),
        contexts(carver.take<std::uint32_t>(row)),
        spread(carver.take<std::uint32_t>(row)),
        counts(carver),
        predictor(carver),
        grid_begin(carver.used()),
        grid(carver, axes),
        sections(carver, carver.share<std::uint16_t>(grid_begin, SectionWriter::room(spec.raw_bytes())),
                 spec.raw_bytes(), spec.kernels),
        special(carver.take<std::uint8_t>(elems)) {}
};

}  // namespace quern::codec::stencil
