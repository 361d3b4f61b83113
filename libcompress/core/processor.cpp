#include "libcompress/core/processor.h"

#ifdef __linux__
#include <sched.h>
#endif

#include <cstddef>

namespace quern {

#ifdef __linux__

int current_processor() { return sched_getcpu(); }

void leave_processor(int processor) {
  if (processor < 0 || current_processor() != processor) return;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;  // more processors than a set of this size names
  cpu_set_t others = allowed;
  CPU_CLR(static_cast<std::size_t>(processor), &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof(others), &others) != 0) return;
  sched_setaffinity(0, sizeof(allowed), &allowed);
}

#else

int current_processor() { return -1; }

void leave_processor(int) {}

#endif

}  // namespace quern
