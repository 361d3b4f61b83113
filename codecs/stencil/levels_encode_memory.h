// What the encoder of a chunk in levels works in, cut from scratch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codecs/stencil/carver.h"
#include "codecs/stencil/chunk.h"
#include "codecs/stencil/levels_axes.h"
#include "codecs/stencil/levels_grid.h"
#include "codecs/stencil/levels_model.h"
#include "codecs/stencil/levels_sections.h"
#include "codecs/stencil/levels_walk.h"
#include "codecs/stencil/symbol_counts.h"

namespace quern::codec::stencil {

/// Values are integers in binary64, or narrow.
template <class Value>
struct LevelsEncodeMemory {
  LevelsEncodeMemory(Carver& carver, const LevelAxes& axes, const ChunkSpec& spec)
      : elems(axes.elems()),
        predictors(carver.take<Predictor>(LevelsModel::predictor_count(axes))),
        special(carver.take<std::uint8_t>(elems)),
        codes(carver.take<std::int32_t>(elems + kernels::kStencilBlock)),
        symbols(carver.take<std::uint16_t>(elems)),
        originals(carver.take<double>(row_room(axes.extents[axes.rank - 1]))),
        targets(carver.take<std::int64_t>(row_room(axes.extents[axes.rank - 1]) + kernels::kStencilBlock)),
        predicted(carver.take<double>(row_room(axes.extents[axes.rank - 1]))),
        numbers(carver.take<std::int64_t>(row_room(axes.extents[axes.rank - 1]))),
        levels(carver.take<std::uint8_t>(row_room(axes.extents[axes.rank - 1]))),
        contexts(carver.take<std::uint32_t>(row_room(axes.extents[axes.rank - 1]))),
        spread(carver.take<std::uint32_t>(row_room(axes.extents[axes.rank - 1]))),
        counts(carver),
        grid(carver, axes),
        predictor(carver),
        sections(carver, spec.raw_bytes(), spec.kernels) {}

  std::size_t elems;
  Predictor* predictors;
  std::uint8_t* special;    ///< of all levels in the order of coding, coarsest first; so the next two
  std::int32_t* codes;      ///< and room for a block
  std::uint16_t* symbols;   ///< context level * kTokenPlaces + token
  double* originals;        ///< of a row
  std::int64_t* targets;    ///< the same in units
  double* predicted;        ///< of a row
  std::int64_t* numbers;    ///< the same as integers
  std::uint8_t* levels;     ///< of contexts of a row
  std::uint32_t* contexts;  ///< their sums
  std::uint32_t* spread;
  SymbolCounts counts;  ///< of a level
  LevelGridOf<Value> grid;
  RowPredictorOf<Value> predictor;
  SectionWriter sections;
};

}  // namespace quern::codec::stencil
