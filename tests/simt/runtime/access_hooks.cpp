// What the compiler calls at every access to memory in sources that were compiled with -fsanitize=thread. The
// sanitizer's library is not linked; these functions stand in its place, for kernels on the simulator.
#include <cstddef>

#include "tests/simt/runtime/grid_run.h"

#define SIMT_HOOK extern "C" __attribute__((visibility("default"))) void

namespace {

using simt::GridRun;

inline void plain(const void* at, std::size_t bytes, bool write) { GridRun::watch_plain_access(at, bytes, write); }

/// As for a device, an access to a volatile word is a relaxed atomic one.
inline void through_volatile(const void* at, std::size_t bytes, bool write) {
  GridRun::watch_volatile_access(at, bytes, write);
}

}  // namespace

#define SIMT_HOOKS(bytes)                                                                           \
  SIMT_HOOK __tsan_read##bytes(void* at) { plain(at, bytes, false); }                               \
  SIMT_HOOK __tsan_write##bytes(void* at) { plain(at, bytes, true); }                               \
  SIMT_HOOK __tsan_unaligned_read##bytes(void* at) { plain(at, bytes, false); }                     \
  SIMT_HOOK __tsan_unaligned_write##bytes(void* at) { plain(at, bytes, true); }                     \
  SIMT_HOOK __tsan_volatile_read##bytes(void* at) { through_volatile(at, bytes, false); }           \
  SIMT_HOOK __tsan_volatile_write##bytes(void* at) { through_volatile(at, bytes, true); }           \
  SIMT_HOOK __tsan_unaligned_volatile_read##bytes(void* at) { through_volatile(at, bytes, false); } \
  SIMT_HOOK __tsan_unaligned_volatile_write##bytes(void* at) { through_volatile(at, bytes, true); }
SIMT_HOOKS(1)
SIMT_HOOKS(2)
SIMT_HOOKS(4)
SIMT_HOOKS(8)
SIMT_HOOKS(16)
SIMT_HOOK __tsan_read_range(void* at, std::size_t bytes) { plain(at, bytes, false); }
SIMT_HOOK __tsan_write_range(void* at, std::size_t bytes) { plain(at, bytes, true); }
SIMT_HOOK __tsan_init() {}
SIMT_HOOK __tsan_func_entry(void*) {}
SIMT_HOOK __tsan_func_exit() {}
SIMT_HOOK __tsan_vptr_update(void**, void*) {}
SIMT_HOOK __tsan_vptr_read(void**) {}
