// The independent check behind --verify and `quern verify`: decode a stream piece by piece and compare every element
// with the original, with code that shares nothing with an encoder.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <quern/compress.h>
#include <quern/metrics.h>

#include "cli/messages/file_report.h"
#include "cli/streams/step_decoders.h"

namespace quern::cli {

struct StreamCheck {
  StreamInfo info;
  Quality quality;   ///< over the whole array; ssim and autocorrelation only when it was checked in one piece
  BoundCheck bound;  ///< indices over the whole array
  double decode_seconds = 0;
  /// What was asked for and not reached although every element keeps the enforced bound; empty when all is well.
  std::string missed_target;

  bool passed() const { return bound.violations == 0 && missed_target.empty(); }
};

/// Gives the next `bytes` bytes of the original, valid until the next call. Throws CliError.
using NextOriginal = std::function<const void*(std::uint64_t bytes)>;

struct CheckOptions {
  std::uint64_t piece_bytes = UINT64_C(64) << 20;  ///< memory for decoded values
  bool with_ssim = false;
  ArrayView before;                ///< what the stream was predicted from, if it was
  Vector<std::uint64_t> left_out;  ///< values that quality figures leave out beside the declared fill values
};

/// Checks one stream that begins at the source's position. Throws CliError.
StreamCheck check_stream(ByteSource& source, std::uint64_t stream_bytes, const NextOriginal& next,
                         const CheckOptions& options, const Execution& execution, const std::string& name);
/// The same of one of several steps.
StreamCheck check_step(StepDecoders& steps, std::size_t step, std::uint64_t stream_bytes, const NextOriginal& next,
                       const CheckOptions& options, const Execution& execution, const std::string& name);

/// "12 elements miss |x - x'| <= 0.01; first at [0,4,17]: 1.5 became 1.75 (error 0.25, 2097152 ulps)".
std::string describe_failure(const StreamCheck& check);

/// "[0,4,17]"
std::string index_text(std::uint64_t index, const Shape& shape);

}  // namespace quern::cli
