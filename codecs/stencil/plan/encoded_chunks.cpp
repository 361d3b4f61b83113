// Boxes compared row by row.
#include "codecs/stencil/plan/encoded_chunks.h"

#include <algorithm>
#include <cstring>

#include "codecs/stencil/chunk.h"

namespace quern::codec::stencil {
namespace {

/// Whether the bytes of a row are the same; a row without marks is one of zeros.
bool same_marks(const std::uint8_t* a, const std::uint8_t* b, std::size_t columns) {
  if (a != nullptr && b != nullptr) return std::memcmp(a, b, columns) == 0;
  const std::uint8_t* const marks = a != nullptr ? a : b;
  return marks == nullptr || std::all_of(marks, marks + columns, [](std::uint8_t mark) { return mark == 0; });
}

bool same_elements(const ConstBox3& a, const ConstBox3& b, std::size_t element_bytes) {
  const std::size_t columns = a.extents[2];
  for (std::size_t r = 0; r < a.extents[0] * a.extents[1]; ++r) {
    const auto row = [&](const ConstBox3& box) {
      return static_cast<const std::uint8_t*>(box.data) + row_offset(box, r) * element_bytes;
    };
    if (std::memcmp(row(a), row(b), columns * element_bytes) != 0) return false;
    if (!same_marks(special_row(a, r), special_row(b, r), columns)) return false;
  }
  return true;
}

}  // namespace

std::span<const std::uint8_t> EncodedChunks::find(const ConstBox3& in) const {
  for (std::size_t i = 0; i < chunks_.size(); ++i) {
    const ConstBox3 box = array_.chunk(grid_, i);
    if (box.extents == in.extents && same_elements(box, in, array_.element_bytes)) return chunks_[i];
  }
  return {};
}

}  // namespace quern::codec::stencil
