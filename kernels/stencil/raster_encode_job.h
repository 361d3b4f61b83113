// What a device is told to encode a chunk in raster order, and what comes back. A host fits the model on parts of the
// chunk; lanes run the closed loop over all of it, find exceptions and count symbols; from the counts the host makes
// distributions; lanes write the residuals. So a chunk travels once and two jobs follow each other in the same
// working memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/encode_task.h"
#include "kernels/entropy/encoded_streams.h"
#include "kernels/entropy/residual_tokens.h"
#include "kernels/stencil/level_job.h"
#include "kernels/stencil/raster_job.h"

namespace quern::kernels {

/// The first job: a model as decoders have it (its lanes, distributions, exceptions and words say nothing), and
/// what only an encoder knows.
struct RasterEncodeJob {
  RasterJob raster;
  double bound = 0;
  double inverse = 0;            ///< of the unit
  std::int64_t most = 0;         ///< values are below this, or the host has to encode the chunk
  std::uint32_t exceptions = 0;  ///< how many there is room for
  /// Bytes of the working memory from its begin; that of the job's magnitudes is not used.
  std::uint32_t targets = 0;  ///< of one plane
  std::uint32_t codes = 0;
  std::uint32_t symbols = 0;
  std::uint32_t exception_list = 0;  ///< indices in C order
};

/// What comes of it.
struct RasterEncodeResult {
  std::uint32_t left = 0;  ///< 1: the host has to encode the chunk
  std::uint32_t exceptions = 0;
  std::uint32_t counts[kContextBins][kResidualTokens] = {};  ///< of symbols
};

/// Rows of the same length.
struct RowSection {
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  std::uint32_t rows_before = 0;  ///< of sections before
  std::uint32_t first = 0;        ///< number of its first residual
};

/// The second job, followed by its distributions: residuals of rows to lanes. Row n is in lane n & mask.
struct RowLanesJob {
  JobHead head{JobKind::raster};
  std::uint32_t section_count = 0;
  std::uint32_t mask = 0;
  std::uint32_t table_count = 0;
  std::uint32_t codes = 0;  ///< bytes of the working memory from its begin; so the next ones
  std::uint32_t symbols = 0;
  std::uint32_t words = 0;       ///< as many as `rooms` says
  std::uint32_t most_words = 0;  ///< that there is room for in the end
  std::uint32_t sections = 0;    ///< bytes from the job's begin; so the next one
  std::uint32_t starts = 0;
  bool by_points = false;  ///< the points of a column lie side by side, not those of a row
  std::uint8_t serving[kContextBins] = {};
  std::uint32_t rooms[kMostStreamLanes + 1] = {};  ///< words before each lane's, and behind the last
};

/// And its result: how many words each lane has. They lie one lane after another where the elements were, unless they
/// are too many.
struct RowLanesResult {
  std::uint32_t words[kMostStreamLanes] = {};
};

}  // namespace quern::kernels
