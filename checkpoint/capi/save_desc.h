// quern_checkpoint_save_desc as the options of a save.
#pragma once

#include <quern/checkpoint.h>

#include "checkpoint/policy.h"

namespace quern::checkpoint::capi {

/// Fills in what the caller said; refuses presets that are not known.
Status read_save_desc(const quern_checkpoint_save_desc& desc, SaveOptions& options, Preset& preset, Report& report);

}  // namespace quern::checkpoint::capi
