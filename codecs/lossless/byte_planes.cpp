// Planes of bytes: what makes elements easy to pack.
#include "codecs/lossless/byte_planes.h"

namespace quern::codec::lossless {

void split_planes(std::span<const std::uint8_t> elements, std::size_t elem_bytes, std::uint8_t* planes) {
  for (std::size_t plane = 0; plane < elem_bytes; ++plane) {
    for (std::size_t i = plane; i < elements.size(); i += elem_bytes) *planes++ = elements[i];
  }
}

void join_planes(std::span<const std::uint8_t> planes, std::size_t elem_bytes, std::uint8_t* elements) {
  const std::uint8_t* from = planes.data();
  for (std::size_t plane = 0; plane < elem_bytes; ++plane) {
    for (std::size_t i = plane; i < planes.size(); i += elem_bytes) elements[i] = *from++;
  }
}

}  // namespace quern::codec::lossless
