// Values for the encoder of staged tiles, told as codes: calm, smooth and rough ones, those at the edge of what is packed
// two to a word and of what a step promises, and values that it has to refuse.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/lorenzo/cpu/lorenzo.h"
#include "kernels/lorenzo/tile_record.h"
#include "tests/unit_kernels/chunk_cases.h"

namespace quern::kernels::testing {

enum class Codes {
  constant,  ///< one value a tile
  sparse,    ///< zeros with a few others
  calm,      ///< -1, 0, 1
  smooth,
  noise8,      ///< residuals of 8 bits, and dense planes
  noise16,     ///< residuals of 16 bits
  packed,      ///< as far apart as codes may be that are packed
  not_packed,  ///< one further
  crossing,    ///< on both sides of a multiple of 65536
  rough,       ///< beyond every promise
  outliers,    ///< a single one beyond the promise
  far,         ///< as far as codes reach
  minus_zero,  ///< a single one
  not_finite,
};
inline constexpr Codes kAllCodes[] = {Codes::constant,   Codes::sparse,    Codes::calm,     Codes::smooth,
                                      Codes::noise8,     Codes::noise16,   Codes::packed,   Codes::not_packed,
                                      Codes::crossing,   Codes::rough,     Codes::outliers, Codes::far,
                                      Codes::minus_zero, Codes::not_finite};

/// Rules with a step that serves codes up to `promised` (docs/adr/026-step-with-slack.md); 0: with the widest step.
inline ChunkRules staged_rules(TileShape tile, std::uint32_t promised) {
  ChunkRules rules;
  rules.element = Element::f32;
  rules.quantizer = QuantizerKind::absolute;
  rules.tile = tile;
  rules.params = float_params<float>(0.01);
  if (promised == 0) return rules;
  const double slack = (3.1 * promised + 2) * 0x1p-23;
  auto step = static_cast<float>(rules.params.step * (1 - slack));
  if (step > rules.params.step * (1 - slack)) step = std::nextafter(step, 0.0f);
  rules.params.step = step;
  rules.params.reciprocal = 1 / step;
  rules.params.promised = promised;
  return rules;
}

/// Up to four of the predictors that fit the shape, in any order.
inline void choose_any_candidates(ChunkRules& rules, std::mt19937_64& random) {
  rules.candidate_count = 0;
  const std::size_t wanted = 1 + random() % kMaxCandidates;
  bool used[kPredictors] = {};
  for (unsigned tries = 0; tries < 64 && rules.candidate_count < wanted; ++tries) {
    const auto p = static_cast<Predictor>(random() % kPredictors);
    if (!predictor_fits(p, rules.tile) || used[static_cast<unsigned>(p)]) continue;
    used[static_cast<unsigned>(p)] = true;
    rules.candidates[rules.candidate_count++] = p;
  }
}

/// Element i under `step`; `base` is a code that all are near.
inline float staged_value(Codes codes, std::size_t i, double step, std::int64_t base, std::mt19937_64& random) {
  const auto within = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(2 * most + 1)) - most;
  };
  const bool rare = random() % 3000 == 0;
  std::int64_t code = base;
  switch (codes) {
    case Codes::constant: code += static_cast<std::int64_t>(i / 1024 % 3); break;
    case Codes::sparse: code += random() % 40 == 0 ? within(5) : 0; break;
    case Codes::calm: code += within(1); break;
    case Codes::smooth: code += std::lround(3000 * std::sin(0.01 * static_cast<double>(i % 997))); break;
    case Codes::noise8: code += within(30); break;
    case Codes::noise16: code += within(4000); break;
    case Codes::packed: code += random() % 2 == 0 ? 0 : 8191; break;
    case Codes::not_packed: code += random() % 2 == 0 ? 0 : 8192; break;
    case Codes::crossing: code = 65536 + within(4000); break;
    case Codes::rough: code += within(200000); break;
    case Codes::outliers: code += i % 4096 == 77 ? 150000 : within(3); break;
    case Codes::far: code = rare ? (i % 2 == 0 ? -4194303 : 4194303) : within(9); break;
    case Codes::minus_zero: return rare ? -0.0f : static_cast<float>(step * static_cast<double>(within(9)));
    case Codes::not_finite: return rare ? NAN : static_cast<float>(step * static_cast<double>(within(9)));
  }
  const double off = 0.8 * (static_cast<double>(random() % 1001) / 1000 - 0.5);
  return static_cast<float>(step * (static_cast<double>(code) + off));
}

/// The chunk that is one tile alone, from what an encoder of staged tiles leaves of it; nothing if the tile is refused.
inline std::vector<std::uint8_t> chunk_of_record(const TileRecord& record, const void* payload) {
  if (record.refused != 0) return {};
  const TileHead head = record.head();
  std::vector<std::uint8_t> out(1 + kMaxHeadBytes + head.payload);
  std::uint8_t* at = out.data() + 1;
  out[0] = head.constant() ? kFormConstant : kFormTiles;
  at = head.constant() ? put_leb128(at, zigzag64(head.seed)) : put_head(at, head, 0);
  if (head.payload != 0) std::memcpy(at, payload, head.payload);
  out.resize(static_cast<std::size_t>(at - out.data()) + head.payload);
  return out;
}

/// The same from the CPU's encoder, of the tile at `values`.
class CpuTile {
 public:
  std::vector<std::uint8_t> encode(const ChunkRules& rules, const void* values) const {
    const auto e = tile_extents(rules.tile);
    const ChunkBox box{{e[0], e[1], e[2]}, {std::uint64_t{e[1]} * e[2], e[2]}};
    std::vector<std::uint8_t> out(max_lorenzo_chunk_bytes(rules.element, 1));
    out.resize(cpu_.encode(rules, values, box, out.data(), scratch_.get()));
    return out;
  }

 private:
  struct alignas(64) Line {
    std::uint8_t bytes[64];
  };
  const LorenzoKernels& cpu_ = lorenzo_kernels(IsaLevel::baseline);
  std::unique_ptr<Line[]> scratch_{new Line[1 + cpu_.encode_scratch_bytes / sizeof(Line)]};
};

}  // namespace quern::kernels::testing
