// Points as rows of typed fields, as PCD, PLY and npy files hold them: rows to a cloud and back.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include <quern/status.h>

#include "lidar/cloud/point_cloud.h"

namespace quern::lidar {

/// A field of one element in each row. Fields without a column are skipped.
struct RawField {
  String name;
  DType type = DType::f32;
  std::uint64_t offset = 0;  ///< in the row
};

/// The first fields called x, y and z, and then all others, as a cloud. `rows` has points * row_bytes little-endian
/// bytes. Fails with `unsupported` where x, y, z are missing or not all of binary32 or all of binary64.
Result<PointCloud> cloud_of_rows(std::span<const RawField> fields, std::span<const std::uint8_t> rows,
                                 std::uint64_t points, std::uint64_t row_bytes);

/// x, y, z of the cloud (binary32, or binary64 for the other kinds) and its columns.
Vector<RawField> fields_of(const PointCloud& cloud);
/// Appends the points as rows of those fields.
void append_rows(const PointCloud& cloud, Vector<std::uint8_t>& out);

/// A number in text as the bits of a type, little-endian in `out` (dtype_bytes of them). False where it is none.
bool parse_element(std::string_view text, DType type, std::uint8_t* out);

/// The next word of a line or of several; separators are blanks and line breaks. Empty at the end.
std::string_view next_word(std::string_view& text);
/// The next line without its end (LF, CR LF).
std::string_view next_line(std::string_view& text);

/// A decimal number below `limit`.
bool parse_number(std::string_view text, std::uint64_t limit, std::uint64_t& out);

}  // namespace quern::lidar
