// HDF5 element types and error texts.
#include "libcompress/io/library/hdf5_common.h"

#include <algorithm>
#include <array>
#include <bit>

namespace quern::io {
namespace {

struct FloatFields {
  std::size_t exponent_bits;
  std::size_t mantissa_bits;
  std::size_t bias;
};
constexpr FloatFields kHalf{5, 10, 15};
constexpr FloatFields kBrain{8, 7, 127};

H5Handle small_float_type(const FloatFields& f) {
  H5Handle type(H5Tcopy(H5T_NATIVE_FLOAT), H5Tclose);
  // Fields first, then the smaller size: HDF5 refuses fields that would stick out.
  const bool ok = H5Tset_fields(type.get(), f.exponent_bits + f.mantissa_bits, f.mantissa_bits, f.exponent_bits, 0,
                                f.mantissa_bits) >= 0 &&
                  H5Tset_precision(type.get(), 16) >= 0 && H5Tset_size(type.get(), 2) >= 0 &&
                  H5Tset_ebias(type.get(), f.bias) >= 0;
  if (!ok) return {};
  return type;
}

bool has_fields(hid_t type, const FloatFields& f) {
  std::size_t sign = 0;
  std::size_t exponent_at = 0;
  std::size_t exponent_bits = 0;
  std::size_t mantissa_at = 0;
  std::size_t mantissa_bits = 0;
  return H5Tget_fields(type, &sign, &exponent_at, &exponent_bits, &mantissa_at, &mantissa_bits) >= 0 &&
         exponent_bits == f.exponent_bits && mantissa_bits == f.mantissa_bits && H5Tget_ebias(type) == f.bias;
}

std::optional<DType> float_type(hid_t type) {
  const std::size_t bytes = H5Tget_size(type);
  if (bytes == 2 && has_fields(type, kBrain)) return DType::bf16;
  if (bytes == 2 && has_fields(type, kHalf)) return DType::f16;
  // Other formats of at most the size of a float or double fit into these without loss.
  if (bytes <= 4) return DType::f32;
  if (bytes <= 8) return DType::f64;
  return std::nullopt;
}

std::optional<DType> integer_type(hid_t type) {
  const bool is_signed = H5Tget_sign(type) != H5T_SGN_NONE;
  switch (H5Tget_size(type)) {
    case 1: return is_signed ? DType::i8 : DType::u8;
    case 2: return is_signed ? DType::i16 : DType::u16;
    case 3:
    case 4: return is_signed ? DType::i32 : DType::u32;
    case 5:
    case 6:
    case 7:
    case 8: return is_signed ? DType::i64 : DType::u64;
    default: return std::nullopt;
  }
}

std::string member_name(hid_t type, unsigned index) {
  char* name = H5Tget_member_name(type, index);
  const std::string out = name == nullptr ? "" : name;
  H5free_memory(name);
  return out;
}

herr_t keep_innermost(unsigned n, const H5E_error2_t* error, void* out) {
  if (n == 0 && error->desc != nullptr) *static_cast<std::string*>(out) = error->desc;
  return 0;
}

}  // namespace

void h5_prepare() {
  static const herr_t once = H5dont_atexit();
  static_cast<void>(once);
}

std::string hdf5_version() {
  h5_prepare();
  unsigned major = 0, minor = 0, release = 0;
  if (H5get_libversion(&major, &minor, &release) < 0) return "unknown";
  return std::to_string(major) + '.' + std::to_string(minor) + '.' + std::to_string(release);
}

bool h5_select(hid_t space, const Slab& slab) {
  if (slab.rank == 0) return true;
  std::array<hsize_t, kMaxRank> start{};
  std::array<hsize_t, kMaxRank> count{};
  std::copy(slab.start.begin(), slab.start.end(), start.begin());
  std::copy(slab.count.begin(), slab.count.end(), count.begin());
  return H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr) >= 0;
}

std::string h5_error() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, &text);
  H5Eclear2(H5E_DEFAULT);
  return text.empty() ? "HDF5 gives no reason" : text;
}

H5Handle h5_native_type(DType dtype) {
  switch (dtype) {
    case DType::f16: return small_float_type(kHalf);
    case DType::bf16: return small_float_type(kBrain);
    case DType::f32: return {H5Tcopy(H5T_NATIVE_FLOAT), H5Tclose};
    case DType::f64: return {H5Tcopy(H5T_NATIVE_DOUBLE), H5Tclose};
    case DType::i8: return {H5Tcopy(H5T_NATIVE_INT8), H5Tclose};
    case DType::i16: return {H5Tcopy(H5T_NATIVE_INT16), H5Tclose};
    case DType::i32: return {H5Tcopy(H5T_NATIVE_INT32), H5Tclose};
    case DType::i64: return {H5Tcopy(H5T_NATIVE_INT64), H5Tclose};
    case DType::u8: return {H5Tcopy(H5T_NATIVE_UINT8), H5Tclose};
    case DType::u16: return {H5Tcopy(H5T_NATIVE_UINT16), H5Tclose};
    case DType::u32: return {H5Tcopy(H5T_NATIVE_UINT32), H5Tclose};
    case DType::u64: return {H5Tcopy(H5T_NATIVE_UINT64), H5Tclose};
  }
  return {};
}

H5Handle h5_complex_type(DType dtype, const std::vector<std::string>& names) {
  const H5Handle part = h5_native_type(dtype);
  H5Handle type(H5Tcreate(H5T_COMPOUND, 2 * dtype_bytes(dtype)), H5Tclose);
  if (H5Tinsert(type.get(), names[0].c_str(), 0, part.get()) < 0 ||
      H5Tinsert(type.get(), names[1].c_str(), dtype_bytes(dtype), part.get()) < 0)
    return {};
  return type;
}

std::optional<DType> h5_number_type(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_FLOAT: return float_type(type);
    case H5T_INTEGER: return integer_type(type);
    default: return std::nullopt;
  }
}

std::optional<H5Element> h5_element(hid_t type) {
  if (const auto number = h5_number_type(type)) return H5Element{*number, h5_native_type(*number), {}};
  if (H5Tget_class(type) != H5T_COMPOUND || H5Tget_nmembers(type) != 2) return std::nullopt;
  std::vector<std::string> names{member_name(type, 0), member_name(type, 1)};
  std::array<std::optional<DType>, 2> parts;
  for (unsigned m = 0; m < 2; ++m) {
    const H5Handle part(H5Tget_member_type(type, m), H5Tclose);
    parts[m] = h5_number_type(part.get());
  }
  if (!parts[0] || parts[0] != parts[1]) return std::nullopt;
  if (names[0].substr(0, 1) == "i" && names[1].substr(0, 1) == "r") std::swap(names[0], names[1]);
  const bool known = (names[0] == "r" && names[1] == "i") || (names[0] == "real" && names[1] == "imag");
  if (!known) return std::nullopt;
  return H5Element{*parts[0], h5_complex_type(*parts[0], names), names};
}

H5Handle h5_file_access() {
  H5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 12, 0))
  H5Pset_file_locking(access.get(), true, true);
#endif
  H5Pset_libver_bounds(access.get(), H5F_LIBVER_V18, H5F_LIBVER_LATEST);
  return access;
}

}  // namespace quern::io
