// Gaps of a working copy filled from valid neighbours, and special values written back after decoding.
#include <algorithm>
#include <cstring>

#include "libcompress/pipeline/mask/mask.h"
#include "libcompress/pipeline/mask/words.h"

namespace quern::mask {
namespace {

template <class W>
typename W::Word* row_of(const MutableBox3& box, std::uint64_t i, std::uint64_t y) {
  return static_cast<typename W::Word*>(box.data) + i * box.strides[0] + y * box.strides[1];
}

/// Index of the first class in [x, n) that is zero (or not zero); eight cells at a time.
std::uint64_t skip(const std::uint8_t* classes, std::uint64_t x, std::uint64_t n, bool while_valid) {
  if (while_valid) {
    for (std::uint64_t word = 0; x + 8 <= n; x += 8) {
      std::memcpy(&word, classes + x, 8);
      if (word != 0) break;
    }
  }
  while (x < n && (classes[x] == 0) == while_valid) ++x;
  return x;
}

/// Each gap takes the value before it; a gap at the start of the row the first valid value. False without valid cells.
template <class W>
bool fill_row(typename W::Word* p, const std::uint8_t* classes, std::uint64_t n) {
  std::uint64_t x = skip(classes, 0, n, false);
  if (x == n) return false;
  std::fill(p, p + x, p[x]);
  while ((x = skip(classes, x, n, true)) < n) {
    const std::uint64_t end = skip(classes, x, n, false);
    std::fill(p + x, p + end, p[x - 1]);
    x = end;
  }
  return true;
}

template <class W>
void fill_box(const MutableBox3& box, const std::uint8_t* classes) {
  using Word = typename W::Word;
  const std::uint64_t rows = box.extents[1], cols = box.extents[2], all = box.extents[0] * rows;
  const Word* above = nullptr;
  std::uint64_t waiting = 0;  // rows before the first one that has a valid cell
  for (std::uint64_t r = 0; r < all; ++r) {
    Word* p = row_of<W>(box, r / rows, r % rows);
    if (!fill_row<W>(p, classes + r * cols, cols)) {
      if (above == nullptr) {
        ++waiting;
        continue;
      }
      std::copy(above, above + cols, p);
    }
    above = p;
    for (std::uint64_t w = 0; w < waiting; ++w) std::copy(p, p + cols, row_of<W>(box, w / rows, w % rows));
    waiting = 0;
  }
  for (std::uint64_t w = 0; w < waiting; ++w) {
    Word* p = row_of<W>(box, w / rows, w % rows);
    std::fill(p, p + cols, Word{0});
  }
}

/// What a special cell gets back, class by class, and the verbatim values in order.
class SpecialSource {
 public:
  explicit SpecialSource(const SegmentMask& mask) : mask_(mask) {}

  /// Cells from C order index `first` on; `out` points to the first. Rows come in order.
  template <class Word>
  void restore_row(Word* out, std::uint64_t first, std::uint64_t n) {
    const std::uint8_t* classes = mask_.classes.data() + first;
    if (!mask_.verbatim.empty()) {
      next_ += static_cast<std::size_t>(std::count(mask_.classes.data() + seen_, classes, kVerbatimClass));
      seen_ = first + n;
    }
    for (std::uint64_t x = 0; (x = skip(classes, x, n, true)) < n; ++x) {
      if (classes[x] != kVerbatimClass) {
        out[x] = static_cast<Word>(mask_.specials[classes[x] - 1U]);
        continue;
      }
      out[x] = static_cast<Word>(mask_.verbatim[next_++]);
    }
  }

 private:
  const SegmentMask& mask_;
  std::uint64_t seen_ = 0;  // cells before this one have been restored or passed over
  std::size_t next_ = 0;    // the verbatim value of the next verbatim cell
};

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
  with_words(dtype, [&](auto words) { fill_box<decltype(words)>(working_copy, mask.classes.data()); });
  return {};
}

Status restore_specials(const MutableBox3& out, DType dtype, const SegmentMask& mask, const Extents& segment,
                        const Extents& offset) {
  if (mask.empty() || out.elems() == 0) return {};
  if (mask.classes.size() != segment[0] * segment[1] * segment[2] || !fits(out, segment, offset)) {
    return Status(StatusCode::invalid_argument, "box to restore does not fit its mask");
  }
  SpecialSource source(mask);
  with_words(dtype, [&](auto words) {
    using W = decltype(words);
    for (std::uint64_t i = 0; i < out.extents[0]; ++i) {
      for (std::uint64_t y = 0; y < out.extents[1]; ++y) {
        const std::uint64_t first = ((offset[0] + i) * segment[1] + offset[1] + y) * segment[2] + offset[2];
        source.restore_row(row_of<W>(out, i, y), first, out.extents[2]);
      }
    }
  });
  return {};
}

}  // namespace quern::mask
