// Which codecs may write a stream, before any of them has seen a value.
#pragma once

#include <quern/codec.h>
#include <quern/compress.h>
#include <quern/memory.h>
#include <quern/status.h>

namespace quern {

struct Candidate {
  const ArrayCodec* codec = nullptr;  ///< null: every chunk is stored raw
  bool takes_settings = true;         ///< false: the settings were meant for another codec
  Settings alternative;               ///< put behind the settings: one of the codec's alternatives

  CodecTier tier() const { return codec != nullptr ? codec->info().tier : CodecTier::archive; }
  const char* name() const { return codec != nullptr ? codec->info().name : "stored"; }
};

/// Codecs for arrays of `dtype` under that kind of enforced bound, the fastest tier first; never empty. A codec asked
/// for by name is the only one, but for lossless requests that it does not take. Under `auto`: for lossless the
/// archive tier; else all codecs that take the bound, and the archive, without the ratio tier when the goal is speed.
Result<Vector<Candidate>> find_candidates(DType dtype, BoundKind kind, const CompressOptions& options,
                                          const Registry& registry);

/// The candidate once for each alternative that its codec has under the settings; else as it is.
Vector<Candidate> alternatives_of(const Candidate& candidate, const CompressOptions& options, const Shape& shape);

}  // namespace quern
