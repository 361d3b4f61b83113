#include "codecs/lidar/geometry_encode.h"

#include <utility>

#include "codecs/lidar/exact/residuals.h"
#include "codecs/lidar/octree/tree.h"
#include "codecs/lidar/order/order_coder.h"
#include "codecs/lidar/prediction/expected_sites.h"
#include "codecs/lidar/rays/rays.h"
#include "kernels/common/bits.h"
#include "libcompress/core/run_tasks.h"

namespace quern::codec::lidar {
namespace {

/// Bound under the residuals of whole units, in units: rays are coded this far, the rest follows.
constexpr std::uint32_t kRayError = 4;
/// Bits a point below which rays are taken without a look at the octree: it needs more for points with their order.
constexpr std::uint64_t kGoodRayBits = 9;

bool counted(const GeometryTask& task) { return task.mode != Mode::set; }

/// What residuals are differences of: whole units, or ordered bit patterns.
std::int64_t residual_value(const GeometryTask& task, std::int64_t units) {
  return task.whole_units ? units : std::int64_t{kernels::ordered_key<std::uint32_t>(word_of(units, task.scale))};
}

/// `place(i, axis)`: coordinates in units of what point i decodes to without residuals.
template <class Place>
Vector<std::uint8_t> residuals_of(const GeometryTask& task, const Place& place) {
  if (task.mode != Mode::exact) return {};
  Vector<std::int64_t> decoded, exact;
  decoded.reserve(3 * task.points.size());
  exact.reserve(3 * task.points.size());
  for (std::size_t i = 0; i < task.points.size(); ++i)
    for (unsigned axis = 0; axis < 3; ++axis) {
      decoded.push_back(residual_value(task, place(i, axis)));
      exact.push_back(task.whole_units ? (task.points[i][axis] + kFine / 2) >> kFineBits
                                       : std::int64_t{kernels::ordered_key<std::uint32_t>(task.words[3 * i + axis])});
    }
  return encode_residuals(decoded, exact);
}

Result<CodedGeometry> code_octree(const GeometryTask& task, Prediction prediction, TaskRunner& runner) {
  CodedGeometry coded;
  coded.lattice = task.whole_units ? Lattice{1, false} : task.lattice;
  BlockRequest request;
  request.lattice = coded.lattice;
  request.reach = task.whole_units ? kFine : task.reach;
  request.each_point = counted(task);
  request.slices = task.slices;
  const Vector<Site> expected = expected_sites(prediction, coded.lattice);
  request.expected = expected;
  request.keep_expected = !task.few_points;
  const BlockList list = make_blocks(task.points, request);
  coded.predicted = !expected.empty() && list.blocks.size() <= kMostExpectingBlocks;
  const Surroundings surroundings{coded.lattice, task.scale.per_metre};
  Vector<Site> sites;
  Vector<std::uint32_t> counts;
  for (const Block& block : list.blocks) {
    append_sites(block, coded.lattice.centred, sites);
    counts.insert(counts.end(), block.counts.begin(), block.counts.end());
  }
  coded.block_parts.resize(list.blocks.size());
  QUERN_RETURN_IF_ERROR(run_tasks(runner, list.blocks.size() + 1, [&](std::size_t i) {
    if (i > 0) {
      const Block& block = list.blocks[i - 1];
      ExpectedCubes cubes;
      if (coded.predicted) cubes = expected_cubes(expected, block.origin, block.depth, coded.lattice.centred);
      coded.block_parts[i - 1] = encode_block(block, surroundings, cubes);
    } else if (counted(task) && !task.points.empty()) {
      coded.order = encode_order(sites, counts, list.site_of_point);
    }
    return Status();
  }));
  for (std::size_t i = 0; i < list.blocks.size(); ++i) {
    BlockEntry& entry = coded.blocks.emplace_back();
    entry.origin = list.blocks[i].origin;
    entry.depth = list.blocks[i].depth;
    entry.cubes = list.blocks[i].cubes.size();
    for (const std::uint32_t count : list.blocks[i].counts) entry.points += count;
    entry.part = entry_of(coded.block_parts[i]);
  }
  coded.residuals = residuals_of(
      task, [&](std::size_t i, unsigned axis) { return sites[list.site_of_point[i]][axis] * coded.lattice.spacing; });
  coded.points = counted(task) ? task.points.size() : sites.size();
  return coded;
}

/// With the prediction, where it makes the octree smaller by more than its check.
Result<CodedGeometry> code_by_octree(const GeometryTask& task, TaskRunner& runner) {
  QUERN_ASSIGN_OR_RETURN(CodedGeometry alone, code_octree(task, {}, runner));
  if (task.prediction.empty()) return alone;
  QUERN_ASSIGN_OR_RETURN(CodedGeometry predicted, code_octree(task, task.prediction, runner));
  if (predicted.predicted && predicted.bytes() + sizeof(ScanHeader::prediction_check) < alone.bytes()) return predicted;
  return alone;
}

Result<std::optional<CodedGeometry>> code_by_rays(const GeometryTask& task) {
  CodedGeometry coded;
  const std::int64_t reach = task.whole_units ? enforceable(kRayError) : task.reach;
  coded.lattice = task.whole_units ? *lattice_for(reach) : task.lattice;
  if (!coded.lattice.centred || task.points.empty()) return std::optional<CodedGeometry>();
  auto rays = encode_rays(task.points, coded.lattice.spacing, reach);
  if (!rays) return std::optional<CodedGeometry>();
  coded.rays = true;
  coded.order = std::move(*rays);
  coded.points = task.points.size();
  if (task.mode != Mode::exact) return std::optional(std::move(coded));
  Vector<Site> decoded(task.points.size());
  QUERN_RETURN_IF_ERROR(decode_rays(coded.order, coded.lattice.spacing, decoded));
  coded.residuals = residuals_of(task, [&](std::size_t i, unsigned axis) { return decoded[i][axis]; });
  return std::optional(std::move(coded));
}

/// In mode `set` an octree merges points and rays do not: where it merges many, rays cannot win.
bool rays_may_win(const CodedGeometry& octree, const GeometryTask& task) {
  return 5 * octree.points >= 3 * task.points.size();
}

}  // namespace

Result<CodedGeometry> code_geometry(const GeometryTask& task, TaskRunner& runner) {
  if (!counted(task)) {
    QUERN_ASSIGN_OR_RETURN(CodedGeometry octree, code_by_octree(task, runner));
    if (!rays_may_win(octree, task)) return octree;
    QUERN_ASSIGN_OR_RETURN(auto rays, code_by_rays(task));
    if (rays && rays->bytes() < octree.bytes()) return std::move(*rays);
    return octree;
  }
  QUERN_ASSIGN_OR_RETURN(auto rays, code_by_rays(task));
  if (rays && 8 * rays->order.size() <= kGoodRayBits * task.points.size()) return std::move(*rays);
  QUERN_ASSIGN_OR_RETURN(CodedGeometry octree, code_by_octree(task, runner));
  if (rays && rays->bytes() < octree.bytes()) return std::move(*rays);
  return octree;
}

}  // namespace quern::codec::lidar
