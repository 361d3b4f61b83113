#include "codecs/lidar/exact/exact_scale.h"

#include <array>

namespace quern::codec::lidar {
namespace {

/// Units per metre that are tried, the coarsest first.
constexpr std::array<std::uint32_t, 8> kTried = {1, 10, 100, 200, 500, 1000, 10000, 100000};

bool enough_come_back(std::span<const std::uint32_t> words, const Scale& scale) {
  const std::size_t points = words.size() / 3;
  std::size_t missed = 0;
  for (std::size_t i = 0; i < points; ++i) {
    if (!comes_back(words.subspan(3 * i, 3), scale)) ++missed;
    if (missed > points / 256) return false;
  }
  return true;
}

}  // namespace

bool comes_back(std::span<const std::uint32_t> point, const Scale& scale) {
  for (const std::uint32_t word : point) {
    const auto fine = fine_of(word, scale);
    if (!fine) return false;
    const std::int64_t units = (*fine + kFine / 2) >> kFineBits;
    if (word_of(units, scale) != word) return false;
  }
  return true;
}

std::optional<Scale> exact_scale(CoordinateType type, std::span<const std::uint32_t> words) {
  if (type == CoordinateType::i32) return Scale{type, 1};
  for (const std::uint32_t per_metre : kTried)
    if (const Scale scale{type, per_metre}; enough_come_back(words, scale)) return scale;
  return std::nullopt;
}

}  // namespace quern::codec::lidar
