// The command line: words separated by line feeds. Parsing accepts or explains itself in one line, whatever the words
// are.
#include <string>
#include <vector>

#include "cli/args/args.h"
#include "tests/fuzz/fuzz_common.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return 0;
  std::vector<std::string> words{"quern"};
  std::string word;
  for (const std::uint8_t byte : std::span(data, size)) {
    if (byte == '\n') {
      words.push_back(word);
      word.clear();
    } else if (byte != 0) {  // an argument cannot hold a zero byte
      word.push_back(static_cast<char>(byte));
    }
  }
  if (!word.empty()) words.push_back(word);
  std::vector<const char*> argv;
  for (const std::string& w : words) argv.push_back(w.c_str());

  quern::cli::Command command;
  std::string message;
  const int code = quern::cli::parse_only(static_cast<int>(argv.size()), argv.data(), {"one", "two"}, command, message);
  QUERN_FUZZ_CHECK(code == 0 || code == 1, std::to_string(code));
  QUERN_FUZZ_CHECK(code == 0 || (!message.empty() && message.find('\n') == std::string::npos), message);
  return 0;
}
