// By name, or by what codecs say of themselves.
#include "libcompress/pipeline/encode/candidates.h"

#include <utility>

#include "libcompress/pipeline/encode/mask_setting.h"

namespace quern {
namespace {

constexpr CodecTier kTiers[] = {CodecTier::throughput, CodecTier::archive, CodecTier::ratio};

void add_tier(Vector<Candidate>& list, CodecTier tier, DType dtype, BoundKind kind, bool takes_settings,
              bool idempotent, const Registry& registry) {
  for (const ArrayCodec* codec : registry.all()) {
    const bool keeps = !idempotent || codec->info().idempotent;
    if (codec->info().tier == tier && keeps && codec->supports(dtype, kind))
      list.push_back({codec, takes_settings, {}});
  }
}

/// For lossless: the archive; under the goal speed what is faster, if it keeps every bit.
Vector<Candidate> exact_candidates(DType dtype, const CompressOptions& options, bool takes_settings,
                                   const Registry& registry) {
  Vector<Candidate> list;
  if (options.goal == "speed")
    add_tier(list, CodecTier::throughput, dtype, BoundKind::lossless, takes_settings, options.idempotent, registry);
  if (list.empty())
    add_tier(list, CodecTier::archive, dtype, BoundKind::lossless, takes_settings, options.idempotent, registry);
  if (list.empty()) list.push_back({});
  list.resize(1);
  return list;
}

}  // namespace

Result<Vector<Candidate>> find_candidates(DType dtype, BoundKind kind, const CompressOptions& options,
                                          const Registry& registry) {
  Vector<Candidate> list;
  const bool asked_exact = options.bound.kind == BoundKind::lossless;
  if (options.codec != "auto") {
    const ArrayCodec* codec = registry.by_name(options.codec);
    if (options.idempotent && !codec->info().idempotent)
      return Status(StatusCode::unsupported,
                    "the codec makes no idempotent streams; `quern list codecs` says which do");
    if (codec->supports(dtype, kind)) {
      list.push_back({codec, true, {}});
    } else if (kind == BoundKind::lossless) {
      list = exact_candidates(dtype, options, false, registry);
    } else {
      return Status(StatusCode::unsupported,
                    "the codec does not take this element type under this kind of bound; try another codec, or auto");
    }
    return list;
  }
  if (kind == BoundKind::lossless) return exact_candidates(dtype, options, asked_exact, registry);
  for (const CodecTier tier : kTiers) {
    if (tier == CodecTier::ratio && options.goal == "speed") continue;
    if (tier != CodecTier::archive) {
      add_tier(list, tier, dtype, kind, true, options.idempotent, registry);
    } else if (options.goal != "speed" && codec_settings(options.settings).empty()) {
      // Settings are for codecs that take the bound; what ignores them must not win by that.
      add_tier(list, tier, dtype, BoundKind::lossless, false, options.idempotent, registry);
    }
  }
  if (list.empty()) return exact_candidates(dtype, options, false, registry);
  return list;
}

Vector<Candidate> alternatives_of(const Candidate& candidate, const CompressOptions& options, const Shape& shape) {
  Vector<Candidate> list;
  if (candidate.codec != nullptr)
    for (Settings& alternative :
         candidate.codec->alternatives(candidate.takes_settings ? codec_settings(options.settings) : Settings(), shape))
      list.push_back({candidate.codec, candidate.takes_settings, std::move(alternative)});
  if (list.empty()) list.push_back(candidate);
  return list;
}

}  // namespace quern
