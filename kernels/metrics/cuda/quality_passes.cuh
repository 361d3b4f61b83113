// What the kernels of the quality measurement hand on to each other, and their launches; arguments were checked.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/common/cuda/reduce.cuh"
#include "kernels/metrics/cuda/quality_cuda.h"
#include "kernels/metrics/error_measures.h"
#include "kernels/metrics/similarity.h"

namespace quern::kernels {

/// Once all blocks of the arrays were seen.
struct ErrorSummary {
  verifier::ErrorExtremes extremes;
  std::int64_t exponent = 0;  ///< squares were summed of errors times 2^-exponent
};

/// Of the windows of a tile.
struct SimilaritySum {
  double sum = 0.0;
  std::uint64_t windows = 0;
};

/// Device memory between the passes.
struct QualityWorkspace {
  ErrorSummary* summary = nullptr;
  verifier::ErrorExtremes* extremes = nullptr;  ///< one for each CTA of the error pass
  double* squares = nullptr;                    ///< one for each block
  SimilaritySum* similarities = nullptr;        ///< one for each tile
  std::uint64_t blocks = 0;
  std::uint64_t tiles = 0;  ///< 0 without structural similarity
  unsigned ctas = 0;        ///< of the error pass
};

/// Extremes of each CTA and squares of each block; merges the extremes; sums the squares of f64 again, scaled, where
/// that is needed.
cudaError_t launch_error_pass(const CudaPair& pair, const FillValues& fills, const QualityWorkspace& workspace,
                              cudaStream_t stream);

/// How an array is cut into tiles of windows: volumes of planes, rows and columns, tiles of windows in each. Axes of
/// one element are left out; a volume of two axes has planes of one row.
struct SimilarityTiles {
  std::array<std::uint64_t, 3> extents{1, 1, 1};
  std::array<std::uint64_t, 3> positions{1, 1, 1};
  std::array<std::uint64_t, 3> tiles{1, 1, 1};
  std::uint64_t volumes = 0;
  double window_elems = 1.0;
  bool flat = false;  ///< two axes

  constexpr std::uint64_t count() const { return volumes * tiles[0] * tiles[1] * tiles[2]; }
};

/// `volumes` is 0 where the shape has no windows.
SimilarityTiles similarity_tiles(const CudaShape& shape);

/// Similarities of each tile, if the summary says that there are any.
cudaError_t launch_similarity(const CudaPair& pair, const FillValues& fills, const QualityWorkspace& workspace,
                              unsigned max_ctas, cudaStream_t stream);

}  // namespace quern::kernels
