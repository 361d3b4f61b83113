// Atomic operations of CUDA, and loads and stores as its ld.acquire, st.release and their relaxed forms. All threads of
// a launch run in one host thread, so that a plain access between two points of switching is atomic; memory is
// sequentially consistent, which is stronger than a device.
#pragma once

#include <algorithm>
#include <type_traits>

#include "simt/running_thread.h"

namespace simt {

template <class T, class F>
SIMT_UNWATCHED T atomic_update(T* at, F&& f) {
  switch_point();
  note_memory_event(at, sizeof(T), MemoryEvent::update);
  const T before = *at;
  *at = f(before);
  switch_point();
  return before;
}

template <class T>
SIMT_UNWATCHED T load(const T* at, MemoryEvent event) {
  switch_point();
  note_memory_event(at, sizeof(T), event);
  return *static_cast<const volatile T*>(at);
}
template <class T>
SIMT_UNWATCHED void store(T* at, T value, MemoryEvent event) {
  switch_point();
  note_memory_event(at, sizeof(T), event);
  *at = value;
  switch_point();
}

template <class T>
T load_relaxed(const T* at) {
  return load(at, MemoryEvent::relaxed_load);
}
template <class T>
T load_acquire(const T* at) {
  return load(at, MemoryEvent::acquiring_load);
}
template <class T>
void store_relaxed(T* at, std::type_identity_t<T> value) {
  store(at, value, MemoryEvent::relaxed_store);
}
template <class T>
void store_release(T* at, std::type_identity_t<T> value) {
  store(at, value, MemoryEvent::releasing_store);
}

}  // namespace simt

#define SIMT_ATOMICS(T)                                                                                               \
  inline T atomicAdd(T* at, T value) {                                                                                \
    return ::simt::atomic_update(at, [=](T old) {                                                                     \
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) + static_cast<std::make_unsigned_t<T>>(value)); \
    });                                                                                                               \
  }                                                                                                                   \
  inline T atomicExch(T* at, T value) {                                                                               \
    return ::simt::atomic_update(at, [=](T) { return value; });                                                       \
  }                                                                                                                   \
  inline T atomicCAS(T* at, T expected, T value) {                                                                    \
    return ::simt::atomic_update(at, [=](T old) { return old == expected ? value : old; });                           \
  }                                                                                                                   \
  inline T atomicMin(T* at, T value) {                                                                                \
    return ::simt::atomic_update(at, [=](T old) { return std::min(old, value); });                                    \
  }                                                                                                                   \
  inline T atomicMax(T* at, T value) {                                                                                \
    return ::simt::atomic_update(at, [=](T old) { return std::max(old, value); });                                    \
  }                                                                                                                   \
  inline T atomicAnd(T* at, T value) {                                                                                \
    return ::simt::atomic_update(at, [=](T old) { return old & value; });                                             \
  }                                                                                                                   \
  inline T atomicOr(T* at, T value) {                                                                                 \
    return ::simt::atomic_update(at, [=](T old) { return old | value; });                                             \
  }                                                                                                                   \
  inline T atomicXor(T* at, T value) {                                                                                \
    return ::simt::atomic_update(at, [=](T old) { return old ^ value; });                                             \
  }
SIMT_ATOMICS(int)
SIMT_ATOMICS(unsigned)
SIMT_ATOMICS(unsigned long long)
#undef SIMT_ATOMICS
inline unsigned atomicSub(unsigned* at, unsigned value) { return atomicAdd(at, 0u - value); }
