// What a device is told to encode the finest level of a chunk in levels, and what comes back. The host codes the
// coarser levels, which have few of the points. Then, class after class, lanes gather what the host fits the class's
// weights to, and run the closed loop over the class; and when all classes are coded, what it fits contexts to. With a
// sequential axis all classes are fitted together, first to values rounded to codes, then to what the loop over all
// planes has left. At last they find exceptions, make symbols and count them; from the counts the host makes
// distributions, and lanes write the residuals. A chunk's elements travel once, and all jobs follow each other in
// the same working memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/encode_task.h"
#include "kernels/stencil/level_job.h"

namespace quern::kernels {

/// A row of which some columns are samples.
struct LevelSampleRow {
  std::uint32_t row = 0;  ///< of its class
  std::uint32_t first = 0;
};

enum class LevelFeatureKind : std::uint32_t { values, magnitudes, spread };

/// What a sample has a number of: a sum over neighbours, or a difference.
struct LevelFeature {
  LevelFeatureKind kind = LevelFeatureKind::values;
  std::uint32_t first = 0;  ///< tap in the table of its kind, or spread
  std::uint32_t count = 0;  ///< of taps
  /// Rows of index 0 along this axis have none of it; kNoAxis: all have it.
  std::uint32_t along = kNoAxis;
};

/// Samples of a class: of row r and feature f, `columns` numbers of 64 bits from (r * feature_count + f) * columns on.
struct LevelSampling {
  std::uint32_t parity_class = 0;
  std::uint32_t columns = 0;
  std::uint32_t rows = 0;  ///< number of the first in the table
  std::uint32_t row_count = 0;
  std::uint32_t features = 0;  ///< number of the first in the table
  std::uint32_t feature_count = 0;
  std::uint32_t out = 0;  ///< bytes of the working memory
};

enum class LevelEncodeStep : std::uint32_t {
  open,     ///< takes class 0, and samples
  code,     ///< codes a class, and samples
  round,    ///< takes class 0, gives the others originals rounded to codes, and samples
  planes,   ///< codes all classes, plane after plane, counts tokens as of context bin 0, and samples
  symbols,  ///< exceptions, symbols and counts
};

/// Model as decoders have it, of level 0 alone: its sections, distributions, exceptions and words say nothing.
struct LevelEncodeJob {
  LevelJob level;
  LevelEncodeStep step = LevelEncodeStep::open;
  std::uint32_t coded = 0;  ///< which of the classes, in the order of coding
  double bound = 0;
  double inverse = 0;  ///< of the unit
  double most = 0;     ///< magnitudes of values are below this, or the host has to encode the chunk
  /// Of class 0, in C order: doubles and 32 bits each. Bytes from the job's begin.
  std::uint32_t coarser_values = 0;
  std::uint32_t coarser_magnitudes = 0;
  std::uint32_t samplings = 0;  ///< bytes from the job's begin; so the next two
  std::uint32_t sample_rows = 0;
  std::uint32_t features = 0;
  std::uint32_t sampling_count = 0;
  /// Where the points of each class begin, within one plane, in the order of coding: multiples of kLanes. Behind the
  /// last, how many a plane has. Points of later planes lie so far behind theirs as makes their number in the class,
  /// counted over all planes, and their place tell the same lane.
  std::uint32_t first[kLevelClasses + 1] = {};
  std::uint32_t exceptions = 0;  ///< how many there is room for
  /// Bytes of the working memory, of what is in the order of coding.
  std::uint32_t codes = 0;
  std::uint32_t symbols = 0;
  std::uint32_t missed = 0;          ///< for each 32 points which of them miss the bound
  std::uint32_t exception_list = 0;  ///< their numbers in the order of coding
};

}  // namespace quern::kernels
