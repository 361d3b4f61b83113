// Gaps of a working copy filled from valid neighbours, and special values written back after decoding.
#include "kernels/mask/fill.h"
#include "libcompress/pipeline/mask/mask.h"
#include "libcompress/pipeline/mask/words.h"

namespace quern::mask {
namespace {

template <class W>
kernels::SegmentBox<typename W::Word> words_of(const MutableBox3& box) {
  return {static_cast<typename W::Word*>(box.data), box.extents, box.strides};
}

bool fits(const MutableBox3& out, const Extents& segment, const Extents& offset) {
  for (std::size_t a = 0; a < 3; ++a) {
    if (offset[a] > segment[a] || out.extents[a] > segment[a] - offset[a]) return false;
  }
  return true;
}

}  // namespace

Status fill_gaps(const MutableBox3& working_copy, DType dtype, const SegmentMask& mask) {
  if (mask.empty()) return {};
  if (mask.classes.size() != working_copy.elems()) {
    return Status(StatusCode::invalid_argument, "mask does not have one class a cell");
  }
  with_words(dtype,
             [&](auto words) { kernels::fill_segment(words_of<decltype(words)>(working_copy), mask.classes.data()); });
  return {};
}

Status restore_specials(const MutableBox3& out, DType dtype, const SegmentMask& mask, const Extents& segment,
                        const Extents& offset) {
  if (mask.empty() || out.elems() == 0) return {};
  if (mask.classes.size() != segment[0] * segment[1] * segment[2] || !fits(out, segment, offset)) {
    return Status(StatusCode::invalid_argument, "box to restore does not fit its mask");
  }
  kernels::SpecialWriter writer(
      {mask.specials.data(), mask.classes.data(), mask.verbatim.data(), !mask.verbatim.empty()});
  with_words(dtype, [&](auto words) {
    const auto box = words_of<decltype(words)>(out);
    for (std::uint64_t i = 0; i < out.extents[0]; ++i) {
      for (std::uint64_t y = 0; y < out.extents[1]; ++y) {
        const std::uint64_t first = ((offset[0] + i) * segment[1] + offset[1] + y) * segment[2] + offset[2];
        writer.write_row(box.cells + i * box.strides[0] + y * box.strides[1], first, out.extents[2]);
      }
    }
  });
  return {};
}

}  // namespace quern::mask
