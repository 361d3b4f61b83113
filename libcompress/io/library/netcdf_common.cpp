// netCDF element types, names and attributes.
#include "libcompress/io/library/netcdf_common.h"

#include <array>
#include <cstring>

#include "libcompress/io/number.h"
#ifdef QUERN_HAVE_HDF5
#include "libcompress/io/library/hdf5_common.h"
#endif

namespace quern::io {
namespace {

struct TypePair {
  DType dtype;
  nc_type type;
};
constexpr std::array<TypePair, 10> kTypes{{{DType::f32, NC_FLOAT},
                                           {DType::f64, NC_DOUBLE},
                                           {DType::i8, NC_BYTE},
                                           {DType::i16, NC_SHORT},
                                           {DType::i32, NC_INT},
                                           {DType::i64, NC_INT64},
                                           {DType::u8, NC_UBYTE},
                                           {DType::u16, NC_USHORT},
                                           {DType::u32, NC_UINT},
                                           {DType::u64, NC_UINT64}}};

bool read_numbers(int group, int variable, DType dtype, std::size_t count, Attribute& out) {
  std::vector<std::uint8_t> bytes(count * dtype_bytes(dtype));
  if (count != 0 && nc_get_att(group, variable, out.name.c_str(), bytes.data()) != NC_NOERR) return false;
  out.dtype = dtype;
  for (std::size_t i = 0; i < count; ++i) out.bits.push_back(load_bits(bytes.data() + i * dtype_bytes(dtype), dtype));
  if (count != 1) out.shape = {count};
  return true;
}

bool read_strings(int group, int variable, std::size_t count, Attribute& out) {
  std::vector<char*> pointers(count, nullptr);
  if (count != 0 && nc_get_att_string(group, variable, out.name.c_str(), pointers.data()) != NC_NOERR) return false;
  out.type = Attribute::Type::strings;
  for (const char* p : pointers) out.texts.emplace_back(p == nullptr ? "" : p);
  if (count != 0) nc_free_string(count, pointers.data());
  if (count != 1) out.shape = {count};
  return true;
}

bool read_attribute(int group, int variable, Attribute& out) {
  nc_type type = NC_NAT;
  std::size_t count = 0;
  if (nc_inq_att(group, variable, out.name.c_str(), &type, &count) != NC_NOERR || count > kMaxAttributeBytes / 8)
    return false;
  if (type == NC_STRING) return read_strings(group, variable, count, out);
  if (type == NC_CHAR) {
    std::string text(count, '\0');
    if (count != 0 && nc_get_att_text(group, variable, out.name.c_str(), text.data()) != NC_NOERR) return false;
    out.type = Attribute::Type::chars;
    out.texts = {std::move(text)};
    return true;
  }
  const auto dtype = nc_element(type);
  return dtype && read_numbers(group, variable, *dtype, count, out);
}

int write_numbers(int group, int variable, const Attribute& a) {
  const DType dtype = nc_type_of(a.dtype) ? a.dtype : DType::f32;
  std::vector<std::uint8_t> bytes(a.bits.size() * dtype_bytes(dtype));
  for (std::size_t i = 0; i < a.bits.size(); ++i)
    store_bits(bytes.data() + i * dtype_bytes(dtype), convert_bits(a.bits[i], a.dtype, dtype).value_or(0), dtype);
  return nc_put_att(group, variable, a.name.c_str(), *nc_type_of(dtype), a.bits.size(), bytes.data());
}

}  // namespace

void nc_prepare() {
#ifdef QUERN_HAVE_HDF5
  h5_prepare();
#endif
}

// netCDF's text goes on with the date it was built.
std::string netcdf_version() {
  nc_prepare();
  const std::string text = nc_inq_libvers();
  return text.substr(0, text.find(' '));
}

std::optional<DType> nc_element(nc_type type) {
  for (const TypePair& t : kTypes)
    if (t.type == type) return t.dtype;
  return std::nullopt;
}

std::optional<nc_type> nc_type_of(DType dtype) {
  for (const TypePair& t : kTypes)
    if (t.dtype == dtype) return t.type;
  return std::nullopt;
}

void nc_read_attributes(int group, int variable, std::vector<Attribute>& out, std::vector<std::string>& skipped) {
  int count = 0;
  if (variable == NC_GLOBAL) {
    nc_inq_natts(group, &count);
  } else {
    nc_inq_varnatts(group, variable, &count);
  }
  for (int i = 0; i < count; ++i) {
    std::array<char, NC_MAX_NAME + 1> name{};
    if (nc_inq_attname(group, variable, i, name.data()) != NC_NOERR) continue;
    Attribute attribute;
    attribute.name = name.data();
    if (read_attribute(group, variable, attribute)) {
      out.push_back(std::move(attribute));
    } else {
      skipped.emplace_back(name.data());
    }
  }
}

int nc_write_attribute(int group, int variable, const Attribute& a) {
  if (a.type == Attribute::Type::number) return write_numbers(group, variable, a);
  if (a.type == Attribute::Type::chars && a.texts.size() == 1)
    return nc_put_att_text(group, variable, a.name.c_str(), a.texts[0].size(), a.texts[0].data());
  std::vector<const char*> pointers;
  for (const std::string& t : a.texts) pointers.push_back(t.c_str());
  return nc_put_att_string(group, variable, a.name.c_str(), pointers.size(), pointers.data());
}

NcName nc_split(const std::string& path) {
  std::size_t begin = 0;
  while (begin < path.size() && path[begin] == '/') ++begin;
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos || slash < begin) return {"", path.substr(begin)};
  return {path.substr(begin, slash - begin), path.substr(slash + 1)};
}

}  // namespace quern::io
