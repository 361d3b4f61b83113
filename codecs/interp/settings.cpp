// Layouts as text, and which instruction sets there are.
#include "codecs/interp/settings.h"

#include <charconv>
#include <span>
#include <string_view>

namespace quern::codec::interp {
namespace {

/// Takes numbers with commas between them off the front of `text`.
bool take_numbers(std::string_view& text, std::span<std::uint8_t> out) {
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (i > 0 && (at == end || *at++ != ',')) return false;
    const auto [next, error] = std::from_chars(at, end, out[i]);
    if (error != std::errc()) return false;
    at = next;
  }
  text.remove_prefix(static_cast<std::size_t>(at - text.data()));
  return true;
}

std::optional<Layout> parse_layout(std::string_view text, const Shape& shape) {
  std::array<std::uint8_t, 2> splits{};
  Layout layout;
  if (text.size() < 2 || text[1] != 'd' || text[0] < '1' || text[0] > '3') return std::nullopt;
  const auto axes = static_cast<std::size_t>(text[0] - '0');
  text.remove_prefix(2);
  if (axes > 1) {
    if (!text.starts_with(':')) return std::nullopt;
    text.remove_prefix(1);
    if (!take_numbers(text, std::span(splits).subspan(3 - axes))) return std::nullopt;
  }
  layout.first = splits[0];
  layout.second = splits[1];
  layout.tile.logs = axes == 1   ? std::array<std::uint8_t, 3>{0, 0, 12}
                     : axes == 2 ? std::array<std::uint8_t, 3>{0, 6, 6}
                                 : std::array<std::uint8_t, 3>{4, 4, 4};
  if (text.starts_with(':')) {
    text.remove_prefix(1);
    if (!take_numbers(text, layout.tile.logs)) return std::nullopt;
  }
  const unsigned sum = unsigned{layout.tile.logs[0]} + layout.tile.logs[1] + layout.tile.logs[2];
  if (!text.empty() || sum == 0 || sum > kernels::kInterpMaxTileLog) return std::nullopt;
  if (layout.first > layout.second || layout.second > shape.rank()) return std::nullopt;
  return layout;
}

}  // namespace

Result<ParsedSettings> parse_settings(const Settings& settings, const Shape& shape) {
  ParsedSettings parsed;
  for (const auto& [key, value] : settings) {
    if (key == "layout") {
      if (value == "auto") continue;
      parsed.layout = parse_layout(value, shape);
      if (!parsed.layout)
        return Status(
            StatusCode::invalid_argument,
            "interp: layout must be auto, or 1d, 2d:K or 3d:J,K that fit the shape's axes, with :A,B,C behind "
            "it for tiles of 2^A x 2^B x 2^C elements, A + B + C from 1 to 12");
    } else if (key == "isa") {
      if (value == "auto") continue;
      bool known = false;
      for (std::size_t i = 0; i < kernels::kIsaLevels; ++i) {
        const auto level = static_cast<kernels::IsaLevel>(i);
        if (value != kernels::isa_name(level)) continue;
        if (!kernels::isa_available(level))
          return Status(StatusCode::unsupported, "interp: this processor cannot run the instruction set asked for");
        parsed.isa = level;
        known = true;
      }
      if (!known) return Status(StatusCode::invalid_argument, "interp: isa must be auto, baseline, avx2 or avx512");
    } else {
      return Status(StatusCode::unknown_setting, "interp: unknown setting; it has layout and isa");
    }
  }
  return parsed;
}

}  // namespace quern::codec::interp
