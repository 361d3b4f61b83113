// .npy files: a header, then elements. Fortran order is a reversed shape that is written back as it was.
#include <algorithm>
#include <array>
#include <utility>

#include "libcompress/io/error.h"
#include "libcompress/io/file_kinds.h"
#include "libcompress/io/file_notes.h"
#include "libcompress/io/flat_file.h"
#include "libcompress/io/npy_header.h"

namespace quern::io {
namespace {

Status bad_file(const std::string& path, const Status& status, const std::string& what, std::string& detail) {
  return fail(detail, status.code(), "Cannot read " + shown(path) + ": " + what + ".");
}

struct ReadHeader {
  NpyHeader header;
  std::uint64_t bytes = 0;  ///< where the elements begin
};

Result<ReadHeader> read_header(const std::string& path, PosixFile& file, std::string& detail) {
  std::string what;
  const Status ended(StatusCode::truncated, "the file is shorter than its header");
  std::array<std::uint8_t, kNpyPrefixLong> start{};
  QUERN_ASSIGN_OR_RETURN(const std::size_t got, file.read(std::span(start).first(kNpyPrefixShort)));
  if (got == 0) return fail(detail, StatusCode::io_error, shown(path) + " is empty; it holds no .npy header.");
  std::size_t have = got;
  if (got == kNpyPrefixShort && start[6] > 1) {
    QUERN_ASSIGN_OR_RETURN(const std::size_t more, file.read(std::span(start).subspan(kNpyPrefixShort)));
    have += more;
  }
  auto prefix = parse_npy_prefix(std::span(start).first(have), what);
  if (!prefix.ok()) return bad_file(path, prefix.status(), what, detail);
  std::vector<std::uint8_t> text(prefix->text_bytes);
  QUERN_ASSIGN_OR_RETURN(const std::size_t text_got, file.read(text));
  if (text_got < text.size()) return bad_file(path, ended, "it ends inside its header", detail);
  auto header = parse_npy_header({reinterpret_cast<const char*>(text.data()), text.size()}, what);
  if (!header.ok()) return bad_file(path, header.status(), what, detail);
  return ReadHeader{std::move(header).value(), prefix->prefix_bytes + text.size()};
}

// The shape as the bytes lie: reversed for Fortran order, then the axis of real and imaginary parts.
Result<Shape> memory_shape(const NpyHeader& header, bool is_complex) {
  std::vector<std::uint64_t> extents = header.shape;
  if (header.fortran_order) std::reverse(extents.begin(), extents.end());
  if (is_complex) extents.push_back(2);
  return Shape::make(extents);
}

Status check_size(const std::string& path, const PosixFile& file, std::uint64_t offset, const ArrayMeta& meta,
                  std::string& detail) {
  if (!file.has_size()) return {};
  const std::uint64_t held = file.size() - std::min(file.size(), offset);
  const std::uint64_t wanted = meta.shape.elems() * dtype_bytes(meta.dtype);
  if (held == wanted) return {};
  const std::string text = shown(path) + " holds " + std::to_string(held) + " bytes after its header, which says " +
                           meta.shape.text() + " of " + dtype_name(meta.dtype) + ", that is " + std::to_string(wanted) +
                           " bytes: ";
  if (held < wanted) return fail(detail, StatusCode::truncated, text + "the file was cut; write it again.");
  return fail(detail, StatusCode::trailing_data, text + "save one array per file.");
}

}  // namespace

Result<std::unique_ptr<ArrayReader>> open_npy(const std::string& path, const OpenOptions& options,
                                              std::string& detail) {
  if (!options.dataset.empty())
    return fail(detail, StatusCode::invalid_argument,
                shown(path) + " is a .npy file and has no array named " + options.dataset + "; leave the name out.");
  QUERN_ASSIGN_OR_RETURN(PosixFile file, PosixFile::open_for_reading(path, detail));
  QUERN_ASSIGN_OR_RETURN(ReadHeader start, read_header(path, file, detail));
  std::string what;
  auto type = parse_npy_descr(start.header.descr, what);
  if (!type.ok()) return bad_file(path, type.status(), what, detail);
  if (type->is_void2 && options.dtype != DType::bf16)
    return fail(detail, StatusCode::unsupported,
                shown(path) + " holds untyped elements of 2 bytes; if they are bfloat16, say so with the type bf16.");
  auto shape = memory_shape(start.header, type->is_complex);
  if (!shape.ok()) return bad_file(path, shape.status(), shape.status().text(), detail);

  ArrayMeta meta;
  meta.dtype = type->dtype;
  meta.shape = *shape;
  meta.is_complex = type->is_complex;
  FileNotes notes;
  notes.kind = "npy";
  notes.fortran_order = start.header.fortran_order;
  meta.attributes_json = to_json(notes);
  QUERN_RETURN_IF_ERROR(check_asked(path, meta, options, detail));
  QUERN_RETURN_IF_ERROR(check_size(path, file, start.bytes, meta, detail));
  const FlatLayout layout{start.bytes, needs_swap(type->big_endian, dtype_bytes(type->dtype))};
  return make_flat_reader(std::move(file), std::move(meta), layout);
}

Result<std::unique_ptr<ArrayWriter>> create_npy(const std::string& path, const ArrayMeta& meta, std::string& detail) {
  QUERN_ASSIGN_OR_RETURN(const FileNotes notes, notes_from_json(meta.attributes_json, detail));
  const bool is_complex = has_complex_axis(meta) && (meta.dtype == DType::f32 || meta.dtype == DType::f64);
  NpyHeader header;
  header.descr = npy_descr(meta.dtype, is_complex);
  header.fortran_order = notes.fortran_order;
  header.shape.assign(meta.shape.extents().begin(), meta.shape.extents().end());
  if (is_complex) header.shape.pop_back();
  if (header.fortran_order) std::reverse(header.shape.begin(), header.shape.end());
  QUERN_ASSIGN_OR_RETURN(PosixFile file, PosixFile::create(path, detail));
  return make_flat_writer(std::move(file), meta.shape.elems() * dtype_bytes(meta.dtype), build_npy_header(header));
}

}  // namespace quern::io
