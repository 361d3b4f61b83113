// SHA-256 (FIPS 180-4) of bytes in memory: names the files a model was trained on, and seals the model file.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace quern::models {

using Digest = std::array<std::uint8_t, 32>;

/// O(bytes); allocates nothing.
Digest sha256(std::span<const std::uint8_t> bytes);
/// 64 lower-case hexadecimal digits.
std::string hex(const Digest& digest);

}  // namespace quern::models
