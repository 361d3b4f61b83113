#include "codecs/lidar/exact/residuals.h"

#include <algorithm>
#include <array>

#include "codecs/lidar/coding/bit_coder.h"
#include "codecs/lidar/coding/number_coder.h"
#include "kernels/common/bits.h"

namespace quern::codec::lidar {
namespace {

/// A bit pattern of binary32 to an integer of the same order; its own inverse.
constexpr std::uint32_t ordered(std::uint32_t word) { return word >> 31 != 0 ? ~word ^ 0x80000000U : word; }

}  // namespace

Vector<std::uint8_t> encode_residuals(std::span<const std::uint32_t> decoded, std::span<const std::uint32_t> words) {
  Vector<std::uint8_t> bytes;
  if (std::equal(decoded.begin(), decoded.end(), words.begin(), words.end())) return bytes;
  BitWriter writer(bytes);
  std::array<NumberModel, 3> models;
  for (std::size_t i = 0; i < words.size(); ++i)
    models[i % 3].code(writer, kernels::zigzag(ordered(words[i]) - ordered(decoded[i])));
  writer.finish();
  return bytes;
}

Status apply_residuals(std::span<const std::uint8_t> bytes, std::span<std::uint32_t> words) {
  if (bytes.empty()) return {};
  const Status corrupt(StatusCode::corrupt, "residuals of coordinates are not what an encoder writes");
  BitReader reader(bytes);
  std::array<NumberModel, 3> models;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::uint64_t folded = models[i % 3].code(reader);
    if (folded > UINT32_MAX || !reader.good()) return corrupt;
    words[i] = ordered(ordered(words[i]) + kernels::unzigzag(static_cast<std::uint32_t>(folded)));
  }
  return reader.has_more() ? corrupt : Status();
}

}  // namespace quern::codec::lidar
