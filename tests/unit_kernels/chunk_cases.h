// Chunks for tests: element types x tile shapes x quantizers x ragged boxes x contents, exceptions included.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/lorenzo/chunk_task.h"
#include "tests/unit_kernels/bounds.h"

namespace quern::kernels::testing {

inline constexpr std::uint64_t kChunkSeed = 4711;

struct ChunkCase {
  std::string name;
  ChunkRules rules;
  ChunkBox box;
  std::vector<std::uint8_t> elements;  ///< the whole array the box lies in

  std::size_t tiles() const {
    const auto n = tile_counts(box, rules.tile);
    return n[0] * n[1] * n[2];
  }
  /// The array as a lossless decoder leaves it when it starts from bytes 0xa5.
  std::vector<std::uint8_t> expected_exact() const {
    std::vector<std::uint8_t> out(elements.size(), 0xa5);
    const std::size_t size = element_bytes(rules.element);
    for (std::uint64_t z = 0; z < box.extents[0]; ++z)
      for (std::uint64_t y = 0; y < box.extents[1]; ++y) {
        const std::size_t at = (z * box.strides[0] + y * box.strides[1]) * size;
        std::memcpy(out.data() + at, elements.data() + at, box.extents[2] * size);
      }
    return out;
  }
};

inline bool is_float_element(Element e) { return static_cast<unsigned>(e) <= 4; }

/// Bit pattern of a real number in an element type.
inline std::uint64_t pattern_of(Element e, double v) {
  switch (e) {
    case Element::f16: return float_to_half(static_cast<float>(v));
    case Element::bf16: return float_to_bfloat(static_cast<float>(v));
    case Element::f32: return std::bit_cast<std::uint32_t>(static_cast<float>(v));
    case Element::f64: return std::bit_cast<std::uint64_t>(v);
    default: return static_cast<std::uint64_t>(static_cast<std::int64_t>(v));
  }
}

enum class Content { constant, smooth, random_bits, specials, mostly_refused, runs };
inline constexpr Content kContents[] = {Content::constant, Content::smooth,         Content::random_bits,
                                        Content::specials, Content::mostly_refused, Content::runs};

inline std::uint64_t element_at(Element e, Content content, std::size_t i, std::mt19937_64& random) {
  const double wave = 50 + 40 * std::sin(static_cast<double>(i) * 0.013) + static_cast<double>(i % 40);
  const double specials[] = {NAN, INFINITY, -INFINITY, -0.0, 1e30, -1e-42};
  switch (content) {
    case Content::constant: return pattern_of(e, 42);
    case Content::smooth: return pattern_of(e, wave);
    case Content::random_bits: return random();
    case Content::specials:
      if (random() % 23 != 0 && i > 2) return pattern_of(e, wave);
      return is_float_element(e) ? pattern_of(e, specials[random() % 6]) : random();
    case Content::mostly_refused:
      if (random() % 4 != 0) return is_float_element(e) ? pattern_of(e, specials[random() % 3]) : random();
      return pattern_of(e, wave);
    case Content::runs: return pattern_of(e, i / 700 % 2 != 0 ? -7 : static_cast<double>(i / 2100));
  }
  return 0;
}

inline ChunkRules make_case_rules(Element e, QuantizerKind kind, TileShape tile) {
  ChunkRules rules;
  rules.element = e;
  rules.quantizer = kind;
  rules.tile = tile;
  const bool wide = element_bytes(e) == 8;
  if (kind == QuantizerKind::absolute && is_float_element(e)) {
    rules.params = e == Element::f64 ? float_params<double>(0.01) : float_params<float>(0.01);
  } else {
    const std::uint64_t half = kind == QuantizerKind::pointwise ? (e == Element::bf16 ? 1 : 9) : 2;
    rules.params = wide ? int_params<std::uint64_t>(half) : int_params<std::uint32_t>(half);
  }
  for (const Predictor p : {Predictor::none, Predictor::x, Predictor::xx, Predictor::xy, Predictor::xyz, Predictor::yy})
    if (predictor_fits(p, tile) && rules.candidate_count < kMaxCandidates)
      rules.candidates[rules.candidate_count++] = p;
  return rules;
}

inline std::vector<ChunkCase> chunk_cases() {
  std::vector<ChunkCase> cases;
  std::mt19937_64 random(kChunkSeed);
  const Element elements[] = {Element::f16, Element::bf16, Element::f32, Element::f64, Element::i8,  Element::i16,
                              Element::i32, Element::i64,  Element::u8,  Element::u16, Element::u32, Element::u64};
  const std::array<std::uint64_t, 3> boxes[3][3] = {{{1, 1, 1}, {1, 1, 1033}, {1, 1, 2048}},
                                                    {{1, 1, 5}, {1, 37, 64}, {1, 64, 32}},
                                                    {{1, 1, 1}, {5, 9, 33}, {4, 8, 64}}};
  for (const Element e : elements)
    for (const TileShape tile : {TileShape::line, TileShape::plane, TileShape::block})
      for (const QuantizerKind kind : {QuantizerKind::absolute, QuantizerKind::pointwise, QuantizerKind::exact})
        for (const auto& extents : boxes[static_cast<unsigned>(tile)])
          for (const Content content : kContents) {
            if (kind == QuantizerKind::pointwise && !is_float_element(e)) continue;
            ChunkCase c;
            c.rules = make_case_rules(e, kind, tile);
            c.box = {extents, {(extents[1] + 1) * (extents[2] + 3), extents[2] + 3}};
            c.name = "element " + std::to_string(static_cast<int>(e)) + " tile " +
                     std::to_string(static_cast<int>(tile)) + " quantizer " + std::to_string(static_cast<int>(kind)) +
                     " rows of " + std::to_string(extents[2]) + " content " + std::to_string(static_cast<int>(content));
            const std::size_t size = element_bytes(e);
            const std::size_t count = extents[0] * c.box.strides[0];
            c.elements.resize(count * size);
            for (std::size_t i = 0; i < count; ++i) {
              const std::uint64_t bits = element_at(e, content, i, random);
              std::memcpy(c.elements.data() + i * size, &bits, size);
            }
            cases.push_back(std::move(c));
          }
  return cases;
}

}  // namespace quern::kernels::testing
