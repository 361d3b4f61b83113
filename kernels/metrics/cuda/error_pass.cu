// First pass of the quality measurement: everything that needs each element once. Squares are summed by blocks, each a
// tree of its own; what does not depend on an order is kept over all blocks of a CTA.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/common/cuda/array_blocks.cuh"
#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/shared_memory.cuh"
#include "kernels/metrics/cuda/quality_passes.cuh"
#include "kernels/metrics/validity.h"

namespace quern::kernels {
namespace {

using verifier::ErrorExtremes;

struct ErrorShared {
  ReduceShared<double, kArrayThreads> squares;
  ReduceShared<ErrorExtremes, kArrayThreads> extremes;
};

__device__ __forceinline__ double cta_sum(double value, ErrorShared& shared) {
  reduce_cta<kArrayThreads>(value, shared.squares, [](double& a, double b) { a += b; });
  return value;
}

__device__ __forceinline__ void merge_cta(ErrorExtremes& extremes, ErrorShared& shared) {
  reduce_cta<kArrayThreads>(extremes, shared.extremes, [](ErrorExtremes& a, const ErrorExtremes& b) { a.merge(b); });
}

/// What one thread has seen.
template <class E>
class ErrorCollector {
 public:
  using Bits = typename E::Bits;
  using Working = typename E::Working;

  __device__ __forceinline__ explicit ErrorCollector(const verifier::Validity<E>& validity) : validity_(validity) {}

  __device__ __forceinline__ void vectors(std::uint64_t first, const Vector (&pair)[2]) {
    visit_pairs<Bits>(first, pair, *this);
  }

  __device__ __forceinline__ void element(std::uint64_t at, Bits x, Bits y) {
    found_.specials_lost += validity_.is_lost_special(x, y) ? 1 : 0;
    if (!validity_.is_valid(x)) return;
    ++found_.valid;
    const Working value = E::working(x);
    low_ = std::min(low_, value);
    high_ = std::max(high_, value);
    double error = verifier::magnitude(verifier::difference<E>(x, y));
    if constexpr (E::kFloat) {
      if (!verifier::is_finite(error)) error = verifier::kInfinity;
      found_.max_ulp = std::max(found_.max_ulp, verifier::ulp_distance<E>(x, y));
    }
    squares_ += error * error;
    if (error > found_.max_error) {
      found_.max_error = error;
      found_.max_error_index = at;
    }
    // A quotient above the largest so far has a numerator not below this product, because rounding is monotone. Few
    // pass, so few divide.
    const double size = verifier::magnitude(E::value(x));
    if (error >= found_.max_pointwise_rel * size && error > 0 && size > 0)
      found_.max_pointwise_rel = std::max(found_.max_pointwise_rel, error / size);
  }

  /// The sum of squares since the last call, of all lanes in a tree of their own later.
  __device__ __forceinline__ double take_squares() {
    const double squares = squares_;
    squares_ = 0.0;
    return squares;
  }

  /// What one lane knows of the largest quotient spares divisions to all.
  __device__ __forceinline__ void share_quotients() {
    unroll<5>([&](auto step) {
      const double other = __shfl_xor_sync(WarpLanes::kAll, found_.max_pointwise_rel, 1u << decltype(step)::value);
      found_.max_pointwise_rel = std::max(found_.max_pointwise_rel, other);
    });
  }

  __device__ __forceinline__ ErrorExtremes result() const {
    ErrorExtremes extremes = found_;
    if (found_.valid != 0) {
      extremes.min = static_cast<double>(low_);
      extremes.max = static_cast<double>(high_);
    }
    return extremes;
  }

 private:
  const verifier::Validity<E>& validity_;
  ErrorExtremes found_;
  Working low_ = std::numeric_limits<Working>::max();
  Working high_ = std::numeric_limits<Working>::lowest();
  double squares_ = 0.0;
};

/// Sums squares of scaled errors, all of which are finite.
template <class E>
class ScaledSquares {
 public:
  using Bits = typename E::Bits;

  __device__ __forceinline__ ScaledSquares(const verifier::Validity<E>& validity, double scale)
      : validity_(validity), scale_(scale) {}

  __device__ __forceinline__ void vectors(std::uint64_t first, const Vector (&pair)[2]) {
    visit_pairs<Bits>(first, pair, *this);
  }
  __device__ __forceinline__ void element(std::uint64_t, Bits x, Bits y) {
    if (!validity_.is_valid(x)) return;
    const double scaled = verifier::difference<E>(x, y) * scale_;
    squares_ += scaled * scaled;
  }
  __device__ __forceinline__ double take_squares() {
    const double squares = squares_;
    squares_ = 0.0;
    return squares;
  }

 private:
  const verifier::Validity<E>& validity_;
  double scale_;
  double squares_ = 0.0;
};

template <class E>
__global__ void __launch_bounds__(kArrayThreads)
    collect_errors(const void* original, const void* reconstructed, std::uint64_t elems,
                   const __grid_constant__ FillValues fills, ErrorExtremes* extremes, double* squares) {
  using Bits = typename E::Bits;
  auto& shared = shared_memory<ErrorShared>();
  const DeviceArray<Bits> x(original);
  const DeviceArray<Bits> y(reconstructed);
  const verifier::Validity<E> validity(fills.view());
  ErrorCollector<E> collector(validity);
  const std::uint64_t blocks = array_blocks(elems, sizeof(Bits));
  for (std::uint64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    visit_block(block, elems, collector, x, y);
    collector.share_quotients();
    const double sum = cta_sum(collector.take_squares(), shared);
    if (threadIdx.x == 0) squares[block] = sum;
  }
  ErrorExtremes found = collector.result();
  merge_cta(found, shared);
  if (threadIdx.x == 0) extremes[blockIdx.x] = found;
}

/// One CTA.
__global__ void __launch_bounds__(kArrayThreads)
    merge_errors(const ErrorExtremes* extremes, unsigned ctas, bool may_scale, ErrorSummary* summary) {
  ErrorExtremes found;
  for (unsigned cta = threadIdx.x; cta < ctas; cta += kArrayThreads) found.merge(extremes[cta]);
  merge_cta(found, shared_memory<ErrorShared>());
  if (threadIdx.x != 0) return;
  summary->extremes = found;
  summary->exponent =
      may_scale && verifier::needs_scaling(found.max_error) ? verifier::scale_exponent(found.max_error) : 0;
}

template <class E>
__global__ void __launch_bounds__(kArrayThreads)
    sum_scaled_squares(const void* original, const void* reconstructed, std::uint64_t elems,
                       const __grid_constant__ FillValues fills, const ErrorSummary* summary, double* squares) {
  using Bits = typename E::Bits;
  const auto exponent = static_cast<int>(summary->exponent);
  if (exponent == 0) return;
  auto& shared = shared_memory<ErrorShared>();
  const DeviceArray<Bits> x(original);
  const DeviceArray<Bits> y(reconstructed);
  const verifier::Validity<E> validity(fills.view());
  ScaledSquares<E> collector(validity, verifier::scale(1.0, -exponent));
  const std::uint64_t blocks = array_blocks(elems, sizeof(Bits));
  for (std::uint64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    visit_block(block, elems, collector, x, y);
    const double sum = cta_sum(collector.take_squares(), shared);
    if (threadIdx.x == 0) squares[block] = sum;
  }
}

}  // namespace

cudaError_t launch_error_pass(const CudaPair& pair, const FillValues& fills, const QualityWorkspace& workspace,
                              cudaStream_t stream) {
  const std::uint64_t elems = pair.shape.elems();
  const LaunchShape all{workspace.ctas, kArrayThreads, sizeof(ErrorShared)};
  // Only errors of f64 have squares outside of binary64.
  const bool may_scale = pair.element == Element::f64;
  return verifier::visit_element(pair.element, [&](auto type) {
    using E = typename decltype(type)::Element;
    cudaError_t error = launch(&collect_errors<E>, all, stream, pair.original, pair.reconstructed, elems, fills,
                               workspace.extremes, workspace.squares);
    if (error != cudaSuccess) return error;
    error = launch(&merge_errors, {1, kArrayThreads, sizeof(ErrorShared)}, stream, workspace.extremes, workspace.ctas,
                   may_scale, workspace.summary);
    if constexpr (std::is_same_v<E, verifier::F64>)
      if (error == cudaSuccess)
        error = launch(&sum_scaled_squares<E>, all, stream, pair.original, pair.reconstructed, elems, fills,
                       workspace.summary, workspace.squares);
    return error;
  });
}

}  // namespace quern::kernels
