#include "codecs/stencil/raster/stages.h"

#include "libcompress/format/writer.h"

namespace quern::codec::stencil {
namespace {

constexpr std::uint64_t kLaneBytes = 1024;  // payload that makes another lane worth its state

/// Few lanes for few bytes: each costs its state and its size.
unsigned lane_bits_for(std::uint64_t bytes, std::uint64_t rows) {
  unsigned bits = 0;
  while (bits < kMaxLaneBits && (std::uint64_t{2} << bits) * kLaneBytes <= bytes && (std::uint64_t{2} << bits) <= rows)
    ++bits;
  return bits;
}

}  // namespace

bool choose_raster_coding(LevelCounts& counts, const RasterExceptions& exceptions, std::uint64_t rows,
                          std::uint64_t raw_bytes, ChunkModel& model) {
  const std::uint64_t bytes = (fit_levels(counts, model) >> 12) / 8;
  if (bytes + exceptions.bytes.size() >= raw_bytes) return false;
  model.lane_bits = lane_bits_for(bytes, rows);
  return true;
}

void write_raster_head(const ChunkModel& model, kernels::StencilShape shape, const RasterExceptions& exceptions,
                       Vector<std::uint8_t>& out) {
  out.push_back(static_cast<std::uint8_t>(Mode::raster));
  write_model(model, shape, out);
  Writer writer(out);
  writer.varint(exceptions.count);
  writer.bytes(exceptions.bytes);
}

}  // namespace quern::codec::stencil
