// The predictor of a class in levels, fitted to the points around it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/memory.h>

#include "codecs/stencil/edges/edge_rows.h"
#include "codecs/stencil/least_squares/sample_memory.h"
#include "codecs/stencil/levels/grid.h"
#include "codecs/stencil/levels/model.h"
#include "codecs/stencil/levels/samples.h"

namespace quern::codec::stencil {

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
  /// Sets what is behind the samples of the last block to 0.
  void close_block(std::size_t features) {
    if (!filled.empty()) clear_behind(block(filled.size() - 1, features), features + 1, filled.back());
  }
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
inline std::size_t loop_rounds(Effort effort) { return effort >= Effort::low ? 1 : 2; }

/// Chooses the predictor of a class from candidates, fitted ones among them unless they are switched off, on points
/// sampled from the open level's values as they are now; and from one with what a network makes of the class, if there
/// is a `network` whose rows are filled. Scalar binary64 in a fixed order, costs in integers.
template <class Value>
void choose_predictor(const LevelGridOf<Value>& grid, const ClassRows& rows, const CodePlaces& places,
                      const LevelTargets& targets, const GroupList& list, bool network, const LevelsFitting& how,
                      EdgeRows<Value>& edges, FitRoom& room, LevelsModel& model);

SampledRows predictor_rows(const ClassRows& rows, Effort effort);
/// The same choice, on sums that somebody else has made: of each of predictor_rows() and each group the values that its
/// offsets have around the row's columns.
void choose_predictor_from(const double* sums, const LevelAxes& axes, unsigned level, const ClassRows& rows,
                           const CodePlaces& places, const LevelTargets& targets, const GroupList& list,
                           const LevelsFitting& how, FitRoom& room, LevelsModel& model);

}  // namespace quern::codec::stencil
