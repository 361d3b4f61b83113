// What the command says: messages on stderr, which decide nothing, and results on stdout, which were asked for.
#pragma once

#include <string>
#include <string_view>

namespace quern::cli {

/// Puts a placeholder behind each of the descriptors 0, 1 and 2 that is closed, so that no file of ours takes its
/// number and receives messages. Reading from or writing to a placeholder fails. Call it first.
void reserve_standard_descriptors();

/// Writes to stderr as it is. A message that cannot be written (closed, full, nobody reads) is dropped: work goes on
/// and the exit code stays.
void print_message(std::string_view text) noexcept;
/// "quern: TEXT" and a line break, likewise.
void print_note(const std::string& text);

/// Writes a result to stdout. Throws CliError (io) when that fails.
void print_text(const std::string& text);
/// Writes a result to stderr, when stdout carries the data. Throws as well.
void print_text_to_stderr(const std::string& text);

}  // namespace quern::cli
