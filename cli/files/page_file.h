// The file that --html names.
#pragma once

#include <string>
#include <vector>

namespace quern::cli {

/// Before any work: throws when this build has no pictures, when the file exists and may not be replaced, or when it is
/// one of the inputs. Nothing for an empty name.
void check_page(const std::vector<std::string>& inputs, const std::string& page, bool replace);

/// Appears complete or not at all.
void write_page(const std::string& page, const std::string& text, bool replace);

}  // namespace quern::cli
