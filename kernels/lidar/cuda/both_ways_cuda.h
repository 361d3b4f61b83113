// Do two clouds lie within a distance of each other, both in device memory. Exact whole numbers; what comes out is what
// the codec's own check on the host finds. Nothing here allocates or waits; all is queued on the caller's stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/lidar/near_grid.h"

namespace quern::kernels {

/// Thread blocks that fill any device; more points than they have threads are walked in turn.
inline constexpr unsigned kMostGridBlocks = 2048;
/// Points of a cloud.
inline constexpr std::uint32_t kMostGridPoints = 1U << 30;

struct CudaCloud {
  const GridPoint* points = nullptr;  ///< shape (count, 3), device memory
  std::uint32_t count = 0;            ///< at most kMostGridPoints
};

/// Device memory of a grid over that many points, aligned to 256 bytes: 32 bytes a point and 8 to 16 for buckets.
std::size_t grid_bytes(std::uint32_t points, std::int64_t reach, unsigned fineness);

/// Queues the building of the grid of a cloud, which stays where it is. `room` has grid_bytes(). The grid is complete
/// when the stream comes there; searches look within `reach`, from 1 to GridCells::kMostReach. cudaErrorInvalidValue for
/// numbers beyond their limits, and a room that is too small.
cudaError_t build_grid_async(const CudaCloud& cloud, std::int64_t reach, unsigned fineness, void* room,
                             std::size_t room_bytes, NearGrid& grid, cudaStream_t stream,
                             unsigned max_blocks = kMostGridBlocks);

/// Both directions of a check.
struct CudaBothWays {
  NearestCounts of_points;   ///< missing: points that no decoded one is near
  NearestCounts of_decoded;  ///< missing: decoded points that are near no point
};

/// Device memory that a check takes, aligned to 256 bytes.
std::size_t both_ways_bytes(std::uint32_t points, std::uint32_t decoded, std::int64_t reach);

/// For each point of both clouds the nearest of the other within `reach`: indices, NearestPoint::kNone where there is
/// none, the lowest of equally near ones. `nearest_decoded` has an element for each point, `nearest_point` for each
/// decoded one, and `out` is one; device memory. The result is the same for every `max_blocks`, which is at least 1.
cudaError_t check_both_ways_async(const CudaCloud& points, const CudaCloud& decoded, std::int64_t reach,
                                  std::uint32_t* nearest_decoded, std::uint32_t* nearest_point, CudaBothWays* out,
                                  void* room, std::size_t room_bytes, cudaStream_t stream,
                                  unsigned max_blocks = kMostGridBlocks);

}  // namespace quern::kernels
