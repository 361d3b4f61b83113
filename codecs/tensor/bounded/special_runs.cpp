// Stored form of special elements.
#include "codecs/tensor/bounded/special_runs.h"

#include <array>

namespace quern::codec::tensor {
namespace {

constexpr std::size_t kRepeatPays = 3;  // so many equal values make a run of their own

}  // namespace

void append_varint(std::uint64_t value, Vector<std::uint8_t>& out) {
  std::array<std::uint8_t, kernels::kMaxLeb128Bytes> bytes{};
  std::uint8_t* const end = kernels::put_leb128(bytes.data(), value);
  out.insert(out.end(), bytes.data(), end);
}

void append_number(std::uint64_t value, std::size_t width, Vector<std::uint8_t>& out) {
  for (std::size_t i = 0; i < width; ++i) out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

void SpecialRuns::write(Vector<std::uint8_t>& out) const {
  Vector<std::uint8_t> body;
  std::uint64_t runs = 0;
  std::uint32_t next = 0;  // first place behind the last run
  const std::size_t count = places_.size();
  const auto equal_from = [&](std::size_t i) {
    std::size_t end = i + 1;
    while (end < count && places_[end] == places_[end - 1] + 1 && bits_[end] == bits_[i]) ++end;
    return end;
  };
  for (std::size_t i = 0; i < count;) {
    std::size_t end = equal_from(i);
    const bool repeated = end - i >= kRepeatPays;
    if (!repeated)
      while (end < count && places_[end] == places_[end - 1] + 1 && equal_from(end) - end < kRepeatPays) ++end;
    append_varint(places_[i] - next, body);
    append_varint((end - i - 1) << 1 | static_cast<std::uint64_t>(repeated), body);
    for (std::size_t j = i; j < (repeated ? i + 1 : end); ++j) append_number(bits_[j], 4, body);
    next = places_[end - 1] + 1;
    i = end;
    ++runs;
  }
  append_varint(runs, out);
  out.insert(out.end(), body.begin(), body.end());
}

Status SpecialRuns::read(ByteReader& reader, std::size_t elems) {
  places_.clear();
  bits_.clear();
  const std::uint64_t runs = reader.varint(elems);
  std::uint64_t next = 0;
  for (std::uint64_t r = 0; r < runs && reader.ok(); ++r) {
    const std::uint64_t place = next + reader.varint(elems);
    const std::uint64_t head = reader.varint(2 * std::uint64_t{elems});
    const std::uint64_t length = (head >> 1) + 1;
    if (!reader.ok()) break;
    if (place + length > elems) return Status(StatusCode::corrupt, "tensor: a special element lies outside its chunk");
    const bool repeated = (head & 1) != 0;
    if (!repeated && length > reader.remaining() / 4) return Status(StatusCode::corrupt, "tensor: specials cut short");
    std::uint32_t bits = 0;
    for (std::uint64_t i = 0; i < length; ++i) {
      if (i == 0 || !repeated) bits = reader.u32();
      add(static_cast<std::uint32_t>(place + i), bits);
    }
    next = place + length;
  }
  return status_of(reader.fault());
}

}  // namespace quern::codec::tensor
