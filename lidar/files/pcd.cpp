// PCD (PCL's format, versions .5 to .7): a text header, then ASCII, binary rows, or LZF-packed columns.
#include <algorithm>
#include <string>
#include <utility>

#include "lidar/files/formats.h"
#include "lidar/files/raw_fields.h"

namespace quern::lidar {
namespace {

constexpr std::uint64_t kMostPoints = UINT64_C(1) << 40;
constexpr std::uint64_t kMostCount = 1024;
constexpr std::size_t kMostFields = 256;
constexpr std::size_t kMostHeaderLines = 1000;

Status corrupt(const char* what) { return Status(StatusCode::corrupt, what); }

struct Header {
  Vector<String> names;
  Vector<std::uint64_t> sizes;
  Vector<char> types;
  Vector<std::uint64_t> counts;
  std::uint64_t width = 0;
  std::uint64_t height = 0;
  std::uint64_t points = 0;
  bool has_points = false;
  std::string_view data;
};

/// Numbers behind a key.
Status read_numbers(std::string_view line, std::uint64_t limit, Vector<std::uint64_t>& out) {
  out.clear();
  for (std::string_view word = next_word(line); !word.empty(); word = next_word(line)) {
    std::uint64_t number = 0;
    if (!parse_number(word, limit, number)) return corrupt("a line of the PCD header has something else than numbers");
    out.push_back(number);
    if (out.size() > kMostFields) return corrupt("the PCD header has too many fields");
  }
  return {};
}

Status read_one(std::string_view line, std::uint64_t& out) {
  if (!parse_number(next_word(line), kMostPoints, out))
    return corrupt("WIDTH, HEIGHT or POINTS of the PCD header is no number");
  return {};
}

Status read_line(std::string_view key, std::string_view rest, Header& out) {
  if (key == "FIELDS" || key == "COLUMNS") {
    for (std::string_view word = next_word(rest); !word.empty() && out.names.size() <= kMostFields;
         word = next_word(rest))
      out.names.emplace_back(word);
  } else if (key == "SIZE") {
    return read_numbers(rest, 9, out.sizes);
  } else if (key == "COUNT") {
    return read_numbers(rest, kMostCount, out.counts);
  } else if (key == "TYPE") {
    for (std::string_view word = next_word(rest); !word.empty() && out.types.size() <= kMostFields;
         word = next_word(rest))
      out.types.push_back(word.size() == 1 ? word.front() : '?');
  } else if (key == "WIDTH") {
    return read_one(rest, out.width);
  } else if (key == "HEIGHT") {
    return read_one(rest, out.height);
  } else if (key == "POINTS") {
    out.has_points = true;
    return read_one(rest, out.points);
  } else if (key == "DATA") {
    out.data = next_word(rest);
  } else if (key != "VERSION" && key != "VIEWPOINT") {
    return corrupt("the PCD header has a line of an unknown kind");
  }
  return {};
}

Result<Header> read_header(std::string_view& text) {
  Header out;
  for (std::size_t line_number = 0; out.data.empty(); ++line_number) {
    if (text.empty() || line_number > kMostHeaderLines)
      return Status(StatusCode::truncated, "the PCD header ends before its DATA line");
    std::string_view line = next_line(text);
    const std::string_view key = next_word(line);
    if (key.empty() || key.front() == '#') continue;
    QUERN_RETURN_IF_ERROR(read_line(key, line, out));
  }
  if (out.counts.empty()) out.counts.assign(out.names.size(), 1);
  const std::size_t fields = out.names.size();
  if (fields == 0 || fields > kMostFields || out.sizes.size() != fields || out.types.size() != fields ||
      out.counts.size() != fields)
    return corrupt("FIELDS, SIZE, TYPE and COUNT of the PCD header do not fit together");
  if (!out.has_points) {
    if (out.height != 0 && out.width > kMostPoints / out.height) return corrupt("the PCD header has too many points");
    out.points = out.width * out.height;
  }
  return out;
}

Result<DType> type_of(char type, std::uint64_t size) {
  const std::pair<char, std::uint64_t> known[] = {{'F', 4}, {'F', 8}, {'I', 1}, {'I', 2}, {'I', 4},
                                                  {'I', 8}, {'U', 1}, {'U', 2}, {'U', 4}, {'U', 8}};
  const DType types[] = {DType::f32, DType::f64, DType::i8,  DType::i16, DType::i32,
                         DType::i64, DType::u8,  DType::u16, DType::u32, DType::u64};
  for (std::size_t i = 0; i < std::size(known); ++i)
    if (known[i].first == type && known[i].second == size) return types[i];
  return corrupt("the PCD header has a field of an unknown TYPE and SIZE");
}

/// Fields one after another; a field of several elements becomes as many, and padding (called _) none.
struct Rows {
  Vector<RawField> fields;    ///< that become coordinates and columns
  Vector<RawField> elements;  ///< all of them, in their order, for text
  std::uint64_t bytes = 0;
};

Result<Rows> layout_of(const Header& header) {
  Rows out;
  for (std::size_t f = 0; f < header.names.size(); ++f) {
    QUERN_ASSIGN_OR_RETURN(const DType type, type_of(header.types[f], header.sizes[f]));
    for (std::uint64_t e = 0; e < header.counts[f]; ++e) {
      RawField field{header.names[f], type, out.bytes};
      if (header.counts[f] > 1) field.name.append("_").append(std::to_string(e));
      out.bytes += header.sizes[f];
      if (header.names[f] != "_") out.fields.push_back(field);
      out.elements.push_back(std::move(field));
      if (out.elements.size() > kMostCount) return corrupt("the PCD header has too many fields");
    }
  }
  if (out.bytes == 0) return corrupt("the points of the PCD file have no bytes");
  return out;
}

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

Status too_short() { return Status(StatusCode::truncated, "the PCD file ends before its last point"); }

Result<Vector<std::uint8_t>> read_ascii(const Header& header, const Rows& rows, std::string_view text,
                                        std::uint64_t most_bytes) {
  // A number takes a character and a separator at least.
  if (header.points > (text.size() / 2 + 1) / rows.elements.size()) return too_short();
  // Rows, and the cloud that is made of them.
  QUERN_RETURN_IF_ERROR(check_fits(header.points, 2 * rows.bytes, most_bytes));
  Vector<std::uint8_t> out(static_cast<std::size_t>(header.points * rows.bytes));
  for (std::uint64_t i = 0; i < header.points; ++i)
    for (const RawField& element : rows.elements) {
      const std::string_view word = next_word(text);
      if (word.empty()) return too_short();
      if (!parse_element(word, element.type, out.data() + i * rows.bytes + element.offset))
        return Status(StatusCode::corrupt, "point {0} of the PCD file has something else than a number of its type",
                      static_cast<std::int64_t>(i));
    }
  return out;
}

/// Columns of packed files, one field after another with all its elements, become rows.
Result<Vector<std::uint8_t>> read_packed(const Header& header, const Rows& rows, std::string_view text,
                                         std::uint64_t most_bytes) {
  const auto bytes = bytes_of(text);
  if (bytes.size() < 8) return too_short();
  const auto number = [&](std::size_t at) {
    return std::uint64_t{bytes[at]} | std::uint64_t{bytes[at + 1]} << 8 | std::uint64_t{bytes[at + 2]} << 16 |
           std::uint64_t{bytes[at + 3]} << 24;
  };
  const std::uint64_t packed = number(0);
  if (number(4) != header.points * rows.bytes)
    return corrupt("the size of the packed points is not that of the PCD header");
  if (packed > bytes.size() - 8) return too_short();
  // A copy of 264 bytes takes 3.
  if (number(4) > 88 * packed + 88) return corrupt("the packed points cannot become as many as the PCD header says");
  // Columns and rows, then rows and the cloud.
  QUERN_RETURN_IF_ERROR(check_fits(header.points, 2 * rows.bytes, most_bytes));
  Vector<std::uint8_t> columns(static_cast<std::size_t>(number(4)));
  QUERN_RETURN_IF_ERROR(expand_lzf(bytes.subspan(8, static_cast<std::size_t>(packed)), columns));
  Vector<std::uint8_t> out(columns.size());
  std::uint64_t column = 0;
  std::uint64_t offset = 0;
  for (std::size_t f = 0; f < header.names.size(); ++f) {
    const std::uint64_t width = header.sizes[f] * header.counts[f];
    for (std::uint64_t i = 0; i < header.points; ++i)
      std::copy_n(columns.data() + column + i * width, width, out.data() + i * rows.bytes + offset);
    column += width * header.points;
    offset += width;
  }
  return out;
}

}  // namespace

Result<PointCloud> read_pcd(std::span<const std::uint8_t> bytes, std::uint64_t most_bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  QUERN_ASSIGN_OR_RETURN(const Header header, read_header(text));
  QUERN_ASSIGN_OR_RETURN(const Rows rows, layout_of(header));
  if (header.points > kMostPoints) return corrupt("the PCD header has too many points");
  Vector<std::uint8_t> owned;
  std::span<const std::uint8_t> values;
  if (header.data == "binary") {
    if (header.points > text.size() / rows.bytes) return too_short();
    QUERN_RETURN_IF_ERROR(check_fits(header.points, rows.bytes, most_bytes));
    values = bytes_of(text);
  } else if (header.data == "ascii" || header.data == "binary_compressed") {
    QUERN_ASSIGN_OR_RETURN(owned, header.data == "ascii" ? read_ascii(header, rows, text, most_bytes)
                                                         : read_packed(header, rows, text, most_bytes));
    values = owned;
  } else {
    return corrupt("DATA of the PCD header is neither ascii, binary nor binary_compressed");
  }
  QUERN_ASSIGN_OR_RETURN(PointCloud out, cloud_of_rows(rows.fields, values, header.points, rows.bytes));
  if (header.height > 1 && header.width <= kMostPoints / header.height && header.width * header.height == header.points)
    out.rows = header.height;
  return out;
}

namespace {

void add_line(String& out, const char* key, const Vector<RawField>& fields, String (*text)(const RawField&)) {
  out += key;
  for (const RawField& field : fields) out.append(" ").append(text(field));
  out += '\n';
}

/// A name without blanks, which separate names.
String plain_name(const RawField& field) {
  String out = field.name.empty() || field.name == "_" ? String("column") : field.name;
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }, '_');
  return out;
}

String size_text(const RawField& field) { return String(1, static_cast<char>('0' + dtype_bytes(field.type))); }

String type_text(const RawField& field) {
  return is_float(field.type) ? "F" : is_signed_integer(field.type) ? "I" : "U";
}

}  // namespace

Result<CloudFile> write_pcd(const PointCloud& cloud) {
  const auto fields = fields_of(cloud);
  const std::uint64_t height = cloud.rows == 0 ? 1 : cloud.rows;
  const std::string width = std::to_string(cloud.points() / height);
  String header = "# .PCD v0.7 - Point Cloud Data file format\nVERSION 0.7\n";
  add_line(header, "FIELDS", fields, plain_name);
  add_line(header, "SIZE", fields, size_text);
  add_line(header, "TYPE", fields, type_text);
  add_line(header, "COUNT", fields, [](const RawField&) { return String("1"); });
  header.append("WIDTH ").append(width).append("\nHEIGHT ").append(std::to_string(height));
  header.append("\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS ").append(std::to_string(cloud.points())).append("\nDATA binary\n");
  CloudFile out;
  out.bytes.assign(header.begin(), header.end());
  append_rows(cloud, out.bytes);
  return out;
}

}  // namespace quern::lidar
