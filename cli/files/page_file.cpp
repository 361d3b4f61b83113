// Pages are checked before the work whose result they show.
#include "cli/files/page_file.h"

#include <cstdint>

#include "cli/args/exit_codes.h"
#include "cli/files/byte_streams.h"
#include "cli/files/safe_file.h"

namespace quern::cli {

void check_page(const std::vector<std::string>& inputs, const std::string& page, bool replace) {
  if (page.empty()) return;
#ifdef QUERN_HAVE_REPORT
  for (const std::string& input : inputs) check_output(input, page, replace);
#else
  (void)inputs;
  (void)replace;
  fail(Exit::usage, "--html: this build has no picture reports; leave it out or use --json");
#endif
}

void write_page(const std::string& page, const std::string& text, bool replace) {
  SafeFile file(page, {.replace = replace});
  if (!write_all(file.descriptor(), {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}))
    fail_errno(page, "write");
  file.commit();
}

}  // namespace quern::cli
