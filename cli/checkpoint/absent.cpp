// quern checkpoint in a build without the store.
#include "cli/args/exit_codes.h"
#include "cli/verbs/verbs.h"

namespace quern::cli {

Exit run_checkpoint(const CheckpointArgs& /*args*/) {
  fail(Exit::resource, "checkpoint: this build has no checkpoint store; build with QUERN_CHECKPOINT=ON");
}

}  // namespace quern::cli
