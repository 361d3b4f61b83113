// The page's frame. Colours come from variables that follow the reader's light or dark setting.
#include "cli/report/html.h"

#include <array>
#include <charconv>
#include <cmath>

namespace quern::report {
namespace {

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --page: #fbfbfa; --card: #ffffff; --ink: #1d2125; --soft: #626a73; --line: #dfe2e5;
  --c0: #2864b4; --c1: #d9642a; --c2: #6f7780; --mark: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --page: #15181b; --card: #1e2226; --ink: #e6e8ea; --soft: #9aa3ac;
  --line: #363c42; --c0: #74a9f0; --c1: #f29361; --c2: #9aa3ac; --mark: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 32px 24px 48px; }
h1 { font-size: 24px; font-weight: 650; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 17px; font-weight: 650; margin: 0 0 4px; }
p { margin: 0 0 12px; } .soft, figcaption, .note { color: var(--soft); } .note, figcaption { font-size: 13px; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 20px 22px; margin: 18px 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin: 20px 0 0; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 16px; }
.tile b { display: block; font-size: 21px; font-weight: 600; font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: 13px; } .bad b { color: var(--mark); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
td, th { text-align: left; padding: 5px 14px 5px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
tr:last-child td, tr:last-child th { border-bottom: 0; }
th { font-weight: 500; white-space: nowrap; } td.remark { color: var(--soft); font-size: 13px; }
.slices { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 14px; align-items: start; }
.slices h3 { font-size: 14px; font-weight: 600; margin: 0; }
figure { margin: 0; min-width: 0; }
.picture { display: block; width: 100%; border: 1px solid var(--line); background: #a0a0a0; image-rendering: pixelated; }
.bar { display: block; width: 100%; height: 12px; border: 1px solid var(--line); }
.ends { display: flex; justify-content: space-between; font-size: 12px; color: var(--soft); font-variant-numeric: tabular-nums; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(440px, 1fr)); gap: 18px; }
.pair section { margin: 0; }
@media (max-width: 560px) { .pair { grid-template-columns: 1fr; } main { padding: 20px 12px; } }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--soft); font-size: 12px; font-family: inherit; } svg .name { fill: var(--ink); }
svg .grid { stroke: var(--line); stroke-width: 1; } svg .frame { stroke: var(--soft); stroke-width: 1; fill: none; }
svg .s0 { stroke: var(--c0); } svg .s1 { stroke: var(--c1); } svg .s2 { stroke: var(--c2); }
svg .curve { fill: none; stroke-width: 1.6; stroke-linejoin: round; } svg .dashed { stroke-dasharray: 5 3; }
svg .area { stroke: none; fill-opacity: 0.75; } svg .f0 { fill: var(--c0); } svg .f1 { fill: var(--c1); } svg .f2 { fill: var(--c2); }
svg .mark { stroke: var(--mark); stroke-width: 1.4; stroke-dasharray: 4 3; } svg .mark-name { fill: var(--mark); }
)";

bool is_allowed(unsigned char c) { return c >= 0x20 || c == '\t' || c == '\n' || c == '\r'; }

/// Length of the well-formed UTF-8 sequence at the start of `text`, or 0.
std::size_t utf8_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xc2 && lead <= 0xdf   ? 2
                             : (lead & 0xf0) == 0xe0        ? 3
                             : lead >= 0xf0 && lead <= 0xf4 ? 4
                                                            : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  const auto second = static_cast<unsigned char>(text[1]);
  const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool outside = (lead == 0xed && second > 0x9f) || (lead == 0xf4 && second > 0x8f);
  return overlong || outside ? 0 : length;
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text.substr(i));
    const char c = text[i];
    if (length == 0 || (length == 1 && !is_allowed(static_cast<unsigned char>(c)))) {
      out += '?';
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += text.substr(i, length);
    }
    i += length == 0 ? 1 : length;
  }
  return out;
}

std::string number(double value, int digits) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "∞" : "−∞";
  if (value == 0) value = 0;  // -0 reads as a misprint
  std::array<char, 64> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, digits).ptr;
  std::string out(text.data(), end);
  if (const std::size_t e = out.find('e'); e != std::string::npos) {
    // 1e+06 as 1e6, 1e-05 as 1e−5
    const bool negative = out[e + 1] == '-';
    out.erase(e + 1, out[e + 2] == '0' ? 2 : 1);
    if (negative) out.insert(e + 1, "−");
  }
  if (out[0] == '-') out.replace(0, 1, "−");
  return out;
}

std::string count(std::uint64_t value) {
  std::string out = std::to_string(value);
  for (std::size_t at = out.size(); at > 3;) {
    at -= 3;
    out.insert(at, "\u202f");
  }
  return out;
}

std::string table(const std::vector<TableRow>& rows) {
  std::string out = "<div class=\"scroll\"><table>\n";
  for (const TableRow& row : rows)
    out += "<tr><th scope=\"row\">" + escape(row.name) + "</th><td>" + escape(row.value) +
           "</td><td class=\"remark\">" + escape(row.remark) + "</td></tr>\n";
  return out + "</table></div>\n";
}

std::string page_head(std::string_view title) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>" +
         escape(title) + "</title>\n<style>" + std::string(kStyle) + "</style>\n</head>\n<body>\n<main>\n";
}

std::string page_foot() { return "</main>\n</body>\n</html>\n"; }

}  // namespace quern::report
