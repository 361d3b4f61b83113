// .npy files (NumPy's format, versions 1 to 3) of two axes: points, columns. The first three columns are x, y, z; the
// others are attributes of the same type, whose names the file does not tell.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "lidar/cloud/little_endian.h"
#include "lidar/files/formats.h"
#include "lidar/files/raw_fields.h"

namespace quern::lidar {
namespace {

constexpr std::uint64_t kMostColumns = 67;

Status corrupt(const char* what) { return Status(StatusCode::corrupt, what); }

struct Header {
  DType type = DType::f32;
  bool big_endian = false;
  bool column_major = false;
  std::uint64_t points = 0;
  std::uint64_t columns = 0;
};

/// The text behind `key` and its colon.
std::string_view value_of(std::string_view dictionary, std::string_view key) {
  const std::size_t at = dictionary.find(key);
  if (at == std::string_view::npos) return {};
  std::string_view rest = dictionary.substr(at + key.size());
  const std::size_t begin = rest.find_first_not_of(" :");
  return begin == std::string_view::npos ? std::string_view() : rest.substr(begin);
}

Status read_type(std::string_view text, Header& out) {
  if (text.starts_with('[')) return Status(StatusCode::unsupported, ".npy files of structures are not read");
  if (text.size() < 5) return corrupt("the .npy header has no descr");
  const std::string_view code = text.substr(1, 3);
  if (code != "<f4" && code != "<f8" && code != ">f4" && code != ">f8")
    return Status(StatusCode::unsupported, "points of .npy files are 32- or 64-bit floating-point numbers");
  out.big_endian = code[0] == '>';
  out.type = code[2] == '4' ? DType::f32 : DType::f64;
  return {};
}

bool take_number(std::string_view& text, std::uint64_t& out) {
  const std::size_t begin = std::min(text.find_first_not_of(" ,("), text.size());
  text.remove_prefix(begin);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc();
}

Status read_shape(std::string_view text, Header& out) {
  if (!text.starts_with('(')) return corrupt("the .npy header has no shape");
  const std::size_t end = text.find(')');
  if (end == std::string_view::npos) return corrupt("the .npy header has no shape");
  text = text.substr(0, end);
  std::uint64_t more = 0;
  if (!take_number(text, out.points) || !take_number(text, out.columns) || take_number(text, more) || out.columns < 3 ||
      out.columns > kMostColumns)
    return Status(StatusCode::unsupported,
                  "points of .npy files have two axes: points, and 3 to 67 columns that begin with x, y, z");
  return {};
}

Result<Header> read_header(std::span<const std::uint8_t>& bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const Status cut(StatusCode::truncated, "the .npy file ends in its header");
  if (!text.starts_with("\x93NUMPY")) return corrupt("the file does not begin as a .npy file");
  if (bytes.size() < 12) return cut;
  if (bytes[6] < 1 || bytes[6] > 3) return Status(StatusCode::unsupported, "the .npy file has a newer version");
  const std::size_t begin = bytes[6] == 1 ? 10 : 12;
  const std::uint64_t size =
      bytes[6] == 1 ? load_le<std::uint16_t>(bytes.data() + 8) : load_le<std::uint32_t>(bytes.data() + 8);
  if (size > bytes.size() - begin) return cut;
  const std::string_view dictionary = text.substr(begin, static_cast<std::size_t>(size));
  Header out;
  QUERN_RETURN_IF_ERROR(read_type(value_of(dictionary, "'descr'"), out));
  QUERN_RETURN_IF_ERROR(read_shape(value_of(dictionary, "'shape'"), out));
  out.column_major = value_of(dictionary, "'fortran_order'").starts_with("True");
  bytes = bytes.subspan(begin + static_cast<std::size_t>(size));
  return out;
}

/// Elements in the order of rows, little-endian.
Vector<std::uint8_t> rows_of(const Header& header, std::span<const std::uint8_t> values) {
  const std::size_t width = dtype_bytes(header.type);
  Vector<std::uint8_t> out(values.size());
  for (std::uint64_t point = 0; point < header.points; ++point)
    for (std::uint64_t column = 0; column < header.columns; ++column) {
      const std::uint64_t from = header.column_major ? column * header.points + point : point * header.columns + column;
      std::uint8_t* const to = out.data() + (point * header.columns + column) * width;
      std::copy_n(values.data() + from * width, width, to);
      if (header.big_endian) std::reverse(to, to + width);
    }
  return out;
}

}  // namespace

Result<PointCloud> read_npy(std::span<const std::uint8_t> bytes, std::uint64_t most_bytes) {
  QUERN_ASSIGN_OR_RETURN(const Header header, read_header(bytes));
  const std::uint64_t width = dtype_bytes(header.type);
  const std::uint64_t row = header.columns * width;
  if (header.points > bytes.size() / row)
    return Status(StatusCode::truncated, "the .npy file ends before its last point");
  if (header.points * row != bytes.size())
    return Status(StatusCode::corrupt, "{0} bytes follow the points of the .npy file",
                  static_cast<std::int64_t>(bytes.size() - header.points * row));
  // Rows, and the cloud that is made of them.
  QUERN_RETURN_IF_ERROR(check_fits(header.points, 2 * row, most_bytes));
  static constexpr std::array<const char*, 3> kAxes = {"x", "y", "z"};
  Vector<RawField> fields;
  for (std::uint64_t c = 0; c < header.columns; ++c) {
    String name = c < 3 ? String(kAxes[c]) : c == 3 ? String("intensity") : String("column");
    if (c > 3) name.append("_").append(std::to_string(c));
    fields.push_back({std::move(name), header.type, c * width});
  }
  return cloud_of_rows(fields, rows_of(header, bytes), header.points, row);
}

namespace {

bool fits(const CloudColumn& column, DType type, std::uint64_t points) {
  if (column.type == type) return true;
  for (std::uint64_t i = 0; i < points; ++i) {
    const double element = element_as_double(column, i);
    // NaN of another width has other bits.
    if (!is_exact_as_double(column, i) || std::isnan(element)) return false;
    if (type == DType::f32 && static_cast<double>(static_cast<float>(element)) != element) return false;
  }
  return true;
}

void append_number(double value, DType type, Vector<std::uint8_t>& out) {
  if (type == DType::f32) {
    append_le(static_cast<float>(value), out);
  } else {
    append_le(value, out);
  }
}

}  // namespace

Result<CloudFile> write_npy(const PointCloud& cloud) {
  CloudFile out;
  // binary64 where a column needs it: what is exact in binary32 stays exact.
  const auto all_fit = [&](DType type) {
    return std::all_of(cloud.columns.begin(), cloud.columns.end(),
                       [&](const CloudColumn& column) { return fits(column, type, cloud.points()); });
  };
  const DType type = cloud.kind == CoordinateKind::f32 && all_fit(DType::f32) ? DType::f32 : DType::f64;
  Vector<const CloudColumn*> columns;
  for (const CloudColumn& column : cloud.columns) {
    if (fits(column, type, cloud.points())) {
      columns.push_back(&column);
    } else {
      out.left_out.push_back(column.name);
    }
  }
  String header = type == DType::f32 ? "{'descr': '<f4'" : "{'descr': '<f8'";
  header.append(", 'fortran_order': False, 'shape': (").append(std::to_string(cloud.points())).append(", ");
  header.append(std::to_string(3 + columns.size())).append("), }");
  header.append(63 - (10 + header.size()) % 64, ' ').append("\n");
  const std::string_view magic("\x93NUMPY\x01\x00", 8);
  out.bytes.assign(magic.begin(), magic.end());
  append_le(static_cast<std::uint16_t>(header.size()), out.bytes);
  out.bytes.insert(out.bytes.end(), header.begin(), header.end());
  for (std::uint64_t i = 0; i < cloud.points(); ++i) {
    const auto at = cloud.position(i);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (cloud.kind == CoordinateKind::f32 && type == DType::f32) {
        append_le(cloud.words[static_cast<std::size_t>(3 * i) + axis], out.bytes);
      } else {
        append_number(at[axis], type, out.bytes);
      }
    }
    for (const CloudColumn* column : columns) {
      const std::size_t width = dtype_bytes(type);
      if (column->type == type) {
        out.bytes.insert(out.bytes.end(), column->values.data() + i * width, column->values.data() + (i + 1) * width);
      } else {
        append_number(element_as_double(*column, i), type, out.bytes);
      }
    }
  }
  return out;
}

}  // namespace quern::lidar
