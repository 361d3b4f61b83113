// Estimates as text and JSON.
#pragma once

#include <string>
#include <vector>

#include <quern/estimate.h>

#include "cli/messages/file_report.h"

namespace quern::cli {

/// "10.2 (9.8..11)"; `format` is for each of the three numbers.
std::string interval_text(const Interval& i, const char* format);
Json estimates_json(const std::vector<Estimate>& estimates);

}  // namespace quern::cli
