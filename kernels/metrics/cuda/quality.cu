// The quality measurement's host functions, and its last kernel: sums of all blocks and tiles, and the formulas on
// them.
#include "kernels/metrics/cuda/quality_cuda.h"

#include <algorithm>

#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/shared_memory.cuh"
#include "kernels/metrics/compensated_sum.h"
#include "kernels/metrics/cuda/quality_passes.cuh"

namespace quern::kernels {
namespace {

using verifier::CompensatedSum;

constexpr std::size_t kAlignment = 256;
constexpr unsigned kFinishThreads = 512;

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Sums of one thread, then of all.
struct QualitySums {
  CompensatedSum squares;
  CompensatedSum similarity;
  std::uint64_t windows = 0;

  constexpr void add(const QualitySums& other) {
    squares.add(other.squares);
    similarity.add(other.similarity);
    windows += other.windows;
  }
};

using FinishShared = ReduceShared<QualitySums, kFinishThreads>;

constexpr void set_measures(const ErrorSummary& summary, const QualitySums& sums, CudaQuality& quality) {
  const verifier::ErrorExtremes& extremes = summary.extremes;
  quality.valid = extremes.valid;
  quality.specials_lost = extremes.specials_lost;
  if (extremes.valid == 0) return;
  // Which of two zeros came first depends on the grid; the sum has no sign.
  quality.min = extremes.min + 0.0;
  quality.max = extremes.max + 0.0;
  quality.max_error = extremes.max_error;
  quality.max_error_index = extremes.max_error_index;
  quality.max_pointwise_rel = extremes.max_pointwise_rel;
  quality.max_ulp = extremes.max_ulp;
  const verifier::ErrorMeasures measures =
      verifier::error_measures(extremes, sums.squares.value(), static_cast<int>(summary.exponent));
  quality.mse = measures.mse;
  quality.psnr_db = measures.psnr_db;
  quality.nrmse = measures.nrmse;
  quality.has_psnr = measures.has_psnr ? 1 : 0;
  quality.has_nrmse = measures.has_nrmse ? 1 : 0;
  if (sums.windows == 0) return;
  quality.ssim = sums.similarity.value() / static_cast<double>(sums.windows);
  quality.has_ssim = 1;
}

/// One CTA, so that the order of the sums is the same on every device.
__global__ void __launch_bounds__(kFinishThreads)
    finish_quality(const __grid_constant__ QualityWorkspace workspace, std::uint64_t elems, CudaQuality* out) {
  QualitySums sums;
  for (std::uint64_t block = threadIdx.x; block < workspace.blocks; block += kFinishThreads)
    sums.squares.add(workspace.squares[block]);
  const ErrorSummary& summary = *workspace.summary;
  if (verifier::has_similarity(summary.extremes))
    for (std::uint64_t tile = threadIdx.x; tile < workspace.tiles; tile += kFinishThreads) {
      sums.similarity.add(workspace.similarities[tile].sum);
      sums.windows += workspace.similarities[tile].windows;
    }
  reduce_cta<kFinishThreads>(sums, shared_memory<FinishShared>(),
                             [](QualitySums& a, const QualitySums& b) { a.add(b); });
  if (threadIdx.x != 0) return;
  CudaQuality quality;
  quality.elems = elems;
  set_measures(summary, sums, quality);
  *out = quality;
}

/// Parts of the workspace in bytes, in their order.
struct WorkspacePlan {
  std::uint64_t blocks = 0;
  std::uint64_t tiles = 0;
  unsigned ctas = 0;

  constexpr std::size_t summary() const { return aligned(sizeof(ErrorSummary)); }
  constexpr std::size_t extremes() const { return aligned(ctas * sizeof(verifier::ErrorExtremes)); }
  constexpr std::size_t squares() const { return aligned(blocks * sizeof(double)); }
  constexpr std::size_t similarities() const { return aligned(tiles * sizeof(SimilaritySum)); }
  constexpr std::size_t total() const { return summary() + extremes() + squares() + similarities(); }
};

WorkspacePlan plan_workspace(const CudaPair& pair, unsigned max_ctas) {
  WorkspacePlan plan;
  plan.blocks = array_blocks(pair.shape.elems(), element_bytes(pair.element));
  plan.ctas = array_ctas(plan.blocks, max_ctas);
  plan.tiles = pair.with_ssim ? similarity_tiles(pair.shape).count() : 0;
  return plan;
}

QualityWorkspace place_workspace(const WorkspacePlan& plan, void* memory) {
  auto* at = static_cast<unsigned char*>(memory);
  QualityWorkspace workspace;
  workspace.summary = reinterpret_cast<ErrorSummary*>(at);
  at += plan.summary();
  workspace.extremes = reinterpret_cast<verifier::ErrorExtremes*>(at);
  at += plan.extremes();
  workspace.squares = reinterpret_cast<double*>(at);
  at += plan.squares();
  workspace.similarities = reinterpret_cast<SimilaritySum*>(at);
  workspace.blocks = plan.blocks;
  workspace.tiles = plan.tiles;
  workspace.ctas = plan.ctas;
  return workspace;
}

bool can_measure(const CudaPair& pair, unsigned max_ctas) {
  return is_element(pair.element) && pair.shape.rank <= pair.shape.extents.size() && max_ctas != 0;
}

}  // namespace

cudaError_t quality_workspace(const CudaPair& pair, std::size_t& bytes, unsigned max_ctas) {
  if (!can_measure(pair, max_ctas)) return cudaErrorInvalidValue;
  bytes = plan_workspace(pair, max_ctas).total();
  return cudaSuccess;
}

cudaError_t measure_quality_async(const CudaPair& pair, const FillValues& fills, CudaQuality* out, void* workspace,
                                  std::size_t workspace_bytes, cudaStream_t stream, unsigned max_ctas) {
  if (!can_measure(pair, max_ctas) || fills.count > FillValues::kMost) return cudaErrorInvalidValue;
  const WorkspacePlan plan = plan_workspace(pair, max_ctas);
  if (workspace_bytes < plan.total() || reinterpret_cast<std::uintptr_t>(workspace) % kAlignment != 0)
    return cudaErrorInvalidValue;
  if (plan.blocks == 0) return cudaMemsetAsync(out, 0, sizeof *out, stream);
  const QualityWorkspace placed = place_workspace(plan, workspace);
  cudaError_t error = launch_error_pass(pair, fills, placed, stream);
  if (error == cudaSuccess && plan.tiles != 0) error = launch_similarity(pair, fills, placed, max_ctas, stream);
  if (error != cudaSuccess) return error;
  return launch(&finish_quality, {1, kFinishThreads, sizeof(FinishShared)}, stream, placed, pair.shape.elems(), out);
}

}  // namespace quern::kernels
