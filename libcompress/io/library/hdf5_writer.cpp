// Writing HDF5 datasets: contiguous, or chunked without filters where the original was extensible.
#include <sys/stat.h>

#include <algorithm>

#include "libcompress/io/conventions.h"
#include "libcompress/io/error.h"
#include "libcompress/io/file_kinds.h"
#include "libcompress/io/library/hdf5_common.h"
#include "libcompress/io/library/slabs.h"
#include "libcompress/io/number.h"

namespace quern::io {
namespace {

// A new file, or one that already holds arrays. Empty files are taken as new: temporary ones begin so.
Result<H5Handle> open_for_writing(const std::string& path, std::string& detail) {
  if (path == "-")
    return fail(detail, StatusCode::invalid_argument,
                "HDF5 files cannot be written to standard output, they need seeking; name a file.");
  const H5Handle access = h5_file_access();
  struct stat info {};
  const bool exists = ::stat(path.c_str(), &info) == 0 && info.st_size > 0;
  if (exists && H5Fis_hdf5(path.c_str()) <= 0) {
    H5Eclear2(H5E_DEFAULT);
    return fail(detail, StatusCode::invalid_argument,
                path + " exists and is no HDF5 file; remove it or choose another name.");
  }
  const H5Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  H5Pset_link_creation_order(creation.get(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
  H5Handle file(exists ? H5Fopen(path.c_str(), H5F_ACC_RDWR, access.get())
                       : H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()),
                H5Fclose);
  if (!file.ok()) return fail(detail, StatusCode::io_error, "HDF5 cannot write " + path + ": " + h5_error() + ".");
  return file;
}

H5Handle make_space(const Shape& items, const FileNotes& notes, bool extensible) {
  if (items.rank() == 0) return {H5Screate(H5S_SCALAR), H5Sclose};
  std::array<hsize_t, kMaxRank> dims{};
  std::array<hsize_t, kMaxRank> most{};
  for (std::size_t a = 0; a < items.rank(); ++a) {
    dims[a] = items[a];
    most[a] = !extensible          ? items[a]
              : notes.max_shape[a] ? std::max<hsize_t>(*notes.max_shape[a], items[a])
                                   : H5S_UNLIMITED;
  }
  return {H5Screate_simple(static_cast<int>(items.rank()), dims.data(), most.data()), H5Sclose};
}

// Only extensible datasets must be chunked; chunks of others served a filter that is not written here.
bool is_extensible(const Shape& items, const FileNotes& notes) {
  return items.rank() > 0 && notes.max_shape.size() == items.rank() && notes.chunks.size() == items.rank() &&
         std::none_of(notes.chunks.begin(), notes.chunks.end(), [](std::uint64_t c) { return c == 0; });
}

H5Handle make_creation_list(const Shape& items, const FileNotes& notes, const H5Element& element, bool extensible) {
  H5Handle plist(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_attr_creation_order(plist.get(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
  if (extensible) {
    std::array<hsize_t, kMaxRank> chunk{};
    for (std::size_t a = 0; a < items.rank(); ++a)
      chunk[a] = std::min<hsize_t>(notes.chunks[a], std::max<std::uint64_t>(items[a], 1));
    H5Pset_chunk(plist.get(), static_cast<int>(items.rank()), chunk.data());
  }
  const std::size_t parts = element.complex_names.empty() ? 1 : 2;
  if (notes.fill_value && notes.fill_value->type == Attribute::Type::number &&
      notes.fill_value->dtype == element.dtype && notes.fill_value->bits.size() == parts) {
    std::array<std::uint8_t, 16> value{};
    for (std::size_t p = 0; p < parts; ++p)
      store_bits(value.data() + p * dtype_bytes(element.dtype), notes.fill_value->bits[p], element.dtype);
    H5Pset_fill_value(plist.get(), element.memory_type.get(), value.data());
  }
  // Every element is written, so filling first would write the array twice.
  H5Pset_fill_time(plist.get(), H5D_FILL_TIME_NEVER);
  return plist;
}

class Hdf5Writer final : public SlabWriter {
 public:
  Hdf5Writer(std::string path, const Shape& items, H5Handle file, H5Handle dataset, H5Element element)
      : SlabWriter(items, element.item_bytes()),
        path_(std::move(path)),
        file_(std::move(file)),
        dataset_(std::move(dataset)),
        element_(std::move(element)),
        space_(H5Dget_space(dataset_.get()), H5Sclose) {}

  ~Hdf5Writer() override {
    const H5Quiet quiet;
    space_.reset();
    dataset_.reset();
    file_.reset();
  }

 protected:
  Status write_slab(const Slab& slab, const void* data) override {
    const H5Quiet quiet;
    const hsize_t elems = slab.elems;
    const H5Handle memory(H5Screate_simple(1, &elems, nullptr), H5Sclose);
    if (!h5_select(space_.get(), slab) ||
        H5Dwrite(dataset_.get(), element_.memory_type.get(), memory.get(), space_.get(), H5P_DEFAULT, data) < 0) {
      H5Eclear2(H5E_DEFAULT);
      return {StatusCode::io_error, "HDF5 cannot write the dataset from row {0} on; the disk may be full",
              static_cast<std::int64_t>(slab.rank == 0 ? 0 : slab.start[0])};
    }
    return {};
  }

  Status close_file() override {
    const H5Quiet quiet;
    space_.reset();
    const bool flushed = H5Fflush(file_.get(), H5F_SCOPE_GLOBAL) >= 0;
    const bool dataset_closed = dataset_.reset();
    const bool file_closed = file_.reset();
    H5Eclear2(H5E_DEFAULT);
    if (!flushed || !dataset_closed || !file_closed)
      return {StatusCode::io_error, "HDF5 cannot finish the file; the disk may be full"};
    return sync_file(path_);
  }

 private:
  std::string path_;
  H5Handle file_;
  H5Handle dataset_;
  H5Element element_;
  H5Handle space_;
};

H5Element element_to_write(const ArrayMeta& meta, const FileNotes& notes) {
  // Unsigned numbers that were read from a signed type are written as such: the attribute says what they mean.
  const DType stored = says_unsigned(notes.attributes) ? with_sign(meta.dtype, true) : meta.dtype;
  if (!has_complex_axis(meta)) return {stored, h5_native_type(stored), {}};
  const std::vector<std::string> names =
      notes.complex_names.size() == 2 && notes.complex_names[0] == "real" && notes.complex_names[1] == "imag"
          ? notes.complex_names
          : std::vector<std::string>{"r", "i"};
  return {meta.dtype, h5_complex_type(meta.dtype, names), names};
}

}  // namespace

Result<std::unique_ptr<ArrayWriter>> create_hdf5(const std::string& path, const ArrayMeta& meta,
                                                 const std::string& dataset, std::string& detail) {
  const H5Quiet quiet;
  QUERN_ASSIGN_OR_RETURN(const FileNotes notes, notes_from_json(meta.attributes_json, detail));
  const std::string asked = !dataset.empty() ? dataset : !notes.dataset.empty() ? notes.dataset : "data";
  const std::string name = asked.front() == '/' ? asked : "/" + asked;
  QUERN_ASSIGN_OR_RETURN(H5Handle file, open_for_writing(path, detail));
  H5Element element = element_to_write(meta, notes);
  const auto extents = meta.shape.extents();
  QUERN_ASSIGN_OR_RETURN(const Shape items,
                         Shape::make(extents.first(extents.size() - (element.complex_names.empty() ? 0 : 1))));

  const bool extensible = is_extensible(items, notes);
  const H5Handle space = make_space(items, notes, extensible);
  const H5Handle plist = make_creation_list(items, notes, element, extensible);
  const H5Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(links.get(), 1);
  H5Pset_char_encoding(links.get(), H5T_CSET_UTF8);
  H5Handle created(H5Dcreate2(file.get(), name.c_str(), element.memory_type.get(), space.get(), links.get(),
                              plist.get(), H5P_DEFAULT),
                   H5Dclose);
  if (!created.ok())
    return fail(detail, StatusCode::invalid_argument,
                "HDF5 cannot create the dataset " + name + " in " + path + ": " + h5_error() + ".");
  for (const Attribute& a : attributes_to_write(notes, meta))
    if (!h5_write_attribute(created.get(), a))
      return fail(detail, StatusCode::io_error,
                  "HDF5 cannot write the attribute " + a.name + " to " + path + ": " + h5_error() + ".");
  return std::unique_ptr<ArrayWriter>(
      std::make_unique<Hdf5Writer>(path, items, std::move(file), std::move(created), std::move(element)));
}

}  // namespace quern::io
