// Writes the stored form of chunks under the wavelet by the document, with the library's bit fields.
#include "tests/golden/wavelet_by_hand.h"

#include <bit>

#include "libcompress/format/bit_stream.h"

namespace quern::golden {
namespace {

constexpr unsigned kFeatures = 15;

void put_weights(BitWriter& bits, std::uint64_t first) {
  bits.put(first != 0 ? 1 : 0, 1);
  if (first != 0) bits.put_golomb(first - 1, 7);
  bits.put(0, kFeatures - 1);
}

}  // namespace

Vector<std::uint8_t> chunk_bytes(const StoredWavelet& chunk) {
  Vector<std::uint8_t> out{static_cast<std::uint8_t>(kWaveletMode)};
  BitWriter bits(out);
  bits.put(std::bit_cast<std::uint64_t>(chunk.base) >> 32, 32);
  bits.put(std::bit_cast<std::uint64_t>(chunk.unit) >> 32, 32);
  bits.put(chunk.masked, 1);
  bits.put(chunk.packets, 2);
  for (const unsigned levels : chunk.levels) bits.put(levels, 5);
  bits.put(chunk.step, 20);
  bits.put(chunk.first_offset, 5);
  bits.put(chunk.offset, 5);
  put_weights(bits, chunk.first_weight);
  bits.put(chunk.constant_order, 4);
  for (const std::uint64_t constant : chunk.constants) bits.put_golomb(constant, chunk.constant_order);
  bits.put(chunk.corrections ? 1 : 0, 1);
  if (chunk.corrections) {
    bits.put(chunk.corrections->step, 20);
    put_weights(bits, chunk.corrections->first_weight);
    bits.put_golomb(chunk.corrections->constant, 7);
  }
  put_distributions(bits, chunk);
  if (chunk.cut > 0) out.resize(out.size() - chunk.cut);
  if (chunk.cut > 0) return out;
  for (const auto* part : {&chunk.exceptions, &chunk.lane_sizes, &chunk.lanes})
    out.insert(out.end(), part->begin(), part->end());
  return out;
}

}  // namespace quern::golden
