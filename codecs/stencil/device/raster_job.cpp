// Parsing with the decoder's own functions.
#include "codecs/stencil/device/raster_job.h"

#include "codecs/stencil/device/job_parts.h"
#include "codecs/stencil/raster/tables.h"
#include "kernels/stencil/raster_job.h"

namespace quern::codec::stencil {
namespace {

using kernels::RasterJob;

void lay_out_work(RasterJob& head) {
  const std::uint64_t elems = std::uint64_t{head.planes} * head.rows * head.columns;
  std::uint64_t bytes = 0;
  const auto take = [&](std::uint64_t count, std::size_t width) {
    const auto begin = static_cast<std::uint32_t>(bytes);
    bytes += kernels::job_aligned(count * width);
    return begin;
  };
  head.values = take(elems, sizeof(double));
  head.magnitudes = take(elems, sizeof(std::uint32_t));
  head.means = take(head.mean ? std::uint64_t{head.rows} * head.columns : 0, sizeof(double));
  head.head.work_bytes = static_cast<std::uint32_t>(bytes);
}

}  // namespace

bool append_raster_job(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& box,
                       Vector<std::uint8_t>& out) {
  if (in.empty() || in[0] != static_cast<std::uint8_t>(Mode::raster)) return false;
  in = in.subspan(1);
  const kernels::StencilExtents extents = kernels::stencil_extents(box.extents);
  RasterModel model;
  if (!read_raster_model(in, extents, model).ok() || model.format.masked != (box.special != nullptr)) return false;
  RasterJob head;
  JobParts parts;
  if (!parts.take_starts(model.distributions, head.serving)) return false;
  Reader reader(in);
  if (!parts.take_exceptions(spec.dtype, reader, extents.elems())) return false;
  if (std::size_t{1} << model.stream_bits > extents.planes * extents.rows) return false;
  coding::StreamReader streams;
  if (!streams.open(model.stream_bits, reader, in).ok()) return false;
  parts.take_streams(streams, head.lanes);

  RasterTables tables;
  describe_raster(spec.dtype, model, box.extents, {box.strides, box.special_strides}, head, tables);
  lay_out_work(head);
  head.table_count = static_cast<std::uint32_t>(parts.starts.size());
  head.exception_count = static_cast<std::uint32_t>(parts.exceptions.size());

  JobAppender job(out, sizeof head);
  head.taps = job.add(tables.taps);
  head.context_taps = job.add(tables.context_taps);
  head.starts = job.add(parts.starts);
  head.exceptions = job.add(parts.exceptions);
  head.words = job.add(parts.words);
  head.head.bytes = job.bytes();
  job.set_head(head);
  return true;
}

}  // namespace quern::codec::stencil
