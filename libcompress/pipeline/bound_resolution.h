// Turns what a user asked for into the bound a codec works under.
#pragma once

#include <optional>

#include <quern/compress.h>

#include "libcompress/pipeline/range.h"
#include "libcompress/pipeline/setup.h"

namespace quern {

/// Range of a request that gives one, as if it had been measured.
std::optional<ExactRange> given_range(const CompressOptions& options);

/// For every kind but psnr and ratio. `range` is needed for rel only; without a valid value, rel means lossless.
ResolvedBound resolve_bound(const ErrorBound& bound, const std::optional<ExactRange>& range);

/// abs with a value; lossless when the value is 0.
EnforcedBound absolute_bound(double value);

}  // namespace quern
