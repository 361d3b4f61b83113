// HDF5 types by their layout.
#include "bindings/hdf5/element_type.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "bindings/hdf5/problem.h"

namespace quern::hdf5 {
namespace {

struct KnownType {
  std::uint32_t dtype;
  std::size_t bytes;
  const char* name;
};
constexpr std::array<KnownType, 12> kTypes{{{QUERN_F16, 2, "f16"},
                                            {QUERN_BF16, 2, "bf16"},
                                            {QUERN_F32, 4, "f32"},
                                            {QUERN_F64, 8, "f64"},
                                            {QUERN_I8, 1, "i8"},
                                            {QUERN_I16, 2, "i16"},
                                            {QUERN_I32, 4, "i32"},
                                            {QUERN_I64, 8, "i64"},
                                            {QUERN_U8, 1, "u8"},
                                            {QUERN_U16, 2, "u16"},
                                            {QUERN_U32, 4, "u32"},
                                            {QUERN_U64, 8, "u64"}}};

struct FloatLayout {
  quern_dtype dtype;
  std::size_t exponent_bits;
  std::size_t mantissa_bits;
  std::size_t bias;
};
constexpr std::array<FloatLayout, 4> kFloats{
    {{QUERN_F16, 5, 10, 15}, {QUERN_BF16, 8, 7, 127}, {QUERN_F32, 8, 23, 127}, {QUERN_F64, 11, 52, 1023}}};

const KnownType* find_type(std::uint32_t dtype) {
  const auto* found = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& t) { return t.dtype == dtype; });
  return found == kTypes.end() ? nullptr : found;
}

const char* class_name(H5T_class_t type_class) {
  switch (type_class) {
    case H5T_TIME: return "times";
    case H5T_STRING: return "strings";
    case H5T_BITFIELD: return "bit fields";
    case H5T_OPAQUE: return "opaque bytes";
    case H5T_COMPOUND: return "compounds (records)";
    case H5T_REFERENCE: return "references";
    case H5T_ENUM: return "enumerations";
    case H5T_VLEN: return "variable-length sequences";
    case H5T_ARRAY: return "arrays";
    default: return "of a class this filter does not know";
  }
}

[[noreturn]] void refuse(const std::string& what) {
  throw Problem(Trouble::dataset,
                "quern compresses integers of 1, 2, 4 or 8 bytes and binary16, bfloat16, binary32 "
                "and binary64 numbers; this dataset's elements are " +
                    what);
}

/// Bits the number has, when they fill its bytes from the first to the last; else refuses.
std::size_t full_precision(hid_t type) {
  const std::size_t bytes = H5Tget_size(type);
  if (H5Tget_precision(type) != 8 * bytes || H5Tget_offset(type) != 0)
    refuse("numbers of " + std::to_string(H5Tget_precision(type)) + " bits in " + std::to_string(bytes) + " bytes");
  return 8 * bytes;
}

quern_dtype float_type(hid_t type) {
  const std::size_t bits = full_precision(type);
  std::size_t sign = 0, exponent_at = 0, exponent_bits = 0, mantissa_at = 0, mantissa_bits = 0;
  if (H5Tget_fields(type, &sign, &exponent_at, &exponent_bits, &mantissa_at, &mantissa_bits) >= 0 &&
      H5Tget_norm(type) == H5T_NORM_IMPLIED && mantissa_at == 0 && exponent_at == mantissa_bits && sign == bits - 1) {
    for (const FloatLayout& f : kFloats)
      if (1 + f.exponent_bits + f.mantissa_bits == bits && f.exponent_bits == exponent_bits &&
          f.mantissa_bits == mantissa_bits && f.bias == H5Tget_ebias(type))
        return f.dtype;
  }
  refuse("floating-point numbers of " + std::to_string(bits / 8) + " bytes in another format");
}

quern_dtype integer_type(hid_t type) {
  const bool is_signed = H5Tget_sign(type) != H5T_SGN_NONE;
  switch (full_precision(type)) {
    case 8: return is_signed ? QUERN_I8 : QUERN_U8;
    case 16: return is_signed ? QUERN_I16 : QUERN_U16;
    case 32: return is_signed ? QUERN_I32 : QUERN_U32;
    case 64: return is_signed ? QUERN_I64 : QUERN_U64;
    default: refuse("integers of " + std::to_string(H5Tget_size(type)) + " bytes");
  }
}

}  // namespace

std::size_t dtype_bytes(std::uint32_t dtype) {
  const KnownType* known = find_type(dtype);
  return known == nullptr ? 0 : known->bytes;
}

const char* dtype_name(std::uint32_t dtype) {
  const KnownType* known = find_type(dtype);
  return known == nullptr ? "no element type" : known->name;
}

ElementType element_type(hid_t type) {
  ElementType out;
  const H5T_class_t type_class = H5Tget_class(type);
  if (type_class == H5T_FLOAT) {
    out.dtype = float_type(type);
  } else if (type_class == H5T_INTEGER) {
    out.dtype = integer_type(type);
  } else {
    refuse(class_name(type_class));
  }
  if (H5Tget_size(type) == 1) return out;
  switch (H5Tget_order(type)) {
    case H5T_ORDER_LE: break;
    case H5T_ORDER_BE: out.big_endian = true; break;
    default: refuse("in VAX or mixed byte order");
  }
  return out;
}

bool needs_swap(bool big_endian) { return big_endian != (std::endian::native == std::endian::big); }

void swap_elements(void* data, std::size_t elems, std::size_t element_bytes) {
  auto* byte = static_cast<std::uint8_t*>(data);
  for (std::size_t i = 0; i < elems; ++i, byte += element_bytes) std::reverse(byte, byte + element_bytes);
}

}  // namespace quern::hdf5
