// Layout of help texts: the bound first, a line for each option, nothing wider than a page.
#pragma once

#include <memory>
#include <string>

#include <CLI/CLI.hpp>

namespace quern::cli {

/// To be set before verbs are added, which take over their program's formatter.
std::shared_ptr<CLI::FormatterBase> help_formatter();

/// What the parser or we say of wrong words, on one line with a hint at the help. Their messages may span lines.
std::string one_line(std::string message, const CLI::App& program);

}  // namespace quern::cli
