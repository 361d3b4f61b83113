// Words and placeholders of templates.
#include "cli/peers/peer.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"

namespace quern::cli {
namespace {

constexpr std::string_view kBetween = ";;";

[[noreturn]] void refuse(const std::string& name, const std::string& what) {
  fail(Exit::usage, fmt::format("--peer {}: {}", name, what));
}

CommandTemplate words_of(const std::string& name, std::string_view text) {
  CommandTemplate words;
  bool open = false;  // a word has begun
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      open = false;
      continue;
    }
    if (!open) words.emplace_back();
    open = true;
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      words.back() += text[++i];
    } else {
      words.back() += c;
    }
  }
  if (quote != 0) refuse(name, fmt::format("a quote {} is not closed", quote));
  return words;
}

/// The name of a placeholder that begins at `at`, without braces; empty where none does. Other braces stay as they are.
std::string_view placeholder_at(std::string_view word, std::size_t at) {
  if (word[at] != '{') return {};
  const std::size_t end = word.find('}', at);
  if (end == std::string_view::npos) return {};
  const std::string_view name = word.substr(at + 1, end - at - 1);
  const bool letters =
      !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  return letters ? name : std::string_view{};
}

constexpr std::string_view kPlaceholders[] = {"input", "stream", "output", "type",    "bits", "letter",
                                              "shape", "rank",   "dims",   "extents", "bound"};

bool holds(const CommandTemplate& command, std::string_view placeholder) {
  const std::string text = "{" + std::string(placeholder) + "}";
  return std::any_of(command.begin(), command.end(), [&](const std::string& w) { return w.find(text) != w.npos; });
}

void check_command(const std::string& name, const CommandTemplate& command,
                   std::initializer_list<std::string_view> needed) {
  for (const std::string& word : command)
    for (std::size_t at = 0; at < word.size(); ++at) {
      const std::string_view found = placeholder_at(word, at);
      if (!found.empty() &&
          std::find(std::begin(kPlaceholders), std::end(kPlaceholders), found) == std::end(kPlaceholders))
        refuse(name, fmt::format("{{{}}} is no placeholder; use {{{}}}", found, fmt::join(kPlaceholders, "}, {")));
    }
  for (const std::string_view placeholder : needed)
    if (!holds(command, placeholder))
      refuse(name, fmt::format("{{{}}} is missing in \"{}\"", placeholder, fmt::join(command, " ")));
}

std::string joined(const std::vector<std::string>& extents) { return fmt::format("{}", fmt::join(extents, "x")); }

std::string value_of(std::string_view placeholder, const PeerFiles& files) {
  if (placeholder == "input") return files.input;
  if (placeholder == "stream") return files.stream;
  if (placeholder == "output") return files.output;
  if (placeholder == "type") return files.type;
  if (placeholder == "bits") return files.type.substr(files.type.find_first_of("0123456789"));
  if (placeholder == "shape") return joined(files.extents);
  if (placeholder == "rank") return std::to_string(files.extents.size());
  if (placeholder == "bound") return files.bound;
  if (placeholder == "letter") {
    if (files.type == "f32") return "f";
    if (files.type == "f64") return "d";
    fail(Exit::usage, "a peer that takes {letter} is for f32 and f64, not " + files.type);
  }
  std::vector<std::string> extents = files.extents;
  if (placeholder == "dims") std::reverse(extents.begin(), extents.end());
  return fmt::format("{}", fmt::join(extents, " "));
}

}  // namespace

Peer parse_peer(std::string_view text) {
  constexpr std::string_view kName = "name=";
  const std::size_t colon = text.find(':');
  if (!text.starts_with(kName) || colon == std::string_view::npos)
    refuse(std::string(text), "write name=NAME: COMPRESS ;; DECOMPRESS, or the name of a peer that quern knows");
  Peer peer;
  peer.name = std::string(text.substr(kName.size(), colon - kName.size()));
  constexpr std::string_view kPowerSteps = " steps=2";
  peer.power_steps = peer.name.ends_with(kPowerSteps);
  if (peer.power_steps) peer.name.erase(peer.name.size() - kPowerSteps.size());
  if (peer.name.find(' ') != std::string::npos)
    refuse(peer.name, "behind the name only steps=2 can stand, as in name=NAME steps=2: COMPRESS ;; DECOMPRESS");
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  };
  if (peer.name.empty() || peer.name.size() > 32 || !std::all_of(peer.name.begin(), peer.name.end(), allowed))
    refuse(peer.name, "a name has 1 to 32 of a-z, 0-9, _, - and .");
  const std::string_view commands = text.substr(colon + 1);
  const std::size_t between = commands.find(kBetween);
  Peer::Way way;
  way.compress = words_of(peer.name, commands.substr(0, between));
  if (between != std::string_view::npos)
    way.decompress = words_of(peer.name, commands.substr(between + kBetween.size()));
  if (between == std::string_view::npos) {
    check_command(peer.name, way.compress, {"input", "stream", "output", "bound"});
  } else {
    check_command(peer.name, way.compress, {"input", "stream", "bound"});
    check_command(peer.name, way.decompress, {"stream", "output"});
  }
  peer.ways.push_back(std::move(way));
  return peer;
}

std::vector<std::string> filled(const CommandTemplate& command, const PeerFiles& files) {
  std::vector<std::string> words;
  for (const std::string& word : command) {
    if (word == "{dims}" || word == "{extents}") {
      words.insert(words.end(), files.extents.begin(), files.extents.end());
      if (word == "{dims}") std::reverse(words.end() - static_cast<std::ptrdiff_t>(files.extents.size()), words.end());
      continue;
    }
    std::string out;
    for (std::size_t at = 0; at < word.size(); ++at) {
      const std::string_view placeholder = placeholder_at(word, at);
      out += placeholder.empty() ? std::string(1, word[at]) : value_of(placeholder, files);
      if (!placeholder.empty()) at += placeholder.size() + 1;
    }
    words.push_back(std::move(out));
  }
  return words;
}

}  // namespace quern::cli
