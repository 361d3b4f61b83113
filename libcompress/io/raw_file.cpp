// Raw files: nothing but elements. Type and shape come from the caller or from a name like vx_50x100x100.f32.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "libcompress/io/error.h"
#include "libcompress/io/file_kinds.h"
#include "libcompress/io/flat_file.h"

namespace quern::io {
namespace {

Result<Shape> reversed(const Shape& shape) {
  std::array<std::uint64_t, kMaxRank> extents{};
  std::reverse_copy(shape.extents().begin(), shape.extents().end(), extents.begin());
  return Shape::make({extents.data(), shape.rank()});
}

std::string bytes_text(std::uint64_t bytes) { return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes"); }

// What would make the shape fit the bytes that are there.
std::string advice(std::uint64_t held, std::uint64_t skipped, const Shape& shape, DType dtype) {
  const std::uint64_t elems = shape.elems();
  const std::uint64_t wanted = elems * dtype_bytes(dtype);
  if (held == 0) return "it holds no data; check how it was written";
  if (elems != 0 && held % elems == 0) {
    const std::uint64_t size = held / elems;
    const char* types = size == 1   ? "i8 or u8"
                        : size == 2 ? "f16, bf16, i16 or u16"
                        : size == 4 ? "f32, i32 or u32"
                        : size == 8 ? "f64, i64 or u64"
                                    : nullptr;
    if (types != nullptr) return std::string("the shape would fit the type ") + types;
  }
  const std::uint64_t slowest = shape.rank() == 0 ? 1 : shape[0];
  const std::uint64_t row = slowest == 0 ? 0 : wanted / slowest;
  if (shape.rank() > 0 && row != 0 && held % row == 0)
    return "the slowest extent would have to be " + std::to_string(held / row) + " instead of " +
           std::to_string(slowest);
  if (held > wanted)
    return "skipping " + bytes_text(skipped + held - wanted) + " instead of " + std::to_string(skipped) +
           " would leave just enough, if the file begins with a header";
  return "check the shape, the type and the skipped bytes";
}

Status check_size(const std::string& path, std::uint64_t size, std::uint64_t skip, const Shape& shape, DType dtype,
                  bool shape_from_name, std::string& detail) {
  if (skip > size)
    return fail(detail, StatusCode::invalid_argument,
                path + " has " + bytes_text(size) + ", fewer than the " + std::to_string(skip) + " to skip.");
  const std::uint64_t held = size - skip;
  const std::uint64_t wanted = shape.elems() * dtype_bytes(dtype);
  if (held == wanted) return {};
  std::string text = path + (size == 0 ? " is empty" : " holds " + bytes_text(held));
  if (skip != 0) text += " after the " + std::to_string(skip) + " skipped";
  text += ", but " + shape.text() + " of " + dtype_name(dtype) + (shape_from_name ? " (from its name)" : "") +
          " needs " + bytes_text(wanted) + ": " + advice(held, skip, shape, dtype) + ".";
  return fail(detail, StatusCode::invalid_shape, std::move(text));
}

Status missing_shape(const std::string& path, const PosixFile& file, DType dtype, std::uint64_t skip,
                     std::string& detail) {
  std::string text = "The shape of " + shown(path) + " is not known";
  if (file.has_size() && file.size() >= skip)
    text += " (it holds " + std::to_string((file.size() - skip) / dtype_bytes(dtype)) + " elements of " +
            dtype_name(dtype) + ")";
  text += ": give the extents slowest axis first, as in 50x100x100";
  if (path != "-") text += ", or name the file like vx_50x100x100." + std::string(dtype_name(dtype));
  return fail(detail, StatusCode::invalid_argument, text + ".");
}

}  // namespace

Result<std::unique_ptr<ArrayReader>> open_raw(const std::string& path, const OpenOptions& options,
                                              std::string& detail) {
  if (!options.dataset.empty())
    return fail(
        detail, StatusCode::invalid_argument,
        shown(path) + " is read as raw bytes and has no array named " + options.dataset + "; leave the name out.");
  QUERN_ASSIGN_OR_RETURN(PosixFile file, PosixFile::open_for_reading(path, detail));
  const NameFacts facts = path == "-" ? NameFacts{} : facts_from_name(path);
  const std::optional<DType> dtype = options.dtype ? options.dtype : facts.dtype;
  if (!dtype)
    return fail(detail, StatusCode::invalid_argument,
                "The element type of " + shown(path) +
                    " is not known: give one of f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64" +
                    (path == "-" ? "." : ", or name the file like vx_50x100x100.f32."));
  const bool from_name = !options.shape && facts.shape;
  const std::optional<Shape> given = options.shape ? options.shape : facts.shape;
  if (!given) return missing_shape(path, file, *dtype, options.skip_bytes, detail);

  ArrayMeta meta;
  meta.dtype = *dtype;
  meta.shape = *given;
  if (options.column_major) {
    QUERN_ASSIGN_OR_RETURN(meta.shape, reversed(*given));
  }
  if (file.has_size())
    QUERN_RETURN_IF_ERROR(check_size(path, file.size(), options.skip_bytes, meta.shape, *dtype, from_name, detail));
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t skipped, file.skip(options.skip_bytes));
  if (skipped != options.skip_bytes)
    return fail(detail, StatusCode::truncated,
                shown(path) + " ended after " + bytes_text(skipped) + ", before the " +
                    std::to_string(options.skip_bytes) + " to skip.");
  const FlatLayout layout{options.skip_bytes, needs_swap(options.big_endian, dtype_bytes(*dtype))};
  return make_flat_reader(std::move(file), std::move(meta), layout);
}

Result<std::unique_ptr<ArrayWriter>> create_raw(const std::string& path, const ArrayMeta& meta, std::string& detail) {
  QUERN_ASSIGN_OR_RETURN(PosixFile file, PosixFile::create(path, detail));
  return make_flat_writer(std::move(file), meta.shape.elems() * dtype_bytes(meta.dtype), {});
}

}  // namespace quern::io
