// Jobs, and bytes from what comes of them.
#include "codecs/stencil/device/raster_encode.h"

#include <algorithm>
#include <cstring>

#include "codecs/stencil/device/job_parts.h"
#include "codecs/stencil/elements.h"
#include "codecs/stencil/raster/tables.h"
#include "coding/stream_words.h"
#include "libcompress/format/writer.h"

namespace quern::codec::stencil {
namespace {

using kernels::RasterEncodeJob;
using kernels::RowLanesJob;

/// Sums of weights, in units of one, times values stay below 2^50 in any order.
constexpr unsigned kSumBits = 50;
/// One exception for so many elements: a chunk with more gains little.
constexpr std::uint32_t kElemsPerException = 8;
constexpr std::uint32_t kLeastExceptions = 64;

std::uint32_t lay_out_work(RasterEncodeJob& job) {
  kernels::RasterJob& head = job.raster;
  const std::uint64_t plane = std::uint64_t{head.rows} * head.columns;
  const std::uint64_t elems = head.planes * plane;
  std::uint64_t bytes = 0;
  const auto take = [&](std::uint64_t wanted) {
    const auto begin = static_cast<std::uint32_t>(bytes);
    bytes += kernels::job_aligned(wanted);
    return begin;
  };
  // When values are no longer needed, words of lanes lie in their place.
  const std::uint64_t words = elems * kernels::kMostResidualWords + kernels::kMostStreamLanes * kernels::kStateWords;
  head.values = take(std::max(elems * sizeof(double), words * sizeof(std::uint16_t)));
  head.means = take(head.mean ? plane * sizeof(double) : 0);
  job.targets = take(plane * sizeof(std::int64_t));
  job.codes = take(elems * sizeof(std::int32_t));
  job.symbols = take(elems * sizeof(std::uint16_t));
  job.exceptions = static_cast<std::uint32_t>(elems / kElemsPerException) + kLeastExceptions;
  job.exception_list = take(job.exceptions * sizeof(std::uint32_t));
  return static_cast<std::uint32_t>(bytes);
}

}  // namespace

bool RasterEncoding::start(const EncodeSpec& chunk_spec, const ConstBox3& chunk, std::span<std::uint8_t> scratch,
                           Vector<std::uint8_t>& out) {
  places_ = lattice_places(chunk_spec, chunk);
  const bool on_lattice = !places_.numbers.empty();
  if (on_lattice) places_.box.data = places_.numbers.data();
  const EncodeSpec& spec = on_lattice ? places_.spec : chunk_spec;
  const ConstBox3& in = on_lattice ? places_.box : chunk;
  model_ = {};
  if (!fit_raster_model(spec, in, scratch, model_)) return false;
  dtype_ = spec.dtype;
  in_ = in;
  raw_bytes_ = in.elems() * dtype_bytes(spec.dtype);
  array_bytes_ = in.elems() * dtype_bytes(chunk_spec.dtype);
  job_ = {};
  job_.raster.head.kind = kernels::JobKind::raster;
  RasterTables tables;
  const std::array<std::uint64_t, 2> dense{in.extents[1] * in.extents[2], in.extents[2]};
  describe_raster(spec.dtype, model_, in.extents, {dense, dense}, job_.raster, tables);
  job_.bound = spec.bound;
  job_.inverse = 1 / model_.format.unit();
  job_.most = std::int64_t{1} << (kSumBits - kWeightSumBits - model_.format.weight_bits);
  work_bytes_ = lay_out_work(job_);
  JobAppender job(out, sizeof job_);
  job_.raster.taps = job.add(tables.taps);
  job_.raster.context_taps = job.add(tables.context_taps);
  job_.raster.head.bytes = job.bytes();
  job_.raster.head.work_bytes = work_bytes_;
  job.set_head(job_);
  return true;
}

bool RasterEncoding::choose(const kernels::RasterEncodeResult& result, std::span<const std::uint32_t> exceptions,
                            Vector<std::uint8_t>& out) {
  exceptions_ = {};
  exceptions_.count = exceptions.size();
  with_element(dtype_, [&](auto element) {
    using Bits = typename decltype(element)::Bits;
    Writer writer(exceptions_.bytes);
    std::uint64_t next = 0;
    for (const std::uint32_t index : exceptions) {
      const std::uint64_t x = index % in_.extents[2];
      writer.varint(index - next);
      writer.unsigned_of(
          static_cast<const Bits*>(in_.data)[row_offset(in_, static_cast<std::size_t>(index / in_.extents[2])) + x],
          sizeof(Bits));
      next = std::uint64_t{index} + 1;
    }
  });
  coding::BinCounts counts;
  static_assert(sizeof counts == sizeof result.counts);
  std::memcpy(counts.data(), result.counts, sizeof counts);
  const std::uint64_t rows = std::uint64_t{job_.raster.planes} * job_.raster.rows;
  if (!choose_raster_coding(counts, exceptions_, rows, raw_bytes_, model_)) return false;

  RowLanesJob lanes;
  JobParts parts;
  if (!parts.take_starts(model_.distributions, lanes.serving)) return false;
  const Vector<kernels::RowSection> sections{{static_cast<std::uint32_t>(rows), job_.raster.columns}};
  lanes.mask = (1u << model_.stream_bits) - 1;
  lanes.codes = job_.codes;
  lanes.symbols = job_.symbols;
  lanes.words = job_.raster.values;
  lanes.most_words = static_cast<std::uint32_t>(most_words());
  lanes.head.work_bytes = work_bytes_;
  append_lanes_job(sections, parts, lanes, out);
  return true;
}

std::size_t RasterEncoding::write(std::span<const std::uint32_t> lane_words, const std::uint16_t* words,
                                  std::span<std::uint8_t> out) const {
  const std::size_t lattice_bytes = places_.numbers.empty() ? 0 : kLatticeHead;
  Vector<std::uint8_t> head(lattice_bytes);
  if (lattice_bytes != 0) write_lattice(places_.lattice, head);
  write_raster_head(model_, kernels::stencil_extents(in_.extents).shape(), exceptions_, head);
  Writer writer(head);
  const std::size_t lanes = std::size_t{1} << model_.stream_bits;
  const std::uint64_t total = coding::write_lane_sizes(lane_words.first(lanes), writer);
  if (head.size() - lattice_bytes + 2 * total > 1 + raw_bytes_) return 0;
  if (lattice_bytes != 0 && head.size() + 2 * total > array_bytes_) return 0;
  coding::put_head_and_words(head, {words, static_cast<std::size_t>(total)}, out);
  return head.size() + 2 * static_cast<std::size_t>(total);
}

}  // namespace quern::codec::stencil
