// Fields of a chunk, bit by bit.
#include "codecs/autoencoder/chunk_head.h"

#include "coding/stream_reader.h"
#include "kernels/network/network.h"
#include "libcompress/format/bit_stream.h"

namespace quern::codec::autoencoder {
namespace {

constexpr unsigned kStreamBitsWidth = 3;
constexpr unsigned kMultiplierWidth = 31;
constexpr unsigned kShiftWidth = 6;
constexpr unsigned kLatentStepWidth = 15;

}  // namespace

void write_head(const ChunkHead& head, Vector<std::uint8_t>& out) {
  BitWriter bits(out);
  write_base_and_step(head.format, bits);
  bits.put(head.masked ? 1 : 0, 1);
  bits.put(head.has_residuals ? 1 : 0, 1);
  for (const std::uint16_t step : head.networks.latent_step) bits.put(step != 0 ? 1 : 0, 1);
  if (head.networks.used()) {
    bits.put(head.networks.multiplier, kMultiplierWidth);
    bits.put(head.networks.shift, kShiftWidth);
    for (const std::uint16_t step : head.networks.latent_step)
      if (step != 0) bits.put(step, kLatentStepWidth);
  }
  coding::write_distributions(head.numbers, bits);
  if (!head.has_residuals) return;
  bits.put(head.stream_bits, kStreamBitsWidth);
  coding::write_distributions(head.residuals, bits);
}

Result<ChunkHead> read_head(std::span<const std::uint8_t>& in) {
  ChunkHead head;
  BitReader bits(in);
  if (!read_base_and_step(bits, head.format))
    return Status(StatusCode::corrupt, "autoencoder: a base or step is no number");
  head.masked = bits.get(1) != 0;
  head.has_residuals = bits.get(1) != 0;
  for (std::uint16_t& step : head.networks.latent_step) step = static_cast<std::uint16_t>(bits.get(1));
  if (head.networks.used()) {
    head.networks.multiplier = static_cast<std::uint32_t>(bits.get(kMultiplierWidth));
    head.networks.shift = static_cast<unsigned>(bits.get(kShiftWidth));
    if (head.networks.shift < 1 || head.networks.shift > kernels::kMostRescaleShift)
      return Status(StatusCode::corrupt, "autoencoder: outputs of networks have an unknown shift");
    for (std::uint16_t& step : head.networks.latent_step) {
      if (step == 0) continue;
      step = static_cast<std::uint16_t>(bits.get(kLatentStepWidth));
      if (step == 0) return Status(StatusCode::corrupt, "autoencoder: latents have no step");
    }
  }
  QUERN_RETURN_IF_ERROR(coding::read_distributions(bits, head.numbers));
  if (head.has_residuals) {
    head.stream_bits = static_cast<unsigned>(bits.get(kStreamBitsWidth));
    if (head.stream_bits > coding::kMaxStreamBits) return Status(StatusCode::corrupt, "autoencoder: too many streams");
    QUERN_RETURN_IF_ERROR(coding::read_distributions(bits, head.residuals));
  }
  if (bits.failed()) return Status(StatusCode::corrupt, "autoencoder: a chunk is cut short");
  in = in.subspan(bits.bytes_used());
  return head;
}

}  // namespace quern::codec::autoencoder
