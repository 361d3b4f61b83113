// How this folder reports failure: a Status for the program and a sentence for the person.
#pragma once

#include <string>

#include <quern/status.h>

namespace quern::io {

/// Stores the sentence in `detail` and returns a Status of that code with a general message.
Status fail(std::string& detail, StatusCode code, std::string sentence);

/// "No space left on device" for an errno.
std::string errno_text(int number);

/// A path as it is shown to people; "-" becomes `standard`.
std::string shown(const std::string& path, const char* standard = "standard input");

}  // namespace quern::io
