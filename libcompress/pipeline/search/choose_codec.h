// The best of several codecs under one bound, found by encoding with each.
#pragma once

#include <quern/compress.h>

#include "libcompress/pipeline/search/trials.h"

namespace quern {

/// Writes the stream of the best candidate for the goal: the smallest, ties to the first; under the goal psnr the most
/// quality for its size. The report says what was tried.
Result<CompressReport> write_best(Trials& trials, const Vector<Candidate>& candidates, const ResolvedBound& bound,
                                  ByteSink& sink);

/// The candidate that would win, and what was tried, without keeping a stream.
struct CodecChoice {
  Candidate candidate;
  CodecReason reason = CodecReason::only_one;
  Vector<CodecTrial> tried;
};
Result<CodecChoice> choose_candidate(Trials& trials, const Vector<Candidate>& candidates, const ResolvedBound& bound);

/// Why a lone candidate writes the stream.
CodecReason lone_reason(const Candidate& candidate, const ResolvedBound& bound, const CompressOptions& options);

/// Whether a codec only refused settings: under auto they are for those that take them.
bool refused_settings(const Status& status, const CompressOptions& options);

/// A trial as it is reported.
CodecTrial describe_trial(const Trial& trial, bool measured);

}  // namespace quern
