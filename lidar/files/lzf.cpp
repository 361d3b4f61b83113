// LZF, the compression of PCD's binary_compressed. A control byte below 32 says how many literal bytes follow, less one;
// others are copies: length in the high three bits (7: the next byte is added), distance in the low five and a byte.
#include "lidar/files/formats.h"

namespace quern::lidar {

Status expand_lzf(std::span<const std::uint8_t> in, std::span<std::uint8_t> out) {
  const Status corrupt(StatusCode::corrupt, "the compressed points are damaged");
  std::size_t at = 0;
  std::size_t done = 0;
  while (at < in.size()) {
    const unsigned control = in[at++];
    if (control < 32) {
      const std::size_t count = control + 1;
      if (count > in.size() - at || count > out.size() - done) return corrupt;
      for (std::size_t i = 0; i < count; ++i) out[done++] = in[at++];
      continue;
    }
    std::size_t length = (control >> 5) + 2;
    if (control >> 5 == 7) {
      if (at == in.size()) return corrupt;
      length += in[at++];
    }
    if (at == in.size()) return corrupt;
    const std::size_t distance = (std::size_t{control & 31} << 8 | in[at++]) + 1;
    if (distance > done || length > out.size() - done) return corrupt;
    for (std::size_t i = 0; i < length; ++i, ++done) out[done] = out[done - distance];
  }
  return done == out.size() ? Status() : corrupt;
}

}  // namespace quern::lidar
