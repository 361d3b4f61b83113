// Messages may be lost, results may not.
#include "cli/messages/messages.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "cli/args/exit_codes.h"

namespace quern::cli {
namespace {

void print_result(std::FILE* file, const std::string& text, const char* name) {
  if (std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0) return;
  std::clearerr(file);
  fail_errno(name, "write");
}

}  // namespace

void reserve_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    // open() takes the lowest free number, which is `fd`: those below it are taken by now. Nothing can be done about a
    // failure.
    static_cast<void>(open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY));
  }
}

void print_message(std::string_view text) noexcept {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
  static_cast<void>(std::fflush(stderr));
}

void print_note(const std::string& text) { print_message("quern: " + text + "\n"); }

void print_text(const std::string& text) { print_result(stdout, text, "standard output"); }

void print_text_to_stderr(const std::string& text) { print_result(stderr, text, "standard error"); }

}  // namespace quern::cli
