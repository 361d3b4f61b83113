// Streams of one file to elements: in memory when they fit, piece by piece when not, and regions of them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <quern/compress.h>

#include "cli/args/args.h"
#include "cli/files/byte_streams.h"

namespace quern::cli {

/// Takes decoded elements in order. Throws CliError.
using TakeElements = std::function<void(std::span<const std::uint8_t>)>;

struct DecodeContext {
  std::string name;  ///< of the input, for messages
  Execution execution;
  std::uint64_t memory = 0;
  bool keep_going = false;
  bool check_faults = false;
  unsigned level = 0;  ///< coarse level that is wanted
};

struct DecodeOutcome {
  double seconds = 0;  ///< in the codec
  std::uint64_t elems = 0;
  std::uint64_t bytes_read = 0;  ///< of the streams
  bool on_device = false;
  std::vector<Hole> holes;
};

/// What headers say, with the shape of the level instead of the array's. Throws CliError (usage) where a stream has no
/// such level.
StreamInfo at_level(StreamInfo info, unsigned level, const std::string& name);

/// Decodes one whole stream held in addressable memory. Throws CliError.
void decode_part(std::span<const std::uint8_t> stream, const StreamInfo& info, const DecodeContext& context,
                 const TakeElements& take, DecodeOutcome& outcome);

/// Decodes the stream that begins at a pipe's position and leaves the pipe after it; what it holds, at the level.
StreamInfo decode_pipe(FdSource& source, const DecodeContext& context, const TakeElements& take,
                       DecodeOutcome& outcome);

/// Decodes a box of the combined array of all streams, which `infos` (at the level) describe.
void decode_region(const std::vector<std::span<const std::uint8_t>>& streams, const std::vector<StreamInfo>& infos,
                   const Box& box, const DecodeContext& context, const TakeElements& take, DecodeOutcome& outcome);

}  // namespace quern::cli
