// Arrays of every element type and kind of chunk, for tests of what decodes them by jobs.
#pragma once

#include "codecs/stencil/device/chunk_job.h"
#include "codecs/stencil/device/state.h"
#include "tests/unit_stencil/helpers.h"

namespace quern::codec::stencil::test {

struct LanesCase {
  const char* name;
  DType dtype;
  std::vector<std::uint64_t> extents;
  double bound;
  Settings settings;
  bool masked = false;
  double spacing = 0;  ///< of the lattice that values lie on; 0: none
};

inline Bytes field(const LanesCase& c, const Shape& shape) {
  auto values = waves(shape, 31);
  if (c.spacing > 0)
    for (double& v : values) v = std::round(v * 50) * c.spacing + 3;
  if (c.dtype == DType::f64) return as_bytes<double>(values);
  if (c.dtype == DType::f32) {
    if (c.spacing == 0) {
      values[values.size() / 2] = std::nan("");  // an exception
      values[values.size() - 1] = -HUGE_VAL;
    }
    return as_bytes<float>(values);
  }
  if (c.dtype == DType::f16 || c.dtype == DType::bf16) {
    Bytes bytes(values.size() * 2);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto v = static_cast<float>(values[i]);
      const auto bits =
          static_cast<std::uint16_t>(c.dtype == DType::f16 ? kernels::float_to_half(v) : kernels::float_to_bfloat(v));
      std::memcpy(bytes.data() + 2 * i, &bits, 2);
    }
    return bytes;
  }
  const bool is_signed = c.dtype == DType::i8 || c.dtype == DType::i16 || c.dtype == DType::i32;
  for (double& v : values) v = std::floor(v * 25) + (is_signed ? 0 : 100);
  switch (c.dtype) {
    case DType::i8: return as_bytes<std::int8_t>(values);
    case DType::i16: return as_bytes<std::int16_t>(values);
    case DType::i32: return as_bytes<std::int32_t>(values);
    case DType::u8: return as_bytes<std::uint8_t>(values);
    case DType::u16: return as_bytes<std::uint16_t>(values);
    default: return as_bytes<std::uint32_t>(values);
  }
}

inline std::unique_ptr<Coding> coding_of(const LanesCase& c) {
  const Shape shape = Shape::make(Vector<std::uint64_t>(c.extents.begin(), c.extents.end())).value();
  Bytes special;
  if (c.masked) {
    special.assign(shape.elems(), 0);
    for (std::size_t i = 0; i < special.size(); ++i) special[i] = i / 5 % 3 == 0 ? 1 : 0;
  }
  return std::make_unique<Coding>(c.dtype, shape, field(c, shape), c.bound, c.settings, special);
}

inline std::vector<LanesCase> cases() {
  const Settings levels{{"layout", "levels"}};
  const Settings planes{{"layout", "planes"}};
  const Settings raster{{"layout", "raster"}};
  const Settings wavelet{{"layout", "wavelet"}};
  return {
      {"line", DType::f32, {3000}, 1e-3, levels},
      {"short line", DType::f64, {7}, 1e-2, levels},
      {"plane", DType::f32, {60, 70}, 1e-3, levels},
      {"narrow plane", DType::i16, {300, 3}, 1, levels},
      {"long rows", DType::u16, {5, 700}, 2, levels},
      {"volume", DType::f32, {17, 20, 33}, 1e-3, levels},
      {"volume at a wide bound", DType::f64, {17, 20, 33}, 3e-1, levels},
      {"volume at a tight bound", DType::f64, {17, 20, 33}, 1e-7, levels},
      {"volume of few residuals", DType::f32, {33, 40, 66}, 9e-1, levels},
      {"planes of few residuals", DType::f32, {12, 40, 140}, 9e-1, planes},
      {"tightened levels", DType::f32, {16, 31, 40}, 1e-2, {{"layout", "levels"}, {"tightening", "3"}}},
      {"four axes", DType::f32, {4, 9, 10, 17}, 1e-3, levels},
      {"four axes in sequence", DType::f64, {5, 9, 10, 17}, 1e-3, planes},
      {"planes", DType::f32, {9, 20, 33}, 1e-2, planes},
      {"rows in sequence", DType::f32, {40, 90}, 1e-3, planes},
      {"masked volume", DType::f64, {9, 20, 33}, 1e-5, levels, true},
      {"masked planes", DType::f32, {9, 20, 33}, 1e-3, planes, true},
      {"masked line", DType::i32, {2000}, 1, levels, true},
      {"several chunks of a line", DType::f32, {300000}, 1e-2, levels},
      {"f16", DType::f16, {20, 41}, 1e-2, levels},
      {"bf16", DType::bf16, {20, 41}, 1e-1, planes},
      {"i8", DType::i8, {12, 13, 14}, 1, levels},
      {"u8", DType::u8, {12, 13, 14}, 1, planes},
      {"u32", DType::u32, {12, 13, 14}, 1, levels},
      {"raster line", DType::f32, {1500}, 1e-3, raster},
      {"raster rows", DType::f64, {70, 60}, 1e-4, raster},
      {"raster of few columns", DType::i16, {300, 3}, 1, raster},
      {"raster of few rows", DType::u16, {3, 700}, 2, raster},
      {"raster volume", DType::f32, {17, 20, 33}, 1e-3, raster},
      {"raster volume at a wide bound", DType::f64, {17, 20, 33}, 3e-1, raster},
      {"raster volume at a tight bound", DType::f64, {17, 20, 33}, 1e-7, raster},
      {"raster of planes of two rows", DType::f32, {60, 2, 33}, 1e-3, raster},
      {"raster of long rows", DType::f32, {9, 12, 200}, 1e-3, raster},
      {"raster of rows in turns", DType::f32, {3, 71, 139}, 1e-3, raster},
      {"raster of long rows in turns", DType::f64, {3, 70, 171}, 1e-5, raster},
      {"raster of long single rows in turns", DType::f32, {75, 230}, 1e-3, raster},
      {"masked raster volume", DType::f64, {9, 20, 33}, 1e-5, raster, true},
      {"masked raster rows", DType::f32, {40, 50}, 1e-3, raster, true},
      {"masked raster line", DType::i32, {1200}, 1, raster, true},
      {"several chunks of a raster line", DType::f32, {270000}, 1e-2, raster},
      {"raster f16", DType::f16, {20, 41}, 1e-2, raster},
      {"wavelet line", DType::f32, {1500}, 1e-1, wavelet},
      {"wavelet plane", DType::f64, {70, 60}, 1e-1, wavelet},
      {"narrow wavelet plane", DType::i16, {300, 3}, 20, wavelet},
      {"wavelet volume", DType::f32, {17, 20, 33}, 3e-1, wavelet},
      {"wavelet volume at a tight bound", DType::f64, {17, 20, 33}, 1e-4, wavelet},
      {"wavelet of four axes", DType::f32, {6, 9, 10, 17}, 1e-1, wavelet},
      {"wavelet of long time", DType::f32, {120, 8, 17}, 1e-1, wavelet},
      {"masked wavelet volume", DType::f64, {9, 20, 33}, 1e-2, wavelet, true},
      {"wavelet u8", DType::u8, {12, 13, 14}, 5, wavelet},
      {"wavelet bf16", DType::bf16, {30, 41}, 3e-1, wavelet},
      {"raster i8", DType::i8, {12, 13, 14}, 1, raster},
      {"levels on a lattice", DType::f32, {17, 20, 33}, 1e-2, levels, false, 0.25},
      {"planes on a lattice", DType::f64, {9, 20, 33}, 1e-4, planes, false, 0.1},
      {"masked levels on a lattice", DType::f64, {9, 20, 33}, 1e-2, levels, true, 0.125},
      {"raster on a lattice", DType::f32, {17, 20, 33}, 1e-2, raster, false, 0.25},
      {"masked raster on a lattice", DType::f64, {40, 50}, 1e-4, raster, true, 0.1},
      {"wavelet on a lattice", DType::f32, {17, 20, 33}, 3e-2, wavelet, false, 0.25},
      {"wavelet of doubles on a lattice", DType::f64, {70, 60}, 1e-2, wavelet, false, 0.1},
  };
}

inline bool append_job(const Coding& coding, const Bytes& stored, const MutableBox3& box, Vector<std::uint8_t>& job) {
  return append_chunk_job(spec_of_state(coding.decoder().device_state()), stored, box, job);
}

/// Whether a chunk, or the chunk of integers in it, is in raster order: a device may leave such to the host.
inline bool in_raster_order(const Bytes& stored) {
  const std::size_t at = stored[0] == static_cast<std::uint8_t>(Mode::lattice) ? kLatticeHead : 0;
  return at < stored.size() && stored[at] == static_cast<std::uint8_t>(Mode::raster);
}

inline Status decode_on_host(const Coding& coding, std::uint64_t chunk, const Bytes& stored, Bytes& back) {
  const Scratch scratch(coding.decoder().scratch_bytes());
  return coding.decoder().decode(stored, coding.box(chunk, back.data()), scratch.span());
}

}  // namespace quern::codec::stencil::test
