// One array to one stream on a descriptor: chooses between memory, mapping, streaming and a temporary file, and checks
// the result when asked to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <quern/compress.h>
#include <quern/estimate.h>
#include <quern/steps.h>
#include <quern/suspicions.h>

#include "cli/args/args.h"
#include "cli/bounds/precision.h"
#include "cli/files/input_array.h"
#include "cli/verbs/stream_check.h"

namespace quern::cli {

struct EncodedArray {
  CompressReport report;
  double seconds = 0;  ///< in the codec; reading and writing files is not counted
  std::optional<StreamCheck> checked;
  /// What codec stencil would have written, where a codec was asked for that auto never takes.
  std::optional<std::uint64_t> stencil_bytes;
  Vector<Suspicion> suspicions;
  std::optional<ReferenceId> reference;     ///< what the stream was predicted from
  std::uint64_t alone_bytes = 0;            ///< of the stream by itself, where it was predicted
  std::optional<FoundPrecision> precision;  ///< where the bound followed from the values
  std::vector<Estimate>
      expected;  ///< --explain, --calibration: of each codec that was tried, under the bound it came to
};

/// Appends the stream to `fd`. Throws CliError; when --verify finds a violation the code is Exit::bound and, where the
/// stream was held back in memory or in a temporary file, nothing was written. `device` may be null. With `steps` the
/// array is the next one of that session.
EncodedArray encode_array(InputArray& input, const ErrorBound& bound, const CompressArgs& args, Device* device, int fd,
                          const std::string& output_name, StepEncoder* steps = nullptr);

}  // namespace quern::cli
