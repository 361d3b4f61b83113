// Rows of fields, and numbers in text.
#include "lidar/files/raw_fields.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "lidar/cloud/little_endian.h"

namespace quern::lidar {
namespace {

constexpr std::array<const char*, 3> kAxes = {"x", "y", "z"};
constexpr std::size_t kMostFields = 64;

/// Places of x, y, z among the fields.
Result<std::array<std::size_t, 3>> find_axes(std::span<const RawField> fields) {
  std::array<std::size_t, 3> at{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto found =
        std::find_if(fields.begin(), fields.end(), [&](const RawField& field) { return field.name == kAxes[axis]; });
    if (found == fields.end()) return Status(StatusCode::unsupported, "the points have no fields x, y and z");
    at[axis] = static_cast<std::size_t>(found - fields.begin());
    const DType type = found->type;
    if (type != fields[at[0]].type || (type != DType::f32 && type != DType::f64))
      return Status(StatusCode::unsupported, "x, y and z must all be 32-bit or all be 64-bit floating-point numbers");
  }
  return at;
}

void take_coordinates(std::span<const RawField> fields, const std::array<std::size_t, 3>& axes, const std::uint8_t* row,
                      PointCloud& out) {
  for (const std::size_t axis : axes) {
    if (out.kind == CoordinateKind::f32) {
      out.words.push_back(load_le<std::uint32_t>(row + fields[axis].offset));
    } else {
      out.doubles.push_back(load_le<double>(row + fields[axis].offset));
    }
  }
}

template <class T>
bool parse_integer(std::string_view text, std::uint8_t* out) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  store_le(value, out);
  return true;
}

template <class T>
bool parse_float(std::string_view text, std::uint8_t* out) {
  if (text.starts_with('+')) text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || text.empty()) return false;
  // What the type cannot hold is its largest or smallest magnitude in most readers; here it is an error.
  if (error != std::errc()) return false;
  store_le(value, out);
  return true;
}

}  // namespace

Result<PointCloud> cloud_of_rows(std::span<const RawField> fields, std::span<const std::uint8_t> rows,
                                 std::uint64_t points, std::uint64_t row_bytes) {
  QUERN_ASSIGN_OR_RETURN(const auto axes, find_axes(fields));
  if (fields.size() > kMostFields + 3)
    return Status(StatusCode::unsupported, "{0} fields a point are more than a frame takes ({1})",
                  static_cast<std::int64_t>(fields.size()), static_cast<std::int64_t>(kMostFields + 3));
  PointCloud out;
  out.kind = fields[axes[0]].type == DType::f32 ? CoordinateKind::f32 : CoordinateKind::f64;
  if (out.kind == CoordinateKind::f32) {
    out.words.reserve(static_cast<std::size_t>(3 * points));
  } else {
    out.doubles.reserve(static_cast<std::size_t>(3 * points));
  }
  for (std::uint64_t i = 0; i < points; ++i) take_coordinates(fields, axes, rows.data() + i * row_bytes, out);
  for (std::size_t f = 0; f < fields.size(); ++f) {
    if (std::find(axes.begin(), axes.end(), f) != axes.end()) continue;
    const std::size_t width = dtype_bytes(fields[f].type);
    CloudColumn column{fields[f].name, fields[f].type, Vector<std::uint8_t>(static_cast<std::size_t>(points) * width)};
    for (std::uint64_t i = 0; i < points; ++i)
      std::memcpy(column.values.data() + i * width, rows.data() + i * row_bytes + fields[f].offset, width);
    out.columns.push_back(std::move(column));
  }
  return out;
}

Vector<RawField> fields_of(const PointCloud& cloud) {
  Vector<RawField> out;
  std::uint64_t offset = 0;
  const auto add = [&](const String& name, DType type) {
    out.push_back({name, type, offset});
    offset += dtype_bytes(type);
  };
  for (const char* axis : kAxes) add(axis, cloud.kind == CoordinateKind::f32 ? DType::f32 : DType::f64);
  for (const CloudColumn& column : cloud.columns) add(column.name, column.type);
  return out;
}

void append_rows(const PointCloud& cloud, Vector<std::uint8_t>& out) {
  for (std::uint64_t i = 0; i < cloud.points(); ++i) {
    const auto at = cloud.position(i);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (cloud.kind == CoordinateKind::f32) {
        append_le(cloud.words[static_cast<std::size_t>(3 * i) + axis], out);
      } else if (cloud.kind == CoordinateKind::f64) {
        append_le(std::bit_cast<std::uint64_t>(cloud.doubles[static_cast<std::size_t>(3 * i) + axis]), out);
      } else {
        append_le(std::bit_cast<std::uint64_t>(at[axis]), out);
      }
    }
    for (const CloudColumn& column : cloud.columns) {
      const std::size_t width = dtype_bytes(column.type);
      const std::uint8_t* const element = column.values.data() + i * width;
      out.insert(out.end(), element, element + width);
    }
  }
}

bool parse_element(std::string_view text, DType type, std::uint8_t* out) {
  switch (type) {
    case DType::f32: return parse_float<float>(text, out);
    case DType::f64: return parse_float<double>(text, out);
    case DType::i8: return parse_integer<std::int8_t>(text, out);
    case DType::i16: return parse_integer<std::int16_t>(text, out);
    case DType::i32: return parse_integer<std::int32_t>(text, out);
    case DType::i64: return parse_integer<std::int64_t>(text, out);
    case DType::u8: return parse_integer<std::uint8_t>(text, out);
    case DType::u16: return parse_integer<std::uint16_t>(text, out);
    case DType::u32: return parse_integer<std::uint32_t>(text, out);
    case DType::u64: return parse_integer<std::uint64_t>(text, out);
    case DType::f16:
    case DType::bf16: return false;
  }
  return false;
}

std::string_view next_word(std::string_view& text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  std::size_t begin = 0;
  while (begin < text.size() && is_blank(text[begin])) ++begin;
  std::size_t end = begin;
  while (end < text.size() && !is_blank(text[end])) ++end;
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool parse_number(std::string_view text, std::uint64_t limit, std::uint64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && out < limit;
}

}  // namespace quern::lidar
