// Drives among the streams of records that `quern info` and `quern verify` tell of.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "cli/args/run_args.h"

namespace quern::cli {

/// Decodes every frame of the drive that begins with the bytes. Returns what is wrong with the first frame that does
/// not decode, or nothing; frames that a history predicted are passed over.
std::string undecodable_frame(std::span<const std::uint8_t> stream, const RunArgs& run);

}  // namespace quern::cli
