// Grids over clouds, and searches in them: a thread a point, warps walk runs of 32. Kernels are templates, so that the
// compiler makes what warps run for the device alone.
#include "kernels/lidar/cuda/both_ways_cuda.h"

#include "kernels/common/cuda/warp_lanes.cuh"
#include "kernels/lidar/cuda/runs.cuh"
#include "kernels/lidar/warp/build_grid.h"
#include "kernels/lidar/warp/find_nearest.h"

namespace quern::kernels {
namespace {

constexpr std::size_t kAlignment = 256;

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

template <class X>
__global__ void __launch_bounds__(kRunThreads) count_grid_points(const __grid_constant__ GridRoom room) {
  for (std::uint64_t i = own_run(); i < room.count; i += run_stride())
    count_points<X>(room, static_cast<std::uint32_t>(i));
}

template <class X>
__global__ void __launch_bounds__(kRunThreads) give_grid_entries(const __grid_constant__ GridRoom room) {
  for (std::uint64_t i = own_run(); i < room.cells.buckets(); i += run_stride())
    give_entries<X>(room, static_cast<std::uint32_t>(i));
}

template <class X>
__global__ void __launch_bounds__(kRunThreads) put_grid_points(const __grid_constant__ GridRoom room) {
  for (std::uint64_t i = own_run(); i < room.count; i += run_stride())
    put_points<X>(room, static_cast<std::uint32_t>(i));
}

/// Blocks of a multiprocessor that leave a search the registers it needs: with fewer registers it spills.
constexpr unsigned kSearchBlocks = 4;

template <class X>
__global__ void __launch_bounds__(kRunThreads, kSearchBlocks)
    find_nearest_points(const __grid_constant__ NearGrid grid, const __grid_constant__ CudaCloud cloud,
                        std::uint32_t* nearest, NearestCounts* counts) {
  NearestFinder<X> finder;
  for (std::uint64_t i = own_run(); i < cloud.count; i += run_stride())
    finder.find(grid, cloud.points, cloud.count, static_cast<std::uint32_t>(i), nearest);
  finder.add_to(*counts);
}

/// Where the parts of a grid lie in its room.
struct RoomPlan {
  GridCells cells;
  std::size_t ends_at = 0;  ///< begins lie at 0
  std::size_t given_at = 0;
  std::size_t entries_at = 0;
  std::size_t bytes = 0;

  RoomPlan(std::uint32_t points, std::int64_t reach, unsigned fineness)
      : cells(points, reach, fineness),
        ends_at(aligned(cells.buckets() * sizeof(std::uint32_t))),
        given_at(2 * ends_at),
        entries_at(given_at + kAlignment),
        bytes(entries_at + aligned(points * sizeof(GridEntry))) {}
};

bool is_searchable(const CudaCloud& cloud, std::int64_t reach, unsigned fineness, unsigned max_blocks) {
  return cloud.count <= kMostGridPoints && reach >= 1 && reach <= GridCells::kMostReach &&
         fineness <= GridCells::kMostFineness && max_blocks > 0;
}

cudaError_t search_async(const NearGrid& grid, const CudaCloud& cloud, std::uint32_t* nearest, NearestCounts* counts,
                         cudaStream_t stream, unsigned max_blocks) {
  if (cloud.count == 0) return cudaSuccess;
  return launch(&find_nearest_points<WarpLanes>, shape_for_runs(cloud.count, max_blocks), stream, grid, cloud, nearest,
                counts);
}

/// The points may be many more than the decoded ones, so their cells are smaller. What is found depends on neither.
constexpr unsigned kDecodedFineness = 0;
constexpr unsigned kPointsFineness = 1;

}  // namespace

std::size_t grid_bytes(std::uint32_t points, std::int64_t reach, unsigned fineness) {
  return RoomPlan(points, reach, fineness).bytes;
}

cudaError_t build_grid_async(const CudaCloud& cloud, std::int64_t reach, unsigned fineness, void* room,
                             std::size_t room_bytes, NearGrid& grid, cudaStream_t stream, unsigned max_blocks) {
  if (!is_searchable(cloud, reach, fineness, max_blocks)) return cudaErrorInvalidValue;
  const RoomPlan plan(cloud.count, reach, fineness);
  if (room_bytes < plan.bytes) return cudaErrorInvalidValue;
  auto* const bytes = static_cast<std::uint8_t*>(room);
  GridRoom built;
  built.cells = plan.cells;
  built.points = cloud.points;
  built.count = cloud.count;
  built.begins = reinterpret_cast<std::uint32_t*>(bytes);
  built.ends = reinterpret_cast<std::uint32_t*>(bytes + plan.ends_at);
  built.given = reinterpret_cast<std::uint32_t*>(bytes + plan.given_at);
  built.entries = reinterpret_cast<GridEntry*>(bytes + plan.entries_at);
  grid = built.grid();
  if (const cudaError_t error = cudaMemsetAsync(room, 0, plan.entries_at, stream); error != cudaSuccess) return error;
  if (cloud.count == 0) return cudaSuccess;
  const LaunchShape by_points = shape_for_runs(cloud.count, max_blocks);
  if (const cudaError_t error = launch(&count_grid_points<WarpLanes>, by_points, stream, built); error != cudaSuccess)
    return error;
  const cudaError_t error =
      launch(&give_grid_entries<WarpLanes>, shape_for_runs(plan.cells.buckets(), max_blocks), stream, built);
  if (error != cudaSuccess) return error;
  return launch(&put_grid_points<WarpLanes>, by_points, stream, built);
}

std::size_t both_ways_bytes(std::uint32_t points, std::uint32_t decoded, std::int64_t reach) {
  return grid_bytes(points, reach, kPointsFineness) + grid_bytes(decoded, reach, kDecodedFineness);
}

cudaError_t check_both_ways_async(const CudaCloud& points, const CudaCloud& decoded, std::int64_t reach,
                                  std::uint32_t* nearest_decoded, std::uint32_t* nearest_point, CudaBothWays* out,
                                  void* room, std::size_t room_bytes, cudaStream_t stream, unsigned max_blocks) {
  if (!is_searchable(points, reach, kPointsFineness, max_blocks) ||
      !is_searchable(decoded, reach, kDecodedFineness, max_blocks) ||
      room_bytes < both_ways_bytes(points.count, decoded.count, reach))
    return cudaErrorInvalidValue;
  const std::size_t of_points = grid_bytes(points.count, reach, kPointsFineness);
  NearGrid near_points, near_decoded;
  cudaError_t error =
      build_grid_async(points, reach, kPointsFineness, room, of_points, near_points, stream, max_blocks);
  if (error != cudaSuccess) return error;
  error = build_grid_async(decoded, reach, kDecodedFineness, static_cast<std::uint8_t*>(room) + of_points,
                           room_bytes - of_points, near_decoded, stream, max_blocks);
  if (error != cudaSuccess) return error;
  error = cudaMemsetAsync(out, 0, sizeof *out, stream);
  if (error != cudaSuccess) return error;
  error = search_async(near_decoded, points, nearest_decoded, &out->of_points, stream, max_blocks);
  if (error != cudaSuccess) return error;
  return search_async(near_points, decoded, nearest_point, &out->of_decoded, stream, max_blocks);
}

}  // namespace quern::kernels
