// Words 16 and on of the filter; docs/hdf5.md has the table.
#include "cli/h5/missing.h"

#include "cli/h5/boxes.h"
#include "cli/h5/file.h"

namespace quern::cli {
namespace {

constexpr unsigned kMissingFlag = 0x400;
constexpr std::size_t kFirstMissingWord = 16;

bool is_nan_bits(std::uint64_t bits, DType dtype) {
  if (dtype == DType::f64) return (bits & ~(UINT64_C(1) << 63)) > UINT64_C(0x7FF) << 52;
  if (dtype == DType::f32) return (bits & 0x7FFFFFFF) > 0x7F800000;
  return false;
}

/// The dataset's own fill value as a pattern of an element; nothing when none was set.
std::optional<std::uint64_t> fill_bits(hid_t dcpl, hid_t type) {
  H5D_fill_value_t status = H5D_FILL_VALUE_UNDEFINED;
  if (H5Pfill_value_defined(dcpl, &status) < 0 || status != H5D_FILL_VALUE_USER_DEFINED) return std::nullopt;
  const H5Id machine(h5_machine_type(type), H5Tclose);
  std::uint64_t bits = 0;
  if (H5Tget_size(machine.get()) > sizeof bits || H5Pget_fill_value(dcpl, machine.get(), &bits) < 0)
    return std::nullopt;
  return bits;
}

}  // namespace

Vector<std::uint64_t> h5_other_missing(hid_t dcpl, hid_t type, const InputArray& array) {
  Vector<std::uint64_t> out = array.fill_bits;
  const auto fill = fill_bits(dcpl, type);
  std::erase_if(out, [&](std::uint64_t bits) { return is_nan_bits(bits, array.meta.dtype) || bits == fill; });
  return out;
}

void declare_missing(const Vector<std::uint64_t>& values, FilterWords& words) {
  if (values.empty()) return;
  words[0] |= kMissingFlag;
  words.resize(kFirstMissingWord, 0);
  for (const std::uint64_t bits : values) {
    words.push_back(static_cast<unsigned>(bits >> 32));
    words.push_back(static_cast<unsigned>(bits & 0xFFFFFFFF));
  }
}

}  // namespace quern::cli
