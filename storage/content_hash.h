// XXH3-128 with seed 0: the name of stored content and the seal of a manifest.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <quern/memory.h>

namespace quern::storage {

struct ContentHash {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  friend auto operator<=>(const ContentHash&, const ContentHash&) = default;
};

ContentHash content_hash(std::span<const std::uint8_t> bytes);

/// 32 hexadecimal digits, the high half first.
String hex(const ContentHash& hash);
/// 16 hexadecimal digits.
String hex(std::uint64_t value);
/// Lower-case digits of exactly that length, or nothing.
std::optional<ContentHash> parse_content_hash(std::string_view text);
std::optional<std::uint64_t> parse_hex64(std::string_view text);

}  // namespace quern::storage
