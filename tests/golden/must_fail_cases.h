// Streams that a reader must refuse, each broken in one way and otherwise made whole: checksums are right unless the
// checksum is what is broken.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <quern/memory.h>
#include <quern/status.h>

namespace quern::golden {

struct MustFailCase {
  std::string name;
  StatusCode status = StatusCode::ok;
  std::string why;
  Vector<std::uint8_t> bytes;
};

std::vector<MustFailCase> must_fail_cases();

}  // namespace quern::golden
