// What was made lossy in a save, for people.
#pragma once

#include "checkpoint/convert/checkpoint_files.h"

namespace quern::checkpoint {

/// Tensors of one role that came back other than they were, under one promise.
struct LossyKind {
  String role;
  std::optional<LossyRequest> request;  ///< nothing: a copy in 16 bits that follows its weight
  std::uint64_t tensors = 0;
};

struct LossySummary {
  Vector<LossyKind> kinds;  ///< weights, first moments, second moments, others
  std::uint64_t lossy = 0;
  std::uint64_t exact = 0;
};

LossySummary summarize_loss(const Vector<TensorSummary>& tensors);

/// What a bound counts in: "std", "absolute", "sqrt(v)", "ln sqrt(v)", or "" for modes without one.
const char* unit_text(const LossyRequest& lossy);

/// "3 kinds made lossy: 24 weights within 0.001 std, 48 first moments within 0.05 updates, 48 second moments within a
/// factor 1.105; 31 tensors exact", or "all 31 tensors exact".
String loss_sentence(const LossySummary& summary);

/// A sentence for a preset that makes weights lossy and found none, because no name tells that it is one. Else empty.
String unnamed_weights_note(Preset preset, const Vector<TensorSummary>& tensors);

}  // namespace quern::checkpoint
