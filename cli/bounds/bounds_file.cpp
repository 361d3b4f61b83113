// The reader of bounds files.
#include "cli/bounds/bounds_file.h"

#include <sstream>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/args/values.h"
#include "cli/files/byte_streams.h"

namespace quern::cli {
std::vector<VariableBound> parse_bounds(std::string_view text, const std::string& name) {
  std::vector<VariableBound> out;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::string where = fmt::format("{} line {}", name, number);
    std::istringstream words(line.substr(0, line.find('#')));
    std::string variable, kind_word, value, rest;
    if (!(words >> variable)) continue;
    if (!(words >> kind_word)) fail(Exit::usage, where + ": write 'variable kind value', as in 'temperature abs 0.01'");
    const auto kind = bound_kind_of(kind_word);
    if (!kind)
      fail(Exit::usage,
           fmt::format("{}: {} is no bound; use abs, rel, pwrel, psnr, ratio or lossless", where, kind_word));
    ErrorBound bound{*kind, 0.0};
    if (*kind != BoundKind::lossless) {
      if (!(words >> value)) fail(Exit::usage, fmt::format("{}: {} needs a value", where, kind_word));
      bound = parse_bound(*kind, value, where + ": " + kind_word);
    }
    if (words >> rest) fail(Exit::usage, fmt::format("{}: '{}' is one word too many", where, rest));
    for (const VariableBound& earlier : out)
      if (earlier.variable == variable) fail(Exit::usage, fmt::format("{}: {} has a bound already", where, variable));
    out.push_back({std::move(variable), bound});
  }
  if (out.empty()) fail(Exit::usage, name + ": no bounds in it; write lines such as 'temperature abs 0.01'");
  return out;
}

std::vector<VariableBound> read_bounds_file(const std::string& path) {
  const Mapping file = Mapping::of_file(path);
  const auto bytes = file.bytes();
  return parse_bounds({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

}  // namespace quern::cli
