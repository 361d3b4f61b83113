// Boxes compared row by row.
#include "codecs/stencil/plan/encoded_chunks.h"

#include <cstring>

#include "codecs/stencil/chunk.h"

namespace quern::codec::stencil {
namespace {

/// A chunk says whether it was made with marks, even if none is set: both boxes have some, or neither.
bool same_elements(const ConstBox3& a, const ConstBox3& b, std::size_t element_bytes) {
  if ((a.special == nullptr) != (b.special == nullptr)) return false;
  const std::size_t columns = a.extents[2];
  for (std::size_t r = 0; r < a.extents[0] * a.extents[1]; ++r) {
    const auto row = [&](const ConstBox3& box) {
      return static_cast<const std::uint8_t*>(box.data) + row_offset(box, r) * element_bytes;
    };
    if (std::memcmp(row(a), row(b), columns * element_bytes) != 0) return false;
    if (a.special != nullptr && std::memcmp(special_row(a, r), special_row(b, r), columns) != 0) return false;
  }
  return true;
}

}  // namespace

std::uint64_t EncodedChunks::bytes() const {
  std::uint64_t bytes = array_.values.size() + array_.special.size();
  for (const auto& chunk : chunks_) bytes += chunk.size();
  return bytes;
}

std::span<const std::uint8_t> EncodedChunks::find(const ConstBox3& in) const {
  for (std::size_t i = 0; i < chunks_.size(); ++i) {
    const ConstBox3 box = array_.chunk(grid_, i);
    if (box.extents == in.extents && same_elements(box, in, array_.element_bytes)) return chunks_[i];
  }
  return {};
}

}  // namespace quern::codec::stencil
