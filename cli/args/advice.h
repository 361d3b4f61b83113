// What to type instead: words and habits of other programs, met or answered by a sentence. No side effects.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quern::cli {

/// Other ways to ask for help and the version, as in `quern help compress`, put as options; all else as it is.
std::vector<std::string> with_plain_options(std::vector<std::string> words);

/// Why `word` is no verb, and which one may be meant. `rest` is what follows it.
std::string no_such_verb(const std::string& word, const std::vector<std::string>& rest);

/// What is missing after a verb, or after a work of checkpoint; `missing` is the parser's name for it.
std::string missing_after(std::string_view verb, std::string_view work, const std::string& missing);

/// What to do without an option such as -9, which the parser takes for a file's name; empty when there is none.
std::string no_levels(const std::vector<std::string>& files);

/// The second extent of a shape written as `-s 384 320`; empty when no file's name looks like one.
std::string stray_extent(const std::string& shape, const std::vector<std::string>& files);

}  // namespace quern::cli
