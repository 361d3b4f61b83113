// How much the tests of a device do, by variables of the environment: a device does all, its simulator and a sanitizer
// less.
//   QUERN_GPU_PLANES        planes of the large arrays
//   QUERN_GPU_RUNS          repetitions
//   QUERN_GPU_EVERY         of the cases of a test, one in so many
//   QUERN_GPU_POISON_BYTES  device memory that is filled with a pattern before a test
#pragma once

#include <cstdint>
#include <cstdlib>

#include "tests/support/thorough.h"

namespace quern::testing {

inline std::uint64_t setting(const char* name, std::uint64_t fallback) {
  const char* const text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

/// Takes one case in QUERN_GPU_EVERY; all when thorough.
class Thinning {
 public:
  bool takes() { return next_++ % every_ == 0; }

 private:
  std::uint64_t every_ = thorough() ? 1 : setting("QUERN_GPU_EVERY", 1);
  std::uint64_t next_ = 0;
};

}  // namespace quern::testing
