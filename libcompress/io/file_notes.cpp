// FileNotes to JSON and back, and fill values found in attributes.
#include "libcompress/io/file_notes.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "libcompress/io/error.h"
#include "libcompress/io/number.h"

namespace quern::io {
namespace {

using Json = nlohmann::ordered_json;

// Thrown inside this file only: notes_from_json catches it.
struct BadNotes {
  std::string what;
};

constexpr int kNotesVersion = 1;
constexpr std::size_t kMaxListed = 65536;

bool is_utf8(const std::string& text) {
  // The serializer's own check: it refuses texts that are not UTF-8.
  try {
    (void)Json(text).dump();
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

// Each byte as the code point of that number, so that any bytes survive in JSON.
std::string bytes_to_utf8(const std::string& bytes) {
  std::string out;
  for (const char c : bytes) {
    const auto b = static_cast<unsigned char>(c);
    if (b < 0x80) {
      out += c;
    } else {
      out += static_cast<char>(0xc0 | b >> 6);
      out += static_cast<char>(0x80 | (b & 0x3f));
    }
  }
  return out;
}

std::string utf8_to_bytes(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto b = static_cast<unsigned char>(text[i]);
    if (b < 0x80) {
      out += text[i];
    } else if ((b & 0xfc) == 0xc0 && i + 1 < text.size()) {
      out += static_cast<char>((b & 3) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3f));
    } else {
      throw BadNotes{"a text of bytes has a code point above 255"};
    }
  }
  return out;
}

Json number_to_json(std::uint64_t bits, DType dtype) {
  // JSON has no NaN and no infinity: such values are written as their pattern.
  if (is_special(bits, dtype)) {
    char text[17];
    const auto end = std::to_chars(text, text + sizeof text, bits, 16).ptr;
    return "0x" + std::string(text, end);
  }
  if (is_float(dtype)) return bits_to_double(bits, dtype);
  if (is_signed_integer(dtype)) return static_cast<std::int64_t>(*convert_bits(bits, dtype, DType::i64));
  return bits;
}

std::uint64_t number_from_json(const Json& value, DType dtype) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    std::uint64_t bits = 0;
    const char* end = text.data() + text.size();
    const bool prefixed = text.size() > 2 && text.compare(0, 2, "0x") == 0;
    const unsigned width = 8 * static_cast<unsigned>(dtype_bytes(dtype));
    if (!prefixed || std::from_chars(text.data() + 2, end, bits, 16).ptr != end || (width < 64 && bits >> width != 0))
      throw BadNotes{"a bit pattern cannot be read"};
    return bits;
  }
  if (is_float(dtype)) {
    if (!value.is_number()) throw BadNotes{"a value is no number"};
    return double_to_float_bits(value.get<double>(), dtype);
  }
  std::optional<std::uint64_t> bits;
  if (value.is_number_unsigned()) {
    bits = convert_bits(value.get<std::uint64_t>(), DType::u64, dtype);
  } else if (value.is_number_integer()) {
    bits = convert_bits(static_cast<std::uint64_t>(value.get<std::int64_t>()), DType::i64, dtype);
  }
  if (!bits) throw BadNotes{"a value does not fit its type"};
  return *bits;
}

Json attribute_to_json(const Attribute& a) {
  Json out;
  out["name"] = a.name;
  const bool bytes = a.type != Attribute::Type::number && !std::all_of(a.texts.begin(), a.texts.end(), is_utf8);
  out["type"] = a.type == Attribute::Type::number  ? dtype_name(a.dtype)
                : a.type == Attribute::Type::chars ? "char"
                                                   : "string";
  if (bytes) out["encoding"] = "bytes";
  if (a.utf8) out["charset"] = "utf-8";
  if (!a.shape.empty()) out["shape"] = a.shape;
  Json values = Json::array();
  if (a.type == Attribute::Type::number) {
    for (const std::uint64_t b : a.bits) values.push_back(number_to_json(b, a.dtype));
  } else {
    for (const std::string& t : a.texts) values.push_back(bytes ? bytes_to_utf8(t) : t);
  }
  out["value"] = a.shape.empty() && values.size() == 1 ? values[0] : values;
  return out;
}

const Json* member(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::string text_member(const Json& object, const char* key) {
  const Json* value = member(object, key);
  if (value == nullptr) return {};
  if (!value->is_string()) throw BadNotes{std::string(key) + " is no text"};
  return value->get<std::string>();
}

bool flag_member(const Json& object, const char* key) {
  const Json* value = member(object, key);
  if (value == nullptr) return false;
  if (!value->is_boolean()) throw BadNotes{std::string(key) + " is neither true nor false"};
  return value->get<bool>();
}

const Json& list_member(const Json& object, const char* key) {
  static const Json kEmpty = Json::array();
  const Json* value = member(object, key);
  if (value == nullptr) return kEmpty;
  if (!value->is_array() || value->size() > kMaxListed) throw BadNotes{std::string(key) + " is no list of sane length"};
  return *value;
}

std::uint64_t size_from_json(const Json& value) {
  if (!value.is_number_unsigned()) throw BadNotes{"an extent is no whole number"};
  return value.get<std::uint64_t>();
}

Attribute attribute_from_json(const Json& json) {
  if (!json.is_object()) throw BadNotes{"an attribute is no object"};
  Attribute a;
  a.name = text_member(json, "name");
  const std::string type = text_member(json, "type");
  const auto dtype = parse_dtype(type);
  if (!dtype && type != "char" && type != "string") throw BadNotes{"an attribute has an unknown type"};
  a.type = dtype ? Attribute::Type::number : type == "char" ? Attribute::Type::chars : Attribute::Type::strings;
  a.dtype = dtype.value_or(DType::f64);
  a.utf8 = text_member(json, "charset") == "utf-8";
  const bool bytes = text_member(json, "encoding") == "bytes";
  const Json& extents = list_member(json, "shape");
  if (extents.size() > kMaxRank) throw BadNotes{"an attribute has too many axes"};
  std::uint64_t wanted = 1;
  for (const Json& extent : extents) {
    a.shape.push_back(size_from_json(extent));
    const auto product = checked_multiply(wanted, a.shape.back());
    if (!product) throw BadNotes{"an attribute is too large"};
    wanted = *product;
  }
  const Json* value = member(json, "value");
  if (value == nullptr) throw BadNotes{"an attribute has no value"};
  const Json values = value->is_array() ? *value : Json::array({*value});
  if (values.size() != wanted) throw BadNotes{"an attribute has not the number of values its shape says"};
  for (const Json& v : values) {
    if (dtype) {
      a.bits.push_back(number_from_json(v, *dtype));
      continue;
    }
    if (!v.is_string()) throw BadNotes{"a value is no text"};
    a.texts.push_back(bytes ? utf8_to_bytes(v.get<std::string>()) : v.get<std::string>());
  }
  return a;
}

FileNotes notes_from_object(const Json& json) {
  if (!json.is_object()) throw BadNotes{"it is no object"};
  const Json* version = member(json, "quern_attributes");
  if (version == nullptr || *version != kNotesVersion) throw BadNotes{"its version is not 1"};
  FileNotes notes;
  notes.kind = text_member(json, "kind");
  notes.dataset = text_member(json, "dataset");
  notes.fortran_order = flag_member(json, "fortran_order");
  for (const Json& name : list_member(json, "complex")) {
    if (!name.is_string()) throw BadNotes{"a complex member has no name"};
    notes.complex_names.push_back(name.get<std::string>());
  }
  for (const Json& d : list_member(json, "dimensions")) {
    if (!d.is_object() || member(d, "size") == nullptr) throw BadNotes{"a dimension has no size"};
    notes.dimensions.push_back(
        {text_member(d, "name"), size_from_json(*member(d, "size")), flag_member(d, "unlimited")});
  }
  for (const Json& extent : list_member(json, "chunks")) notes.chunks.push_back(size_from_json(extent));
  for (const Json& extent : list_member(json, "max_shape"))
    notes.max_shape.push_back(extent.is_null() ? std::nullopt : std::optional(size_from_json(extent)));
  if (const Json* fill = member(json, "fill_value")) notes.fill_value = attribute_from_json(*fill);
  for (const Json& a : list_member(json, "attributes")) notes.attributes.push_back(attribute_from_json(a));
  for (const Json& a : list_member(json, "file_attributes")) notes.file_attributes.push_back(attribute_from_json(a));
  for (const Json& name : list_member(json, "skipped"))
    if (name.is_string()) notes.skipped.push_back(name.get<std::string>());
  return notes;
}

Json attributes_to_json(const std::vector<Attribute>& attributes) {
  Json out = Json::array();
  for (const Attribute& a : attributes) out.push_back(attribute_to_json(a));
  return out;
}

}  // namespace

std::string to_json(const FileNotes& notes) {
  Json out;
  out["quern_attributes"] = kNotesVersion;
  out["kind"] = notes.kind;
  if (!notes.dataset.empty()) out["dataset"] = notes.dataset;
  if (notes.fortran_order) out["fortran_order"] = true;
  if (!notes.complex_names.empty()) out["complex"] = notes.complex_names;
  for (const Dimension& d : notes.dimensions) {
    Json dimension{{"name", d.name}, {"size", d.size}};
    if (d.unlimited) dimension["unlimited"] = true;
    out["dimensions"].push_back(std::move(dimension));
  }
  if (!notes.chunks.empty()) out["chunks"] = notes.chunks;
  for (const auto& extent : notes.max_shape) out["max_shape"].push_back(extent ? Json(*extent) : Json(nullptr));
  if (notes.fill_value) out["fill_value"] = attribute_to_json(*notes.fill_value);
  if (!notes.attributes.empty()) out["attributes"] = attributes_to_json(notes.attributes);
  if (!notes.file_attributes.empty()) out["file_attributes"] = attributes_to_json(notes.file_attributes);
  if (!notes.skipped.empty()) out["skipped"] = notes.skipped;
  // A name that is not UTF-8 is rare and is shown with replacement characters rather than refused.
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<FileNotes> notes_from_json(const std::string& json, std::string& detail) {
  if (json.empty()) return FileNotes{};
  std::string what;
  try {
    const Json parsed = Json::parse(json, nullptr, false);
    if (!parsed.is_discarded()) return notes_from_object(parsed);
    what = "it is no JSON";
  } catch (const BadNotes& bad) {
    what = bad.what;
  } catch (const Json::exception&) {
    what = "a value has the wrong type";
  }
  return fail(detail, StatusCode::invalid_argument,
              "The attributes stored with the array cannot be read: " + what + ".");
}

const Attribute* find_attribute(const std::vector<Attribute>& attributes, const std::string& name) {
  for (const Attribute& a : attributes)
    if (a.name == name) return &a;
  return nullptr;
}

Attribute number_attribute(std::string name, DType dtype, std::uint64_t bits) {
  Attribute a;
  a.name = std::move(name);
  a.dtype = dtype;
  a.bits = {bits};
  return a;
}

void add_fill_bits(std::uint64_t bits, ArrayMeta& meta) {
  if (std::find(meta.fill_bits.begin(), meta.fill_bits.end(), bits) == meta.fill_bits.end())
    meta.fill_bits.push_back(bits);
}

void add_fill_attributes(const std::vector<Attribute>& attributes, ArrayMeta& meta) {
  for (const char* name : {"_FillValue", "missing_value"}) {
    const Attribute* a = find_attribute(attributes, name);
    if (a == nullptr || a->type != Attribute::Type::number) continue;
    for (const std::uint64_t bits : a->bits)
      if (const auto converted = convert_bits(bits, a->dtype, meta.dtype)) add_fill_bits(*converted, meta);
  }
}

std::vector<Attribute> attributes_to_write(const FileNotes& notes, const ArrayMeta& meta) {
  if (notes.kind == "hdf5" || notes.kind == "netcdf") return notes.attributes;
  std::vector<Attribute> out = notes.attributes;
  if (!meta.fill_bits.empty()) out.push_back(number_attribute("_FillValue", meta.dtype, meta.fill_bits.front()));
  if (meta.packed) {
    out.push_back(number_attribute("scale_factor", DType::f64, double_to_float_bits(meta.scale_factor, DType::f64)));
    out.push_back(number_attribute("add_offset", DType::f64, double_to_float_bits(meta.add_offset, DType::f64)));
  }
  return out;
}

void add_step_axis(FileNotes& notes, ArrayMeta& meta, std::uint64_t steps) {
  std::vector<std::uint64_t> extents(meta.shape.extents().begin(), meta.shape.extents().end());
  const bool known = notes.dimensions.size() == extents.size() && !extents.empty();
  const bool grows = known ? notes.dimensions[0].unlimited : !notes.max_shape.empty() && !notes.max_shape[0];
  if (!extents.empty() && extents[0] == 1 && grows) {
    extents[0] = steps;
    if (known) notes.dimensions[0].size = steps;
  } else {
    if (extents.size() == kMaxRank) return;
    extents.insert(extents.begin(), steps);
    const auto taken = [&](const char* name) {
      return std::any_of(notes.dimensions.begin(), notes.dimensions.end(),
                         [&](const Dimension& d) { return d.name == name; });
    };
    if (known) notes.dimensions.insert(notes.dimensions.begin(), {taken("time") ? "step" : "time", steps, true});
    // HDF5: one step a chunk where nothing else is known, so that more may follow.
    std::vector<std::uint64_t> chunk(extents.begin() + 1, extents.end());
    if (notes.chunks.size() == chunk.size()) chunk = notes.chunks;
    if (notes.max_shape.size() + 1 != extents.size()) notes.max_shape.assign(extents.begin() + 1, extents.end());
    notes.max_shape.insert(notes.max_shape.begin(), std::nullopt);
    chunk.insert(chunk.begin(), 1);
    notes.chunks = std::move(chunk);
  }
  if (auto shape = Shape::make(extents); shape.ok()) meta.shape = *shape;
}

bool has_complex_axis(const ArrayMeta& meta) {
  return meta.is_complex && meta.shape.rank() > 0 && meta.shape[meta.shape.rank() - 1] == 2;
}

}  // namespace quern::io
