// quern_checkpoint_save_desc as the options of a save.
#pragma once

#include <quern/checkpoint.h>

#include "checkpoint/policy/policy.h"
#include "checkpoint/policy/replay_rule.h"
#include "checkpoint/save/save.h"

namespace quern::checkpoint::capi {

/// Fills in what the caller said; refuses presets that are not known.
Status read_save_desc(const quern_checkpoint_save_desc& desc, SaveOptions& options, Preset& preset, Report& report);
/// The texts of `policy` and `replay`; refuses what a save could not follow.
Status read_rules(const quern_checkpoint_save_desc& desc, Policy& policy, std::optional<ReplayRule>& replay,
                  Report& report);

}  // namespace quern::checkpoint::capi
