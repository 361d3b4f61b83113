// XXH3-128 through the xxHash header, and its text form.
#include "storage/content_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace quern::storage {

ContentHash content_hash(std::span<const std::uint8_t> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

String hex(std::uint64_t value) {
  static constexpr char kDigits[] = "0123456789abcdef";
  String out(16, '0');
  for (std::size_t i = 0; i < 16; ++i) out[i] = kDigits[value >> (60 - 4 * i) & 15];
  return out;
}

String hex(const ContentHash& hash) { return hex(hash.high) + hex(hash.low); }

std::optional<std::uint64_t> parse_hex64(std::string_view text) {
  if (text.size() != 16) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && (c < 'a' || c > 'f')) return std::nullopt;
    value = value << 4 | static_cast<std::uint64_t>(digit ? c - '0' : c - 'a' + 10);
  }
  return value;
}

std::optional<ContentHash> parse_content_hash(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  const auto high = parse_hex64(text.substr(0, 16));
  const auto low = parse_hex64(text.substr(16));
  if (!high || !low) return std::nullopt;
  return ContentHash{*high, *low};
}

}  // namespace quern::storage
