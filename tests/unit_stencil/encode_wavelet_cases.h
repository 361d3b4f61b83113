// Arrays under the wavelet for tests of what encodes them on lanes: those of job_cases.h, and what is rare in them.
// Under the goal psnr the step of coefficients is given.
#pragma once

#include <cstring>
#include <limits>

#include "tests/unit_stencil/encode_cases.h"

namespace quern::codec::stencil::test {

/// Chunks with elements that are no finite numbers are the host's: none are in this.
inline EncodeCase wavelet_case(const LanesCase& c, const char* goal = "psnr") {
  const Shape shape = Shape::make(Vector<std::uint64_t>(c.extents.begin(), c.extents.end())).value();
  Bytes data = field(c, shape);
  for (std::size_t i = 0; c.dtype == DType::f32 && i < data.size(); i += sizeof(float)) {
    float v = 0;
    std::memcpy(&v, data.data() + i, sizeof v);
    if (v - v != 0) std::memset(data.data() + i, 0, sizeof v);
  }
  return {c.name, std::make_unique<Coding>(c.dtype, shape, data, c.bound, c.settings, Bytes{}, goal)};
}

inline std::vector<EncodeCase> encode_wavelet_cases() {
  const Settings wavelet{{"layout", "wavelet"}};
  std::vector<EncodeCase> all;
  for (const LanesCase& c : cases())
    if (!c.masked && c.settings == wavelet)
      for (const char* goal : {"psnr", "ratio"}) all.push_back(wavelet_case(c, goal));
  for (const LanesCase& c : std::vector<LanesCase>{
           {"larger volume", DType::f32, {40, 41, 70}, 1e-3, wavelet},
           {"larger plane", DType::f64, {190, 201}, 1e-5, wavelet},
           {"long line", DType::f32, {30000}, 1e-3, wavelet},
           {"long columns", DType::f32, {700, 9}, 1e-4, wavelet},
           {"two columns", DType::f32, {600, 2}, 1e-2, wavelet},
           {"no contexts", DType::f32, {20, 31, 50}, 1e-2, {{"layout", "wavelet"}, {"contexts", "off"}}},
           {"halves", DType::f16, {20, 33, 41}, 1e-1, wavelet},
           {"numbers", DType::i32, {12, 33, 41}, 3, wavelet}})
    all.push_back(wavelet_case(c));

  std::mt19937 random(3);
  const auto add = [&](const char* name, double bound, const auto& change) {
    const Shape shape = shape_of({14, 30, 41});
    auto values = waves(shape, 7);
    for (std::size_t i = 0; i < values.size(); ++i) change(i, values[i]);
    all.push_back(
        {name, std::make_unique<Coding>(DType::f64, shape, as_bytes<double>(values), bound, wavelet, Bytes{}, "psnr")});
  };
  // Codes of every length, and corrections.
  add("spikes", 1e-4, [&](std::size_t, double& v) {
    if (random() % 9 == 0)
      v = std::ldexp(static_cast<double>(random() % 1000) - 500, static_cast<int>(random() % 11) - 10);
  });
  add("zeros with a sign", 1e-2, [](std::size_t i, double& v) {
    if (i % 11 == 3) v = -0.0;
  });
  add("not finite", 1e-2, [](std::size_t i, double& v) {
    if (i == 5000) v = std::numeric_limits<double>::quiet_NaN();
  });
  add("too many exceptions", 1e-2, [](std::size_t i, double& v) {
    if (i % 4 != 1) v = -0.0;
  });
  return all;
}

}  // namespace quern::codec::stencil::test
