// Structural similarity: a CTA walks the planes of a tile of windows. Of each plane it sums seven neighbours along a
// row, seven rows, and, in registers, seven planes, so that an element is loaded once for each tile it is in. All sums
// are plain sums of seven: a value that is invalid or huge leaves no trace once the window has passed it. The
// definition is in kernels/metrics/similarity.h.
#include <algorithm>
#include <limits>

#include "kernels/common/cuda/array_blocks.cuh"
#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/shared_memory.cuh"
#include "kernels/metrics/cuda/quality_passes.cuh"
#include "kernels/metrics/validity.h"

namespace quern::kernels {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kReach = verifier::kWindow - 1;
/// Windows of a tile along the planes. Fixed: a tile is the unit of summation.
constexpr unsigned kTilePlanes = 32;

/// Windows of a tile within a plane, one to a thread.
struct SolidTile {
  static constexpr unsigned kRows = 16;
  static constexpr unsigned kColumns = 16;
};
struct FlatTile {
  static constexpr unsigned kRows = 1;
  static constexpr unsigned kColumns = 256;
};

/// What is summed over a window; elements are in units of the range, and zero at its middle.
enum Quantity : unsigned { kX, kY, kSquares, kProduct, kQuantities };

struct alignas(16) Double2 {
  double at[2];
};

/// Elements in units of the range. A power of two comes before the reciprocal, which the range of denormals has none
/// of.
struct Units {
  double middle;
  double power;
  double reciprocal;

  static __device__ __forceinline__ Units make(const verifier::ErrorExtremes& extremes) {
    const double length = extremes.max - extremes.min;
    const int exponent = std::clamp(-verifier::split(length).exponent, -1000, 1000);
    const double power = verifier::scale(1.0, exponent);
    return {extremes.min + length / 2, power, 1 / (length * power)};
  }
  __device__ __forceinline__ double of(double value) const { return value * power * reciprocal; }
};

/// A window's similarity from its sums.
struct WindowFormula {
  double elems;
  double per_elem;
  double per_rest;
  double offset;

  template <class Sums>
  __device__ __forceinline__ double operator()(const Sums& sums) const {
    const double mean_x = sums[kX] * per_elem;
    const double mean_y = sums[kY] * per_elem;
    const double variances = std::max(0.0, (sums[kSquares] - elems * (mean_x * mean_x + mean_y * mean_y)) * per_rest);
    const double covariance = (sums[kProduct] - elems * (mean_x * mean_y)) * per_rest;
    return verifier::similarity(mean_x, mean_y, variances, covariance, offset);
  }
};

/// Constants lie here as well: registers are for sums.
template <class Tile>
struct TileShared {
  static constexpr unsigned kRows = Tile::kRows == 1 ? 1 : Tile::kRows + kReach;
  static constexpr unsigned kColumns = Tile::kColumns + kReach;

  Double2 x[kRows][kColumns / 2];
  Double2 y[kRows][kColumns / 2];
  Double2 rows[kQuantities][kRows][Tile::kColumns / 2];  ///< sums of seven neighbours
  ReduceShared<SimilaritySum, kThreads> sums;
  Units units;
  WindowFormula formula;
};

/// Where a tile lies: the volume's first element, the tile's first window, and how many windows it has.
struct TilePlace {
  std::uint64_t volume;
  std::uint64_t begin[3];
  unsigned windows[3];
};

template <class Tile>
__device__ __forceinline__ TilePlace place_tile(const SimilarityTiles& tiles, std::uint64_t tile) {
  constexpr unsigned kSizes[3] = {kTilePlanes, Tile::kRows, Tile::kColumns};
  TilePlace place;
  unroll<3>([&](auto reverse) {
    constexpr unsigned kAxis = 2 - decltype(reverse)::value;
    place.begin[kAxis] = tile % tiles.tiles[kAxis] * kSizes[kAxis];
    tile /= tiles.tiles[kAxis];
    const std::uint64_t left = tiles.positions[kAxis] - place.begin[kAxis];
    place.windows[kAxis] = static_cast<unsigned>(left < kSizes[kAxis] ? left : kSizes[kAxis]);
  });
  place.volume = tile * tiles.extents[0] * tiles.extents[1] * tiles.extents[2];
  return place;
}

/// The elements of a plane that one thread brings in: loaded in time, stored when the others are through with the plane
/// before.
template <class E, class Tile>
class PlaneLoader {
 public:
  using Bits = typename E::Bits;
  using Shared = TileShared<Tile>;
  static constexpr unsigned kElems = Shared::kRows * Shared::kColumns;
  static constexpr unsigned kEach = (kElems + kThreads - 1) / kThreads;

  __device__ __forceinline__ PlaneLoader(const void* original, const void* reconstructed,
                                         const verifier::Validity<E>& validity)
      : x_(original), y_(reconstructed), validity_(validity) {}

  /// Begins with the first plane of a tile.
  __device__ __forceinline__ void begin(const SimilarityTiles& tiles, const TilePlace& place) {
    const std::uint64_t plane = place.volume + place.begin[0] * tiles.extents[1] * tiles.extents[2];
    unroll<kEach>([&](auto k) {
      const unsigned i = threadIdx.x + k * kThreads;
      const std::uint64_t row = place.begin[1] + i / Shared::kColumns;
      const std::uint64_t column = place.begin[2] + i % Shared::kColumns;
      inside_[k] = i < kElems && row < tiles.extents[1] && column < tiles.extents[2];
      next_[k] = plane + row * tiles.extents[2] + column;
    });
    stride_ = tiles.extents[1] * tiles.extents[2];
    load();
  }

  __device__ __forceinline__ void load() {
    unroll<kEach>([&](auto k) {
      if (!inside_[k]) return;
      x_bits_[k] = x_.element(next_[k]);
      y_bits_[k] = y_.element(next_[k]);
      next_[k] += stride_;
    });
  }

  /// Outside of the volume lie zeros, which change no sum. What is invalid is no number, and makes none of its windows
  /// one.
  __device__ __forceinline__ void store(Shared& shared) const {
    const Units units = shared.units;
    unroll<kEach>([&](auto k) {
      const unsigned i = threadIdx.x + k * kThreads;
      if (i >= kElems) return;
      double x = 0.0;
      double y = 0.0;
      if (inside_[k]) {
        x = validity_.is_valid(x_bits_[k]) ? units.of(E::value(x_bits_[k]) - units.middle)
                                           : std::numeric_limits<double>::quiet_NaN();
        y = x - units.of(verifier::difference<E>(x_bits_[k], y_bits_[k]));
        y = y < -verifier::kFar ? -verifier::kFar : y > verifier::kFar ? verifier::kFar : y;
      }
      const unsigned row = i / Shared::kColumns;
      const unsigned column = i % Shared::kColumns;
      shared.x[row][column / 2].at[column % 2] = x;
      shared.y[row][column / 2].at[column % 2] = y;
    });
  }

 private:
  DeviceArray<Bits> x_;
  DeviceArray<Bits> y_;
  const verifier::Validity<E>& validity_;
  std::uint64_t stride_ = 0;
  std::uint64_t next_[kEach] = {};
  bool inside_[kEach] = {};
  Bits x_bits_[kEach] = {};
  Bits y_bits_[kEach] = {};
};

__device__ __forceinline__ double quantity(unsigned q, double x, double y) {
  return q == kX ? x : q == kY ? y : q == kSquares ? x * x + y * y : x * y;
}

/// Sums of seven neighbours in all rows of the plane. A thread takes two places side by side, which share six elements.
template <class Tile>
__device__ __forceinline__ void sum_columns(TileShared<Tile>& shared) {
  constexpr unsigned kPairs = Tile::kColumns / 2;
  constexpr unsigned kTasks = TileShared<Tile>::kRows * kPairs;
  for (unsigned task = threadIdx.x; task < kTasks; task += kThreads) {
    const unsigned row = task / kPairs;
    const unsigned pair = task % kPairs;
    double x[8];
    double y[8];
    unroll<4>([&](auto k) {
      const Double2 two_x = shared.x[row][pair + k];
      const Double2 two_y = shared.y[row][pair + k];
      unroll<2>([&](auto j) {
        x[2 * k + j] = two_x.at[j];
        y[2 * k + j] = two_y.at[j];
      });
    });
    unroll<kQuantities>([&](auto q) {
      const auto of = [&](unsigned i) { return quantity(q, x[i], y[i]); };
      const double both = ((of(1) + of(2)) + (of(3) + of(4))) + (of(5) + of(6));
      shared.rows[q][row][pair] = {of(0) + both, both + of(7)};
    });
  }
}

/// Sums over the window that ends in the present plane.
class PlaneSums {
 public:
  /// Sums of the last one to six planes; none at the beginning of a tile, where zeros stand for planes outside.
  __device__ __forceinline__ void clear() {
    unroll<kQuantities>([&](auto q) { unroll<kReach>([&](auto k) { last_[q][k] = 0.0; }); });
  }

  template <class Tile>
  __device__ __forceinline__ void add(const TileShared<Tile>& shared, unsigned row, unsigned column) {
    unroll<kQuantities>([&](auto q) {
      const auto of = [&](unsigned j) { return shared.rows[q][row + j][column / 2].at[column % 2]; };
      double plane = 0.0;
      if constexpr (Tile::kRows == 1)
        plane = of(0);
      else
        plane = ((of(0) + of(1)) + (of(2) + of(3))) + ((of(4) + of(5)) + of(6));
      window_[q] = last_[q][kReach - 1] + plane;
      unroll<kReach - 1>([&](auto k) { last_[q][kReach - 1 - k] = last_[q][kReach - 2 - k] + plane; });
      last_[q][0] = plane;
    });
  }

  __device__ __forceinline__ double operator[](Quantity q) const { return window_[q]; }

 private:
  double last_[kQuantities][kReach];
  double window_[kQuantities];
};

template <class E, class Tile>
__global__ void __launch_bounds__(kThreads, 2)
    sum_similarities(const void* original, const void* reconstructed, const __grid_constant__ SimilarityTiles tiles,
                     const __grid_constant__ FillValues fills, const ErrorSummary* summary, SimilaritySum* results) {
  if (!verifier::has_similarity(summary->extremes)) return;
  auto& shared = shared_memory<TileShared<Tile>>();
  if (threadIdx.x == 0) {
    const Units units = Units::make(summary->extremes);
    const double elems = tiles.window_elems;
    shared.units = units;
    shared.formula = {elems, 1 / elems, 1 / (elems - 1), units.of(units.middle)};
  }
  __syncthreads();
  const verifier::Validity<E> validity(fills.view());
  const unsigned row = threadIdx.x / Tile::kColumns;
  const unsigned column = threadIdx.x % Tile::kColumns;
  const auto depth = static_cast<unsigned>(tiles.extents[0] - tiles.positions[0] + 1);
  PlaneLoader<E, Tile> loader(original, reconstructed, validity);
  for (std::uint64_t tile = blockIdx.x; tile < tiles.count(); tile += gridDim.x) {
    const TilePlace place = place_tile<Tile>(tiles, tile);
    const bool has_window = row < place.windows[1] && column < place.windows[2];
    const unsigned planes = place.windows[0] + depth - 1;
    SimilaritySum result;
    PlaneSums sums;
    sums.clear();
    loader.begin(tiles, place);
    rolled(0, planes, [&](unsigned plane) {
      loader.store(shared);
      __syncthreads();
      if (plane + 1 < planes) loader.load();
      sum_columns(shared);
      __syncthreads();
      sums.add(shared, row, column);
      // A sum that is no number holds something invalid.
      if (plane + 1 < depth || !has_window || sums[kX] != sums[kX]) return;
      result.sum += shared.formula(sums);
      ++result.windows;
    });
    reduce_cta<kThreads>(result, shared.sums, [](SimilaritySum& a, const SimilaritySum& b) {
      a.sum += b.sum;
      a.windows += b.windows;
    });
    if (threadIdx.x == 0) results[tile] = result;
  }
}

}  // namespace

SimilarityTiles similarity_tiles(const CudaShape& shape) {
  const verifier::WindowLayout layout(shape.view());
  SimilarityTiles tiles;
  if (!layout.has_windows()) return tiles;
  tiles.volumes = layout.volumes;
  tiles.window_elems = layout.window_elems();
  // Axes of one element change neither addresses nor windows.
  std::array<std::size_t, 3> axes{};
  std::size_t count = 0;
  for (std::size_t a = 0; a < 3; ++a)
    if (layout.extents[a] != 1) axes[count++] = a;
  tiles.flat = count == 2;
  const std::array<std::size_t, 3> places =
      tiles.flat ? std::array<std::size_t, 3>{0, 2, 1} : std::array<std::size_t, 3>{0, 1, 2};
  for (std::size_t i = 0; i < count; ++i) {
    tiles.extents[places[i]] = layout.extents[axes[i]];
    tiles.positions[places[i]] = layout.positions[axes[i]];
  }
  const std::array<std::uint64_t, 3> sizes =
      tiles.flat ? std::array<std::uint64_t, 3>{kTilePlanes, FlatTile::kRows, FlatTile::kColumns}
                 : std::array<std::uint64_t, 3>{kTilePlanes, SolidTile::kRows, SolidTile::kColumns};
  for (std::size_t a = 0; a < 3; ++a) tiles.tiles[a] = (tiles.positions[a] + sizes[a] - 1) / sizes[a];
  return tiles;
}

cudaError_t launch_similarity(const CudaPair& pair, const FillValues& fills, const QualityWorkspace& workspace,
                              unsigned max_ctas, cudaStream_t stream) {
  const SimilarityTiles tiles = similarity_tiles(pair.shape);
  const unsigned ctas = array_ctas(tiles.count(), max_ctas);
  return verifier::visit_element(pair.element, [&](auto type) {
    using E = typename decltype(type)::Element;
    const auto go = [&]<class Tile>(Tile) {
      return launch(&sum_similarities<E, Tile>, {ctas, kThreads, sizeof(TileShared<Tile>)}, stream, pair.original,
                    pair.reconstructed, tiles, fills, workspace.summary, workspace.similarities);
    };
    return tiles.flat ? go(FlatTile{}) : go(SolidTile{});
  });
}

}  // namespace quern::kernels
