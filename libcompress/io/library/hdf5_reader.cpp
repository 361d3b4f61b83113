// Reading and listing HDF5 datasets.
#include <algorithm>

#include "libcompress/io/conventions.h"
#include "libcompress/io/error.h"
#include "libcompress/io/file_kinds.h"
#include "libcompress/io/library/hdf5_common.h"
#include "libcompress/io/library/slabs.h"
#include "libcompress/io/number.h"
#include "libcompress/io/posix_file.h"

namespace quern::io {
namespace {

constexpr std::size_t kSmallestCache = std::size_t{1} << 20;
constexpr std::size_t kLargestCache = std::size_t{1} << 28;
constexpr std::size_t kCacheSlots = 12421;

Result<H5Handle> open_file(const std::string& path, std::string& detail) {
  QUERN_RETURN_IF_ERROR(check_library_file(path, "HDF5", detail));
  if (H5Fis_hdf5(path.c_str()) <= 0) {
    H5Eclear2(H5E_DEFAULT);
    return fail(detail, StatusCode::bad_magic, path + " is no HDF5 file; if it is raw data, read it as raw.");
  }
  const H5Handle access = h5_file_access();
  H5Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose);
  if (!file.ok()) return fail(detail, StatusCode::io_error, "HDF5 cannot open " + path + ": " + h5_error() + ".");
  return file;
}

struct Listing {
  hid_t file = -1;
  std::vector<std::string> all;
  std::vector<std::string> fields;  ///< without dimension scales
};

std::string text_attribute(hid_t object, const char* name) {
  if (H5Aexists(object, name) <= 0) return {};
  const H5Handle attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose);
  const H5Handle type(H5Aget_type(attribute.get()), H5Tclose);
  const std::size_t size = H5Tget_size(type.get());
  if (H5Tget_class(type.get()) != H5T_STRING || H5Tis_variable_str(type.get()) > 0 || size > 4096) return {};
  std::string text(size, '\0');
  if (H5Aread(attribute.get(), type.get(), text.data()) < 0) return {};
  return text.substr(0, text.find('\0'));
}

herr_t collect_references(hid_t root, const char* name, const H5O_info_t* info, void* out) {
  if (info->type != H5O_TYPE_DATASET) return 0;
  const H5Handle dataset(H5Dopen2(root, name, H5P_DEFAULT), H5Dclose);
  if (!dataset.ok()) return 0;
  for (const char* attribute : kReferringAttributes) {
    std::string text = text_attribute(dataset.get(), attribute);
    if (!text.empty()) static_cast<std::vector<Reference>*>(out)->push_back({name, attribute, std::move(text)});
  }
  return 0;
}

herr_t visit(hid_t root, const char* name, const H5O_info_t* info, void* out) {
  if (info->type != H5O_TYPE_DATASET) return 0;
  auto& listing = *static_cast<Listing*>(out);
  const H5Handle dataset(H5Dopen2(root, name, H5P_DEFAULT), H5Dclose);
  if (!dataset.ok()) return 0;
  const H5Handle type(H5Dget_type(dataset.get()), H5Tclose);
  const H5Handle space(H5Dget_space(dataset.get()), H5Sclose);
  if (!h5_element(type.get()) || H5Sget_simple_extent_type(space.get()) == H5S_NULL) return 0;
  const bool scale = text_attribute(dataset.get(), "CLASS") == "DIMENSION_SCALE";
  // netCDF stores dimensions without coordinates as empty datasets with this name.
  if (scale && text_attribute(dataset.get(), "NAME").rfind("This is a netCDF dimension but not", 0) == 0) return 0;
  listing.all.push_back(std::string("/") + name);
  if (!scale) listing.fields.push_back(listing.all.back());
  return 0;
}

Result<Listing> list_file(const std::string& path, hid_t file, std::string& detail) {
  Listing listing;
  if (H5Ovisit(file, H5_INDEX_CRT_ORDER, H5_ITER_INC, visit, &listing) < 0)
    return fail(detail, StatusCode::io_error, "HDF5 cannot list " + path + ": " + h5_error() + ".");
  return listing;
}

Result<std::string> choose(const std::string& path, hid_t file, const std::string& asked, std::string& detail) {
  if (!asked.empty()) return asked.front() == '/' ? asked : "/" + asked;
  QUERN_ASSIGN_OR_RETURN(const Listing listing, list_file(path, file, detail));
  return only_name(path, listing.fields.empty() ? listing.all : listing.fields, detail);
}

Status check_filters(const std::string& what, hid_t plist, std::string& detail) {
  const int count = H5Pget_layout(plist) == H5D_CHUNKED ? H5Pget_nfilters(plist) : 0;
  for (int i = 0; i < count; ++i) {
    std::array<char, 64> name{};
    unsigned flags = 0;
    std::size_t values = 0;
    const H5Z_filter_t filter = H5Pget_filter2(plist, static_cast<unsigned>(i), &flags, &values, nullptr,
                                               name.size() - 1, name.data(), nullptr);
    if (H5Zfilter_avail(filter) > 0) continue;
    H5Eclear2(H5E_DEFAULT);
    return fail(detail, StatusCode::unsupported,
                what + " is stored with the HDF5 filter " + std::to_string(filter) +
                    (name[0] != '\0' ? " (" + std::string(name.data()) + ")" : "") +
                    ", which is not installed; install it and set HDF5_PLUGIN_PATH to its folder.");
  }
  return {};
}

// The extents HDF5 sees, which are also noted as largest extents and chunks.
Result<Shape> read_layout(const std::string& what, hid_t dataset, hid_t plist, FileNotes& notes, std::string& detail) {
  const H5Handle space(H5Dget_space(dataset), H5Sclose);
  if (H5Sget_simple_extent_type(space.get()) == H5S_NULL)
    return fail(detail, StatusCode::unsupported, what + " has no data at all (its HDF5 dataspace is null).");
  const int rank = H5Sget_simple_extent_ndims(space.get());
  if (rank < 0 || rank > static_cast<int>(kMaxRank))
    return fail(
        detail, StatusCode::invalid_shape,
        what + " has " + std::to_string(rank) + " axes; at most " + std::to_string(kMaxRank) + " are possible.");
  const auto axes = static_cast<std::size_t>(rank);
  std::array<hsize_t, kMaxRank> dims{};
  std::array<hsize_t, kMaxRank> most{};
  H5Sget_simple_extent_dims(space.get(), dims.data(), most.data());
  if (H5Pget_layout(plist) == H5D_CHUNKED) {
    std::array<hsize_t, kMaxRank> chunk{};
    H5Pget_chunk(plist, rank, chunk.data());
    notes.chunks.assign(chunk.begin(), chunk.begin() + rank);
    if (!std::equal(dims.begin(), dims.begin() + rank, most.begin()))
      for (std::size_t a = 0; a < axes; ++a)
        notes.max_shape.push_back(most[a] == H5S_UNLIMITED ? std::nullopt : std::optional<std::uint64_t>(most[a]));
  }
  std::array<std::uint64_t, kMaxRank> extents{};
  std::copy(dims.begin(), dims.end(), extents.begin());
  auto shape = Shape::make({extents.data(), axes});
  if (!shape.ok()) return fail(detail, StatusCode::invalid_shape, what + ": " + shape.status().text() + ".");
  return shape;
}

void read_fill_value(hid_t plist, const H5Element& element, ArrayMeta& meta, FileNotes& notes) {
  H5D_fill_value_t state = H5D_FILL_VALUE_UNDEFINED;
  std::array<std::uint8_t, 16> value{};
  if (H5Pfill_value_defined(plist, &state) < 0 || state != H5D_FILL_VALUE_USER_DEFINED ||
      H5Pget_fill_value(plist, element.memory_type.get(), value.data()) < 0)
    return;
  Attribute fill = number_attribute("fill_value", element.dtype, load_bits(value.data(), element.dtype));
  if (!element.complex_names.empty()) {
    fill.bits.push_back(load_bits(value.data() + dtype_bytes(element.dtype), element.dtype));
    fill.shape = {2};
  }
  // Parts of different value are no fill value of single elements.
  if (fill.bits.front() == fill.bits.back()) add_fill_bits(fill.bits.front(), meta);
  notes.fill_value = fill;
}

// A file that netCDF wrote: it has set the fill value of every variable that has none of its own.
bool is_from_netcdf(hid_t file, hid_t dataset) {
  return H5Aexists(file, "_NCProperties") > 0 || H5Aexists(dataset, "_Netcdf4Dimid") > 0 ||
         H5Aexists(dataset, "DIMENSION_LIST") > 0;
}

// The fill value that netCDF gave a variable of bytes without one of its own is an ordinary value.
void drop_default_fill(bool from_netcdf, ArrayMeta& meta, const FileNotes& notes) {
  if (!from_netcdf || dtype_bytes(meta.dtype) != 1 || find_attribute(notes.attributes, "_FillValue") != nullptr) return;
  const std::uint64_t default_fill = meta.dtype == DType::i8 ? 0x81 : 0xff;
  std::erase(meta.fill_bits, default_fill);
}

// Slabs cross chunks: without a cache that holds a row of chunks each chunk would be unpacked many times.
H5Handle access_with_cache(const Shape& shape, const std::vector<std::uint64_t>& chunks, std::size_t item_bytes) {
  H5Handle access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
  if (chunks.empty() || shape.rank() == 0) return access;
  std::uint64_t bytes = chunks[0] * item_bytes;
  for (std::size_t a = 1; a < shape.rank() && bytes < kLargestCache; ++a)
    bytes *= (shape[a] + chunks[a] - 1) / chunks[a] * chunks[a];
  const std::size_t cache = std::clamp<std::size_t>(bytes, kSmallestCache, kLargestCache);
  H5Pset_chunk_cache(access.get(), kCacheSlots, cache, 1.0);
  return access;
}

class Hdf5Reader final : public SlabReader {
 public:
  Hdf5Reader(ArrayMeta meta, const Shape& items, H5Handle file, H5Handle dataset, H5Element element)
      : SlabReader(std::move(meta), items, element.item_bytes()),
        file_(std::move(file)),
        dataset_(std::move(dataset)),
        element_(std::move(element)),
        space_(H5Dget_space(dataset_.get()), H5Sclose) {}

 protected:
  Status read_slab(const Slab& slab, void* out) override {
    const H5Quiet quiet;
    const hsize_t elems = slab.elems;
    const H5Handle memory(H5Screate_simple(1, &elems, nullptr), H5Sclose);
    if (!h5_select(space_.get(), slab) ||
        H5Dread(dataset_.get(), element_.memory_type.get(), memory.get(), space_.get(), H5P_DEFAULT, out) < 0) {
      H5Eclear2(H5E_DEFAULT);
      return {StatusCode::io_error, "HDF5 cannot read the dataset from row {0} on; the file may be damaged",
              static_cast<std::int64_t>(slab.rank == 0 ? 0 : slab.start[0])};
    }
    return {};
  }

 private:
  H5Handle file_;
  H5Handle dataset_;
  H5Element element_;
  H5Handle space_;
};

}  // namespace

Result<std::vector<std::string>> list_hdf5(const std::string& path, std::string& detail) {
  const H5Quiet quiet;
  QUERN_ASSIGN_OR_RETURN(const H5Handle file, open_file(path, detail));
  QUERN_ASSIGN_OR_RETURN(Listing listing, list_file(path, file.get(), detail));
  return std::move(listing.all);
}

Result<std::unique_ptr<ArrayReader>> open_hdf5(const std::string& path, const OpenOptions& options,
                                               std::string& detail) {
  const H5Quiet quiet;
  QUERN_ASSIGN_OR_RETURN(H5Handle file, open_file(path, detail));
  QUERN_ASSIGN_OR_RETURN(const std::string name, choose(path, file.get(), options.dataset, detail));
  const std::string what = path + ": the dataset " + name;
  H5Handle dataset(H5Dopen2(file.get(), name.c_str(), H5P_DEFAULT), H5Dclose);
  if (!dataset.ok())
    return fail(detail, StatusCode::invalid_argument,
                path + " has no dataset " + name + " that can be opened (" + h5_error() + "); list its arrays first.");
  const H5Handle type(H5Dget_type(dataset.get()), H5Tclose);
  auto element = h5_element(type.get());
  if (!element || !element->memory_type.ok())
    return fail(detail, StatusCode::unsupported, what + " holds no plain numbers; choose a numeric one.");
  const H5Handle plist(H5Dget_create_plist(dataset.get()), H5Pclose);
  QUERN_RETURN_IF_ERROR(check_filters(what, plist.get(), detail));

  FileNotes notes;
  notes.kind = "hdf5";
  notes.dataset = name;
  notes.complex_names = element->complex_names;
  QUERN_ASSIGN_OR_RETURN(const Shape items, read_layout(what, dataset.get(), plist.get(), notes, detail));
  ArrayMeta meta;
  meta.dtype = element->dtype;
  meta.shape = items;
  meta.is_complex = !element->complex_names.empty();
  if (meta.is_complex) {
    std::vector<std::uint64_t> extents(items.extents().begin(), items.extents().end());
    extents.push_back(2);
    auto shape = Shape::make(extents);
    if (!shape.ok()) return fail(detail, StatusCode::invalid_shape, what + ": " + shape.status().text() + ".");
    meta.shape = *shape;
  }
  read_fill_value(plist.get(), *element, meta, notes);
  h5_read_attributes(dataset.get(), notes);
  drop_default_fill(is_from_netcdf(file.get(), dataset.get()), meta, notes);
  H5Eclear2(H5E_DEFAULT);
  // Fill values are declared in the stored type; the same bits mean the same value when it is read as unsigned.
  add_fill_attributes(notes.attributes, meta);
  if (says_unsigned(notes.attributes)) {
    meta.dtype = with_sign(element->dtype, false);
    meta.unsigned_in_signed = meta.dtype != element->dtype;
  }
  read_conventions(notes.attributes, meta);
  if (options.find_role) {
    std::vector<Reference> references;
    H5Ovisit(file.get(), H5_INDEX_NAME, H5_ITER_INC, collect_references, &references);
    const bool is_scale = text_attribute(dataset.get(), "CLASS") == "DIMENSION_SCALE";
    meta.role = role_of(name, is_scale, notes.attributes, references);
  }
  meta.attributes_json = to_json(notes);
  QUERN_RETURN_IF_ERROR(check_asked(what, meta, options, detail));

  const H5Handle access = access_with_cache(items, notes.chunks, element->item_bytes());
  dataset = H5Handle(H5Dopen2(file.get(), name.c_str(), access.get()), H5Dclose);
  if (!dataset.ok()) return fail(detail, StatusCode::io_error, "HDF5 cannot open " + what + ": " + h5_error() + ".");
  return std::unique_ptr<ArrayReader>(
      std::make_unique<Hdf5Reader>(std::move(meta), items, std::move(file), std::move(dataset), std::move(*element)));
}

}  // namespace quern::io
