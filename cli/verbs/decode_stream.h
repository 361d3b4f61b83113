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
#include "cli/streams/step_decoders.h"

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
void decode_part(StepDecoders& steps, std::size_t step, std::span<const std::uint8_t> stream, const StreamInfo& info,
                 const DecodeContext& context, const TakeElements& take, DecodeOutcome& outcome);

/// The last stream's values, where the next one may have been predicted from them and they take little enough memory.
struct PipedValues {
  Buffer values;
  ArrayView view;
  std::uint64_t dropped_bytes = 0;  ///< that they would have taken, where it was too much
};

/// Decodes the stream that begins at a pipe's position and leaves the pipe after it; what it holds, at the level.
/// `last`: of the stream before, and then of this one.
StreamInfo decode_pipe(FdSource& source, const DecodeContext& context, const TakeElements& take, PipedValues& last,
                       DecodeOutcome& outcome);

/// Decodes a box of one step, or of the combined array of all streams; `infos` (at the level) describe them.
void decode_region(StepDecoders& steps, std::optional<std::size_t> step, const std::vector<StreamInfo>& infos,
                   const Box& box, const DecodeContext& context, const TakeElements& take, DecodeOutcome& outcome);

}  // namespace quern::cli
