// Attributes of HDF5 objects: numbers and texts, one value or an array.
#include <algorithm>
#include <cstring>

#include "libcompress/io/library/hdf5_common.h"
#include "libcompress/io/number.h"

namespace quern::io {
namespace {

// What netCDF keeps in HDF5 attributes for its own bookkeeping; wrong in any other file.
bool is_bookkeeping(const std::string& name) {
  for (const char* known :
       {"DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_NCProperties", "_nc3_strict"})
    if (name == known) return true;
  return false;
}

std::optional<std::uint64_t> extents_of(hid_t space, std::vector<std::uint64_t>& extents) {
  const H5S_class_t kind = H5Sget_simple_extent_type(space);
  if (kind != H5S_SCALAR && kind != H5S_SIMPLE) return std::nullopt;
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank < 0 || rank > static_cast<int>(kMaxRank)) return std::nullopt;
  std::array<hsize_t, kMaxRank> dims{};
  H5Sget_simple_extent_dims(space, dims.data(), nullptr);
  std::uint64_t count = 1;
  for (int a = 0; a < rank; ++a) {
    extents.push_back(dims[static_cast<std::size_t>(a)]);
    const auto product = checked_multiply(count, extents.back());
    if (!product) return std::nullopt;
    count = *product;
  }
  return count;
}

bool read_numbers(hid_t attribute, DType dtype, std::uint64_t count, Attribute& out) {
  const H5Handle memory = h5_native_type(dtype);
  std::vector<std::uint8_t> bytes(count * dtype_bytes(dtype));
  if (count != 0 && H5Aread(attribute, memory.get(), bytes.data()) < 0) return false;
  out.dtype = dtype;
  for (std::uint64_t i = 0; i < count; ++i) out.bits.push_back(load_bits(bytes.data() + i * dtype_bytes(dtype), dtype));
  return true;
}

// Fixed-size texts end at the first zero, or where the padding of spaces begins.
std::string trimmed(const char* text, std::size_t size, H5T_str_t padding) {
  if (padding == H5T_STR_NULLTERM) return std::string(text, strnlen(text, size));
  const char pad = padding == H5T_STR_SPACEPAD ? ' ' : '\0';
  while (size > 0 && text[size - 1] == pad) --size;
  return std::string(text, size);
}

bool read_texts(hid_t attribute, hid_t type, hid_t space, std::uint64_t count, Attribute& out) {
  out.utf8 = H5Tget_cset(type) == H5T_CSET_UTF8;
  if (H5Tis_variable_str(type) > 0) {
    out.type = Attribute::Type::strings;
    const H5Handle memory(H5Tcopy(type), H5Tclose);
    std::vector<char*> pointers(count, nullptr);
    if (count != 0 && H5Aread(attribute, memory.get(), pointers.data()) < 0) return false;
    for (const char* p : pointers) out.texts.emplace_back(p == nullptr ? "" : p);
    if (count != 0) H5Dvlen_reclaim(memory.get(), space, H5P_DEFAULT, pointers.data());
    return true;
  }
  out.type = Attribute::Type::chars;
  const std::size_t size = H5Tget_size(type);
  std::vector<char> bytes(count * size);
  if (count != 0 && H5Aread(attribute, type, bytes.data()) < 0) return false;
  for (std::uint64_t i = 0; i < count; ++i)
    out.texts.push_back(trimmed(bytes.data() + i * size, size, H5Tget_strpad(type)));
  return true;
}

std::optional<Attribute> read_attribute(hid_t object, const char* name) {
  const H5Handle attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose);
  if (!attribute.ok()) return std::nullopt;
  const H5Handle type(H5Aget_type(attribute.get()), H5Tclose);
  const H5Handle space(H5Aget_space(attribute.get()), H5Sclose);
  Attribute out;
  out.name = name;
  const auto count = extents_of(space.get(), out.shape);
  if (!count) return std::nullopt;
  const auto bytes = checked_multiply(*count, H5Tget_size(type.get()));
  if (!bytes || *bytes > kMaxAttributeBytes) return std::nullopt;
  if (H5Tget_class(type.get()) == H5T_STRING)
    return read_texts(attribute.get(), type.get(), space.get(), *count, out) ? std::optional(out) : std::nullopt;
  const auto dtype = h5_number_type(type.get());
  if (!dtype || !read_numbers(attribute.get(), *dtype, *count, out)) return std::nullopt;
  return out;
}

herr_t collect_name(hid_t /*object*/, const char* name, const H5A_info_t* /*info*/, void* out) {
  static_cast<std::vector<std::string>*>(out)->emplace_back(name);
  return 0;
}

H5Handle text_type(const Attribute& a) {
  H5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  std::size_t size = 1;
  for (const std::string& t : a.texts) size = std::max(size, t.size());
  H5Tset_size(type.get(), a.type == Attribute::Type::strings ? H5T_VARIABLE : size);
  if (a.type == Attribute::Type::chars) H5Tset_strpad(type.get(), H5T_STR_NULLPAD);
  if (a.utf8) H5Tset_cset(type.get(), H5T_CSET_UTF8);
  return type;
}

std::vector<std::uint8_t> packed_values(const Attribute& a, std::size_t item) {
  std::vector<std::uint8_t> bytes(a.count() * item);
  for (std::size_t i = 0; i < a.count(); ++i) {
    std::uint8_t* at = bytes.data() + i * item;
    if (a.type == Attribute::Type::number) {
      store_bits(at, a.bits[i], a.dtype);
    } else if (a.type == Attribute::Type::chars) {
      std::memcpy(at, a.texts[i].data(), a.texts[i].size());
    } else {
      const char* pointer = a.texts[i].c_str();
      std::memcpy(at, &pointer, sizeof pointer);
    }
  }
  return bytes;
}

}  // namespace

void h5_read_attributes(hid_t object, FileNotes& notes) {
  std::vector<std::string> names;
  hsize_t at = 0;
  // Creation order where the file keeps it, else by name.
  if (H5Aiterate2(object, H5_INDEX_CRT_ORDER, H5_ITER_INC, &at, collect_name, &names) < 0) {
    names.clear();
    at = 0;
    H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &at, collect_name, &names);
  }
  for (const std::string& name : names) {
    auto attribute = is_bookkeeping(name) ? std::nullopt : read_attribute(object, name.c_str());
    if (attribute) {
      notes.attributes.push_back(std::move(*attribute));
    } else {
      notes.skipped.push_back(name);
    }
  }
  const Attribute* role = find_attribute(notes.attributes, "CLASS");
  if (role == nullptr || role->texts != std::vector<std::string>{"DIMENSION_SCALE"}) return;
  // A copy of the array is no dimension scale of the new file.
  std::erase_if(notes.attributes, [](const Attribute& a) { return a.name == "CLASS" || a.name == "NAME"; });
  notes.skipped.insert(notes.skipped.end(), {"CLASS", "NAME"});
}

bool h5_write_attribute(hid_t object, const Attribute& a) {
  const H5Handle type = a.type == Attribute::Type::number ? h5_native_type(a.dtype) : text_type(a);
  const std::vector<hsize_t> dims(a.shape.begin(), a.shape.end());
  const H5Handle space(
      dims.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr),
      H5Sclose);
  const H5Handle attribute(H5Acreate2(object, a.name.c_str(), type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT),
                           H5Aclose);
  if (!attribute.ok()) return false;
  if (a.count() == 0) return true;
  const auto bytes = packed_values(a, H5Tget_size(type.get()));
  return H5Awrite(attribute.get(), type.get(), bytes.data()) >= 0;
}

}  // namespace quern::io
