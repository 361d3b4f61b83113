// The tables of point formats: formats 0 to 5 have a record of 20 bytes and parts behind it, 6 to 10 one of 30.
#include "lidar/files/las_layout.h"

#include <array>
#include <span>
#include <string>
#include <utility>

namespace quern::lidar {
namespace {

struct Part {
  const char* name;
  DType type;
};

constexpr std::array kCore = {Part{"intensity", DType::u16},     Part{"returns", DType::u8},
                              Part{"classification", DType::u8}, Part{"scan_angle", DType::i8},
                              Part{"user_data", DType::u8},      Part{"point_source", DType::u16}};
constexpr std::array kCore6 = {Part{"intensity", DType::u16},    Part{"returns", DType::u8},
                               Part{"flags", DType::u8},         Part{"classification", DType::u8},
                               Part{"user_data", DType::u8},     Part{"scan_angle", DType::i16},
                               Part{"point_source", DType::u16}, Part{"gps_time", DType::f64}};
constexpr std::array kTime = {Part{"gps_time", DType::f64}};
constexpr std::array kColour = {Part{"red", DType::u16}, Part{"green", DType::u16}, Part{"blue", DType::u16}};
constexpr std::array kNear = {Part{"nir", DType::u16}};
constexpr std::array kWave = {Part{"wave_packet", DType::u8}, Part{"wave_offset", DType::u64},
                              Part{"wave_bytes", DType::u32}, Part{"wave_return", DType::f32},
                              Part{"wave_x", DType::f32},     Part{"wave_y", DType::f32},
                              Part{"wave_z", DType::f32}};
constexpr std::size_t kMostColumns = 64;

struct Parts {
  bool core6, time, colour, near, wave;
};
constexpr std::array<Parts, kMostLasFormat + 1> kFormats = {{{false, false, false, false, false},
                                                             {false, true, false, false, false},
                                                             {false, false, true, false, false},
                                                             {false, true, true, false, false},
                                                             {false, true, false, false, true},
                                                             {false, true, true, false, true},
                                                             {true, false, false, false, false},
                                                             {true, false, true, false, false},
                                                             {true, false, true, true, false},
                                                             {true, false, false, false, true},
                                                             {true, false, true, true, true}}};

void add(std::span<const Part> parts, std::uint64_t& at, Vector<RawField>& out) {
  for (const Part& part : parts) {
    out.push_back({part.name, part.type, at});
    at += dtype_bytes(part.type);
  }
}

Vector<RawField> known_fields(unsigned format, std::uint64_t& at) {
  Vector<RawField> out;
  at = kLasCoordinateBytes;
  const Parts& parts = kFormats[format];
  if (parts.core6) {
    add(kCore6, at, out);
  } else {
    add(kCore, at, out);
  }
  if (parts.time) add(kTime, at, out);
  if (parts.colour) add(kColour, at, out);
  if (parts.near) add(kNear, at, out);
  if (parts.wave) add(kWave, at, out);
  return out;
}

}  // namespace

std::uint64_t las_record_bytes(unsigned format) {
  if (format > kMostLasFormat) return 0;
  std::uint64_t bytes = 0;
  (void)known_fields(format, bytes);
  return bytes;
}

Result<Vector<RawField>> las_fields(unsigned format, std::uint64_t record_bytes) {
  std::uint64_t at = 0;
  Vector<RawField> out = known_fields(format, at);
  static constexpr std::pair<std::uint64_t, DType> kWidths[] = {
      {8, DType::u64}, {4, DType::u32}, {2, DType::u16}, {1, DType::u8}};
  for (std::size_t number = 0; at < record_bytes; ++number) {
    if (out.size() == kMostColumns)
      return Status(StatusCode::unsupported, "the points of the LAS file have more extra bytes than a frame takes");
    for (const auto& [width, type] : kWidths) {
      if (record_bytes - at < width) continue;
      String name("extra_");
      out.push_back({name.append(std::to_string(number)), type, at});
      at += width;
      break;
    }
  }
  return out;
}

}  // namespace quern::lidar
