// Fits of a chunk in levels: the predictor of a class from the points around it, and the weights of its contexts.
#pragma once

#include <array>
#include <cstdint>

#include <quern/memory.h>

#include "codecs/stencil/levels_context.h"
#include "codecs/stencil/levels_grid.h"
#include "codecs/stencil/levels_model.h"
#include "codecs/stencil/levels_walk.h"

namespace quern::codec::stencil {

/// Gives rows of values in units.
class TargetRows {
 public:
  virtual ~TargetRows() = default;
  /// The row of a class of the open level whose first point has number `code` in the order of coding, until the next is
  /// asked for.
  virtual const std::int64_t* row(std::size_t parity_class, const RowIndex& index, std::size_t code) = 0;
};

/// Values in units, and special elements of the open level in the order of coding.
struct LevelTargets {
  TargetRows* rows = nullptr;
  const std::uint8_t* special = nullptr;  ///< null: none
  const std::int32_t* codes = nullptr;    ///< of values that are final
};

/// A class of the open level, and which of its planes.
struct ClassRows {
  std::size_t parity_class = 0;
  bool later = false;
  std::size_t first = 0;  ///< of its rows
  std::size_t rows = 0;
  std::size_t columns = 0;

  template <class Grid>
  ClassRows(const Grid& grid, std::size_t c, bool late) : parity_class(c), later(late) {
    const auto& view = grid.view(c);
    const std::size_t planes = grid.axes().planes();
    columns = view.extents[grid.axes().rank - 1];
    rows = view.rows / planes;
    if (later) first = rows;
    if (later) rows = view.rows - first;
  }
};

/// Where codes of the open level lie: number of a row's first point in the order of coding.
class CodePlaces {
 public:
  template <class Grid>
  explicit CodePlaces(const Grid& grid) : planes_(grid.axes().planes()) {
    const CodedClasses classes(grid.axes(), grid.level());
    std::size_t at = 0;
    for (std::size_t i = 0; i < classes.count; ++i) {
      const auto& view = grid.view(classes.list[i]);
      rows_[classes.list[i]] = view.rows / planes_;
      columns_[classes.list[i]] = view.extents[grid.axes().rank - 1];
      first_[classes.list[i]] = at;
      at += rows_[classes.list[i]] * columns_[classes.list[i]];
    }
    plane_ = at;
  }
  std::size_t of(std::size_t parity_class, std::size_t row) const {
    return row / rows_[parity_class] * plane_ + first_[parity_class] +
           row % rows_[parity_class] * columns_[parity_class];
  }
  std::size_t count() const { return plane_ * planes_; }

 private:
  std::size_t planes_;
  std::size_t plane_ = 0;
  std::array<std::size_t, kParityClasses> first_{};
  std::array<std::size_t, kParityClasses> rows_{};
  std::array<std::size_t, kParityClasses> columns_{};
};

/// Memory that fits of one chunk share, one after the other.
struct FitRoom {
  Vector<double> blocks;
  Vector<std::uint32_t> filled;  ///< samples of each block
};

/// Chooses the predictor of a class from candidates, with `fitted` fitted ones among them, on points sampled from the
/// open level's values as they are now. Scalar binary64 in a fixed order, costs in integers.
template <class Value>
void choose_predictor(const LevelGridOf<Value>& grid, const ClassRows& rows, const CodePlaces& places,
                      const LevelTargets& targets, const GroupList& list, const kernels::StencilKernels& kernels,
                      FitRoom& room, bool fitted, LevelsModel& model);

/// Samples of the contexts of one class; of several levels.
struct ContextSamples {
  FeatureList features;          ///< of the finest of them, which has those of the others
  Vector<float> values;          ///< block after block, of each a row for each feature, the constant and the magnitude
  Vector<std::uint32_t> filled;  ///< samples of each block

  std::size_t width() const { return features.count + 2; }
  std::size_t count() const;
  /// Forgets all samples.
  void start(const FeatureList& all) {
    features = all;
    values.clear();
    filled.clear();
  }
  /// Room for more samples that lie side by side: row k of a block begins k * kSampleBlock behind it.
  float* add(std::size_t samples);
};

/// Room for a row.
struct SampleRoom {
  double* predicted = nullptr;
  std::uint32_t* spread = nullptr;
};
/// Adds samples from a class of the open level, whose values, magnitudes and codes are final.
template <class Value>
void add_context_samples(const LevelGridOf<Value>& grid, const ClassRows& rows, const CodePlaces& places,
                         const LevelTargets& targets, const LevelsModel& model, const kernels::StencilKernels& kernels,
                         const SampleRoom& room, ContextSamples& samples);
/// Non-negative weights that give the expected magnitude; of the constant alone if `constant`.
ContextWeights fit_contexts(const ContextSamples& samples, bool constant, const kernels::StencilKernels& kernels);

}  // namespace quern::codec::stencil
