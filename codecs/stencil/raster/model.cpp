// Stored form of the model of a chunk in raster order, and the weights of classes that store none.
#include "codecs/stencil/raster/model.h"

#include <cstdlib>

#include "coding/stream_reader.h"
#include "kernels/common/bits.h"
#include "libcompress/format/bit_stream.h"

namespace quern::codec::stencil {
namespace {

using kernels::kRowClasses;
using kernels::StencilShape;
using kernels::Tap;
using kernels::TapList;

constexpr unsigned kOrderBits = 4;     // Golomb order of weights
constexpr unsigned kContextOrder = 5;  // Golomb order of context weights

/// Classes of rows that chunks of a shape may have.
bool class_exists(StencilShape shape, std::size_t c) {
  if (shape == StencilShape::planes) return true;
  return c % 2 == 1 && (shape == StencilShape::rows || c == 1);
}

/// Product of differences along the axes that a class can look back on.
Weights lorenzo_weights(const TapList& list, bool with_row, bool with_plane, unsigned weight_bits) {
  Weights weights{};
  for (std::size_t t = 0; t < list.count; ++t) {
    const Tap& tap = list.taps[t];
    const bool one_back = tap.column >= -1 && tap.column <= 0 && tap.row >= -1 && tap.row <= 0 && tap.plane >= -1;
    if (!one_back || (tap.row != 0 && !with_row) || (tap.plane != 0 && !with_plane)) continue;
    const int steps = -(tap.column + tap.row + tap.plane);
    weights[t] = (steps % 2 == 1 ? 1 : -1) * (1 << weight_bits);
  }
  return weights;
}

unsigned best_order(const Weights& weights, std::size_t count) {
  unsigned best = 0;
  std::uint64_t least = UINT64_MAX;
  for (unsigned order = 0; order < (1u << kOrderBits); ++order) {
    std::uint64_t bits = 0;
    for (std::size_t t = 0; t < count; ++t)
      bits += golomb_bits(kernels::zigzag(static_cast<std::uint32_t>(weights[t])), order);
    if (bits < least) {
      least = bits;
      best = order;
    }
  }
  return best;
}

}  // namespace

void complete_weights(StencilShape shape, RasterModel& model) {
  for (std::size_t c = 0; c < kRowClasses; ++c) {
    if (model.has_weights[c]) continue;
    const TapList list = kernels::taps_of(shape, c, model.mean);
    if (c / 2 == 1 && model.has_weights[c + 2]) {
      // The second plane borrows from later ones: what those take from planes before the first is taken from the first.
      const TapList later = kernels::taps_of(shape, c + 2, model.mean);
      Weights weights{};
      for (std::size_t t = 0; t < later.count; ++t) {
        Tap tap = later.taps[t];
        if (tap.plane != 0) tap.plane = -1;
        for (std::size_t u = 0; u < list.count; ++u)
          if (list.taps[u].plane == tap.plane && list.taps[u].row == tap.row && list.taps[u].column == tap.column)
            weights[u] += model.weights[c + 2][t];
      }
      model.weights[c] = weights;
      continue;
    }
    model.weights[c] =
        lorenzo_weights(list, c % 2 == 1 && shape == StencilShape::planes, c >= 2, model.format.weight_bits);
  }
}

void write_raster_model(const RasterModel& model, StencilShape shape, Vector<std::uint8_t>& out) {
  BitWriter writer(out);
  write_prediction_format(model.format, writer);
  writer.put(model.stream_bits, 3);
  writer.put(model.mean ? 1 : 0, 1);
  writer.put(model.format.masked ? 1 : 0, 1);
  for (std::size_t c = 0; c < kRowClasses; ++c) {
    if (!class_exists(shape, c)) continue;
    writer.put(model.has_weights[c] ? 1 : 0, 1);
    if (!model.has_weights[c]) continue;
    const std::size_t count = kernels::taps_of(shape, c, model.mean).count;
    const unsigned order = best_order(model.weights[c], count);
    writer.put(order, kOrderBits);
    for (std::size_t t = 0; t < count; ++t)
      writer.put_golomb(kernels::zigzag(static_cast<std::uint32_t>(model.weights[c][t])), order);
  }
  for (std::size_t t = 0; t < kernels::context_taps(shape).size(); ++t)
    writer.put_golomb(model.context_weights[t], kContextOrder);
  writer.put_golomb(model.context_constant, kContextOrder);
  coding::write_distributions(model.distributions, writer);
}

Status read_raster_model(std::span<const std::uint8_t>& bytes, const kernels::StencilExtents& extents,
                         RasterModel& model) {
  const StencilShape shape = extents.shape();
  const auto bad = [](const char* text) { return Status(StatusCode::corrupt, text); };
  BitReader reader(bytes);
  model = {};
  const bool good = read_prediction_format(reader, model.format);
  model.stream_bits = static_cast<unsigned>(reader.get(3));
  if (!good || model.stream_bits > coding::kMaxStreamBits) return bad("stencil: a chunk's numbers are out of range");
  model.mean = reader.get(1) != 0;
  if (model.mean && extents.planes < kernels::kMeanMinPlanes) return bad("stencil: a mean of too few planes");
  model.format.masked = reader.get(1) != 0;
  for (std::size_t c = 0; c < kRowClasses; ++c) {
    if (!class_exists(shape, c)) continue;
    model.has_weights[c] = reader.get(1) != 0;
    if (!model.has_weights[c]) continue;
    const auto order = static_cast<unsigned>(reader.get(kOrderBits));
    std::uint64_t sum = 0;
    for (std::size_t t = 0; t < kernels::taps_of(shape, c, model.mean).count; ++t) {
      const auto weight = static_cast<std::int64_t>(kernels::unzigzag(reader.get_golomb(order)));
      sum += static_cast<std::uint64_t>(std::abs(weight));
      if (reader.failed() || sum > std::uint64_t{1} << (model.format.weight_bits + kWeightSumBits))
        return bad("stencil: weights are out of range");
      model.weights[c][t] = static_cast<std::int32_t>(weight);
    }
  }
  for (std::size_t t = 0; t <= kernels::context_taps(shape).size(); ++t) {
    const std::uint64_t weight = reader.get_golomb(kContextOrder);
    if (weight > coding::kMaxContextWeight) return bad("stencil: context weights are out of range");
    (t < kernels::context_taps(shape).size() ? model.context_weights[t] : model.context_constant) =
        static_cast<std::uint32_t>(weight);
  }
  QUERN_RETURN_IF_ERROR(coding::read_distributions(reader, model.distributions));
  if (reader.failed()) return bad("stencil: a chunk's model is cut short");
  bytes = bytes.subspan(reader.bytes_used());
  complete_weights(shape, model);
  return {};
}

}  // namespace quern::codec::stencil
