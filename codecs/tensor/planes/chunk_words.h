// A chunk of elements as words for the planes, and the byte before them that says whether they are coded at all.
#pragma once

#include <cstring>

#include "codecs/tensor/mode_coder.h"
#include "codecs/tensor/planes/plane_code.h"

namespace quern::codec::tensor {

/// First byte of a chunk of modes that code planes. The numbers are stored.
enum class ChunkForm : std::uint8_t {
  raw = 0,    ///< the elements follow
  coded = 1,  ///< planes follow
};

/// Elements as they are: floats with the sign at the low end, so that the exponent fills the highest plane.
/// The parts of complex elements are words of their own.
inline PlaneWords words_of_elements(ElementType type, std::size_t elems) {
  const std::size_t width = element_bytes(part_type(type));
  return {elems * (element_bytes(type) / width), static_cast<unsigned>(width), is_float(part_type(type)), {}};
}

/// Where the exponent begins in elements of a type; 0 for types without one worth knowing.
constexpr unsigned exponent_shift(ElementType type) {
  switch (type) {
    case ElementType::f16: return 10;
    case ElementType::bf16: return 7;
    case ElementType::f32: return 23;
    case ElementType::f64: return 52;
    default: return 0;
  }
}

/// Differences to elements of a base.
inline PlaneWords words_of_differences(ElementType type, std::size_t elems, const std::uint8_t* base) {
  PlaneWords words = words_of_elements(type, elems);
  words.rotate = false;
  const unsigned shift = exponent_shift(part_type(type));
  if (shift != 0) words.reference = {base, words.width, shift};
  return words;
}

/// Writes `coded` as a chunk, or the elements where it is empty or no smaller. `out` has room for either.
inline std::size_t finish_chunk(std::span<const std::uint8_t> values, std::size_t coded, std::uint8_t* out) {
  if (coded > 0 && coded < values.size()) {
    out[0] = static_cast<std::uint8_t>(ChunkForm::coded);
    return 1 + coded;
  }
  out[0] = static_cast<std::uint8_t>(ChunkForm::raw);
  std::memcpy(out + 1, values.data(), values.size());
  return 1 + values.size();
}

/// Reads the first byte; for a raw chunk, its elements too. True when planes follow.
inline Result<bool> begin_chunk(std::span<const std::uint8_t> bytes, std::span<std::uint8_t> out) {
  if (bytes.empty()) return Status(StatusCode::corrupt, "tensor: a chunk is empty");
  if (bytes[0] == static_cast<std::uint8_t>(ChunkForm::coded)) return true;
  if (bytes[0] != static_cast<std::uint8_t>(ChunkForm::raw) || bytes.size() != 1 + out.size())
    return Status(StatusCode::corrupt, "tensor: a chunk has an unknown form or another size");
  std::memcpy(out.data(), bytes.data() + 1, out.size());
  return false;
}

}  // namespace quern::codec::tensor
