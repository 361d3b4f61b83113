// PLY: a text header that lists elements and their properties, then ASCII, little- or big-endian values. The element
// "vertex" is read; elements before it are passed over, those after it are not read.
#include <algorithm>
#include <string>
#include <utility>

#include "lidar/cloud/little_endian.h"
#include "lidar/files/formats.h"
#include "lidar/files/raw_fields.h"

namespace quern::lidar {
namespace {

constexpr std::uint64_t kMostElements = UINT64_C(1) << 40;
constexpr std::size_t kMostProperties = 256;
constexpr std::size_t kMostHeaderLines = 2000;

Status corrupt(const char* what) { return Status(StatusCode::corrupt, what); }
Status too_short() { return Status(StatusCode::truncated, "the PLY file ends before its last vertex"); }

struct Property {
  String name;
  DType type = DType::f32;
  bool is_list = false;
  DType count_type = DType::u8;
};

struct Element {
  String name;
  std::uint64_t count = 0;
  Vector<Property> properties;
};

enum class Form { ascii, little, big };

struct Header {
  Form form = Form::ascii;
  Vector<Element> elements;
};

Result<DType> type_of(std::string_view name) {
  static constexpr std::pair<const char*, DType> kTypes[] = {
      {"char", DType::i8},   {"int8", DType::i8},     {"uchar", DType::u8},   {"uint8", DType::u8},
      {"short", DType::i16}, {"int16", DType::i16},   {"ushort", DType::u16}, {"uint16", DType::u16},
      {"int", DType::i32},   {"int32", DType::i32},   {"uint", DType::u32},   {"uint32", DType::u32},
      {"float", DType::f32}, {"float32", DType::f32}, {"double", DType::f64}, {"float64", DType::f64}};
  for (const auto& [text, type] : kTypes)
    if (name == text) return type;
  return corrupt("the PLY header has a property of an unknown type");
}

Status read_form(std::string_view rest, Header& out) {
  const std::string_view form = next_word(rest);
  if (form == "ascii") {
    out.form = Form::ascii;
  } else if (form == "binary_little_endian") {
    out.form = Form::little;
  } else if (form == "binary_big_endian") {
    out.form = Form::big;
  } else {
    return corrupt("the PLY header has an unknown format");
  }
  return {};
}

Status read_element(std::string_view rest, Header& out) {
  Element element;
  element.name = String(next_word(rest));
  if (!parse_number(next_word(rest), kMostElements, element.count))
    return corrupt("the PLY header has an element without a number");
  if (out.elements.size() == kMostProperties) return corrupt("the PLY header has too many elements");
  out.elements.push_back(std::move(element));
  return {};
}

Status read_property(std::string_view rest, Header& out) {
  if (out.elements.empty()) return corrupt("the PLY header has a property before the first element");
  Property property;
  std::string_view type = next_word(rest);
  property.is_list = type == "list";
  if (property.is_list) {
    QUERN_ASSIGN_OR_RETURN(property.count_type, type_of(next_word(rest)));
    if (is_float(property.count_type)) return corrupt("the PLY header counts a list in floating-point numbers");
    type = next_word(rest);
  }
  QUERN_ASSIGN_OR_RETURN(property.type, type_of(type));
  property.name = String(next_word(rest));
  if (out.elements.back().properties.size() == kMostProperties)
    return corrupt("the PLY header has too many properties");
  out.elements.back().properties.push_back(std::move(property));
  return {};
}

Result<Header> read_header(std::string_view& text) {
  Header out;
  if (next_line(text) != "ply") return corrupt("the file does not begin as a PLY file");
  bool has_form = false;
  for (std::size_t lines = 0;; ++lines) {
    if (text.empty() || lines > kMostHeaderLines)
      return Status(StatusCode::truncated, "the PLY header ends before end_header");
    std::string_view line = next_line(text);
    const std::string_view key = next_word(line);
    if (key == "end_header") break;
    if (key == "format") {
      has_form = true;
      QUERN_RETURN_IF_ERROR(read_form(line, out));
    } else if (key == "element") {
      QUERN_RETURN_IF_ERROR(read_element(line, out));
    } else if (key == "property") {
      QUERN_RETURN_IF_ERROR(read_property(line, out));
    } else if (key != "comment" && key != "obj_info" && !key.empty()) {
      return corrupt("the PLY header has a line of an unknown kind");
    }
  }
  if (!has_form) return corrupt("the PLY header does not say its format");
  return out;
}

bool has_list(const Element& element) {
  return std::any_of(element.properties.begin(), element.properties.end(), [](const Property& p) { return p.is_list; });
}

std::uint64_t row_bytes(const Element& element) {
  std::uint64_t bytes = 0;
  for (const Property& property : element.properties) bytes += dtype_bytes(property.type);
  return bytes;
}

/// An integer of a file, for counts of lists; negative ones are too large.
std::uint64_t count_at(std::string_view text, DType type, Form form) {
  const std::size_t width = dtype_bytes(type);
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < width; ++i)
    count |= std::uint64_t{static_cast<unsigned char>(text[form == Form::big ? width - 1 - i : i])} << (8 * i);
  return is_signed_integer(type) && count >> (8 * width - 1) != 0 ? UINT64_MAX : count;
}

/// Passes over one element with lists.
Status skip_binary_row(const Element& element, Form form, std::string_view& text) {
  for (const Property& property : element.properties) {
    std::uint64_t count = 1;
    if (property.is_list) {
      const std::size_t width = dtype_bytes(property.count_type);
      if (text.size() < width) return too_short();
      count = count_at(text, property.count_type, form);
      text.remove_prefix(width);
    }
    if (count > text.size() / dtype_bytes(property.type)) return too_short();
    text.remove_prefix(static_cast<std::size_t>(count) * dtype_bytes(property.type));
  }
  return {};
}

Status skip_element(const Element& element, Form form, std::string_view& text) {
  if (form == Form::ascii) {
    for (std::uint64_t i = 0; i < element.count; ++i) {
      if (text.empty()) return too_short();
      (void)next_line(text);
    }
    return {};
  }
  if (element.properties.empty()) return {};
  if (!has_list(element)) {
    if (element.count > text.size() / row_bytes(element)) return too_short();
    text.remove_prefix(static_cast<std::size_t>(element.count * row_bytes(element)));
    return {};
  }
  for (std::uint64_t i = 0; i < element.count; ++i) QUERN_RETURN_IF_ERROR(skip_binary_row(element, form, text));
  return {};
}

Result<Vector<std::uint8_t>> read_ascii(const Element& vertex, std::span<const RawField> fields,
                                        std::string_view text) {
  const std::uint64_t row = row_bytes(vertex);
  Vector<std::uint8_t> out(static_cast<std::size_t>(vertex.count * row));
  for (std::uint64_t i = 0; i < vertex.count; ++i)
    for (const RawField& field : fields) {
      const std::string_view word = next_word(text);
      if (word.empty()) return too_short();
      if (!parse_element(word, field.type, out.data() + i * row + field.offset))
        return Status(StatusCode::corrupt, "vertex {0} of the PLY file has something else than a number of its type",
                      static_cast<std::int64_t>(i));
    }
  return out;
}

/// Big-endian rows, turned.
Vector<std::uint8_t> turned(std::span<const std::uint8_t> rows, std::span<const RawField> fields, std::uint64_t row) {
  Vector<std::uint8_t> out(rows.begin(), rows.end());
  for (std::uint64_t at = 0; at < out.size(); at += row)
    for (const RawField& field : fields)
      std::reverse(out.data() + at + field.offset, out.data() + at + field.offset + dtype_bytes(field.type));
  return out;
}

}  // namespace

Result<PointCloud> read_ply(std::span<const std::uint8_t> bytes, std::uint64_t most_bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  QUERN_ASSIGN_OR_RETURN(const Header header, read_header(text));
  const Element* vertex = nullptr;
  for (const Element& element : header.elements) {
    if (element.name == "vertex") {
      vertex = &element;
      break;
    }
    QUERN_RETURN_IF_ERROR(skip_element(element, header.form, text));
  }
  if (vertex == nullptr) return Status(StatusCode::unsupported, "the PLY file has no element called vertex");
  if (has_list(*vertex)) return Status(StatusCode::unsupported, "the vertices of the PLY file have lists");
  Vector<RawField> fields;
  std::uint64_t row = 0;
  for (const Property& property : vertex->properties) {
    fields.push_back({property.name, property.type, row});
    row += dtype_bytes(property.type);
  }
  if (row == 0) return Status(StatusCode::unsupported, "the vertices of the PLY file have no properties");
  if (header.form == Form::ascii) {
    // A number takes a character and a separator at least.
    if (vertex->count > (text.size() / 2 + 1) / fields.size()) return too_short();
  } else if (vertex->count > text.size() / row) {
    return too_short();
  }
  // Rows that are turned or made of text stand beside the cloud.
  QUERN_RETURN_IF_ERROR(check_fits(vertex->count, header.form == Form::little ? row : 2 * row, most_bytes));
  if (header.form == Form::ascii) {
    QUERN_ASSIGN_OR_RETURN(const auto rows, read_ascii(*vertex, fields, text));
    return cloud_of_rows(fields, rows, vertex->count, row);
  }
  const std::span<const std::uint8_t> rows(reinterpret_cast<const std::uint8_t*>(text.data()),
                                           static_cast<std::size_t>(vertex->count * row));
  if (header.form == Form::little) return cloud_of_rows(fields, rows, vertex->count, row);
  return cloud_of_rows(fields, turned(rows, fields, row), vertex->count, row);
}

namespace {

/// Null for types that PLY has no name for.
const char* ply_type(DType type) {
  switch (type) {
    case DType::i8: return "char";
    case DType::u8: return "uchar";
    case DType::i16: return "short";
    case DType::u16: return "ushort";
    case DType::i32: return "int";
    case DType::u32: return "uint";
    case DType::f32: return "float";
    case DType::f64: return "double";
    default: return nullptr;
  }
}

String plain_name(const String& name) {
  String out = name.empty() ? String("column") : name;
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }, '_');
  return out;
}

}  // namespace

Result<CloudFile> write_ply(const PointCloud& cloud) {
  CloudFile out;
  PointCloud kept = cloud;
  std::erase_if(kept.columns, [&](const CloudColumn& column) {
    const bool goes = ply_type(column.type) == nullptr;
    if (goes) out.left_out.push_back(column.name);
    return goes;
  });
  String header = "ply\nformat binary_little_endian 1.0\nelement vertex ";
  header.append(std::to_string(kept.points())).append("\n");
  for (const RawField& field : fields_of(kept))
    header.append("property ").append(ply_type(field.type)).append(" ").append(plain_name(field.name)).append("\n");
  header += "end_header\n";
  out.bytes.assign(header.begin(), header.end());
  append_rows(kept, out.bytes);
  return out;
}

}  // namespace quern::lidar
