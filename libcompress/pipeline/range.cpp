// Passes over all values by blocks.
#include "libcompress/pipeline/range.h"

#include <algorithm>
#include <array>
#include <limits>

#include <quern/memory.h>

#include "libcompress/core/task_runner.h"
#include "libcompress/pipeline/elements.h"

namespace quern {
namespace {

constexpr std::uint64_t kBlockElems = 65536;

template <class Key>
struct KeyRange {
  Key min = std::numeric_limits<Key>::max();
  Key max = std::numeric_limits<Key>::lowest();
  bool any = false;
  bool special = false;  ///< an element may be infinite, NaN, -0 or a fill value
};

template <class Element>
constexpr bool kIsFloat = !std::is_same_v<Element, IntegerElement<typename Element::Key>>;

/// Of -0, which only floats have; where there is none to look for, a key that every range ends before.
template <class Element>
typename Element::Key negative_zero_key(bool wanted) {
  using Key = typename Element::Key;
  if constexpr (kIsFloat<Element>) {
    if (wanted) return Element::key(Element::kSign);
  }
  return std::numeric_limits<Key>::max();
}

constexpr std::uint64_t kPieceElems = 1024;
constexpr std::uint64_t kPiecesPerProbe = 64;
constexpr std::uint64_t kLineBytes = 64;     // of memory that are fetched together
constexpr std::uint64_t kBytesAhead = 8192;  // processors foresee lines within a page, not the next page

// Adds at most kPieceElems elements. Loops without branches, so that compilers make vector code of them.
template <class Element>
void add_piece(const std::uint8_t* data, std::uint64_t count, std::span<const std::uint64_t> fill_bits,
               KeyRange<typename Element::Key>& r) {
  using Bits = typename Element::Bits;
  using Key = typename Element::Key;
  constexpr auto kOnes = static_cast<Bits>(~Bits{0});
  constexpr auto kTop = static_cast<Bits>(std::numeric_limits<Key>::max());
  constexpr auto kBottom = static_cast<Bits>(std::numeric_limits<Key>::lowest());
  std::array<Bits, kPieceElems> invalid;  // all bits of an element that does not count
  for (std::uint64_t i = 0; i < count; ++i) invalid[i] = Element::finite(load_bits<Element>(data, i)) ? 0 : kOnes;
  for (const std::uint64_t fill : fill_bits)
    for (std::uint64_t i = 0; i < count; ++i)
      invalid[i] = static_cast<Bits>(
          invalid[i] | (Element::same(load_bits<Element>(data, i), static_cast<Bits>(fill)) ? kOnes : Bits{0}));
  Bits all_invalid = kOnes;
  Bits special = 0;
  const auto negative_zero = static_cast<Bits>(negative_zero_key<Element>(true));
  Key min = r.min, max = r.max;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto key = static_cast<Bits>(Element::key(load_bits<Element>(data, i)));
    const auto kept = static_cast<Bits>(key & ~invalid[i]);
    min = std::min(min, static_cast<Key>(kept | (invalid[i] & kTop)));
    max = std::max(max, static_cast<Key>(kept | (invalid[i] & kBottom)));
    all_invalid &= invalid[i];
    special |= static_cast<Bits>(invalid[i] | static_cast<Bits>(kIsFloat<Element> && key == negative_zero));
  }
  r = {min, max, r.any || all_invalid == 0, r.special || special != 0};
}

// The upper half of an 8-byte element's key, from the upper half of its bits.
template <class Element>
auto upper_key(std::uint32_t upper_bits) {
  if constexpr (std::is_same_v<Element, IntegerElement<std::uint64_t>>) return upper_bits;
  if constexpr (std::is_same_v<Element, IntegerElement<std::int64_t>>) return static_cast<std::int32_t>(upper_bits);
  if constexpr (!std::is_same_v<Element, IntegerElement<typename Element::Key>>)
    return FloatElement<std::uint32_t, 8>::key(upper_bits);
}

// Calls look(begin, end) for the elements of each line of memory in turn, and for those after the last whole one.
template <class Bits, class Look>
void for_lines(const std::uint8_t* data, std::uint64_t count, const Look& look) {
  constexpr std::uint64_t kLineElems = kLineBytes / sizeof(Bits);
  std::uint64_t i = 0;
  for (; i + kLineElems <= count; i += kLineElems) {
    __builtin_prefetch(data + i * sizeof(Bits) + kBytesAhead);
    look(i, i + kLineElems);
  }
  look(i, count);
}

// As adds_nothing(), for 8-byte elements; false where the upper halves alone cannot tell. Many instruction sets compare
// numbers of 4 bytes only.
template <class Element>
bool clearly_adds_nothing(const std::uint8_t* data, std::uint64_t count, const KeyRange<typename Element::Key>& r) {
  using Upper = decltype(upper_key<Element>(0));
  const auto min = static_cast<Upper>(r.min >> 32);
  const auto max = static_cast<Upper>(r.max >> 32);
  const auto negative_zero = static_cast<Upper>(negative_zero_key<Element>(!r.special) >> 32);
  std::uint32_t inside = 1;
  for_lines<std::uint64_t>(data, count, [&](std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t i = begin; i < end; ++i) {
      const Upper key = upper_key<Element>(static_cast<std::uint32_t>(load_bits<Element>(data, i) >> 32));
      inside &= static_cast<std::uint32_t>(key > min) & static_cast<std::uint32_t>(key < max) &
                static_cast<std::uint32_t>(key != negative_zero);
    }
  });
  return inside != 0;
}

// True when no element lies beyond the range, valid or not, nor is the first -0: then the piece adds nothing to it.
template <class Element>
bool adds_nothing(const std::uint8_t* data, std::uint64_t count, const KeyRange<typename Element::Key>& r) {
  using Bits = typename Element::Bits;
  if constexpr (sizeof(Bits) == 8) {
    if (clearly_adds_nothing<Element>(data, count, r)) return true;
  }
  const auto min = r.min;
  const auto max = r.max;
  const auto negative_zero = negative_zero_key<Element>(!r.special);
  Bits beyond = 0;
  for_lines<Bits>(data, count, [&](std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t i = begin; i < end; ++i) {
      const auto key = Element::key(load_bits<Element>(data, i));
      beyond |= static_cast<Bits>(static_cast<Bits>(key > max) | static_cast<Bits>(key < min) |
                                  static_cast<Bits>(kIsFloat<Element> && key == negative_zero));
    }
  });
  return beyond == 0;
}

// A few pieces from all over the block give most of the range; of the others, few add to it, and to see that they do
// not takes less than adding them.
template <class Element>
KeyRange<typename Element::Key> block_range(const std::uint8_t* data, std::uint64_t count,
                                            std::span<const std::uint64_t> fill_bits) {
  KeyRange<typename Element::Key> r;
  r.special = !fill_bits.empty();
  const auto piece_at = [&](std::uint64_t i) { return data + i * kPieceElems * sizeof(typename Element::Bits); };
  const auto piece_elems = [&](std::uint64_t i) { return std::min(kPieceElems, count - i * kPieceElems); };
  const std::uint64_t pieces = (count + kPieceElems - 1) / kPieceElems;
  for (std::uint64_t i = 0; i < pieces; i += kPiecesPerProbe)
    add_piece<Element>(piece_at(i), piece_elems(i), fill_bits, r);
  for (std::uint64_t i = 0; i < pieces; ++i)
    if (!adds_nothing<Element>(piece_at(i), piece_elems(i), r))
      add_piece<Element>(piece_at(i), piece_elems(i), fill_bits, r);
  return r;
}

}  // namespace

std::optional<ExactRange> exact_range(const ArrayView& array, std::span<const std::uint64_t> fill_bits,
                                      TaskRunner& runner) {
  return with_element(array.dtype, [&](auto element) -> std::optional<ExactRange> {
    using Element = decltype(element);
    using Key = typename Element::Key;
    const std::uint64_t elems = array.elems();
    const auto* data = static_cast<const std::uint8_t*>(array.data);
    // Few large tasks: the result does not depend on how the array is cut.
    const std::uint64_t tasks = std::clamp<std::uint64_t>(elems / kBlockElems, 1, 4 * runner.width());
    Vector<KeyRange<Key>> parts(static_cast<std::size_t>(tasks));
    runner.run(parts.size(), [&](std::size_t i) {
      const std::uint64_t begin = elems / tasks * i + std::min<std::uint64_t>(i, elems % tasks);
      const std::uint64_t end = elems / tasks * (i + 1) + std::min<std::uint64_t>(i + 1, elems % tasks);
      if (end > begin) parts[i] = block_range<Element>(data + begin * sizeof(Key), end - begin, fill_bits);
    });
    KeyRange<Key> all;
    for (const KeyRange<Key>& part : parts) {
      all.special |= part.special;
      if (!part.any) continue;
      all.min = std::min(all.min, part.min);
      all.max = std::max(all.max, part.max);
      all.any = true;
    }
    if (!all.any) return std::nullopt;
    ExactRange range = range_of_keys<Element>(all.min, all.max);
    range.all_ordinary = !all.special;
    return range;
  });
}

SquaredError squared_error(const ArrayView& original, const void* decoded, std::span<const std::uint64_t> fill_bits,
                           TaskRunner& runner) {
  return with_element(original.dtype, [&](auto element) {
    using Element = decltype(element);
    const std::uint64_t elems = original.elems();
    const auto* a = static_cast<const std::uint8_t*>(original.data);
    const auto* b = static_cast<const std::uint8_t*>(decoded);
    Vector<SquaredError> blocks(static_cast<std::size_t>((elems + kBlockElems - 1) / kBlockElems));
    runner.run(blocks.size(), [&](std::size_t k) {
      SquaredError part;
      const std::uint64_t end = std::min(elems, (k + 1) * kBlockElems);
      for (std::uint64_t i = k * kBlockElems; i < end; ++i) {
        const auto bits = load_bits<Element>(a, i);
        if (!is_valid<Element>(bits, fill_bits)) continue;
        const double d = Element::value(bits) - Element::value(load_bits<Element>(b, i));
        part.sum += d * d;
        ++part.valid;
      }
      blocks[k] = part;
    });
    SquaredError all;
    for (const SquaredError& part : blocks) {
      all.sum += part.sum;
      all.valid += part.valid;
    }
    return all;
  });
}

std::optional<ValueRange> value_range(const ArrayView& array, std::span<const std::uint64_t> fill_bits,
                                      const Execution& execution) {
  RunnerHandle runner(execution);
  const auto exact = exact_range(array, fill_bits, runner.get());
  if (!exact) return std::nullopt;
  return exact->range;
}

std::optional<ValueRange> value_range(const ArrayView& array, std::span<const std::uint64_t> fill_bits,
                                      const ValueRange& valid, const Execution& execution) {
  RunnerHandle runner(execution);
  return with_element(array.dtype, [&](auto element) -> std::optional<ValueRange> {
    using Element = decltype(element);
    using Key = typename Element::Key;
    const std::uint64_t elems = array.elems();
    const auto* data = static_cast<const std::uint8_t*>(array.data);
    Vector<KeyRange<Key>> blocks(static_cast<std::size_t>((elems + kBlockElems - 1) / kBlockElems));
    runner.get().run(blocks.size(), [&](std::size_t k) {
      KeyRange<Key>& r = blocks[k];
      const std::uint64_t end = std::min(elems, (k + 1) * kBlockElems);
      for (std::uint64_t i = k * kBlockElems; i < end; ++i) {
        const auto bits = load_bits<Element>(data, i);
        const double value = Element::value(bits);
        if (!is_valid<Element>(bits, fill_bits) || !(value >= valid.min && value <= valid.max)) continue;
        r.min = std::min(r.min, Element::key(bits));
        r.max = std::max(r.max, Element::key(bits));
        r.any = true;
      }
    });
    KeyRange<Key> all;
    for (const KeyRange<Key>& block : blocks) {
      if (!block.any) continue;
      all.min = std::min(all.min, block.min);
      all.max = std::max(all.max, block.max);
      all.any = true;
    }
    if (!all.any) return std::nullopt;
    ExactRange range = range_of_keys<Element>(all.min, all.max);
    while (difference_down(range.range.max, range.range.min) > range.width_down)
      range.range.max = next_down(range.range.max);
    return range.range;
  });
}

}  // namespace quern
