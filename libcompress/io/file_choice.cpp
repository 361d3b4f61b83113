// What was asked of a file against what the file says of itself.
#include <algorithm>

#include "libcompress/io/error.h"
#include "libcompress/io/file_kinds.h"

namespace quern::io {

Status check_asked(const std::string& path, const ArrayMeta& meta, const OpenOptions& options, std::string& detail) {
  if (options.skip_bytes != 0 || options.big_endian || options.column_major)
    return fail(detail, StatusCode::invalid_argument,
                "Skipped bytes, byte order and axis order are read from " + shown(path) +
                    " itself; leave these options out, they are for raw files.");
  if (options.dtype && *options.dtype != meta.dtype)
    return fail(detail, StatusCode::invalid_argument,
                shown(path) + " holds " + dtype_name(meta.dtype) + ", not " + dtype_name(*options.dtype) +
                    "; leave the type out, the file knows it.");
  if (options.shape && !(*options.shape == meta.shape))
    return fail(detail, StatusCode::invalid_shape,
                shown(path) + " holds an array of shape " + meta.shape.text() + ", not " + options.shape->text() +
                    "; leave the shape out, the file knows it.");
  return {};
}

Result<std::string> only_name(const std::string& path, const std::vector<std::string>& names, std::string& detail) {
  constexpr std::size_t kShown = 12;
  if (names.size() == 1) return names.front();
  if (names.empty())
    return fail(detail, StatusCode::invalid_argument, path + " holds no numeric array that quern can read.");
  std::string list;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) list += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kShown) list += ", ...";
  return fail(
      detail, StatusCode::invalid_argument,
      path + " holds " + std::to_string(names.size()) + " arrays: " + list +
          "; choose one with --dataset NAME. To compress all of them give --dataset '*' (one bound) or --bounds FILE "
          "(a bound for each).");
}

}  // namespace quern::io
