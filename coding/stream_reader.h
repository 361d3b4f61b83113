// Reader of interleaved rANS streams: their sizes and states are checked before a symbol is decoded.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/status.h>

#include "kernels/entropy/cpu/decode_streams.h"
#include "kernels/entropy/rans.h"
#include "libcompress/format/reader.h"

namespace quern::coding {

inline constexpr unsigned kMaxStreamBits = 5;
static_assert(std::size_t{1} << kMaxStreamBits == kernels::kMaxStreams);

/// The stored bytes stay the caller's and outlive the reader. Bytes are hostile: a stream that is read beyond its end
/// gives zeros and fails.
///
///   [u8: stream bits] size of stream 0 .. of the last but one, in words (varints)
///   words of stream 0 | words of stream 1 | ... each: u32 state, then u16 words in the order of decoding
struct StreamReader {
  std::array<kernels::RansSource, kernels::kMaxStreams> sources{};
  std::size_t mask = 0;  ///< how many there are, less one

  /// Streams that follow their number and fill `in`. `corrupt` when sizes or states break a rule.
  Status open(std::span<const std::uint8_t> in) {
    Reader reader(in);
    QUERN_ASSIGN_OR_RETURN(const std::uint8_t bits, reader.u8());
    if (bits > kMaxStreamBits) return Status(StatusCode::corrupt, "residuals: too many streams");
    return open(bits, reader, in);
  }
  /// 2^bits streams, bits <= kMaxStreamBits, that fill what `reader` has left of `in`.
  Status open(unsigned bits, Reader& reader, std::span<const std::uint8_t> in) {
    mask = (std::size_t{1} << bits) - 1;
    std::array<std::uint64_t, kernels::kMaxStreams> words{};
    std::uint64_t known = 0;
    for (std::size_t stream = 0; stream < mask; ++stream) {
      QUERN_ASSIGN_OR_RETURN(words[stream], reader.varint(in.size()));
      known += words[stream];
    }
    const std::uint64_t left = reader.remaining();
    if (left > kernels::kMaxStreamBytes) return Status(StatusCode::corrupt, "residuals: streams are too long");
    if (left % 2 != 0 || known > left / 2)
      return Status(StatusCode::corrupt, "residuals: sizes of streams do not fit their bytes");
    words[mask] = left / 2 - known;
    const std::uint8_t* at = in.data() + reader.position();
    for (std::size_t stream = 0; stream <= mask; ++stream) {
      if (words[stream] < 2) return Status(StatusCode::corrupt, "residuals: a stream has no state");
      std::uint32_t state = 0;
      for (unsigned i = 0; i < 4; ++i) state |= static_cast<std::uint32_t>(at[i]) << (8 * i);
      if (state < kernels::kRansFloor) return Status(StatusCode::corrupt, "residuals: a stream begins below its floor");
      sources[stream] = {at + 4, at + 2 * words[stream], state, false};
      at += 2 * words[stream];
    }
    return {};
  }
  std::span<const kernels::RansSource> used() const { return {sources.data(), mask + 1}; }
  bool failed() const {
    return std::ranges::any_of(used(), [](const kernels::RansSource& s) { return s.failed; });
  }
  /// True when every word of every stream was used and the states are those that encoding began with.
  bool finished() const {
    return std::ranges::all_of(used(), [](const kernels::RansSource& s) { return s.finished(); });
  }
};

}  // namespace quern::coding
