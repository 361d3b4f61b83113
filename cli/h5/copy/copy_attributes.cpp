// Attributes with their types, spaces and values.
#include "cli/h5/copy/copy_attributes.h"

namespace quern::cli {
namespace {

herr_t add_name(hid_t /*object*/, const char* name, const H5A_info_t* /*info*/, void* out) {
  static_cast<std::vector<std::string>*>(out)->emplace_back(name);
  return 0;
}

/// True when the object keeps the order in which its attributes were made.
bool keeps_order(hid_t object) {
  H5Id list;
  switch (H5Iget_type(object)) {
    case H5I_GROUP: list = H5Id(H5Gget_create_plist(object), H5Pclose); break;
    case H5I_DATASET: list = H5Id(H5Dget_create_plist(object), H5Pclose); break;
    case H5I_DATATYPE: list = H5Id(H5Tget_create_plist(object), H5Pclose); break;
    default: return false;
  }
  unsigned flags = 0;
  h5_check(H5Pget_attr_creation_order(list.get(), &flags), "describe an object");
  return (flags & H5P_CRT_ORDER_TRACKED) != 0;
}

H5Id open_attribute(hid_t object, const std::string& name) {
  H5Id out(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose);
  if (!out.ok()) h5_fail("open the attribute " + name);
  return out;
}

}  // namespace

std::vector<std::string> h5_attribute_names(hid_t object) {
  std::vector<std::string> out;
  hsize_t at = 0;
  h5_check(
      H5Aiterate2(object, keeps_order(object) ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME, H5_ITER_INC, &at, add_name, &out),
      "list attributes");
  return out;
}

H5AttributeValues::H5AttributeValues(hid_t attribute)
    : type_(H5Aget_type(attribute), H5Tclose), space_(H5Aget_space(attribute), H5Sclose) {
  const hssize_t count =
      H5Sget_simple_extent_type(space_.get()) == H5S_NULL ? 0 : H5Sget_simple_extent_npoints(space_.get());
  std::vector<unsigned char> bytes(static_cast<std::size_t>(count) * H5Tget_size(type_.get()));
  if (count > 0) h5_check(H5Aread(attribute, type_.get(), bytes.data()), "read an attribute");
  bytes_ = std::move(bytes);
  count_ = static_cast<std::size_t>(count);
}

H5AttributeValues::~H5AttributeValues() {
  if (count_ != 0) H5Dvlen_reclaim(type_.get(), space_.get(), H5P_DEFAULT, bytes_.data());
}

bool h5_copy_attribute(hid_t from, hid_t to, const std::string& name, H5TypeCopies& types) {
  const H5Id source = open_attribute(from, name);
  H5AttributeValues values(source.get());
  const H5Id list(H5Aget_create_plist(source.get()), H5Pclose);
  const H5Id made(H5Acreate2(to, name.c_str(), types.type_for(values.type()), values.space(), list.get(), H5P_DEFAULT),
                  H5Aclose);
  if (!made.ok()) h5_fail("make the attribute " + name);
  if (h5_has_references(values.type())) return values.count() == 0;
  if (values.count() != 0) h5_check(H5Awrite(made.get(), values.type(), values.data()), "write an attribute");
  return true;
}

void h5_write_references(const H5Pair& pair, hid_t from, hid_t to, const std::string& name) {
  const H5Id source = open_attribute(from, name);
  const H5Id made = open_attribute(to, name);
  H5AttributeValues values(source.get());
  h5_translate(pair, values.type(), values.data(), values.count());
  h5_check(H5Awrite(made.get(), values.type(), values.data()), "write an attribute of references");
}

}  // namespace quern::cli
