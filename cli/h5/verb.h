// What quern h5 does, one function a word.
#pragma once

#include <string>
#include <vector>

#include "cli/args/args.h"
#include "cli/args/exit_codes.h"

namespace quern::cli {

using FilterWords = std::vector<unsigned>;

/// How chunks will be written: by any program through the filter, maybe piece by piece, or whole by this command.
enum class FilterUse { by_others, write_once };

/// The words of the filter that say what is asked for. Throws CliError (usage).
FilterWords filter_words(const CodecArgs& codec, const ErrorBound& bound, FilterUse use);
/// As h5repack's -f takes it: "UD=443,0,6,...".
std::string repack_filter(const FilterWords& words, bool optional);

Exit pack_file(const H5Args& args);
Exit unpack_file(const H5Args& args);
/// Decodes every chunk; says which of which dataset is damaged.
Exit check_file(const H5Args& args);

}  // namespace quern::cli
