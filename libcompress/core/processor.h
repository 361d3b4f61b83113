// On which processor a thread runs. A new thread often begins on that of its maker and stays there beside it for
// milliseconds, while others are idle: systems spread threads for long work, and ours is short.
#pragma once

namespace quern {

/// The processor that the calling thread runs on; -1 where the system does not tell.
int current_processor();

/// Moves the calling thread elsewhere if it runs on `processor` and may run on others. Where it may run is as before
/// when this returns. Does nothing for -1, and where the system has no means for it. Three system calls.
void leave_processor(int processor);

}  // namespace quern
