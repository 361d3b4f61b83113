// From tensors that were added to a session that codes them.
#pragma once

#include "checkpoint/capi/handles.h"

namespace quern::checkpoint::capi {

/// Codes the tensors as the preset says, what others need first; counts into `out`.
Status save_added(SaveSession& session, quern_checkpoint_writer& writer, quern_checkpoint_result& out, Report& report);

}  // namespace quern::checkpoint::capi
