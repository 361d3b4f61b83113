// Whether a sanitizer watches this build: tests that repeat much then do less of it, for they take ten times as long.
#pragma once

namespace quern::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kInstrumented = true;
#else
inline constexpr bool kInstrumented = false;
#endif

}  // namespace quern::testing
