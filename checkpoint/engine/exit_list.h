// Engines that are open when the process ends.
#pragma once

namespace quern::checkpoint {

class Engine;

/// Has `engine` closed, as its options say, when the process ends by exit() or by the return of main().
void close_at_exit(Engine& engine);
/// It was closed.
void forget_at_exit(Engine& engine);

}  // namespace quern::checkpoint
