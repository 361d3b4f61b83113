// Arrays in levels for tests of what encodes them on lanes: those of job_cases.h, and what is rare in them.
#pragma once

#include <limits>

#include "tests/unit_stencil/encode_cases.h"

namespace quern::codec::stencil::test {

inline std::vector<EncodeCase> encode_levels_cases() {
  const Settings levels{{"layout", "levels"}};
  const Settings planes{{"layout", "planes"}};
  std::vector<EncodeCase> all;
  for (const LanesCase& c : cases())
    for (const auto& [key, value] : c.settings)
      if (key == "layout" && (value.starts_with("levels") || value.starts_with("planes")))
        all.push_back({c.name, coding_of(c)});
  for (const LanesCase& c : std::vector<LanesCase>{
           {"larger volume", DType::f32, {40, 41, 70}, 1e-3, levels},
           {"larger plane", DType::f64, {190, 201}, 1e-5, levels},
           {"long columns", DType::f32, {700, 9}, 1e-4, levels},
           {"two columns", DType::f32, {600, 2}, 1e-4, levels},
           {"masked plane", DType::f32, {90, 131}, 1e-4, levels, true},
           {"masked line of numbers", DType::f64, {5000}, 1e-5, levels, true},
           {"masked bf16", DType::bf16, {20, 41}, 1e-1, levels, true},
           {"axes put together", DType::f32, {6, 9, 10, 17}, 1e-3, {{"layout", "levels:3d:1,2"}}},
           {"no fit", DType::f32, {20, 31, 50}, 1e-4, {{"layout", "levels"}, {"fit", "off"}}},
           {"no contexts", DType::f32, {20, 31, 50}, 1e-4, {{"layout", "levels"}, {"contexts", "off"}}},
           {"volume of bytes", DType::u8, {20, 33, 41}, 1, levels},
           {"volume of halves", DType::f16, {20, 33, 41}, 1e-2, levels},
           {"planes", DType::f32, {12, 61, 75}, 1e-4, planes},
           {"planes of doubles", DType::f64, {9, 64, 64}, 1e-6, planes},
           {"masked planes", DType::f32, {11, 45, 77}, 1e-4, planes, true},
           {"one plane", DType::f32, {1, 90, 91}, 1e-4, planes},
           {"rows one after another", DType::f32, {40, 501}, 1e-4, planes},
           {"masked rows one after another", DType::f64, {40, 501}, 1e-5, planes, true},
           {"small planes", DType::f32, {300, 17, 19}, 1e-4, planes},
           {"planes of few points", DType::f32, {3000, 5, 3}, 1e-4, planes},
           {"volumes one after another", DType::f32, {5, 14, 22, 35}, 1e-3, planes},
           {"planes of bytes", DType::u8, {9, 50, 61}, 1, planes},
           {"planes without fits", DType::f32, {12, 31, 50}, 1e-4, {{"layout", "planes"}, {"fit", "off"}}}})
    all.push_back({c.name, coding_of(c)});

  for (const Shape& shape : {shape_of({20, 31, 50}), shape_of({150, 171})})
    for (const Settings& layout : {levels, planes}) {
      auto quick =
          std::make_unique<Coding>(DType::f32, shape, as_bytes<float>(waves(shape, 5)), 1e-4, layout, Bytes{}, "speed");
      all.push_back({"short fits", std::move(quick)});
    }
  const Shape large = shape_of({66, 254, 253});  // in many chunks fits are shorter still
  all.push_back({"shortest fits", std::make_unique<Coding>(DType::f32, large, as_bytes<float>(waves(large, 6)), 1e-2,
                                                           levels, Bytes{}, "speed")});

  const auto add = [&](const char* name, std::initializer_list<std::uint64_t> extents, double bound,
                       const auto& change) {
    const Shape shape = shape_of(extents);
    auto values = waves(shape, 7);
    for (std::size_t i = 0; i < values.size(); ++i) change(i, values[i]);
    all.push_back({name, std::make_unique<Coding>(DType::f64, shape, as_bytes<double>(values), bound, levels)});
  };
  std::mt19937 random(3);
  // Residuals of every length.
  add("spikes", {24, 30, 41}, 2e-6, [&](std::size_t, double& v) {
    if (random() % 9 == 0)
      v = std::ldexp(static_cast<double>(random() % 1000) - 500, static_cast<int>(random() % 11) - 10);
  });
  add("exceptions", {24, 30, 41}, 1e-3, [](std::size_t i, double& v) {
    if (i % 11 == 3) v = i % 2 == 0 ? std::numeric_limits<double>::quiet_NaN() : -0.0;
  });
  add("too many", {24, 30, 41}, 1e-3, [](std::size_t i, double& v) {
    if (i % 4 != 1) v = std::numeric_limits<double>::quiet_NaN();
  });
  add("constant", {9, 20, 33}, 10, [](std::size_t, double&) {});
  add("nothing but NaN", {9, 20, 33}, 1e-3,
      [](std::size_t, double& v) { v = std::numeric_limits<double>::quiet_NaN(); });
  Bytes noise(16 * 20 * 33);
  for (std::uint8_t& v : noise) v = static_cast<std::uint8_t>(random());
  all.push_back({"noise", std::make_unique<Coding>(DType::u8, shape_of({16, 20, 33}), noise, 0.5, levels)});
  return all;
}

}  // namespace quern::codec::stencil::test
