#include "codecs/lidar/geometry_encode.h"

#include <algorithm>
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

/// The octree of a scan, alone or with a prediction, on its way from points to bytes.
struct OctreeCoding {
  Prediction prediction;
  CodedGeometry coded;
  PredictedSites predicted;
  BlockList list;
  Vector<Site> sites;
  Vector<std::uint32_t> counts;

  std::size_t tasks() const { return list.blocks.size() + 1; }
};

void choose_sites(const GeometryTask& task, OctreeCoding& coding) {
  coding.coded.lattice = task.whole_units ? Lattice{1, false} : task.lattice;
  BlockRequest request;
  request.lattice = coding.coded.lattice;
  request.reach = task.whole_units ? kFine : task.reach;
  request.each_point = counted(task);
  request.slices = task.slices;
  coding.predicted = predicted_sites(coding.prediction, coding.coded.lattice);
  request.expected = coding.predicted.expected.sites;
  request.keep_expected = !task.few_points;
  coding.list = make_blocks(task.points, request);
  const Vector<Block>& blocks = coding.list.blocks;
  coding.coded.predicted = !coding.predicted.expected.sites.empty() && blocks.size() <= kMostExpectingBlocks;
  coding.coded.block_parts.resize(blocks.size());
  for (const Block& block : blocks) {
    append_sites(block, coding.coded.lattice.centred, coding.sites);
    coding.counts.insert(coding.counts.end(), block.counts.begin(), block.counts.end());
  }
}

/// Task 0 codes the order of points, the others a block each.
void code_part(const GeometryTask& task, OctreeCoding& coding, std::size_t i) {
  if (i > 0) {
    const Block& block = coding.list.blocks[i - 1];
    const bool centred = coding.coded.lattice.centred;
    BlockPrediction own;
    if (coding.coded.predicted) own = block_prediction(coding.predicted, block.origin, block.depth, centred);
    coding.coded.block_parts[i - 1] = encode_block(block, {coding.coded.lattice, task.scale.per_metre}, own);
  } else if (counted(task) && !task.points.empty()) {
    coding.coded.order = encode_order(coding.sites, coding.counts, coding.list.site_of_point);
  }
}

CodedGeometry finish_octree(const GeometryTask& task, OctreeCoding& coding) {
  CodedGeometry coded = std::move(coding.coded);
  const Vector<Block>& blocks = coding.list.blocks;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    BlockEntry& entry = coded.blocks.emplace_back();
    entry.origin = blocks[i].origin;
    entry.depth = blocks[i].depth;
    entry.cubes = blocks[i].cubes.size();
    for (const std::uint32_t count : blocks[i].counts) entry.points += count;
    entry.part = entry_of(coded.block_parts[i]);
  }
  coded.residuals = residuals_of(task, [&](std::size_t i, unsigned axis) {
    return coding.sites[coding.list.site_of_point[i]][axis] * coded.lattice.spacing;
  });
  coded.points = counted(task) ? task.points.size() : coding.sites.size();
  return coded;
}

/// For each prediction the octree with it, where that makes it smaller by more than its check, else that without.
Result<Vector<CodedGeometry>> code_by_octree(const GeometryTask& task, std::span<const Prediction> predictions,
                                             TaskRunner& runner) {
  Vector<OctreeCoding> codings(1);
  for (const Prediction& prediction : predictions)
    if (!prediction.empty()) codings.emplace_back().prediction = prediction;
  QUERN_RETURN_IF_ERROR(run_tasks(runner, codings.size(), [&](std::size_t i) {
    choose_sites(task, codings[i]);
    return Status();
  }));
  Vector<std::pair<std::size_t, std::size_t>> parts;
  for (std::size_t i = 0; i < codings.size(); ++i)
    for (std::size_t part = 0; part < codings[i].tasks(); ++part) parts.emplace_back(i, part);
  QUERN_RETURN_IF_ERROR(run_tasks(runner, parts.size(), [&](std::size_t i) {
    code_part(task, codings[parts[i].first], parts[i].second);
    return Status();
  }));
  const CodedGeometry alone = finish_octree(task, codings.front());
  Vector<CodedGeometry> result;
  std::size_t next = 1;
  for (const Prediction& prediction : predictions) {
    result.push_back(alone);
    if (prediction.empty()) continue;
    CodedGeometry predicted = finish_octree(task, codings[next++]);
    if (predicted.predicted && predicted.bytes() + sizeof(ScanHeader::prediction_check) < alone.bytes())
      result.back() = std::move(predicted);
  }
  return result;
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

Result<Vector<CodedGeometry>> code_geometry(const GeometryTask& task, std::span<const Prediction> predictions,
                                            TaskRunner& runner) {
  std::optional<CodedGeometry> rays;
  if (counted(task)) {
    QUERN_ASSIGN_OR_RETURN(rays, code_by_rays(task));
    if (rays && 8 * rays->order.size() <= kGoodRayBits * task.points.size())
      return Vector<CodedGeometry>(predictions.size(), *rays);
  }
  QUERN_ASSIGN_OR_RETURN(auto coded, code_by_octree(task, predictions, runner));
  const auto may_win = [&](const CodedGeometry& octree) { return counted(task) || rays_may_win(octree, task); };
  if (!counted(task) && std::any_of(coded.begin(), coded.end(), may_win)) {
    QUERN_ASSIGN_OR_RETURN(rays, code_by_rays(task));
  }
  for (CodedGeometry& octree : coded)
    if (rays && may_win(octree) && rays->bytes() < octree.bytes()) octree = *rays;
  return coded;
}

}  // namespace quern::codec::lidar
