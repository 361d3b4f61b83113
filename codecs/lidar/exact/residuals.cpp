#include "codecs/lidar/exact/residuals.h"

#include <algorithm>
#include <array>

#include "codecs/lidar/coding/bit_coder.h"
#include "codecs/lidar/coding/number_coder.h"

namespace quern::codec::lidar {

Vector<std::uint8_t> encode_residuals(std::span<const std::int64_t> decoded, std::span<const std::int64_t> exact) {
  Vector<std::uint8_t> bytes;
  if (std::equal(decoded.begin(), decoded.end(), exact.begin(), exact.end())) return bytes;
  BitWriter writer(bytes);
  std::array<NumberModel, 3> models;
  for (std::size_t i = 0; i < exact.size(); ++i) models[i % 3].code_signed(writer, exact[i] - decoded[i]);
  writer.finish();
  return bytes;
}

Status apply_residuals(std::span<const std::uint8_t> bytes, std::span<std::int64_t> values) {
  if (bytes.empty()) return {};
  const Status corrupt(StatusCode::corrupt, "residuals of coordinates are not what an encoder writes");
  BitReader reader(bytes);
  std::array<NumberModel, 3> models;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t residual = models[i % 3].code_signed(reader);
    if (residual > INT64_C(1) << 62 || residual < -(INT64_C(1) << 62) || !reader.good()) return corrupt;
    values[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(values[i]) + static_cast<std::uint64_t>(residual));
  }
  return reader.has_more() ? corrupt : Status();
}

}  // namespace quern::codec::lidar
