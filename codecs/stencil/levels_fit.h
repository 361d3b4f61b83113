// Fits of a chunk in levels: the predictor of a class from the points around it, and the weights of its contexts.
#pragma once

#include <array>
#include <cstdint>

#include <quern/memory.h>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/levels_context.h"
#include "codecs/stencil/levels_grid.h"
#include "codecs/stencil/levels_model.h"
#include "codecs/stencil/levels_walk.h"
#include "codecs/stencil/sample_memory.h"

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

  ClassRows(const LevelAxes& axes, unsigned level, std::size_t c, bool late) : parity_class(c), later(late) {
    columns = axes.class_points(c, level, axes.rank - 1);
    std::size_t all = axes.exists(c, level) ? 1 : 0;
    for (std::size_t a = 0; a + 1 < axes.rank; ++a) all *= axes.class_points(c, level, a);
    rows = all / axes.planes();
    if (later) first = rows;
    if (later) rows = all - first;
  }
  template <class Grid>
  ClassRows(const Grid& grid, std::size_t c, bool late) : ClassRows(grid.axes(), grid.level(), c, late) {}
};

/// Where codes of the open level lie: number of a row's first point in the order of coding.
class CodePlaces {
 public:
  CodePlaces(const LevelAxes& axes, unsigned level) : planes_(axes.planes()) {
    const CodedClasses classes(axes, level);
    std::size_t at = 0;
    for (std::size_t i = 0; i < classes.count; ++i) {
      const ClassRows rows(axes, level, classes.list[i], false);
      rows_[rows.parity_class] = rows.rows;
      columns_[rows.parity_class] = rows.columns;
      first_[rows.parity_class] = at;
      at += rows.rows * rows.columns;
    }
    plane_ = at;
  }
  template <class Grid>
  explicit CodePlaces(const Grid& grid) : CodePlaces(grid.axes(), grid.level()) {}
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

/// Samples of one fit; memory that fits of one chunk share, one after the other.
class FitRoom {
 public:
  /// `lent`: nobody else's during a fit.
  explicit FitRoom(std::span<std::uint8_t> lent = {}) : memory_(lent) {}

  Vector<std::uint32_t> filled;  ///< samples of each block

  /// Takes memory for so many blocks, which are not set.
  void start(std::size_t blocks, std::size_t features) {
    filled.clear();
    if (blocks * block_elems(features) <= elems_) return;
    memory_.give_back();
    elems_ = 0;
    blocks_ = memory_.take<double>(blocks * block_elems(features));
    elems_ = blocks * block_elems(features);
  }
  static std::size_t block_elems(std::size_t features) { return (features + 1) * kernels::kSampleBlock; }
  /// A row of samples for each feature: group 0's mean, differences of the others' means to it, the target's difference
  /// to it. Samples behind those that it has are 0.
  double* block(std::size_t b, std::size_t features) { return blocks_ + b * block_elems(features); }

 private:
  SampleMemory memory_;
  double* blocks_ = nullptr;
  std::size_t elems_ = 0;
};

/// How often the classes of a level with a sequential axis are fitted: first to originals rounded to codes, then to
/// what the loop has left.
inline std::size_t loop_rounds(Pace pace) { return pace == Pace::quick ? 1 : 2; }

/// How fits are made.
struct LevelsFitting {
  const kernels::StencilKernels& kernels;
  FittedParts parts;
  Pace pace = Pace::thorough;

  explicit LevelsFitting(const ChunkSpec& spec) : kernels(*spec.kernels), parts(spec.parts), pace(spec.pace) {}
};

/// Chooses the predictor of a class from candidates, fitted ones among them unless they are switched off, on points
/// sampled from the open level's values as they are now. Scalar binary64 in a fixed order, costs in integers.
template <class Value>
void choose_predictor(const LevelGridOf<Value>& grid, const ClassRows& rows, const CodePlaces& places,
                      const LevelTargets& targets, const GroupList& list, const LevelsFitting& how, FitRoom& room,
                      LevelsModel& model);

/// The rows of a class that have samples, the first column of those in each, and how many there are in each, special
/// ones among them.
struct SampledRows {
  Vector<std::size_t> rows;
  Vector<std::size_t> first;
  std::size_t columns = 0;
};
SampledRows predictor_rows(const ClassRows& rows, Pace pace);
/// The same choice, on sums that somebody else has made: of each of predictor_rows() and each group the values that its
/// offsets have around the row's columns.
void choose_predictor_from(const double* sums, const LevelAxes& axes, unsigned level, const ClassRows& rows,
                           const CodePlaces& places, const LevelTargets& targets, const GroupList& list,
                           const LevelsFitting& how, FitRoom& room, LevelsModel& model);

/// The features that contexts of a class are fitted to: of a quick fit without those that cost more than they gain.
FeatureList fitted_features(const LevelAxes& axes, unsigned level, std::size_t parity_class, bool later, Pace pace);

/// Samples of the contexts of one class; of several levels.
struct ContextSamples {
  struct Block {
    float* rows;          ///< of each feature, the constant and the magnitude
    std::size_t samples;  ///< what is behind them is 0
  };
  FeatureList features;  ///< of the finest of the levels, which has those of the others
  Vector<Block> blocks;

  std::size_t width() const { return features.count + 2; }
  std::size_t count() const;
  /// Forgets all samples.
  void start(const FeatureList& all) {
    features = all;
    blocks.clear();
  }
  /// Room for more samples that lie side by side: row k of a block begins k * kSampleBlock behind it. Blocks are taken
  /// from `memory`.
  float* add(std::size_t samples, SampleMemory& memory);
};

/// Room for a row, and for samples.
struct SampleRoom {
  double* predicted = nullptr;
  std::uint32_t* spread = nullptr;
  SampleMemory& memory;
};
/// Adds samples from a class of the open level, whose values, magnitudes and codes are final.
template <class Value>
void add_context_samples(const LevelGridOf<Value>& grid, const ClassRows& rows, const CodePlaces& places,
                         const LevelTargets& targets, const LevelsModel& model, const LevelsFitting& how,
                         const SampleRoom& room, ContextSamples& samples);
SampledRows context_rows(const ClassRows& rows, Pace pace);
/// Adds samples from what somebody else has summed up: of each of context_rows() and each feature of the class, and at
/// last the magnitude itself, a number for each of the row's columns.
void add_context_samples_from(const std::uint64_t* numbers, const ClassRows& rows, const CodePlaces& places,
                              const std::uint8_t* special, Pace pace, SampleMemory& memory, ContextSamples& samples);
/// Non-negative weights that give the expected magnitude; of the constant alone where contexts are switched off.
ContextWeights fit_contexts(const ContextSamples& samples, const LevelsFitting& how);
/// Fits the context weights of a class in first or later planes, which the levels of a set share, unless there are few
/// samples; and forgets those.
void fit_class_contexts(std::size_t set, bool later, std::size_t parity_class, const LevelsFitting& how,
                        ContextSamples& samples, LevelsModel& model);

}  // namespace quern::codec::stencil
