// Tables of the rANS coder, for encoding and for decoding.
#include "codecs/lossless/rans.h"

namespace quern::codec::lossless {

void make_encode_table(const Frequencies& frequencies, EncodeTable& table) {
  std::uint32_t start = 0;
  for (std::size_t symbol = 0; symbol < 256; ++symbol) {
    const std::uint32_t frequency = frequencies[symbol];
    if (frequency == 0) continue;
    table[symbol] = {(std::uint64_t{1} << 63) / frequency + 1, frequency, start};
    start += frequency;
  }
}

void make_decode_table(const Frequencies& frequencies, DecodeTable& table) {
  std::size_t slot = 0;
  for (std::uint32_t symbol = 0; symbol < 256; ++symbol) {
    const std::uint32_t frequency = frequencies[symbol];
    for (std::uint32_t offset = 0; offset < frequency; ++offset, ++slot) {
      table[slot] = (frequency - 1) << 20 | offset << 8 | symbol;
    }
  }
}

}  // namespace quern::codec::lossless
