// The rule of an optimizer as a file says it, in the words of PyTorch, and as a step needs it.
#pragma once

#include "checkpoint/safetensors/json.h"
#include "checkpoint/safetensors/safetensors.h"
#include "codecs/tensor/replay.h"

namespace quern::checkpoint {

/// Numbers of a rule that are given; the others come from elsewhere.
struct ReplayNumbers {
  std::optional<double> rate, beta1, beta2, epsilon, decay, clip;
  std::optional<std::uint64_t> step;
};

/// Numbers for some parameters, instead of those of the whole rule.
struct ReplayGroup {
  String name;  ///< glob on the weight's name; empty: all
  std::size_t min_rank = 0;
  std::size_t max_rank = kMaxRank;
  ReplayNumbers numbers;
};

struct ReplayRule {
  kernels::AdamOrder order = kernels::AdamOrder::fused;
  kernels::AdamDecay decay_kind = kernels::AdamDecay::decoupled;
  bool correct_bias = true;
  ReplayNumbers numbers;
  Vector<ReplayGroup> groups;  ///< the first that fits counts
};

/// {"optimizer":"adamw"|"adam","order":"fused"|"separate","lr":X,"betas":[X,X],"eps":X,"weight_decay":X,"clip_scale":X,
/// "step":N,"bias_correction":true|false,"groups":[{"name":GLOB,"min_rank":N,"max_rank":N,"lr":X,...},...]}. Betas must
/// be given; eps is 1e-8 and weight_decay 0 without a word. The sentence of a failure does not name the file.
Result<ReplayRule> parse_replay_rule(std::string_view text, Report& report);

/// Takes lr, step and clip_scale from the metadata of the files that are saved, where the rule does not say them. The
/// step is otherwise the checkpoint's.
Status complete_rule(ReplayRule& rule, const Vector<const Metadata*>& metadata, std::uint64_t step, Report& report);

/// The files' 'lr', where there is one and it is a number.
std::optional<double> learning_rate(const Vector<const Metadata*>& metadata);

/// The settings for one parameter of a rule that is complete.
codec::tensor::AdamSettings replay_settings(const ReplayRule& rule, std::string_view weight, std::size_t rank);

}  // namespace quern::checkpoint
