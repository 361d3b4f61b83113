// How stores report failure: a Status for the program, a sentence that names file and item for the person, and
// notes about what was passed over on the way to success.
#pragma once

#include <cstdint>
#include <string_view>

#include <quern/memory.h>
#include <quern/status.h>

namespace quern::storage {

struct Report {
  String problem;        ///< about the last failure; empty when the status's own text says it all
  Vector<String> notes;  ///< one sentence each: what was skipped, kept or removed, and why
};

/// A number as it is written in sentences and file names.
String decimal(std::uint64_t value);
/// Texts one after the other. May throw std::bad_alloc, as everything here.
String join(std::initializer_list<std::string_view> parts);

/// Keeps the sentence and returns a Status of that code.
Status fail(Report& report, StatusCode code, String sentence);
/// The same for what a file system said: "PATH: cannot WHAT: No space left on device".
Status fail_file(Report& report, std::string_view path, const char* what, const Status& status);
/// Adds "PLACE: " before the sentence kept, or before the status's text where there is none.
Status fail_at(Report& report, std::string_view place, const Status& status);

}  // namespace quern::storage
