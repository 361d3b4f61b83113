// Stored form of the model of a chunk under the wavelet transform.
#include "codecs/stencil/wavelet/model.h"

#include "kernels/common/bits.h"
#include "libcompress/format/bit_stream.h"

namespace quern::codec::stencil {
namespace {

constexpr unsigned kWeightOrder = 7;
constexpr unsigned kLevelBits = 5;

void write_weights(const WaveletWeights& weights, BitWriter& writer) {
  for (const std::uint16_t w : weights) {
    writer.put(w != 0 ? 1 : 0, 1);
    if (w != 0) writer.put_golomb(w - 1u, kWeightOrder);
  }
}

/// False when a weight is too large.
bool read_weights(BitReader& reader, WaveletWeights& weights) {
  for (std::uint16_t& w : weights) {
    w = 0;
    if (reader.get(1) == 0) continue;
    const std::uint64_t weight = reader.get_golomb(kWeightOrder) + 1;
    if (weight > kMaxWaveletWeight) return false;
    w = static_cast<std::uint16_t>(weight);
  }
  return true;
}

unsigned best_order(std::span<const std::uint16_t> constants) {
  unsigned best = 0;
  std::uint64_t least = UINT64_MAX;
  for (unsigned order = 0; order < 16; ++order) {
    std::uint64_t bits = 0;
    for (const std::uint16_t c : constants) bits += golomb_bits(c, order);
    if (bits < least) {
      least = bits;
      best = order;
    }
  }
  return best;
}

}  // namespace

void write_wavelet_model(const WaveletModel& model, Vector<std::uint8_t>& out) {
  BitWriter writer(out);
  coding::write_base_and_step(model.format, writer);
  writer.put(model.masked ? 1 : 0, 1);
  writer.put(model.axes.packets, 2);
  for (std::size_t a = 0; a < model.axes.rank; ++a) writer.put(model.axes.levels[a], kLevelBits);
  writer.put(model.step, kWaveletStepBits);
  for (const int offset : model.offsets) writer.put(static_cast<unsigned>(offset) & 31, kOffsetBits);
  write_weights(model.weights, writer);
  const std::span<const std::uint16_t> constants(model.constants, wavelet_groups(model.axes));
  const unsigned order = best_order(constants);
  writer.put(order, 4);
  for (const std::uint16_t c : constants) writer.put_golomb(c, order);
  writer.put(model.correction != 0 ? 1 : 0, 1);
  if (model.correction != 0) {
    writer.put(model.correction, kWaveletStepBits);
    write_weights(model.correction_weights, writer);
    writer.put_golomb(model.correction_constant, kWeightOrder);
  }
  coding::write_distributions(model.distributions, writer);
}

Status read_wavelet_model(std::span<const std::uint8_t>& bytes, WaveletModel& model) {
  const auto bad = [](const char* text) { return Status(StatusCode::corrupt, text); };
  BitReader reader(bytes);
  if (!coding::read_base_and_step(reader, model.format)) return bad("stencil: a chunk's numbers are out of range");
  model.masked = reader.get(1) != 0;
  model.axes.packets = reader.get(2);
  for (std::size_t a = 0; a < model.axes.rank; ++a)
    model.axes.levels[a] = static_cast<unsigned>(reader.get(kLevelBits));
  if (!model.axes.possible()) return bad("stencil: a chunk has more wavelet levels than its axes allow");
  model.step = static_cast<unsigned>(reader.get(kWaveletStepBits));
  if (model.step == 0) return bad("stencil: coefficients without a step");
  for (int& offset : model.offsets) offset = static_cast<int>(reader.get(kOffsetBits) ^ 16) - 16;
  if (!read_weights(reader, model.weights)) return bad("stencil: context weights are out of range");
  const auto order = static_cast<unsigned>(reader.get(4));
  for (std::size_t g = 0; g < wavelet_groups(model.axes); ++g) {
    const std::uint64_t constant = reader.get_golomb(order);
    if (constant > kMaxWaveletWeight) return bad("stencil: context weights are out of range");
    model.constants[g] = static_cast<std::uint16_t>(constant);
  }
  if (reader.get(1) != 0) {
    model.correction = static_cast<unsigned>(reader.get(kWaveletStepBits));
    if (model.correction == 0 || !read_weights(reader, model.correction_weights))
      return bad("stencil: context weights are out of range");
    const std::uint64_t constant = reader.get_golomb(kWeightOrder);
    if (constant > kMaxWaveletWeight) return bad("stencil: context weights are out of range");
    model.correction_constant = static_cast<std::uint16_t>(constant);
  }
  QUERN_RETURN_IF_ERROR(coding::read_distributions(reader, model.distributions));
  if (reader.failed()) return bad("stencil: a chunk's model is cut short");
  bytes = bytes.subspan(reader.bytes_used());
  return {};
}

}  // namespace quern::codec::stencil
