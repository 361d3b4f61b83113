// Layouts as text, and which instruction sets there are.
#include "codecs/lorenzo/settings.h"

#include <charconv>
#include <string_view>

namespace quern::codec::lorenzo {
namespace {

/// Reads "K" or "J,K" behind "2d:" or "3d:".
bool parse_splits(std::string_view text, std::size_t count, std::uint8_t (&out)[2]) {
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto [next, error] = std::from_chars(at, end, out[i]);
    if (error != std::errc()) return false;
    at = next;
    if (i + 1 < count && (at == end || *at++ != ',')) return false;
  }
  return at == end;
}

Result<Layout> parse_layout(std::string_view text, const Shape& shape) {
  std::uint8_t splits[2] = {0, 0};
  Layout layout;
  if (text == "1d") return layout;
  if (text.starts_with("2d:") && parse_splits(text.substr(3), 1, splits)) {
    layout = {kernels::TileShape::plane, 0, splits[0]};
  } else if (text.starts_with("3d:") && parse_splits(text.substr(3), 2, splits)) {
    layout = {kernels::TileShape::block, splits[0], splits[1]};
  } else {
    return Status(StatusCode::invalid_argument, "lorenzo: layout must be auto, 1d, 2d:K or 3d:J,K");
  }
  if (layout.first > layout.second || layout.second > shape.rank())
    return Status(StatusCode::invalid_argument, "lorenzo: layout splits {0},{1} do not fit the shape's axes",
                  layout.first, layout.second);
  return layout;
}

}  // namespace

Result<ParsedSettings> parse_settings(const Settings& settings, const Shape& shape) {
  ParsedSettings parsed;
  for (const auto& [key, value] : settings) {
    if (key == "layout") {
      if (value == "auto") continue;
      QUERN_ASSIGN_OR_RETURN(const Layout layout, parse_layout(value, shape));
      parsed.layout.emplace(layout);
    } else if (key == "isa") {
      if (value == "auto") continue;
      bool known = false;
      for (std::size_t i = 0; i < kernels::kIsaLevels; ++i) {
        const auto level = static_cast<kernels::IsaLevel>(i);
        if (value != kernels::isa_name(level)) continue;
        if (!kernels::isa_available(level))
          return Status(StatusCode::unsupported, "lorenzo: this processor cannot run the instruction set asked for");
        parsed.isa = level;
        known = true;
      }
      if (!known) return Status(StatusCode::invalid_argument, "lorenzo: isa must be auto, baseline, avx2 or avx512");
    } else if (key == "verify") {
      if (value != "none" && value != "fault")
        return Status(StatusCode::invalid_argument, "lorenzo: verify must be none or fault");
      parsed.checks_faults = value == "fault";
    } else {
      return Status(StatusCode::unknown_setting, "lorenzo: unknown setting; it has layout, isa and verify");
    }
  }
  return parsed;
}

}  // namespace quern::codec::lorenzo
