// AddressSanitizer's words about stacks and poison; nothing without it.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define SIMT_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMT_ADDRESS_SANITIZER 1
#endif
#endif
#ifdef SIMT_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace simt {

#ifdef SIMT_ADDRESS_SANITIZER
inline constexpr bool kAddressSanitizer = true;
inline void poison(const void* at, std::size_t bytes) { __asan_poison_memory_region(at, bytes); }
inline void unpoison(const void* at, std::size_t bytes) { __asan_unpoison_memory_region(at, bytes); }
inline void start_switch(void** own_fake_stack, const void* bottom, std::size_t bytes) {
  __sanitizer_start_switch_fiber(own_fake_stack, bottom, bytes);
}
inline void finish_switch(void* own_fake_stack, const void** other_bottom, std::size_t* other_bytes) {
  __sanitizer_finish_switch_fiber(own_fake_stack, other_bottom, other_bytes);
}
#else
inline constexpr bool kAddressSanitizer = false;
inline void poison(const void*, std::size_t) {}
inline void unpoison(const void*, std::size_t) {}
inline void start_switch(void**, const void*, std::size_t) {}
inline void finish_switch(void*, const void**, std::size_t*) {}
#endif

}  // namespace simt
