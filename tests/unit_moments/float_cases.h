// Arrays of binary32 that moments and weights may be, the ordinary and the nasty.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace quern::testing {

using Floats = std::vector<float>;

inline std::vector<std::uint8_t> bytes_of_floats(const Floats& values) {
  std::vector<std::uint8_t> bytes(values.size() * 4);
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

struct FloatCase {
  std::string name;
  Floats first;   ///< like a first moment or a weight
  Floats second;  ///< like the second moment beside it
};

/// Rows and columns of different scales, as real moments have; values from a seeded generator.
inline FloatCase structured_case(std::size_t rows, std::size_t columns, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Floats row(rows), column(columns);
  for (float& r : row) r = std::exp(2 * normal(random));
  for (float& c : column) c = std::exp(normal(random));
  FloatCase made{"structured", {}, {}};
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) {
      const float scale = 1e-4f * row[r] * column[c];
      made.second.push_back(scale * scale * std::exp(0.5f * normal(random)));
      made.first.push_back(0.4f * scale * normal(random));
    }
  return made;
}

inline std::vector<FloatCase> float_cases(std::size_t elems) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::bit_cast<float>(0x7fc12345u);
  std::vector<FloatCase> cases;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  const auto filled = [&](const char* name, const auto& first, const auto& second) {
    FloatCase c{name, {}, {}};
    for (std::size_t i = 0; i < elems; ++i) {
      c.first.push_back(first(i));
      c.second.push_back(second(i));
    }
    cases.push_back(std::move(c));
  };
  FloatCase structured = structured_case((elems + 99) / 100, 100, 3);
  structured.first.resize(elems);
  structured.second.resize(elems);
  cases.push_back(structured);
  for (std::size_t i = 0; i < elems; i += 37) {
    structured.first[i] = i % 2 == 0 ? nan : -inf;
    structured.second[i] = i % 3 == 0 ? nan : i % 3 == 1 ? inf : -1.0f;
  }
  for (std::size_t i = 5; i < elems; i += 41) structured.second[i] = i % 2 == 0 ? 0.0f : -0.0f;
  for (std::size_t i = 9; i < elems; i += 43) structured.first[i] = i % 2 == 0 ? 0.0f : -0.0f;
  structured.name = "specials";
  cases.push_back(structured);
  filled(
      "constant", [](std::size_t) { return 0.25f; }, [](std::size_t) { return 0.125f; });
  filled(
      "zeros", [](std::size_t) { return 0.0f; }, [](std::size_t) { return 0.0f; });
  filled(
      "moment without a second", [&](std::size_t) { return normal(random); }, [](std::size_t) { return 0.0f; });
  filled(
      "one hot", [&](std::size_t i) { return i == elems / 2 ? 3.0f : 0.0f; },
      [&](std::size_t i) { return i == elems / 2 ? 9.0f : 0.0f; });
  filled(
      "denormals",
      [&](std::size_t) { return std::bit_cast<float>(static_cast<std::uint32_t>(random() & 0x807fffffu)); },
      [&](std::size_t) { return std::bit_cast<float>(static_cast<std::uint32_t>(random() & 0x7fffffu)); });
  filled(
      "all magnitudes",
      [&](std::size_t) { return normal(random) * std::pow(10.0f, static_cast<float>(random() % 61) - 30); },
      [&](std::size_t) { return std::pow(10.0f, static_cast<float>(random() % 61) - 30); });
  filled(
      "any bits", [&](std::size_t) { return std::bit_cast<float>(static_cast<std::uint32_t>(random())); },
      [&](std::size_t) { return std::bit_cast<float>(static_cast<std::uint32_t>(random())); });
  filled(
      "first far above second", [&](std::size_t) { return 1e6f * normal(random); }, [](std::size_t) { return 1e-12f; });
  filled(
      "frozen rows", [&](std::size_t i) { return i / 100 % 3 == 0 ? 0.0f : normal(random); },
      [&](std::size_t i) { return i / 100 % 3 == 0 ? 0.0f : 1 + std::abs(normal(random)); });
  return cases;
}

}  // namespace quern::testing
