// Layout of an array: candidates, choice by estimate on a few chunks, params.
#include "codecs/lossless/layout.h"

#include <algorithm>
#include <optional>

#include "codecs/lossless/chunk.h"
#include "libcompress/core/buffer.h"
#include "libcompress/core/run_tasks.h"
#include "libcompress/core/scattered_sample.h"
#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern::codec::lossless {
namespace {

constexpr std::uint64_t kSampledChunks = 16;
/// Short rows are slow: a layout with rows below kShortRow must promise an eighth less.
constexpr std::uint64_t kShortRow = 16;
/// The last axis counts as this much shorter when the longest side of a chunk is cut: rows are the unit of all loops.
constexpr std::uint64_t kRowPreference = 4;

std::uint64_t target_elems(DType dtype) { return std::uint64_t{1} << (dtype_bytes(dtype) <= 2 ? 17 : 16); }

ChunkSpec spec_of(const ChunkGrid& grid, DType dtype) {
  return {dtype,
          {static_cast<std::size_t>(grid.chunk[0]), static_cast<std::size_t>(grid.chunk[1]),
           static_cast<std::size_t>(grid.chunk[2])},
          0};
}

/// Where a chunk lies in the sample.
struct PlacedChunk {
  std::uint64_t first = 0;
  ConstBox3 place;
};

/// Chunk `index`, or nothing when it reaches beyond the sample.
std::optional<PlacedChunk> chunk_in_sample(const ChunkGrid& grid, std::uint64_t index, std::uint64_t sample_elems) {
  const auto counts = grid.counts();
  const std::array<std::uint64_t, 3> at{index / (counts[1] * counts[2]), index / counts[2] % counts[1],
                                        index % counts[2]};
  ConstBox3 box;
  std::array<std::uint64_t, 3> begin{};
  for (std::size_t a = 0; a < 3; ++a) {
    begin[a] = at[a] * grid.chunk[a];
    box.extents[a] = std::min(grid.chunk[a], grid.extents[a] - begin[a]);
  }
  box.strides = {grid.extents[1] * grid.extents[2], grid.extents[2]};
  const std::uint64_t first = begin[0] * box.strides[0] + begin[1] * box.strides[1] + begin[2];
  const std::uint64_t last =
      first + (box.extents[0] - 1) * box.strides[0] + (box.extents[1] - 1) * box.strides[1] + box.extents[2] - 1;
  if (last >= sample_elems) return std::nullopt;
  return PlacedChunk{first, box};
}

/// Mean estimate of a few chunks spread over the sample; the largest value when none lies in it.
Result<std::uint64_t> estimate(const PlanRequest& request, const ChunkGrid& grid) {
  const ChunkSpec spec = spec_of(grid, request.dtype);
  AlignedBuffer scratch;
  AlignedBuffer room;
  QUERN_RETURN_IF_ERROR(scratch.resize(encode_scratch_bytes(spec)));
  QUERN_RETURN_IF_ERROR(room.resize(spec.raw_bytes()));
  const auto counts = grid.counts();
  const std::uint64_t sample_elems = request.sample->elems();
  // Chunks are in raster order, so the first ones lie in the sample.
  const std::uint64_t per_plane = counts[1] * counts[2];
  const std::uint64_t plane_elems = grid.chunk[0] * grid.extents[1] * grid.extents[2];
  const std::uint64_t planes = std::clamp<std::uint64_t>(sample_elems / plane_elems, 1, counts[0]);
  const std::uint64_t reachable = planes * per_plane;
  const std::uint64_t tries = std::min(reachable, kSampledChunks);
  std::uint64_t cost = 0;
  std::uint64_t elems = 0;
  for (std::uint64_t i = 0; i < tries; ++i) {
    const auto chunk = chunk_in_sample(grid, scattered_sample(reachable, tries, i), sample_elems);
    if (!chunk) continue;
    QUERN_ASSIGN_OR_RETURN(const ConstBox3 clean,
                           request.sample->look(chunk->first, chunk->place, room.data(), nullptr));
    cost += estimate_chunk(spec, clean, scratch.span()) * clean.elems();
    elems += clean.elems();
  }
  if (elems == 0) return UINT64_MAX;
  const std::uint64_t mean = cost / elems;
  return grid.chunk[2] < kShortRow ? mean + mean / 8 : mean;
}

}  // namespace

Vector<std::array<std::uint64_t, 3>> merged_extents(const Shape& shape) {
  Vector<std::uint64_t> axes;
  for (const std::uint64_t extent : shape.extents()) {
    if (extent != 1) axes.push_back(extent);
  }
  if (axes.empty()) axes.push_back(1);
  const auto product = [&](std::size_t begin, std::size_t end) {
    std::uint64_t result = 1;
    for (std::size_t a = begin; a < end; ++a) result *= axes[a];
    return result;
  };
  const std::size_t rank = axes.size();
  Vector<std::array<std::uint64_t, 3>> candidates;
  const auto axes_of = [](const auto& e) { return std::count_if(e.begin(), e.end(), [](auto n) { return n > 1; }); };
  // The slowest axis ends at `i`, the middle one at `j`; an empty one has extent 1.
  for (std::size_t j = rank; j-- > 0;) {
    for (std::size_t i = j + 1; i-- > 0;) {
      if (i == j && i > 0) continue;
      const std::array<std::uint64_t, 3> extents{product(0, i), product(i, j), product(j, rank)};
      // More axes first, ties in the order of the loops.
      candidates.insert(std::upper_bound(candidates.begin(), candidates.end(), extents,
                                         [&](const auto& a, const auto& b) { return axes_of(a) > axes_of(b); }),
                        extents);
    }
  }
  return candidates;
}

ChunkGrid cut(const std::array<std::uint64_t, 3>& extents, DType dtype) {
  ChunkGrid grid{extents, extents};
  const std::uint64_t target = target_elems(dtype);
  // Pieces along an axis grow until a chunk is small enough; extents above 2^32 are reduced first so that the product
  // cannot overflow.
  for (std::uint64_t& side : grid.chunk) side = std::min(side, target);
  while (grid.chunk[0] * grid.chunk[1] * grid.chunk[2] > target) {
    std::size_t longest = 2;
    std::uint64_t length = grid.chunk[2] / kRowPreference;
    for (std::size_t a = 0; a < 2; ++a) {
      if (grid.chunk[a] > std::max<std::uint64_t>(length, 1)) {
        longest = a;
        length = grid.chunk[a];
      }
    }
    grid.chunk[longest] = (grid.chunk[longest] + 1) / 2;
  }
  for (std::size_t a = 0; a < 3; ++a) {
    const std::uint64_t pieces = (extents[a] + grid.chunk[a] - 1) / grid.chunk[a];
    grid.chunk[a] = (extents[a] + pieces - 1) / pieces;
  }
  return grid;
}

Result<ChunkGrid> choose_layout(const PlanRequest& request) {
  Vector<ChunkGrid> grids;
  for (const auto& extents : merged_extents(request.shape)) grids.push_back(cut(extents, request.dtype));
  if (grids.size() == 1) return grids.front();
  Vector<std::uint64_t> costs(grids.size());
  QUERN_RETURN_IF_ERROR(run_tasks(*request.runner, grids.size(), [&](std::size_t i) -> Status {
    QUERN_ASSIGN_OR_RETURN(costs[i], estimate(request, grids[i]));
    return {};
  }));
  std::size_t best = 0;
  for (std::size_t i = 1; i < grids.size(); ++i) {
    // Contexts gain more where more axes are kept, which the estimate does not see: and the sample is thin: merging has
    // to pay clearly.
    if (costs[i] < costs[best] - costs[best] / 6) best = i;
  }
  return grids[best];
}

Vector<std::uint8_t> write_params(const ChunkGrid& grid, bool zstd) {
  Vector<std::uint8_t> params;
  Writer writer(params);
  writer.u8(zstd ? 1 : 0);
  for (const std::uint64_t extent : grid.extents) writer.varint(extent);
  for (const std::uint64_t side : grid.chunk) writer.varint(side);
  return params;
}

Status read_params(std::span<const std::uint8_t> params, const Shape& shape, ChunkGrid& grid, bool& zstd) {
  Reader reader(params);
  QUERN_ASSIGN_OR_RETURN(const std::uint8_t flags, reader.u8());
  if (flags > 1) return Status(StatusCode::corrupt, "lossless params have unknown flags {0}", flags);
  zstd = flags == 1;
  for (std::uint64_t& extent : grid.extents) {
    QUERN_ASSIGN_OR_RETURN(extent, reader.varint());
  }
  for (std::uint64_t& side : grid.chunk) {
    QUERN_ASSIGN_OR_RETURN(side, reader.varint(kMaxChunkElems));
  }
  QUERN_RETURN_IF_ERROR(reader.expect_end());
  std::uint64_t elems = 1;
  for (std::size_t a = 0; a < 3; ++a) {
    if (grid.chunk[a] == 0 || grid.chunk[a] > grid.extents[a]) {
      return Status(StatusCode::corrupt, "lossless chunk does not fit its grid");
    }
    const auto product = checked_multiply(elems, grid.extents[a]);
    if (!product) return Status(StatusCode::corrupt, "lossless grid is too large");
    elems = *product;
  }
  if (elems != shape.elems()) return Status(StatusCode::corrupt, "lossless grid does not have the array's elements");
  // Each side is at most 2^18, so the product fits.
  if (grid.chunk[0] * grid.chunk[1] * grid.chunk[2] > kMaxChunkElems) {
    return Status(StatusCode::corrupt, "lossless chunk is too large");
  }
  return {};
}

}  // namespace quern::codec::lossless
