// Random arrays for tests of what encodes them on lanes.
#pragma once

#include <limits>

#include "tests/unit_stencil/encode_cases.h"

namespace quern::codec::stencil::test {

/// One whose type, extents, values, bound, mask and settings are drawn by `seed`: smooth ones, steps, noise that is
/// louder here than there, values on lattices, and values that nothing foresees.
inline EncodeCase random_case_of(unsigned seed, const char* layout, const char* goal = "ratio") {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  constexpr std::array kTypes{DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,
                              DType::u8,  DType::i16, DType::u16, DType::i32,  DType::u32};
  LanesCase c{"random", kTypes[below(2) == 0 ? below(2) : below(10)], {}, 0, {}};
  c.settings.push_back({"layout", layout});
  const std::size_t rank = 1 + below(4);
  // Mostly as large as it takes for the finest level to have lanes of its own.
  constexpr std::array<std::uint32_t, 4> kMost{12000, 120, 28, 12};
  const bool any = below(4) == 0;
  for (std::size_t a = 0; a < rank; ++a) {
    const std::uint32_t most = kMost[rank - 1];
    c.extents.push_back(any ? 1 + below(most) : most / 2 + below(most / 2 + 1));
  }
  const Shape shape = Shape::make(Vector<std::uint64_t>(c.extents.begin(), c.extents.end())).value();
  const bool whole = c.dtype != DType::f32 && c.dtype != DType::f64 && c.dtype != DType::f16 && c.dtype != DType::bf16;
  const bool coarse = c.dtype == DType::f16 || c.dtype == DType::bf16;
  c.bound = whole ? below(4) : std::ldexp(1.0, -static_cast<int>(below(coarse ? 8 : 22)));
  if (c.bound == 0) c.bound = 0.5;
  c.masked = below(3) == 0;
  if (below(4) == 0) c.settings.push_back({"fit", "off"});
  if (below(4) == 0) c.settings.push_back({"contexts", "off"});
  if (below(3) == 0) c.settings.push_back({"tightening", String(1, static_cast<char>('0' + below(4)))});
  Bytes data = field(c, shape);
  const std::uint32_t kind = below(6);
  if (c.dtype == DType::f32 || c.dtype == DType::f64) {
    auto values = waves(shape, seed);
    for (std::size_t i = 0; i < values.size(); ++i) {
      double& v = values[i];
      if (kind == 1) v = std::floor(v * 2) + 1e-3 * below(100);
      if (kind == 2 && i % 50 < 20) v += std::ldexp(below(1000), -static_cast<int>(below(14)));
      if (kind == 3) v = std::round(v * 40) * 0.125 + 3;
      if (kind == 4 && below(40) == 0) v = below(2) == 0 ? std::numeric_limits<double>::infinity() : -0.0;
      if (kind == 5 && seed % 4 == 0) v = std::ldexp(below(1u << 20), static_cast<int>(below(60)) - 30);
    }
    data = c.dtype == DType::f32 ? as_bytes<float>(values) : as_bytes<double>(values);
  } else if (kind == 1) {
    const std::size_t width = dtype_bytes(c.dtype);
    for (std::size_t i = 0; i < data.size(); i += width)
      if (below(5) == 0) data[i] = static_cast<std::uint8_t>(random());
  }
  Bytes special;
  if (c.masked)
    for (std::size_t i = 0; i < shape.elems(); ++i) special.push_back(below(5) == 0 ? 1 : 0);
  std::string name = "seed " + std::to_string(seed) + " " + std::string(dtype_name(c.dtype));
  for (const std::uint64_t extent : c.extents) name += " " + std::to_string(extent);
  return {name, std::make_unique<Coding>(c.dtype, shape, data, c.bound, c.settings, special, goal)};
}

}  // namespace quern::codec::stencil::test
