// The weights of a class's contexts in levels, fitted to magnitudes of residuals.
#pragma once

#include <cstddef>
#include <cstdint>

#include <quern/memory.h>

#include "codecs/stencil/least_squares/sample_memory.h"
#include "codecs/stencil/levels/context.h"
#include "codecs/stencil/levels/grid.h"
#include "codecs/stencil/levels/model.h"
#include "codecs/stencil/levels/samples.h"

namespace quern::codec::stencil {

/// The features that contexts of a class are fitted to: at the lowest effort without those that cost more than they
/// gain.
FeatureList fitted_features(const LevelAxes& axes, unsigned level, std::size_t parity_class, bool later, Effort effort);

/// Samples of the contexts of one class; of several levels.
struct ContextSamples {
  struct Block {
    float* rows;          ///< of each feature, the constant and the magnitude
    std::size_t samples;  ///< what is behind them is 0
  };
  FeatureList features;  ///< of the finest of the levels, which has those of the others
  Vector<Block> blocks;
  std::size_t points = 0;  ///< of the rows of which some have samples

  std::size_t width() const { return features.count + 2; }
  std::size_t count() const;
  /// Forgets all samples.
  void start(const FeatureList& all) {
    features = all;
    blocks.clear();
    points = 0;
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
SampledRows context_rows(const ClassRows& rows, Effort effort);
/// Adds samples from what somebody else has summed up: of each of context_rows() and each feature of the class, and at
/// last the magnitude itself, a number for each of the row's columns.
void add_context_samples_from(const std::uint64_t* numbers, const ClassRows& rows, const CodePlaces& places,
                              const std::uint8_t* special, Effort effort, SampleMemory& memory,
                              ContextSamples& samples);
/// Non-negative weights that give the expected magnitude; of the constant alone where contexts are switched off.
ContextWeights fit_contexts(const ContextSamples& samples, const LevelsFitting& how);
/// Fits the context weights of a class in first or later planes, which the levels of a set share, unless there are few
/// samples; and forgets those.
void fit_class_contexts(std::size_t set, bool later, std::size_t parity_class, const LevelsFitting& how,
                        ContextSamples& samples, LevelsModel& model);

}  // namespace quern::codec::stencil
