// Layout of help texts: the bound first, a line for each option, nothing wider than a page.
#pragma once

#include <memory>

#include <CLI/CLI.hpp>

namespace quern::cli {

/// To be set before verbs are added, which take over their program's formatter.
std::shared_ptr<CLI::FormatterBase> help_formatter();

}  // namespace quern::cli
