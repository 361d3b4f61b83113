// From tensors that were added to a session that codes them.
#pragma once

#include "checkpoint/capi/handles.h"

namespace quern::checkpoint::capi {

/// Pieces of a tensor agree in dtype and in the whole's shape and do not overlap; with `all_here` they also fill it.
Status check_pieces(const Vector<AddedTensor>& tensors, bool all_here, Report& report);

/// Codes the tensors as the preset says, what others need first; counts into `out`.
Status save_added(SaveSession& session, quern_checkpoint_writer& writer, quern_checkpoint_result& out, Report& report);

}  // namespace quern::checkpoint::capi
