// The CUDA thread that runs at this moment: its place, its CTA's shared memory, and the points at which another thread
// may go on in its stead.
#pragma once

#include <cstdint>

#include "simt/vector_types.h"

namespace simt {

/// What the threads of a CTA have in common.
struct CtaPlace {
  uint3 index{};
  dim3 threads;
  dim3 blocks;
  unsigned char* shared = nullptr;
};

struct ThreadPlace {
  uint3 index{};
  unsigned lane = 0;
  const CtaPlace* cta = nullptr;
};

/// Null outside kernels.
extern const ThreadPlace* running;

inline unsigned lane_id() { return running->lane; }
inline unsigned char* shared_bytes() { return running->cta->shared; }

/// Another thread may run here.
void switch_point();

/// Accesses that order others, for the watch on races; `at` is not used for a fence.
enum class MemoryEvent : std::uint8_t {
  relaxed_load,
  acquiring_load,
  relaxed_store,
  releasing_store,
  update,  ///< a read and a write in one
  fence
};
void note_memory_event(const void* at, unsigned bytes, MemoryEvent event);

/// For functions that say what they do by note_memory_event: their accesses are no plain ones.
#define SIMT_UNWATCHED __attribute__((noinline, no_sanitize("thread")))

enum class BarrierKind : std::uint8_t { plain, all, any, count };
/// The CTA's barrier.
int barrier(BarrierKind kind, bool flag);

/// Ends the launch with a message, as a fault on a device would.
[[noreturn]] void trap(const char* why);

}  // namespace simt

extern const uint3& threadIdx;
extern const uint3& blockIdx;
extern const dim3& blockDim;
extern const dim3& gridDim;
inline constexpr int warpSize = 32;

inline void __syncthreads() { ::simt::barrier(::simt::BarrierKind::plain, false); }
inline int __syncthreads_and(int flag) { return ::simt::barrier(::simt::BarrierKind::all, flag != 0); }
inline int __syncthreads_or(int flag) { return ::simt::barrier(::simt::BarrierKind::any, flag != 0); }
inline int __syncthreads_count(int flag) { return ::simt::barrier(::simt::BarrierKind::count, flag != 0); }
inline void __threadfence() {
  ::simt::note_memory_event(nullptr, 0, ::simt::MemoryEvent::fence);
  ::simt::switch_point();
}
inline void __threadfence_block() { __threadfence(); }
inline void __nanosleep(unsigned) { ::simt::switch_point(); }
inline void __trap() { ::simt::trap("__trap()"); }
