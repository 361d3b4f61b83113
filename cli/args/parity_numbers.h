// K+M of --parity, as checkpoints and histories of drives have it.
#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/args/values.h"

namespace quern::cli {

struct ParityNumbers {
  std::uint32_t data = 0;
  std::uint32_t parity = 0;
};

/// Throws CliError where the text is not K+M, at least 1 each.
inline ParityNumbers parse_parity(const std::string& text) {
  const std::size_t plus = text.find('+');
  if (plus == std::string::npos) fail(Exit::usage, fmt::format("--parity {}: write it as K+M, such as 4+2", text));
  const ParityNumbers out{static_cast<std::uint32_t>(parse_count(text.substr(0, plus), "--parity", 64)),
                          static_cast<std::uint32_t>(parse_count(text.substr(plus + 1), "--parity", 64))};
  if (out.data == 0 || out.parity == 0) fail(Exit::usage, fmt::format("--parity {}: K and M must be at least 1", text));
  return out;
}

}  // namespace quern::cli
