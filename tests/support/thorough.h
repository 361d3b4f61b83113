// Whether the whole of a large product of cases is asked for (`scripts/test.sh --thorough` sets QUERN_TEST_THOROUGH=1),
// or the part that a test takes in turns by itself.
#pragma once

#include <cstdlib>
#include <string_view>

namespace quern::testing {

inline bool thorough() {
  const char* asked = std::getenv("QUERN_TEST_THOROUGH");
  return asked != nullptr && std::string_view(asked) == "1";
}

}  // namespace quern::testing
