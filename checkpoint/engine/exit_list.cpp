#include "checkpoint/engine/exit_list.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "checkpoint/engine/engine.h"

namespace quern::checkpoint {
namespace {

// Never destroyed: exit handlers run after destructors of what was made before them.
struct Open {
  std::mutex mutex;
  std::vector<Engine*> engines;
  bool registered = false;
};

Open& open_engines() {
  static Open* const open = new Open;
  return *open;
}

void close_all() {
  Open& open = open_engines();
  for (;;) {
    Engine* engine = nullptr;
    {
      const std::lock_guard lock(open.mutex);
      if (open.engines.empty()) return;
      engine = open.engines.back();
      open.engines.pop_back();
    }
    engine->close_for_exit();
  }
}

}  // namespace

void close_at_exit(Engine& engine) {
  Open& open = open_engines();
  const std::lock_guard lock(open.mutex);
  if (!open.registered) open.registered = std::atexit(close_all) == 0;
  open.engines.push_back(&engine);
}

void forget_at_exit(Engine& engine) {
  Open& open = open_engines();
  const std::lock_guard lock(open.mutex);
  std::erase(open.engines, &engine);
}

}  // namespace quern::checkpoint
