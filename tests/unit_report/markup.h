// A strict little reader of markup: does every tag close, are attributes quoted, is every & an entity?
#pragma once

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace quern::test {

/// Empty when `text` (after its doctype) is well-formed, else what is wrong and where.
inline std::string markup_fault(std::string_view text) {
  std::vector<std::string> open;
  const auto fault = [&](const std::string& what, std::size_t at) {
    return what + " at " + std::to_string(at) + ": " + std::string(text.substr(at, 60));
  };
  std::size_t at = 0;
  constexpr std::string_view kDoctype = "<!DOCTYPE html>\n";
  if (text.substr(0, kDoctype.size()) == kDoctype) at = kDoctype.size();
  while (at < text.size()) {
    if (text[at] == '&') {
      const std::size_t end = text.find(';', at);
      const std::string_view name = text.substr(at + 1, end == std::string_view::npos ? 0 : end - at - 1);
      if (name != "amp" && name != "lt" && name != "gt" && name != "quot") return fault("stray ampersand", at);
    }
    if (text[at] != '<') {
      if (open.empty() && std::isspace(static_cast<unsigned char>(text[at])) == 0) return fault("text outside", at);
      ++at;
      continue;
    }
    const std::size_t start = at++;
    const bool closing = text[at] == '/';
    if (closing) ++at;
    std::string name;
    while (at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0) name += text[at++];
    if (name.empty()) return fault("tag without a name", start);
    bool empty_element = false;
    while (at < text.size() && text[at] != '>') {
      if (text[at] == '"') {
        at = text.find('"', at + 1);
        if (at == std::string_view::npos) return fault("open quotation", start);
      } else if (text[at] == '<' || (text[at] == '=' && text[at + 1] != '"')) {
        return fault("bad attribute", start);
      }
      empty_element = text[at] == '/';
      ++at;
    }
    if (at >= text.size()) return fault("open tag", start);
    ++at;
    if (closing) {
      if (open.empty() || open.back() != name) return fault("closing tag without its opening", start);
      open.pop_back();
    } else if (!empty_element) {
      open.push_back(name);
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> is never closed";
}

}  // namespace quern::test
