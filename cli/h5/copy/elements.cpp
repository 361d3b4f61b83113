// A walk through a type and an element side by side.
#include "cli/h5/copy/elements.h"

#include <array>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/h5/file.h"

namespace quern::cli {
namespace {

using Bytes = std::uint8_t;

/// True when equal elements have equal bytes.
bool is_flat(hid_t type) {
  return H5Tdetect_class(type, H5T_REFERENCE) <= 0 && H5Tdetect_class(type, H5T_VLEN) <= 0 &&
         H5Tdetect_class(type, H5T_STRING) <= 0;
}

bool holds_variable_texts(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_STRING: return H5Tis_variable_str(type) > 0;
    case H5T_ARRAY: {
      const H5Id base(H5Tget_super(type), H5Tclose);
      return holds_variable_texts(base.get());
    }
    case H5T_COMPOUND:
      for (int m = 0; m < H5Tget_nmembers(type); ++m) {
        const H5Id member(H5Tget_member_type(type, static_cast<unsigned>(m)), H5Tclose);
        if (holds_variable_texts(member.get())) return true;
      }
      return false;
    default: return false;
  }
}

bool is_region(hid_t type) { return H5Tequal(type, H5T_STD_REF_DSETREG) > 0; }

[[noreturn]] void refuse_reference() {
  fail(Exit::io, "the file has references of a kind that this HDF5 does not know; use a newer HDF5 library");
}

haddr_t object_address(const void* element) {
  hobj_ref_t reference = 0;
  std::memcpy(&reference, element, sizeof reference);
  return reference;
}

/// The address a reference has when it leads nowhere; both occur.
bool is_null(haddr_t address) { return address == 0 || address == HADDR_UNDEF; }

bool is_null_region(const void* element) {
  static const std::array<Bytes, sizeof(hdset_reg_ref_t)> zeros{};
  return std::memcmp(element, zeros.data(), zeros.size()) == 0;
}

struct Region {
  H5Id object;
  H5Id space;
};

/// The dataset and the selection a region reference leads to; ids that are not ok when it leads nowhere.
Region open_region(hid_t file, const void* element) {
  Region out;
  if (is_null_region(element)) return out;
  out.object = H5Id(H5Rdereference2(file, H5P_DEFAULT, H5R_DATASET_REGION, element), H5Oclose);
  if (out.object.ok()) out.space = H5Id(H5Rget_region(file, H5R_DATASET_REGION, element), H5Sclose);
  H5Eclear2(H5E_DEFAULT);
  return out;
}

void translate_region(const H5Pair& pair, void* element) {
  const Region region = open_region(pair.from, element);
  std::memset(element, 0, sizeof(hdset_reg_ref_t));
  if (!region.object.ok() || !region.space.ok()) return;
  const auto found = pair.addresses.find(h5_address(region.object.get()));
  if (found == pair.addresses.end()) return;
  const H5Id target = h5_open_at(pair.to, found->second);
  h5_check(H5Rcreate(element, target.get(), ".", H5R_DATASET_REGION, region.space.get()), "make a region reference");
}

void translate_object(const H5Pair& pair, void* element) {
  const auto found = pair.addresses.find(object_address(element));
  const hobj_ref_t reference = found == pair.addresses.end() ? 0 : found->second;
  std::memcpy(element, &reference, sizeof reference);
}

void translate_reference(const H5Pair& pair, hid_t type, Bytes* element) {
  if (is_region(type)) {
    translate_region(pair, element);
  } else if (H5Tequal(type, H5T_STD_REF_OBJ) > 0) {
    translate_object(pair, element);
  } else {
    refuse_reference();
  }
}

struct ArrayType {
  H5Id base;
  std::size_t bytes = 0;  ///< of one element of the base
  std::size_t count = 0;  ///< of elements in the array
};

ArrayType array_type(hid_t type) {
  ArrayType out{H5Id(H5Tget_super(type), H5Tclose)};
  out.bytes = H5Tget_size(out.base.get());
  out.count = H5Tget_size(type) / out.bytes;
  return out;
}

bool regions_equal(const H5Pair& pair, const void* a, const void* b) {
  const Region from = open_region(pair.from, a);
  const Region to = open_region(pair.to, b);
  if (!from.space.ok() || !to.space.ok()) return from.space.ok() == to.space.ok();
  const auto found = pair.addresses.find(h5_address(from.object.get()));
  if (found == pair.addresses.end() || found->second != h5_address(to.object.get())) return false;
  std::array<std::vector<unsigned char>, 2> coded;
  std::size_t i = 0;
  for (const H5Id* space : {&from.space, &to.space}) {
    std::size_t bytes = 0;
    h5_check(H5Sencode(space->get(), nullptr, &bytes), "describe a region");
    coded[i].resize(bytes);
    h5_check(H5Sencode(space->get(), coded[i++].data(), &bytes), "describe a region");
  }
  return coded[0] == coded[1];
}

bool references_equal(const H5Pair& pair, hid_t type, const Bytes* a, const Bytes* b) {
  if (is_region(type)) return regions_equal(pair, a, b);
  const haddr_t to = object_address(b);
  const auto found = pair.addresses.find(object_address(a));
  return found == pair.addresses.end() ? is_null(to) : found->second == to;
}

bool texts_equal(const Bytes* a, const Bytes* b) {
  std::array<const char*, 2> text{};
  std::memcpy(&text[0], a, sizeof text[0]);
  std::memcpy(&text[1], b, sizeof text[1]);
  if (text[0] == nullptr || text[1] == nullptr) return text[0] == text[1];
  return std::strcmp(text[0], text[1]) == 0;
}

bool sequences_equal(const H5Pair& pair, hid_t type, const Bytes* a, const Bytes* b) {
  hvl_t first{}, second{};
  std::memcpy(&first, a, sizeof first);
  std::memcpy(&second, b, sizeof second);
  if (first.len != second.len) return false;
  const H5Id base(H5Tget_super(type), H5Tclose);
  return h5_equal(pair, base.get(), first.p, second.p, first.len);
}

bool element_equal(const H5Pair& pair, hid_t type, const Bytes* a, const Bytes* b) {
  switch (H5Tget_class(type)) {
    case H5T_REFERENCE: return references_equal(pair, type, a, b);
    case H5T_VLEN: return sequences_equal(pair, type, a, b);
    case H5T_STRING:
      if (H5Tis_variable_str(type) > 0) return texts_equal(a, b);
      return std::memcmp(a, b, H5Tget_size(type)) == 0;
    case H5T_ARRAY: {
      const ArrayType array = array_type(type);
      return h5_equal(pair, array.base.get(), a, b, array.count);
    }
    case H5T_COMPOUND:
      for (int m = 0; m < H5Tget_nmembers(type); ++m) {
        const H5Id member(H5Tget_member_type(type, static_cast<unsigned>(m)), H5Tclose);
        const std::size_t at = H5Tget_member_offset(type, static_cast<unsigned>(m));
        if (!h5_equal(pair, member.get(), a + at, b + at, 1)) return false;
      }
      return true;
    default: return std::memcmp(a, b, H5Tget_size(type)) == 0;
  }
}

void translate_element(const H5Pair& pair, hid_t type, Bytes* element) {
  switch (H5Tget_class(type)) {
    case H5T_REFERENCE: translate_reference(pair, type, element); break;
    case H5T_VLEN: {
      hvl_t sequence{};
      std::memcpy(&sequence, element, sizeof sequence);
      const H5Id base(H5Tget_super(type), H5Tclose);
      h5_translate(pair, base.get(), sequence.p, sequence.len);
      break;
    }
    case H5T_ARRAY: {
      const ArrayType array = array_type(type);
      h5_translate(pair, array.base.get(), element, array.count);
      break;
    }
    case H5T_COMPOUND:
      for (int m = 0; m < H5Tget_nmembers(type); ++m) {
        const H5Id member(H5Tget_member_type(type, static_cast<unsigned>(m)), H5Tclose);
        h5_translate(pair, member.get(), element + H5Tget_member_offset(type, static_cast<unsigned>(m)), 1);
      }
      break;
    default: break;
  }
}

}  // namespace

bool h5_has_references(hid_t type) { return H5Tdetect_class(type, H5T_REFERENCE) > 0; }

bool h5_is_movable(hid_t type) {
  return !h5_has_references(type) && H5Tdetect_class(type, H5T_VLEN) <= 0 && !holds_variable_texts(type);
}

H5Reclaim::~H5Reclaim() {
  if (h5_is_movable(type_)) return;
  const H5Id space(H5Screate_simple(1, &elems_, nullptr), H5Sclose);
  H5Dvlen_reclaim(type_, space.get(), H5P_DEFAULT, data_);
}

void h5_translate(const H5Pair& pair, hid_t type, void* elements, std::size_t count) {
  if (!h5_has_references(type)) return;
  const std::size_t bytes = H5Tget_size(type);
  for (std::size_t i = 0; i < count; ++i) translate_element(pair, type, static_cast<Bytes*>(elements) + i * bytes);
}

bool h5_equal(const H5Pair& pair, hid_t type, const void* in_from, const void* in_to, std::size_t count) {
  const std::size_t bytes = H5Tget_size(type);
  if (count == 0) return true;
  if (is_flat(type)) return std::memcmp(in_from, in_to, bytes * count) == 0;
  for (std::size_t i = 0; i < count; ++i)
    if (!element_equal(pair, type, static_cast<const Bytes*>(in_from) + i * bytes,
                       static_cast<const Bytes*>(in_to) + i * bytes))
      return false;
  return true;
}

}  // namespace quern::cli
