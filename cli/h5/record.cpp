// Attributes about lossy compression.
#include "cli/h5/record.h"

#include <bit>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <quern/hdf5.h>

#include "cli/args/exit_codes.h"
#include "cli/h5/file.h"

namespace quern::cli {
namespace {

constexpr const char* kName = "lossy_compression";
constexpr const char* kKind = "lossy_compression_bound_kind";
constexpr const char* kBound = "lossy_compression_bound";
constexpr const char* kRequested = "lossy_compression_requested";
constexpr const char* kSoftware = "lossy_compression_software";
constexpr const char* kAccumulated = "lossy_compression_bound_accumulated";
constexpr const char* kAbsolute = "absolute";
constexpr const char* kPointwise = "pointwise relative";

/// Never below the exact sum or product.
double up(double value) { return std::nextafter(value, std::numeric_limits<double>::infinity()); }

std::optional<ErrorBound> bound_in_words(hid_t dataset, double scale) {
  const H5Id dcpl(H5Dget_create_plist(dataset), H5Pclose);
  if (!h5_uses_quern(dcpl.get())) return std::nullopt;
  const std::vector<unsigned> words = h5_words(dcpl.get());
  if (words.size() < QUERN_HDF5_REQUEST_WORDS) return std::nullopt;
  const double value = std::bit_cast<double>(std::uint64_t{words[3]} << 32 | words[4]);
  if (words[2] == QUERN_BOUND_ABS) return ErrorBound{BoundKind::abs, scale == 1 ? value : up(value * std::fabs(scale))};
  if (words[2] == QUERN_BOUND_PWREL) return ErrorBound{BoundKind::pwrel, value};
  return std::nullopt;
}

void write_text(hid_t dataset, const char* name, const std::string& text) {
  const H5Id type(H5Tcopy(H5T_C_S1), H5Tclose);
  h5_check(H5Tset_size(type.get(), text.size() + 1), "make a text");
  const H5Id space(H5Screate(H5S_SCALAR), H5Sclose);
  const H5Id made(H5Acreate2(dataset, name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (!made.ok()) h5_fail(std::string("make the attribute ") + name);
  h5_check(H5Awrite(made.get(), type.get(), text.c_str()), "write an attribute");
}

void write_number(hid_t dataset, const char* name, double value) {
  const hsize_t one = 1;
  const H5Id space(H5Screate_simple(1, &one, nullptr), H5Sclose);
  const H5Id made(H5Acreate2(dataset, name, H5T_IEEE_F64LE, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (!made.ok()) h5_fail(std::string("make the attribute ") + name);
  h5_check(H5Awrite(made.get(), H5T_NATIVE_DOUBLE, &value), "write an attribute");
}

}  // namespace

std::optional<LossyPast> h5_lossy_past(hid_t dataset, double scale) {
  const std::string kind = h5_text(dataset, kKind);
  std::optional<double> value = h5_number(dataset, kAccumulated);
  if (!value) value = h5_number(dataset, kBound);
  if (value && (kind == kAbsolute || kind == kPointwise))
    return LossyPast{{kind == kAbsolute ? BoundKind::abs : BoundKind::pwrel, *value}, h5_text(dataset, kRequested)};
  const auto bound = bound_in_words(dataset, scale);
  if (!bound) return std::nullopt;
  return LossyPast{*bound, {}};
}

ErrorBound accumulated(const ErrorBound& first, const ErrorBound& second, const std::string& path) {
  if (first.kind != second.kind)
    fail(Exit::usage,
         fmt::format("{}: was packed under {} before, and a bound of another kind does not add to it; give --{}", path,
                     first.kind == BoundKind::abs ? "an absolute bound" : "a pointwise relative bound",
                     bound_kind_name(first.kind)));
  const double sum = up(first.value + second.value);
  return {first.kind, first.kind == BoundKind::abs ? sum : up(sum + up(first.value * second.value))};
}

void h5_write_record(hid_t dataset, const LossyRecord& record) {
  write_text(dataset, kName, "quern");
  write_text(dataset, kKind, record.bound.kind == BoundKind::abs ? kAbsolute : kPointwise);
  write_number(dataset, kBound, record.bound.value);
  write_text(dataset, kRequested, record.requested);
  write_text(dataset, kSoftware, "quern " QUERN_VERSION);
  if (record.accumulated) write_number(dataset, kAccumulated, *record.accumulated);
}

bool h5_is_record(const std::string& attribute) {
  for (const char* name : {kName, kKind, kBound, kRequested, kSoftware, kAccumulated})
    if (attribute == name) return true;
  return false;
}

}  // namespace quern::cli
