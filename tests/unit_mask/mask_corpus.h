// A corpus of segments and masks made from integers and a hash alone, so that every machine makes the same. Hashes of
// what the mask stage makes of them are kept in mask_hashes.h; the code that warps run is held against the same
// segments.
#pragma once

#include <cstdint>
#include <vector>

#include "libcompress/pipeline/mask/mask.h"
#include "libcompress/pipeline/mask/words.h"
#include "tests/unit_mask/mask_samples.h"

namespace quern::mask {

/// FNV-1a, 64 bits.
class Hash {
 public:
  template <class T>
  void add(const T& value) {
    const auto word = static_cast<std::uint64_t>(value);
    for (std::size_t b = 0; b < sizeof(T); ++b) {
      hash_ = (hash_ ^ ((word >> (8 * b)) & 0xFF)) * UINT64_C(0x100000001B3);
    }
  }
  template <class Range>
  void add_all(const Range& values) {
    add(static_cast<std::uint64_t>(values.size()));
    for (const auto& value : values) add(value);
  }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = UINT64_C(0xCBF29CE484222325);
};

/// A hash of its arguments, uniform in 0..limit-1.
inline std::uint64_t mix(std::uint64_t seed, std::uint64_t index, std::uint64_t limit) {
  std::uint64_t x = seed * UINT64_C(0x9E3779B97F4A7C15) + index * UINT64_C(0xD1B54A32D192ED03) + 1;
  x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
  return (x ^ (x >> 31)) % limit;
}

/// What a segment of the corpus looks like.
enum class Scene : unsigned {
  smooth,
  coast_nan,
  coast_fill,
  coast_zero,
  payloads,       // more NaNs than classes
  some_patterns,  // infinities and a few payloads
  patches,        // three values that are repeated, like ice
  minus_zeros,
  few_values,
  seasons,  // gaps that come back every few planes
  all_special,
  constant,
  any_bits,
  lost_rows,  // whole rows and planes of gaps, the first ones too
  zero_fill,
  count
};
inline constexpr unsigned kScenes = static_cast<unsigned>(Scene::count);

inline const std::vector<Extents>& corpus_extents() {
  static const std::vector<Extents> all = {{1, 1, 1},   {1, 1, 700}, {1, 2, 333},  {1, 500, 1},  {300, 1, 1},
                                           {3, 5, 7},   {1, 37, 53}, {9, 8, 8},    {5, 17, 65},  {60, 3, 4},
                                           {7, 1, 129}, {4, 70, 3},  {1, 64, 128}, {13, 24, 40}, {1, 1, 5000}};
  return all;
}

/// One segment with what find_specials is asked about it.
template <class W>
struct CorpusCase {
  Scene scene = Scene::smooth;
  Segment<W> segment{Extents{1, 1, 1}};
  Vector<std::uint64_t> fills;
  RepeatedRule rule;
};

namespace detail {

/// The word of a valid value: larger with v, one unit a step that bounds are small and large against.
template <class W>
typename W::Word valid_word(std::uint64_t v) {
  using Word = typename W::Word;
  if constexpr (W::kFloat) {
    constexpr auto kOne = static_cast<std::uint64_t>(W::kMagnitude >> W::kMantissaBits >> 1) << W::kMantissaBits;
    constexpr unsigned kShift = W::kMantissaBits > 8 ? W::kMantissaBits - 8 : 0;
    return static_cast<Word>(kOne + ((v & 0x3FF) << kShift));
  } else {
    return static_cast<Word>(v);
  }
}

/// A NaN; `other` where there is none.
template <class W>
typename W::Word nan_word(std::uint64_t payload, typename W::Word other) {
  if constexpr (W::kFloat) {
    constexpr std::uint64_t kFraction = (UINT64_C(1) << W::kMantissaBits) - 1;
    return static_cast<typename W::Word>(W::kInfinity | (1 + payload % kFraction) |
                                         ((payload & 1) != 0 ? W::kSign : 0));
  } else {
    return other;
  }
}

inline bool behind_coast(std::uint64_t i, std::uint64_t y, std::uint64_t x) {
  const std::uint64_t coast = (y * y / 5 + 3 * y + 2 * (i / 4)) % 71;
  return x % 97 > coast && x % 97 < coast + 37;
}

inline std::uint64_t wave(std::uint64_t i, std::uint64_t y, std::uint64_t x) {
  const std::uint64_t a = (x + 2 * i) % 64, b = (y + i) % 50;
  return 60 + (a < 32 ? a : 64 - a) + (b < 25 ? b : 50 - b);
}

template <class W>
typename W::Word scene_word(Scene scene, std::uint64_t i, std::uint64_t y, std::uint64_t x, std::uint64_t at,
                            std::uint64_t seed) {
  using Word = typename W::Word;
  const Word smooth = valid_word<W>(wave(i, y, x) + mix(seed, at, 3));
  const Word fill = W::kFloat ? static_cast<Word>(W::kInfinity - 3) : static_cast<Word>(~Word{0});
  const Word gap = nan_word<W>(6, fill);
  switch (scene) {
    case Scene::smooth: return smooth;
    case Scene::coast_nan: return behind_coast(i, y, x) ? gap : smooth;
    case Scene::coast_fill: return behind_coast(i, y, x) ? (mix(seed, at, 301) == 0 ? gap : fill) : smooth;
    case Scene::coast_zero: return behind_coast(i, y, x) ? Word{0} : smooth;
    case Scene::payloads: return mix(seed, at, 3) == 0 ? nan_word<W>(mix(seed + 1, at, 400), fill) : smooth;
    case Scene::some_patterns: {
      const std::uint64_t kind = mix(seed, y / 3 * 64 + x / 5, 9);
      if (!W::kFloat || kind > 4) return smooth;
      if (kind == 4) return nan_word<W>(mix(seed, at, 40), fill);
      return kind < 2 ? static_cast<Word>(W::kInfinity | (kind == 0 ? W::kSign : 0)) : nan_word<W>(kind, fill);
    }
    case Scene::patches: {
      if (!behind_coast(i, y, x)) return smooth;
      const std::uint64_t kind = mix(seed, x / 97 + y / 24 * 64 + i * 512, 3);
      return kind == 0 ? Word{0} : valid_word<W>(kind == 1 ? 1000 : 1);
    }
    case Scene::minus_zeros:
      return mix(seed, at, 29) == 0 ? W::kSign : (behind_coast(i, y, x) && seed % 2 == 0 ? Word{0} : smooth);
    case Scene::few_values: return valid_word<W>(mix(seed, at, 4) * mix(seed, at / 7, 5));
    case Scene::seasons: {
      const std::uint64_t season = i % (2 + seed % 5);
      return mix(seed + season, y / 4 * 64 + x / 6, 3) == 0 ? (seed % 2 == 0 ? gap : Word{0}) : smooth;
    }
    case Scene::all_special: return mix(seed, at, 50) == 0 && seed % 2 == 0 ? fill : gap;
    case Scene::constant: return valid_word<W>(77);
    case Scene::any_bits: return static_cast<Word>(mix(seed, at, UINT64_MAX));
    case Scene::lost_rows:
      return mix(seed, i * 977 + y, 3) == 0 || y < 2 || i % 4 == 1 ? gap : (x < 3 || x % 31 == 5 ? fill : smooth);
    case Scene::zero_fill: return behind_coast(i, y, x) ? (x % 3 == 0 && W::kFloat ? W::kSign : Word{0}) : smooth;
    case Scene::count: break;
  }
  return smooth;
}

}  // namespace detail

template <class W>
CorpusCase<W> corpus_case(Scene scene, const Extents& e, const EnforcedBound& bound, std::uint64_t seed) {
  using Word = typename W::Word;
  CorpusCase<W> c;
  c.scene = scene;
  c.segment = Segment<W>(e);
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < e[0]; ++i) {
    for (std::uint64_t y = 0; y < e[1]; ++y) {
      for (std::uint64_t x = 0; x < e[2]; ++x, ++at) {
        c.segment.words[at] = detail::scene_word<W>(scene, i, y, x, at, seed);
      }
    }
  }
  const Word fill = W::kFloat ? static_cast<Word>(W::kInfinity - 3) : static_cast<Word>(~Word{0});
  if (scene == Scene::coast_fill || scene == Scene::lost_rows || scene == Scene::all_special ||
      (!W::kFloat && (scene == Scene::coast_nan || scene == Scene::payloads || scene == Scene::seasons))) {
    c.fills = {fill};
  }
  if (scene == Scene::zero_fill) c.fills = {0};
  if (scene == Scene::any_bits) c.fills = {static_cast<Word>(5), static_cast<Word>(mix(seed, 3, UINT64_MAX))};
  c.rule = {true, bound};
  return c;
}

/// Calls f(case, seed) for every extents and bound of a scene.
template <class W, class F>
void for_corpus_scene(Scene scene, F&& f) {
  std::uint64_t seed = static_cast<unsigned>(scene) * 100 + static_cast<unsigned>(W::kDtype);
  for (const Extents& e : corpus_extents()) {
    for (const double value : {0.0, 0x1p-9, 0.0625, 3.0}) {
      const BoundKind kind = value == 0 ? BoundKind::lossless
                                        : (W::kFloat && seed % 3 == 0 && value < 1 ? BoundKind::pwrel : BoundKind::abs);
      if (kind == BoundKind::abs && !W::kFloat && value < 1 && seed % 2 == 0) continue;  // steps of 1, as when lossless
      ++seed;
      f(corpus_case<W>(scene, e, {kind, value}, seed), seed);
    }
  }
}

}  // namespace quern::mask
