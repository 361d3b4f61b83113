// Which files of a folder hold an array.
#pragma once

#include <string>

#include "cli/args/args.h"

namespace quern::cli {

/// Whether a file found in a folder is an input: its name says what it is, or, with type and shape given, its size.
bool is_array_file(const std::string& path, const DataArgs& data);

}  // namespace quern::cli
