// Streams of records that a reader must refuse, each broken in one way and otherwise made whole.
#pragma once

#include <vector>

#include "tests/golden/must_fail_cases.h"

namespace quern::golden {

std::vector<MustFailCase> record_must_fail_cases();

}  // namespace quern::golden
