// Reader: bounds checks and variable-length integers.
#include "libcompress/format/reader.h"

namespace quern {

Status Reader::need(std::uint64_t count) const {
  if (count <= remaining()) return {};
  return Status(StatusCode::truncated, "{0} bytes are needed where {1} are left", static_cast<std::int64_t>(count),
                static_cast<std::int64_t>(remaining()));
}

Result<double> Reader::f64() {
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t bits, u64());
  return std::bit_cast<double>(bits);
}

Result<std::uint64_t> Reader::unsigned_of(std::size_t width) {
  QUERN_RETURN_IF_ERROR(need(width));
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width && i < 8; ++i) value |= static_cast<std::uint64_t>(bytes_[at_ + i]) << (8 * i);
  at_ += width;
  return value;
}

Result<std::uint64_t> Reader::varint(std::uint64_t limit) {
  std::uint64_t value = 0;
  std::size_t used = 0;
  while (true) {
    if (used >= remaining())
      return Status(StatusCode::truncated, "the data ends inside a number, at byte {0}",
                    static_cast<std::int64_t>(bytes_.size()));
    const std::uint8_t byte = bytes_[at_ + used];
    // The tenth byte may only bring bit 63.
    if (used == 9 && byte > 1) return Status(StatusCode::corrupt, "a number does not fit in 64 bits");
    value |= static_cast<std::uint64_t>(byte & 0x7F) << (7 * used);
    ++used;
    if ((byte & 0x80) != 0) continue;
    if (byte == 0 && used > 1) return Status(StatusCode::corrupt, "a number is not in its shortest form");
    break;
  }
  if (value > limit)
    return Status(StatusCode::corrupt, "a number is {0}, above its limit of {1}", static_cast<std::int64_t>(value),
                  static_cast<std::int64_t>(limit));
  at_ += used;
  return value;
}

Result<std::span<const std::uint8_t>> Reader::bytes(std::uint64_t count) {
  QUERN_RETURN_IF_ERROR(need(count));
  const auto view = bytes_.subspan(at_, static_cast<std::size_t>(count));
  at_ += view.size();
  return view;
}

Status Reader::skip(std::uint64_t count) {
  QUERN_RETURN_IF_ERROR(need(count));
  at_ += static_cast<std::size_t>(count);
  return {};
}

Status Reader::expect_end() const {
  if (at_end()) return {};
  return Status(StatusCode::corrupt, "{0} bytes are left over", static_cast<std::int64_t>(remaining()));
}

}  // namespace quern
