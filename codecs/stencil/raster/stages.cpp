#include "codecs/stencil/raster/stages.h"

#include "coding/stream_writer.h"
#include "libcompress/format/writer.h"

namespace quern::codec::stencil {

bool choose_raster_coding(coding::BinCounts& counts, const RasterExceptions& exceptions, std::uint64_t rows,
                          std::uint64_t raw_bytes, RasterModel& model) {
  const std::uint64_t bytes = (coding::fit_distributions(counts, model.distributions) >> 12) / 8;
  if (bytes + exceptions.bytes.size() >= raw_bytes) return false;
  model.stream_bits = coding::choose_stream_bits(bytes, rows);
  return true;
}

void write_raster_head(const RasterModel& model, kernels::StencilShape shape, const RasterExceptions& exceptions,
                       Vector<std::uint8_t>& out) {
  out.push_back(static_cast<std::uint8_t>(Mode::raster));
  write_raster_model(model, shape, out);
  Writer writer(out);
  writer.varint(exceptions.count);
  writer.bytes(exceptions.bytes);
}

}  // namespace quern::codec::stencil
