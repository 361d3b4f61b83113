// Lanes as decoders of all layouts read them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/status.h>

#include "codecs/stencil/model/model.h"
#include "kernels/entropy/rans.h"
#include "kernels/stencil/cpu/decode.h"
#include "libcompress/format/reader.h"

namespace quern::codec::stencil {

inline constexpr std::size_t kMaxLanes = std::size_t{1} << kMaxLaneBits;
static_assert(kMaxLanes == kernels::kMostResidualLanes && kLevels == kernels::kResidualLevels);

struct LaneSources {
  std::array<kernels::RansSource, kMaxLanes> sources{};
  std::size_t mask = 0;  ///< how many there are, less one

  /// Lanes that follow their number and fill `in`.
  Status open(std::span<const std::uint8_t> in) {
    Reader reader(in);
    QUERN_ASSIGN_OR_RETURN(const std::uint8_t bits, reader.u8());
    if (bits > kMaxLaneBits) return Status(StatusCode::corrupt, "stencil: a chunk has too many lanes");
    return open(bits, reader, in);
  }
  /// 2^bits lanes, at most kMaxLanes, that fill what `reader` has left of `in`.
  Status open(unsigned bits, Reader& reader, std::span<const std::uint8_t> in) {
    mask = (std::size_t{1} << bits) - 1;
    std::array<std::uint64_t, kMaxLanes> words{};
    std::uint64_t known = 0;
    for (std::size_t lane = 0; lane < mask; ++lane) {
      QUERN_ASSIGN_OR_RETURN(words[lane], reader.varint(in.size()));
      known += words[lane];
    }
    const std::uint64_t left = reader.remaining();
    if (left > kernels::kMostLaneBytes) return Status(StatusCode::corrupt, "stencil: lanes are too long");
    if (left % 2 != 0 || known > left / 2)
      return Status(StatusCode::corrupt, "stencil: sizes of lanes do not fit their chunk");
    words[mask] = left / 2 - known;
    const std::uint8_t* at = in.data() + reader.position();
    for (std::size_t lane = 0; lane <= mask; ++lane) {
      if (words[lane] < 2) return Status(StatusCode::corrupt, "stencil: a lane has no state");
      std::uint32_t state = 0;
      for (unsigned i = 0; i < 4; ++i) state |= static_cast<std::uint32_t>(at[i]) << (8 * i);
      if (state < kernels::kRansFloor) return Status(StatusCode::corrupt, "stencil: a lane begins below its floor");
      sources[lane] = {at + 4, at + 2 * words[lane], state, false};
      at += 2 * words[lane];
    }
    return {};
  }
  std::span<const kernels::RansSource> used() const { return {sources.data(), mask + 1}; }
  bool failed() const {
    return std::ranges::any_of(used(), [](const kernels::RansSource& s) { return s.failed; });
  }
  bool finished() const {
    return std::ranges::all_of(used(), [](const kernels::RansSource& s) { return s.finished(); });
  }
};

}  // namespace quern::codec::stencil
