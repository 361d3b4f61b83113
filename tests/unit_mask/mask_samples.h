// Segments and masks for the tests: seeded, of every kind that the mask stage must survive.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "libcompress/pipeline/mask/mask.h"
#include "libcompress/pipeline/mask/words.h"

namespace quern::mask {

inline constexpr DType kAllTypes[] = {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8,  DType::i16,
                                      DType::i32, DType::i64,  DType::u8,  DType::u16, DType::u32, DType::u64};

inline const std::vector<Extents>& sample_extents() {
  static const std::vector<Extents> all = {{1, 1, 1},   {1, 1, 2},   {1, 1, 1000}, {1, 1000, 1}, {1000, 1, 1},
                                           {3, 5, 7},   {1, 37, 53}, {9, 8, 8},    {5, 17, 65},  {2, 64, 64},
                                           {130, 3, 4}, {1, 2, 333}, {7, 1, 129},  {4, 70, 3}};
  return all;
}

inline std::uint64_t cells_of(const Extents& e) { return e[0] * e[1] * e[2]; }

/// Views of masks of such a segment: every way to cut its rows, with planes of a few numbers of rows.
inline Vector<kernels::MaskView> sample_views(const Extents& e) {
  Vector<kernels::MaskView> views;
  for (const std::uint64_t rows : {8, 13, 64}) {
    for (std::uint64_t cols = kernels::kLeastViewExtent; cols <= e[2]; ++cols) {
      if (e[2] % cols == 0 && views.size() < kernels::MaskViews::kMost) views.push_back({rows, cols});
    }
  }
  return views;
}

/// Shapes of masks.
enum class Pattern { none, all, random, rare, blocks, coast, checkerboard, planes, stripes };
inline constexpr Pattern kAllPatterns[] = {Pattern::none,         Pattern::all,    Pattern::random,
                                           Pattern::rare,         Pattern::blocks, Pattern::coast,
                                           Pattern::checkerboard, Pattern::planes, Pattern::stripes};

inline bool is_special(Pattern pattern, std::uint64_t i, std::uint64_t y, std::uint64_t x, std::mt19937_64& rng) {
  switch (pattern) {
    case Pattern::none: return false;
    case Pattern::all: return true;
    case Pattern::random: return rng() % 2 == 0;
    case Pattern::rare: return rng() % 97 == 0;
    case Pattern::blocks: return ((y / 11) + (x / 13)) % 2 == 0;
    case Pattern::coast: {
      const auto coast = (y * y / 7 + 3 * y + i * 2) % 61;
      return x > coast && x < coast + 30 + rng() % 3;
    }
    case Pattern::checkerboard: return (i + y + x) % 2 == 0;
    case Pattern::planes: return i % 3 == 1;
    case Pattern::stripes: return x % 5 == 2;
  }
  return false;
}

/// A mask as find_specials could have made it, with `kinds` special values; one more, when `verbatim`, value by value.
inline SegmentMask make_mask(const Extents& e, Pattern pattern, std::size_t kinds, bool verbatim, DType dtype,
                             std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  const std::uint64_t limit = dtype_bytes(dtype) == 8 ? UINT64_MAX : (UINT64_C(1) << (8 * dtype_bytes(dtype))) - 1;
  SegmentMask mask;
  for (std::size_t k = 0; k < kinds; ++k) mask.specials.push_back(rng() & limit);
  mask.classes.resize(cells_of(e));
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < e[0]; ++i) {
    for (std::uint64_t y = 0; y < e[1]; ++y) {
      for (std::uint64_t x = 0; x < e[2]; ++x, ++at) {
        if (!is_special(pattern, i, y, x, rng)) continue;
        const std::uint64_t pick = pattern == Pattern::random ? rng() : (y / 16 + x / 16);
        const std::uint64_t k = pick % (kinds + (verbatim ? 1 : 0));
        ++mask.masked;
        if (k < kinds) {
          mask.classes[at] = static_cast<std::uint8_t>(k + 1);
        } else {
          mask.classes[at] = kVerbatimClass;
          mask.verbatim.push_back(rng() & limit);
        }
      }
    }
  }
  return mask;
}

/// Gives the masked cells classes whose numbers are odd where one of the eight cells around is not masked, else even. As
/// the format has it, the rows of all planes lie one below the other.
inline void put_classes_along_rim(SegmentMask& mask, const Extents& e) {
  const auto rows = static_cast<std::int64_t>(e[0] * e[1]), cols = static_cast<std::int64_t>(e[2]);
  const Vector<std::uint8_t> before = mask.classes;
  const Vector<std::uint64_t> verbatim = std::exchange(mask.verbatim, {});
  const std::size_t numbers = mask.specials.size() + (verbatim.empty() ? 0 : 1);
  const auto is_masked = [&](std::int64_t y, std::int64_t x) {
    return before[std::clamp<std::int64_t>(y, 0, rows - 1) * cols + std::clamp<std::int64_t>(x, 0, cols - 1)] != 0;
  };
  for (std::int64_t cell = 0; cell < rows * cols; ++cell) {
    if (before[cell] == 0) continue;
    const std::int64_t y = cell / cols, x = cell % cols;
    bool inner = true;
    for (std::int64_t k = 0; k < 9; ++k) inner = inner && is_masked(y + k / 3 - 1, x + k % 3 - 1);
    const auto pick = static_cast<std::size_t>(y / 16 + x / 16);
    const std::size_t number = inner ? 2 * (pick % ((numbers + 1) / 2)) : 2 * (pick % (numbers / 2)) + 1;
    mask.classes[cell] = number < mask.specials.size() ? static_cast<std::uint8_t>(number + 1) : kVerbatimClass;
    if (mask.classes[cell] == kVerbatimClass) mask.verbatim.push_back(verbatim[mask.verbatim.size() % verbatim.size()]);
  }
}

inline std::string describe(const Extents& e, Pattern pattern, DType dtype, std::uint64_t seed) {
  return std::to_string(e[0]) + "x" + std::to_string(e[1]) + "x" + std::to_string(e[2]) + " pattern " +
         std::to_string(static_cast<int>(pattern)) + " " + dtype_name(dtype) + " seed " + std::to_string(seed);
}

/// Bytes with a few bits flipped, cut off, lengthened or replaced.
inline void damage(Vector<std::uint8_t>& bytes, std::mt19937_64& rng) {
  switch (rng() % 4) {
    case 0: bytes.resize(rng() % (bytes.size() + 1)); break;
    case 1: bytes.insert(bytes.end(), 1 + rng() % 3, static_cast<std::uint8_t>(rng())); break;
    case 2: bytes[rng() % std::min<std::size_t>(bytes.size(), 9)] = static_cast<std::uint8_t>(rng()); break;
    default:
      for (std::uint64_t flips = 1 + rng() % 3; flips > 0; --flips) {
        std::uint8_t& byte = bytes[rng() % bytes.size()];
        byte = static_cast<std::uint8_t>(byte ^ (1U << (rng() % 8)));
      }
  }
}

/// A contiguous segment of one element type.
template <class W>
struct Segment {
  Extents extents{1, 1, 1};
  std::vector<typename W::Word> words;

  explicit Segment(const Extents& e) : extents(e), words(cells_of(e)) {}
  ConstBox3 box() const { return {words.data(), extents, {extents[1] * extents[2], extents[2]}}; }
  MutableBox3 mutable_box() { return {words.data(), extents, {extents[1] * extents[2], extents[2]}}; }
};

template <class W>
bool is_finite(typename W::Word bits) {
  return !W::kFloat || (bits & W::kMagnitude) < W::kInfinity;
}

/// Random valid values, no two neighbours alike often: finite and not zero for floats.
template <class W>
void set_valid(Segment<W>& segment, std::mt19937_64& rng) {
  for (auto& word : segment.words) {
    do {
      word = static_cast<typename W::Word>(rng());
    } while (!is_finite<W>(word) || (word & W::kMagnitude) == 0);
  }
}

}  // namespace quern::mask
