// Streams that reach a PSNR or a ratio: the bound is searched by trial, the outcome is measured.
#pragma once

#include <quern/compress.h>

#include "libcompress/pipeline/search/trials.h"

namespace quern {

/// Writes the smallest stream found, over all codecs that the options allow, whose PSNR is the target or more; lossless
/// where no bound reaches it. About four encodings and decodings a codec; for the tier ratio on large arrays most of
/// them on a sample.
Result<CompressReport> write_psnr(Trials& trials, ByteSink& sink);

/// Writes the stream of the smallest bound found (under the goal psnr: of the highest PSNR) whose ratio is the target
/// or more. Fails with `bound_not_met`, naming the largest ratio seen, when there is none. Encodings as above.
Result<CompressReport> write_ratio(Trials& trials, ByteSink& sink);

}  // namespace quern
