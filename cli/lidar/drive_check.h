// Drives among the streams of records that `quern info` and `quern verify` tell of.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "cli/args/run_args.h"

namespace quern::cli {

struct DecodedFrames {
  std::string problem;                ///< of the first frame that does not decode; empty: none
  std::uint64_t without_history = 0;  ///< frames that were not decoded, for a history predicted them
};

/// What the frames of the drive that begins with the bytes came from, in words; a damaged frame ends the list.
std::string sources_of_drive(std::span<const std::uint8_t> stream, const RunArgs& run);

/// Decodes every frame of the drive that begins with the bytes, up to the first that does not decode.
DecodedFrames decode_frames(std::span<const std::uint8_t> stream, const RunArgs& run);

}  // namespace quern::cli
