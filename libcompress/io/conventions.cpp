// Attributes of the netCDF and CF conventions to members of ArrayMeta.
#include "libcompress/io/conventions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <sstream>

#include "libcompress/io/number.h"

namespace quern::io {
namespace {

const Attribute* numbers(const std::vector<Attribute>& attributes, const char* name, std::size_t count) {
  const Attribute* a = find_attribute(attributes, name);
  return a != nullptr && a->type == Attribute::Type::number && a->bits.size() == count ? a : nullptr;
}

std::optional<double> factor(const std::vector<Attribute>& attributes, const char* name) {
  const Attribute* a = numbers(attributes, name, 1);
  if (a == nullptr) return std::nullopt;
  const double value = bits_to_double(a->bits[0], a->dtype);
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

void read_packing(const std::vector<Attribute>& attributes, ArrayMeta& meta) {
  const auto scale = factor(attributes, "scale_factor");
  const auto offset = factor(attributes, "add_offset");
  // A scale of zero unpacks to nothing and is a mistake in the file, not a packing.
  if ((!scale && !offset) || scale == 0.0) return;
  meta.packed = true;
  meta.scale_factor = scale.value_or(1.0);
  meta.add_offset = offset.value_or(0.0);
}

/// A limit as a number of the array's type: a signed attribute of an array of unsigned numbers has the same bits.
std::optional<double> limit(const Attribute& a, std::size_t index, const ArrayMeta& meta) {
  const bool reinterpreted = meta.unsigned_in_signed && a.dtype == with_sign(meta.dtype, true);
  const double value = bits_to_double(a.bits[index], reinterpreted ? meta.dtype : a.dtype);
  return std::isnan(value) ? std::nullopt : std::optional(value);
}

void read_valid_range(const std::vector<Attribute>& attributes, ArrayMeta& meta) {
  if (const Attribute* a = numbers(attributes, "valid_min", 1)) meta.valid_min = limit(*a, 0, meta);
  if (const Attribute* a = numbers(attributes, "valid_max", 1)) meta.valid_max = limit(*a, 0, meta);
  if (const Attribute* a = numbers(attributes, "valid_range", 2)) {
    meta.valid_min = limit(*a, 0, meta);
    meta.valid_max = limit(*a, 1, meta);
  }
  // Limits that leave nothing say nothing.
  if (meta.valid_min && meta.valid_max && *meta.valid_min > *meta.valid_max) meta.valid_min = meta.valid_max = {};
}

std::string last_part(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

/// True when the text has the name as a word, with or without a path.
bool names(const std::string& text, const std::string& name) {
  std::istringstream words(text);
  for (std::string word; words >> word;)
    if (last_part(word) == last_part(name)) return true;
  return false;
}

bool is_coordinate_unit(const std::string& units) {
  return units.rfind("degrees_north", 0) == 0 || units.rfind("degrees_east", 0) == 0 ||
         units.rfind("degree_north", 0) == 0 || units.rfind("degree_east", 0) == 0 ||
         units.find(" since ") != std::string::npos;
}

}  // namespace

std::string role_of(const std::string& name, bool is_coordinate, const std::vector<Attribute>& attributes,
                    const std::vector<Reference>& references) {
  if (is_coordinate) return "it is a coordinate variable";
  for (const Reference& r : references)
    if (last_part(r.variable) != last_part(name) && names(r.text, name))
      return last_part(r.variable) + " names it in " + r.attribute;
  const Attribute* units = find_attribute(attributes, "units");
  if (units != nullptr && units->texts.size() == 1 && is_coordinate_unit(units->texts[0]))
    return "its units are " + units->texts[0];
  return "";
}

void read_conventions(const std::vector<Attribute>& attributes, ArrayMeta& meta) {
  read_packing(attributes, meta);
  read_valid_range(attributes, meta);
  meta.holds_flags =
      find_attribute(attributes, "flag_values") != nullptr || find_attribute(attributes, "flag_masks") != nullptr;
}

bool says_unsigned(const std::vector<Attribute>& attributes) {
  const Attribute* a = find_attribute(attributes, "_Unsigned");
  return a != nullptr && a->texts.size() == 1 && (a->texts[0] == "true" || a->texts[0] == "True");
}

DType with_sign(DType dtype, bool is_signed) {
  switch (dtype) {
    case DType::i8:
    case DType::u8: return is_signed ? DType::i8 : DType::u8;
    case DType::i16:
    case DType::u16: return is_signed ? DType::i16 : DType::u16;
    case DType::i32:
    case DType::u32: return is_signed ? DType::i32 : DType::u32;
    case DType::i64:
    case DType::u64: return is_signed ? DType::i64 : DType::u64;
    default: return dtype;
  }
}

std::optional<std::uint64_t> netcdf_default_fill(DType dtype) {
  switch (dtype) {
    case DType::f32: return UINT64_C(0x7cf00000);  // 9.96921e36
    case DType::f64: return UINT64_C(0x479e000000000000);
    case DType::i16: return UINT64_C(0x8001);
    case DType::u16: return UINT64_C(0xffff);
    case DType::i32: return UINT64_C(0x80000001);
    case DType::u32: return UINT64_C(0xffffffff);
    case DType::i64: return UINT64_C(0x8000000000000002);
    case DType::u64: return UINT64_C(0xfffffffffffffffe);
    default: return std::nullopt;
  }
}

}  // namespace quern::io
