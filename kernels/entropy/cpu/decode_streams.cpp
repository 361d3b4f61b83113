// The states of interleaved streams as arrays.
#include "kernels/entropy/cpu/decode_streams.h"

namespace quern::kernels {

DecodeStreams::DecodeStreams(std::span<const RansSource> sources) : mask(sources.size() - 1) {
  // A state's four bytes lie before the words of its stream.
  words = sources[0].at - 4;
  for (std::size_t stream = 0; stream < sources.size(); ++stream) {
    states[stream] = sources[stream].state;
    at[stream] = static_cast<std::uint32_t>((sources[stream].at - words) / 2);
    end[stream] = static_cast<std::uint32_t>((sources[stream].end - words) / 2);
    failed |= static_cast<std::uint32_t>(sources[stream].failed) << stream;
  }
}

bool DecodeStreams::finished() const {
  if (failed != 0) return false;
  for (std::size_t stream = 0; stream <= mask; ++stream)
    if (at[stream] != end[stream] || states[stream] != kRansFloor) return false;
  return true;
}

}  // namespace quern::kernels
